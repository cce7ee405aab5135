"""Fetches a public data set at its pinned revision: checked whole before it appears, or not there at all."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from msgspec import Struct

from sightline.benchmarks.base import defaults
from sightline.benchmarks.release import Release
from sightline.data.download import Refused, download
from sightline.data.unpack import unpack
from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.files import read_bytes
from sightline.formats.tables import read_table, table_rows
from sightline.images import BadImage, inspect_image
from sightline.registry import benchmark as find_benchmark
from sightline.types import Sample

if TYPE_CHECKING:
    from sightline.data.image_download import ImageDownload


class Pulled(Struct, frozen=True):
    """What was pulled, and where from; `fetched`: not all files were there already.

    `images` is what became of those that the records name by url, None where they name none.
    """

    folder: str
    repository: str
    revision: str
    paper: str
    licence: str
    fetched: bool
    images: ImageDownload | None


def pull_whole(
    source: Release, to: Path, origin: str | None, *, allow_private: bool, show_progress: bool
) -> Pulled:
    """Put the data set into `to`, its images too; errors as `pull` and `download_images`."""
    folder, fetched = pull(source, to, origin=origin, show_progress=show_progress)
    images = None
    if source.image_urls:
        from sightline.data.image_download import download_images

        beside = Path(origin) if origin is not None and Path(origin).is_dir() else None
        images = download_images(
            image_paths(source, folder),
            folder,
            copy_from=beside,
            allow_private=allow_private,
            show_progress=show_progress,
        )
    return Pulled(
        folder=str(folder),
        repository=source.repository,
        revision=source.revision,
        paper=source.paper,
        licence=source.licence,
        fetched=fetched,
        images=images,
    )


def pull(
    source: Release, to: Path, *, origin: str | None = None, show_progress: bool = False
) -> tuple[Path, bool]:
    """Put the data set into `to`/NAME; returns that folder, and whether anything had to be fetched for it.

    `origin` is another place of the archive: a file, or an http(s) address; of a data set without images in
    its repository it may be a folder that holds its files. Raises UserError where it is not that of the
    pinned revision, or where another folder is in the way; EnvironmentFailedError where the public archive cannot
    be had or the disk refuses. A download that broke off is gone on with.
    """
    target = to / source.name
    if _is_there(target, source):
        return target, False
    made = not to.exists()
    try:
        _make(to)
        if origin is not None and not source.images and Path(origin).is_dir():
            with _beside(target) as fresh:
                _copy(source, Path(origin), fresh)
                _finish(source, fresh, target)
        else:
            with _archive(source, to, origin, show_progress) as archive, _beside(target) as fresh:
                unpack(archive, source, fresh)
                _finish(source, fresh, target)
    except Refused as reason:
        raise _refusal(source, origin, reason) from None
    finally:
        if made:
            with contextlib.suppress(OSError):
                to.rmdir()
    return target, True


def verify(source: Release, folder: Path) -> None:
    """Raise Refused where the folder is not the release: files by digest, images that came with them."""
    for file in source.contents:
        _compare(folder, file.path, file.accepted)
    if source.images:
        for records in source.records:
            _look_at_images(source, folder, records.split)


def load(source: Release, folder: Path, split: str) -> list[Sample]:
    """The samples of a split as its benchmark reads them; UserError where a record is wrong."""
    benchmark = find_benchmark(source.name)
    setting = next(iter(benchmark.settings.values()))
    return list(benchmark.samples(folder, split, {**defaults(benchmark, setting), "seed": 0}))


def image_paths(source: Release, folder: Path) -> dict[str, str]:
    """List the images that the records name by URL.

    Args:
        source: The data set; it declares `image_urls` and `image_path`.
        folder: The data folder with the records.

    Returns:
        Each URL once -> the image's path in the folder.
    """
    paths: dict[str, str] = {}
    if source.image_path is not None:
        for records in source.records:
            path = folder / records.name
            for _, record in table_rows(read_table(read_bytes(path), path), path):
                url = record[source.image_urls]
                paths.setdefault(url, source.image_path(url))
    return paths


def _compare(folder: Path, path: str, forms: Mapping[str, str]) -> None:
    """Raise Refused unless the folder holds one of the forms of a released file, with its digest."""
    for name, released in forms.items():
        if (folder / name).is_file():
            digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
            if digest != released:
                raise Refused(f"{path} has the SHA-256 {digest}, the release {released}")
            return
    raise Refused(f"{path} is not in it")


def _copy(source: Release, origin: Path, fresh: Path) -> None:
    """Copy the source's files from a folder that holds them by their names, or as the repository does."""
    for file in source.contents:
        for name in (*file.accepted, file.path):
            if (origin / name).is_file():
                shutil.copyfile(origin / name, fresh / Path(name).name)
                break


def _finish(source: Release, fresh: Path, target: Path) -> None:
    verify(source, fresh)
    _rename(fresh, target)


def _is_there(target: Path, source: Release) -> bool:
    """Whether the data set is there already, whole; UserError where something else is in its place."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return False
    try:
        verify(source, target)
    except Refused as reason:
        raise UserError(
            f"is there already and is not the release: {reason}",
            file=target,
            expected="that folder moved away, or another --to",
        ) from None
    return True


def _look_at_images(source: Release, folder: Path, split: str) -> None:
    images = {image.path: image for sample in load(source, folder, split) for image in sample.images}
    bad = []
    for image in images.values():
        try:
            inspect_image(image, {})
        except BadImage as error:
            bad.append(str(error).removeprefix(f"{folder}/"))
    if bad:
        raise Refused(f"{len(bad)} of {len(images)} images are missing or broken, first {bad[0]}")


@contextlib.contextmanager
def _archive(source: Release, to: Path, origin: str | None, show_progress: bool) -> Iterator[Path]:
    """The archive as a file: the user's own, or a download, which is kept only where it broke off."""
    if origin is not None and not origin.startswith(("https://", "http://")):
        if not Path(origin).is_file():
            raise Refused("is a folder" if Path(origin).is_dir() else "there is no such file")
        yield Path(origin)
        return
    url = origin or source.url
    part = to / f".{source.name}-{hashlib.sha256(url.encode()).hexdigest()[:12]}.part"
    try:
        download(url, part, show_progress=show_progress)
        yield part
    except Refused:
        part.unlink(missing_ok=True)
        raise
    part.unlink()


@contextlib.contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """A folder beside `target` that is gone afterwards, unless it was renamed."""
    try:
        with TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as folder:
            fresh = Path(folder) / target.name
            fresh.mkdir()
            yield fresh
    except OSError as error:
        raise EnvironmentFailedError(f"{target}: cannot be written: {error.strerror or error}") from None


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFailedError(f"{folder}: cannot be made: {error.strerror or error}") from None


def _rename(fresh: Path, target: Path) -> None:
    try:
        fresh.rename(target)
    except OSError as error:
        raise EnvironmentFailedError(f"{target}: cannot be put in place: {error.strerror or error}") from None


def _refusal(source: Release, origin: str | None, reason: Refused) -> UserError | EnvironmentFailedError:
    wanted = f"the .tar.gz of {source.repository} at {source.revision}"
    if not source.images:
        wanted += f", or a folder with {', '.join(file.name for file in source.contents)} of it"
    if origin is not None:
        return UserError(str(reason), file=origin, expected=wanted)
    return EnvironmentFailedError(f"{source.url}: {reason}; try again, or give {wanted} with --from")
