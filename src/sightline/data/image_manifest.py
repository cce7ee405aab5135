"""What is noted of the images that a data folder has by url: `image_manifest.json`, and the journal before it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field

from sightline.errors import UserError
from sightline.formats.digests import changed
from sightline.formats.files import read_bytes, write_atomically
from sightline.formats.journal import Done, Journal

MANIFEST = "image_manifest.json"
_HEADER = {"kind": "images by url"}


class Kept(Struct, frozen=True):
    """An image that is there: its path in the data folder, and the SHA-256 of its content."""

    path: str
    sha256: str


class Lost(Struct, frozen=True):
    """A url that gave no image: the path it would have had, the reason in a word or two, the detail."""

    path: str
    reason: str
    detail: str


class Manifest(Struct, frozen=True):
    """What is known of the images of a data folder, by url: the whole of image_manifest.json."""

    images: Mapping[str, Kept] = field(default_factory=dict)
    missing: Mapping[str, Lost] = field(default_factory=dict)
    schema: int = 1


def begin(journal: Journal) -> None:
    """Make the journal one of images by url, unless it is one already that a kill left behind."""
    if journal.header() != _HEADER:
        journal.begin(_HEADER)


def note(journal: Journal, url: str, kept: Kept) -> None:
    """Write down at once that an image is there; EnvironmentFailedError where the disk refuses."""
    journal.add([Done(url, "", files={kept.path: kept.sha256})])


def read(folder: Path, journal: Journal) -> Manifest:
    """What earlier calls noted, that of a journal of one that was killed too; UserError where the manifest is
    none."""
    path, known = folder / MANIFEST, Manifest()
    if path.is_file():
        try:
            known = msgspec.json.decode(read_bytes(path), type=Manifest)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UserError(
                f"is no list of images: {error}",
                file=path,
                expected="that file as it was written, or none: the images are then looked at anew",
            ) from None
    since = {
        url: Kept(name, digest) for url, done in journal.read().items() for name, digest in done.files.items()
    }
    missing = {url: lost for url, lost in known.missing.items() if url not in since}
    return Manifest({**known.images, **since}, missing)


def unchanged(wanted: Mapping[str, str], folder: Path, known: Mapping[str, Kept]) -> dict[str, Kept]:
    """The images that are there as they were noted."""
    noted = {url: known[url] for url, path in wanted.items() if url in known and known[url].path == path}
    stale = set(changed(folder, {kept.path: kept.sha256 for kept in noted.values()}))
    return {url: kept for url, kept in noted.items() if kept.path not in stale}


def write(manifest: Manifest, folder: Path) -> None:
    """Write image_manifest.json; EnvironmentFailedError where the disk refuses."""
    content = msgspec.json.encode(manifest, order="sorted")
    write_atomically(folder / MANIFEST, [msgspec.json.format(content, indent=1), b"\n"])
