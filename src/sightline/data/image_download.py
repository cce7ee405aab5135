"""Downloads the images that a data set names by URL: a few at a time, each once, every failure recorded.

An image gets its final name only when it is complete and was decoded to its last pixel. At the end
`image_manifest.json` lists every image with its SHA-256, and every URL that failed with the reason. After a
kill the same call continues: images with their final name are not requested again, and partial downloads
start anew.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct, field

from sightline.data.archives import write_error
from sightline.data.image_fetcher import DownloadError, FetchLimits, ImageFetcher
from sightline.errors import UserError
from sightline.formats.files import changed_files, read_bytes, text_digest, write_atomically
from sightline.formats.journal import Journal
from sightline.formats.tables import read_table, table_rows
from sightline.images import BadImage, decode, inspect_image
from sightline.progress import Advance, progress
from sightline.text import decode_json, json_records
from sightline.types import ImageRef


class ImageDownload(Struct, frozen=True):
    """The result of a download.

    `requested` counts URLs, `present` images that were on disk before or were copied from another folder,
    `downloaded` all others. `missing` are the failed URLs; `unusable` says why images of the other folder
    were not copied.
    """

    requested: int
    present: int
    downloaded: int
    missing: Mapping[str, MissingImage]
    unusable: tuple[str, ...] = ()


def download_images(
    requested: Mapping[str, str],
    folder: Path,
    *,
    copy_from: Path | None = None,
    allow_private: bool = False,
    limits: FetchLimits | None = None,
    show_progress: bool = False,
) -> ImageDownload:
    """Download images into a data folder; a failed URL does not stop the others.

    `limits`: limits on time, size and load; None for the defaults.
    """
    with (
        warnings.catch_warnings(),
        # Its lock: one process at a time downloads into a folder.
        Journal(folder, "--to") as journal,
        # One thread, so that only one image at a time is decoded in memory.
        ThreadPoolExecutor(1) as decoder,
    ):
        # Pillow warns about images that are large but within our limits.
        warnings.simplefilter("ignore")
        downloads = _Downloads(requested, _Folders(folder, copy_from), journal, decoder)
        with progress(
            "images", len(requested), "images", done=downloads.settled, show_progress=show_progress
        ) as advance:
            asyncio.run(downloads.run(limits or FetchLimits(), allow_private, advance))
        return downloads.finish()


class _Folders(NamedTuple):
    """The data folder, and the folder to copy images from."""

    data: Path
    copy_from: Path | None


class _Downloads:
    """The images of one call: those on disk, those that failed, and those still to do."""

    def __init__(
        self,
        requested: Mapping[str, str],
        folders: _Folders,
        journal: Journal,
        decoder: ThreadPoolExecutor,
    ) -> None:
        self._requested, self._folder, self._copy_from = requested, folders.data, folders.copy_from
        self._journal, self._decoder = journal, decoder
        self._recorded = read_image_manifest(self._folder)
        self._missing = dict(refused_paths(requested))
        self._paths = {url: path for url, path in requested.items() if url not in self._missing}
        remove_partial_files(self._folder / path for path in self._paths.values())
        self._stored = unchanged_images(self._paths, self._folder, self._recorded.images)
        self._unusable: list[str] = []
        self._downloaded = 0

    @property
    def settled(self) -> int:
        """The number of URLs that need no more work."""
        return len(self._stored) + len(self._missing)

    async def run(self, limits: FetchLimits, allow_private: bool, advance: Advance) -> None:
        """Process all remaining URLs, a few at a time. Raises EnvironmentFailedError if the disk fails."""
        urls = iter([url for url in self._paths if url not in self._stored])
        try:
            fetcher = ImageFetcher(limits, allow_private=allow_private)
            async with aclosing(fetcher), asyncio.TaskGroup() as tasks:
                for _ in range(limits.concurrency):
                    tasks.create_task(self._process(urls, fetcher, advance))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None

    def finish(self) -> ImageDownload:
        """Write the manifest, keep its entries of other URLs, and remove the journal."""
        images = {url: result for url, result in self._recorded.images.items() if url not in self._requested}
        missing = {
            url: result for url, result in self._recorded.missing.items() if url not in self._requested
        }
        manifest = ImageManifest({**images, **self._stored}, {**missing, **self._missing})
        write_image_manifest(manifest, self._folder)
        self._journal.discard()
        return ImageDownload(
            requested=len(self._requested),
            present=len(self._stored) - self._downloaded,
            downloaded=self._downloaded,
            missing=self._missing,
            unusable=tuple(self._unusable),
        )

    async def _process(self, urls: Iterator[str], fetcher: ImageFetcher, advance: Advance) -> None:
        """Take URLs until none is left, and get the image or the reason of the failure for each."""
        for url in urls:
            path = self._paths[url]
            try:
                self._stored[url] = StoredImage(path, await self._obtain(url, path, fetcher))
            except DownloadError as error:
                self._missing[url] = MissingImage(path, error.reason, error.detail)
            advance(1)

    async def _obtain(self, url: str, path: str, fetcher: ImageFetcher) -> str:
        """Put an image at its final path; returns its SHA-256. Raises DownloadError."""
        final = self._folder / path
        # An image with another content than the recorded one was changed, by a user or by a disk.
        if url not in self._recorded.images and (digest := await self._digest_if_sound(self._folder, path)):
            return digest
        partial = partial_path(final, url)
        create_parent(final, self._folder)
        try:
            if digest := await self._copy(path, partial):
                move_to_final(partial, final)
            else:
                digest = await self._fetch(url, partial, fetcher)
                move_to_final(partial, final)
                self._downloaded += 1
        finally:
            partial.unlink(missing_ok=True)
        return digest

    async def _copy(self, path: str, partial: Path) -> str:
        """Copy an image of the other folder; returns its SHA-256, or '' if there is no sound one."""
        if self._copy_from is None or not os.path.lexists(self._copy_from / path):
            return ""
        try:
            await self._verified_digest(self._copy_from / path, self._copy_from)
        except BadImage as error:
            self._unusable.append(str(error))
            return ""
        await asyncio.to_thread(copy_image, self._copy_from / path, partial)
        return await self._digest_if_sound(self._folder, str(partial.relative_to(self._folder)))

    async def _digest_if_sound(self, folder: Path, path: str) -> str:
        """The SHA-256 of an image in a folder, or '' if it is missing or broken."""
        if not os.path.lexists(folder / path):
            return ""
        try:
            return await self._verified_digest(folder / path, folder)
        except BadImage:
            return ""

    async def _fetch(self, url: str, partial: Path, fetcher: ImageFetcher) -> str:
        media_type = await fetcher.fetch(url, partial)
        try:
            return await self._verified_digest(partial, self._folder)
        except BadImage as error:
            problem = str(error).removeprefix(f"{partial}: ")
            raise DownloadError("not an image", f"{problem}; the server calls it {media_type}") from None

    async def _verified_digest(self, path: Path, root: Path) -> str:
        """Decode an image to its last pixel; returns its SHA-256. Raises BadImage."""
        return await asyncio.get_running_loop().run_in_executor(self._decoder, _decoded_digest, path, root)


def _decoded_digest(path: Path, root: Path) -> str:
    file = inspect_image(ImageRef(str(path), str(root)), {})
    decode(file)
    return file.digest


# -- Writes images into a data folder: never outside it, and under the final name only when complete

_PARTIAL = "sightline-"
_BAD_NAME = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)
"""The system's errors for a name that no file can have here, whatever the disk and the permissions are."""


