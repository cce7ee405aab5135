"""A builder's folder: what may be built there, and a beginning and an end that survive any kill."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from sightline.builders.manifest import MANIFEST, BuildManifest, difference, read_manifest, write_manifest
from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.digests import file_digest_or_error
from sightline.formats.files import refuse_unwritable, write_atomically
from sightline.formats.journal import JOURNAL, Journal, header_of
from sightline.images import BadImage, read_bytes
from sightline.types import ImageFile

GROUPS, IMAGES = "groups.jsonl", "images"

REASONS = 3
"""How many drops an error names."""


class BuildIdentity(Struct, frozen=True):
    """What is to be built: its kind, settings and versions in words, and a digest of all that counts."""

    header: Mapping[str, Any]
    fingerprint: str


def refuse_out_among(out: Path, inputs: Iterable[Path]) -> None:
    """Raise UserError where what is read (files and folders) and what is built would meet.

    What is built in a folder of images would be taken for one of them the next time; what is read out of
    the folder that is built would be replaced.
    """
    for one in inputs:
        place, source = out.resolve(), one.resolve()
        if source.is_dir() and place.is_relative_to(source):
            raise UserError(
                "lies in the folder of the images, where what is built would be taken for one of them",
                file=out,
                expected=f"an --out outside {one}",
            )
        if source.is_relative_to(place):
            raise UserError(f"holds {one}, which is read", file=out, expected="another --out")


def refuse_other_contents(out: Path, build: BuildIdentity, *, force: bool) -> None:
    """Raise UserError where the folder takes nothing, or holds anything but this build, begun or finished.

    `force` allows what another build left there, never anything else.
    """
    if out.exists() and not out.is_dir():
        raise UserError("is no folder", file=out, expected="a folder for --out")
    refuse_unwritable(out)
    differs = _difference(out, build)
    if differs and not force:
        raise UserError(
            f"was built from something else: {differs}",
            file=out,
            expected="another --out, or --force to build it anew",
        )


@contextmanager
def held(out: Path, build: BuildIdentity, *, force: bool) -> Iterator[Journal]:
    """The folder's journal, held against other processes; UserError where it holds something else by then."""
    refuse_other_contents(out, build, force=force)
    with Journal(out) as journal:
        # Another process may have built there since.
        refuse_other_contents(out, build, force=force)
        yield journal


def begin(out: Path, build: BuildIdentity, journal: Journal) -> None:
    """Make the folder one that this build has begun; what it finished before a kill stays.

    What another build left is removed only after the journal says what is built from now on, its manifest
    first: after a kill anywhere on the way the folder is still the old one, whole, or one that was begun.
    """
    if not (out / MANIFEST).exists() and journal.header() == build.header:
        return
    made = read_manifest(out).made if (out / MANIFEST).exists() else {}
    beside = [name for name in made if Path(name).name == name]
    journal.begin(build.header)
    try:
        for name in (MANIFEST, GROUPS, *beside):
            (out / name).unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(out, error) from None
    sweep(out, ())


def sweep(out: Path, kept: Collection[str]) -> None:
    """Remove all images but those (paths in the folder), and what killed processes left half-written."""
    try:
        (out / IMAGES).mkdir(exist_ok=True)
        for path in (out / IMAGES).rglob("*"):
            if path.is_file() and path.relative_to(out).as_posix() not in kept:
                path.unlink()
        for name in (GROUPS, MANIFEST):
            for path in out.glob(f".{name}.*.tmp"):
                path.unlink()
    except OSError as error:
        raise _unwritable(out, error) from None


def copy_images(images: Mapping[str, ImageFile], out: Path) -> dict[str, str]:
    """Copy images as they are to their paths in the folder, and remove all others; paths with SHA-256.

    EnvironmentFailedError where the disk refuses, or an image is no longer the one that was looked at.
    """
    sweep(out, images.keys())
    add_images(images, out)
    return {name: file.digest for name, file in images.items()}


def add_images(images: Mapping[str, ImageFile], out: Path) -> None:
    """The same beside what else is there; an image that is there already is left alone."""
    for name, file in images.items():
        if file_digest_or_error(out / name) == file.digest:
            continue
        try:
            _, content = read_bytes(file)
        except BadImage as error:
            raise EnvironmentFailedError(f"{error}; the same command goes on") from None
        try:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(out, error) from None
        write_atomically(out / name, [content])


@contextmanager
def nothing_half_written(out: Path) -> Iterator[None]:
    """Where this ends early, remove what processes that were ended in the middle of their work leave."""
    try:
        yield
    except BaseException:
        for path in (out / IMAGES).rglob(".*.tmp"):
            # What ended the work is what is to be told.
            with suppress(OSError):
                path.unlink()
        raise


def finish(out: Path, manifest: BuildManifest, journal: Journal) -> None:
    """Write the manifest, by which the folder counts as finished, and remove the journal."""
    write_manifest(manifest, out)
    journal.discard()


def nothing_left(dropped: Mapping[str, str], what: str) -> UserError:
    """The error where every source (`what` in the plural) was dropped, with the reasons."""
    if not dropped:
        return UserError(f"there are no {what} to work on", expected="at least one")
    shown = "; ".join(f"{name}: {reason}" for name, reason in islice(dropped.items(), REASONS))
    more = f"; and {len(dropped) - REASONS:,} more" if len(dropped) > REASONS else ""
    return UserError(
        f"all {len(dropped):,} {what} are dropped ({shown}{more})", expected="one at least that can be used"
    )


def _difference(out: Path, build: BuildIdentity) -> str:
    """In words how what the folder holds differs from the build; UserError where no builder made it."""
    if (out / MANIFEST).exists():
        built = read_manifest(out)
        if built.fingerprint == build.fingerprint:
            return ""
        return difference(structs.asdict(built), build.header) or "other sources, images or --apart-from"
    begun = header_of(out)
    if begun is not None:
        return difference(begun, build.header)
    if not any(path.is_file() and path.name != JOURNAL for path in out.rglob("*")):
        return ""
    # A kill while the journal was begun anew tears its first line off.
    if (out / JOURNAL).exists():
        return "its journal does not say what"
    raise UserError("holds something else", file=out, expected="an empty or a new folder for --out")


def _unwritable(out: Path, error: OSError) -> EnvironmentFailedError:
    return EnvironmentFailedError(f"{error.filename or out}: cannot be written: {error.strerror or error}")
