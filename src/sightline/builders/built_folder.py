"""Writes built folders: locks a folder, resumes after a kill, copies images, writes the manifest last."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field, structs

from sightline.builders.image_io import ENDINGS
from sightline.builders.manifest import (
    MANIFEST,
    BuildIdentity,
    BuildManifest,
    ExcludedFolder,
    describe_difference,
    read_manifest,
    write_manifest,
)
from sightline.errors import EnvironmentFailedError, UserError, some_of
from sightline.formats.digests import changed_files, file_digest, file_digest_or_error
from sightline.formats.files import refuse_unwritable, write_atomically
from sightline.formats.groups import GroupLine, write_groups
from sightline.formats.journal import JOURNAL, Journal, header_of
from sightline.images import BadImage, read_bytes
from sightline.types import ImageFile

GROUPS, IMAGES = "groups.jsonl", "images"

REASONS = 3
"""Dropped sources that an error names."""

ManifestT = TypeVar("ManifestT", bound=BuildManifest)


class Contents(Struct, frozen=True, kw_only=True):
    """What a builder writes in addition to the images, and what its manifest records."""

    groups: int
    probes: int
    lines: Sequence[GroupLine] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    sources: Mapping[str, str]
    dropped: Mapping[str, str]
    passed_over: Mapping[str, int] = field(default_factory=dict)
    excluded: tuple[ExcludedFolder, ...] = ()


class BuiltFolder:
    """A folder that is being built, locked against other processes. `open_folder` makes it."""

    def __init__(self, path: Path, identity: BuildIdentity, journal: Journal) -> None:
        self.path = path
        self.identity = identity
        self.journal = journal

    @property
    def finished(self) -> bool:
        """Whether the folder has its manifest."""
        return (self.path / MANIFEST).exists()

    def begin(self) -> None:
        """Start or resume this build; whatever it finished before a kill stays.

        The journal names the new build before anything of an old build is removed, and the old manifest goes
        first. After a kill at any moment the folder is either the old one, complete, or one that was begun.
        """
        if not self.finished and self.journal.header() == self.identity.header:
            return
        made = read_manifest(self.path).made if self.finished else {}
        tables = [name for name in made if Path(name).name == name]
        self.journal.begin(self.identity.header)
        try:
            for name in (MANIFEST, GROUPS, *tables):
                (self.path / name).unlink(missing_ok=True)
        except OSError as error:
            raise _unwritable(self.path, error) from None
        self.remove_images_except(())

    def remove_images_except(self, paths: Collection[str]) -> None:
        """Remove all other images, and files that killed processes left half-written."""
        images = self.path / IMAGES
        try:
            images.mkdir(exist_ok=True)
            for path in images.rglob("*"):
                if path.is_file() and path.relative_to(self.path).as_posix() not in paths:
                    path.unlink()
            for name in (GROUPS, MANIFEST):
                for path in self.path.glob(f".{name}.*.tmp"):
                    path.unlink()
        except OSError as error:
            raise _unwritable(self.path, error) from None

    @contextmanager
    def remove_partial_images_on_error(self) -> Iterator[None]:
        """Remove the files that interrupted worker processes left half-written, if the block ends early."""
        try:
            yield
        except BaseException:
            for path in (self.path / IMAGES).rglob(".*.tmp"):
                # The error that ended the block is the one to report.
                with suppress(OSError):
                    path.unlink()
            raise

    def copy_images(self, images: Mapping[str, ImageFile]) -> dict[str, str]:
        """Copy images unchanged into the folder, and remove all other images."""
        self.remove_images_except(images.keys())
        add_images(images, self.path)
        return {name: file.digest for name, file in images.items()}

    def finish(
        self,
        contents: Contents,
        images: Mapping[str, str],
        manifest: Callable[..., ManifestT],
    ) -> ManifestT:
        """Write the files and the manifest, and remove the journal."""
        if contents.lines:
            write_groups(contents.lines, self.path / GROUPS)
        for name, content in contents.files.items():
            write_atomically(self.path / name, [content])
        names = [*([GROUPS] if contents.lines else []), *contents.files]
        whole = manifest(
            **self.identity.header,
            groups=contents.groups,
            probes=contents.probes,
            images=len(images),
            fingerprint=self.identity.fingerprint,
            apart_from=contents.excluded,
            dropped=contents.dropped,
            passed_over=contents.passed_over,
            sources=contents.sources,
            made={**{name: file_digest(self.path / name) for name in names}, **images},
        )
        write_manifest(whole, self.path)
        self.journal.discard()
        return whole


@contextmanager
def open_folder(path: Path, identity: BuildIdentity, *, force: bool) -> Iterator[BuiltFolder]:
    """Lock a folder for a build."""
    refuse_other_contents(path, identity, force=force)
    with Journal(path) as journal:
        # Another process may have built there since.
        refuse_other_contents(path, identity, force=force)
        yield BuiltFolder(path, identity, journal)


def write_folder(
    path: Path,
    identity: BuildIdentity,
    contents: Contents,
    images: Mapping[str, ImageFile],
    *,
    manifest: Callable[..., ManifestT],
    force: bool = False,
) -> ManifestT:
    """Write a whole built folder: copied images, files and, last, the manifest.

    Returns:
        The manifest. The same arguments always write the same bytes.
    """
    with open_folder(path, identity, force=force) as folder:
        folder.begin()
        return folder.finish(contents, folder.copy_images(images), manifest)


def built_image_path(stem: str, image_format: str) -> str:
    return f"{IMAGES}/{stem}{ENDINGS[image_format][0]}"


def refuse_out_inside_inputs(out: Path, inputs: Iterable[Path]) -> None:
    """Refuse an output folder that overlaps with the inputs.

    A folder built inside a folder of images would be read as images by the next command. An input inside the
    output folder would be replaced.
    """
    for one in inputs:
        target, source = out.resolve(), one.resolve()
        if source.is_dir() and target.is_relative_to(source):
            raise UserError(
                "is inside the image folder: the next build would read its images as input",
                file=out,
                expected=f"an --out outside {one}",
            )
        if source.is_relative_to(target):
            raise UserError(f"contains the input {one}", file=out, expected="another --out")


def refuse_other_contents(out: Path, identity: BuildIdentity, *, force: bool) -> None:
    """Refuse a folder that cannot be written or holds anything but this build, begun or finished."""
    if out.exists() and not out.is_dir():
        raise UserError("is not a folder", file=out, expected="a folder for --out")
    refuse_unwritable(out)
    difference = _difference(out, identity)
    if difference and not force:
        raise UserError(
            f"holds another build: {difference}",
            file=out,
            expected="another --out, or --force to rebuild it",
        )


def refuse_changed_files(folder: Path, manifest: BuildManifest) -> None:
    """Check that a finished folder is as it was built."""
    others = changed_files(folder, manifest.made)
    if others:
        raise UserError(
            f"{len(others):,} of the files built there are missing or changed, first {others[0]}",
            file=folder,
            expected="the folder as it was built, or --force to rebuild it",
        )


def add_images(images: Mapping[str, ImageFile], folder: Path) -> None:
    """Copy images unchanged into a folder and leave its other files alone."""
    for name, file in images.items():
        if file_digest_or_error(folder / name) == file.digest:
            continue
        try:
            _, content = read_bytes(file)
        except BadImage as error:
            raise EnvironmentFailedError(f"{error}; run the same command again to continue") from None
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(folder, error) from None
        write_atomically(folder / name, [content])


def everything_dropped(dropped: Mapping[str, str], what: str) -> UserError:
    """The error for a build without any usable source."""
    if not dropped:
        return UserError(f"there are no {what}", expected="at least one")
    reasons = some_of([f"{name}: {reason}" for name, reason in dropped.items()], REASONS, separator="; ")
    return UserError(
        f"all {len(dropped):,} {what} are dropped ({reasons})", expected=f"at least one usable {what}"
    )


def _difference(out: Path, identity: BuildIdentity) -> str:
    """How the folder's build differs from this one, '' if equal; UserError if no builder made the folder."""
    if (out / MANIFEST).exists():
        built = read_manifest(out)
        if built.fingerprint == identity.fingerprint:
            return ""
        return (
            describe_difference(structs.asdict(built), identity.header)
            or "other sources, images or --apart-from"
        )
    begun = header_of(out)
    if begun is not None:
        return describe_difference(begun, identity.header)
    if not any(path.is_file() and path.name != JOURNAL for path in out.rglob("*")):
        return ""
    # A kill during Journal.begin can cut off the journal's first line.
    if (out / JOURNAL).exists():
        return "its journal is incomplete"
    raise UserError("contains something else", file=out, expected="an empty or a new folder for --out")


def _unwritable(folder: Path, error: OSError) -> EnvironmentFailedError:
    return EnvironmentFailedError(f"{error.filename or folder}: cannot be written: {error.strerror or error}")