def refused_paths(requested: Mapping[str, str]) -> Iterator[tuple[str, MissingImage]]:
    """Find URLs whose path is outside the folder of images, or is used by an earlier URL."""
    used: dict[str, str] = {}
    for url, path in requested.items():
        parts = PurePosixPath(path).parts
        if len(parts) < 2 or parts[0] == "/" or ".." in parts or "\0" in path:
            yield url, MissingImage(path, "name refused", "is outside the folder of images")
        elif path.casefold() in used:
            yield url, MissingImage(path, "name refused", f"is used by {used[path.casefold()]} already")
        else:
            used[path.casefold()] = url


def partial_path(final: Path, url: str) -> Path:
    """Name the file that an image is written to before it is complete."""
    return final.with_name(f"{_PARTIAL}{text_digest(url)[:16]}.part")


def remove_partial_files(finals: Iterable[Path]) -> None:
    """Remove the incomplete files that killed processes left behind."""
    for folder in {final.parent for final in finals}:
        # A folder whose name is invalid holds nothing.
        with suppress(DownloadError), _name_errors(folder):
            for pattern in (f"{_PARTIAL}*.part", f".{_PARTIAL}*.tmp"):
                for partial in folder.glob(pattern):
                    partial.unlink()


def create_parent(final: Path, folder: Path) -> None:
    parent = os.path.realpath(final.parent)
    if not parent.startswith(os.path.join(os.path.realpath(folder), "")):
        raise DownloadError("name refused", f"is outside {folder}: {final.parent}")
    with _name_errors(final):
        final.parent.mkdir(parents=True, exist_ok=True)


def copy_image(origin: Path, partial: Path) -> None:
    """Copy an image of another folder to its partial path; fails as `create_parent` does."""
    with _name_errors(partial):
        shutil.copyfile(origin, partial)


def move_to_final(partial: Path, final: Path) -> None:
    """Give a complete image its final name; fails as `create_parent` does."""
    with _name_errors(final):
        partial.replace(final)


@contextmanager
def _name_errors(path: Path) -> Iterator[None]:
    """Raise DownloadError for an invalid name, and EnvironmentFailedError for any other disk error."""
    try:
        yield
    except OSError as error:
        if error.errno in _BAD_NAME:
            raise DownloadError("name refused", f"{error.strerror}: {path}") from None
        raise write_error(path, error) from None


# -- `image_manifest.json`: which images of a data folder were downloaded from which URL, and which failed

IMAGE_MANIFEST = "image_manifest.json"


class StoredImage(Struct, frozen=True):
    """A downloaded image: its path in the data folder and the SHA-256 of its content."""

    path: str
    sha256: str


class MissingImage(Struct, frozen=True):
    """A URL whose download failed: the path for its image, the reason in a few words, and the detail."""

    path: str
    reason: str
    detail: str


class ImageManifest(Struct, frozen=True):
    """The content of image_manifest.json, by URL."""

    images: Mapping[str, StoredImage] = field(default_factory=dict)
    missing: Mapping[str, MissingImage] = field(default_factory=dict)
    schema: int = 1


def read_image_manifest(folder: Path) -> ImageManifest:
    path = folder / IMAGE_MANIFEST
    if not path.is_file():
        return ImageManifest()
    expected = "the file as `data pull` wrote it, or no file: the images are then checked again"
    return decode_json(read_bytes(path), ImageManifest, path, "an image manifest", expected=expected)


def unchanged_images(
    requested: Mapping[str, str], folder: Path, stored: Mapping[str, StoredImage]
) -> dict[str, StoredImage]:
    """Find the images that are on disk with the recorded content."""
    recorded = {
        url: stored[url] for url, path in requested.items() if url in stored and stored[url].path == path
    }
    stale = set(changed_files(folder, {image.path: image.sha256 for image in recorded.values()}))
    return {url: image for url, image in recorded.items() if image.path not in stale}


def write_image_manifest(manifest: ImageManifest, folder: Path) -> None:
    content = msgspec.json.encode(manifest, order="sorted")
    write_atomically(folder / IMAGE_MANIFEST, [msgspec.json.format(content, indent=1), b"\n"])


# -- A table of image URLs that a user made: which image is stored under which path

IMAGES = "images"
"""The subfolder of the images, as in the released data sets."""


class PulledTable(Struct, frozen=True):
    """The images of a table on disk, in `folder`."""

    folder: str
    table: str
    images: ImageDownload


def pull_table(
    table: Path, to: Path, copy_from: Path | None, *, allow_private: bool, show_progress: bool
) -> PulledTable:
    """Download the images of a table; a failed URL does not stop the others."""
    requested, folder = read_url_table(table), to / table.stem
    images = download_images(
        requested,
        folder,
        copy_from=copy_from,
        allow_private=allow_private,
        show_progress=show_progress,
    )
    return PulledTable(str(folder), str(table), images)


def read_url_table(table: Path) -> dict[str, str]:
    """Read the URLs of a table: CSV, TSV, xlsx, JSON Lines or a JSON list.

    The column `url` is required. The column `image` is the path below `images/`; by default it is made of the
    host and the path of the URL. Other columns may exist.
    """
    content = read_bytes(table)
    is_json = content.lstrip()[:1] in (b"{", b"[")
    rows = json_records(content, table) if is_json else table_rows(read_table(content, table), table)
    paths: dict[str, str] = {}
    for where, row in rows:
        url, image = row.get("url"), row.get("image") or ""
        if not isinstance(url, str) or not url.strip() or not isinstance(image, str):
            raise UserError(
                "has no URL of an image",
                file=table,
                record=where,
                found=", ".join(row) if "url" not in row else repr(url),
                expected="a column url, and optionally a column image (the path below images/)",
            )
        url = url.strip()
        path = str(PurePosixPath(IMAGES, image.strip() or _path_of(url)))
        if paths.setdefault(url, path) != path:
            raise UserError(
                "the URL occurs twice, with two paths",
                file=table,
                record=where,
                field="image",
                found=path,
                expected=paths[url],
            )
    return paths


def _path_of(url: str) -> str:
    try:
        parts = urlsplit(url)
        return f"{parts.hostname or ''}/{unquote(parts.path).lstrip('/')}"
    except ValueError:
        return url  # The download says what is wrong with it.
