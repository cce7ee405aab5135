"""`image_manifest.json`: which images of a data folder were downloaded from which URL, and which failed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field

from sightline.decoding import decode_json
from sightline.formats.content import read_bytes
from sightline.formats.digests import changed_files
from sightline.formats.files import write_atomically
from sightline.formats.journal import FinishedSource, Journal

IMAGE_MANIFEST = "image_manifest.json"
_HEADER = {"kind": "images by url"}


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


def begin_journal(journal: Journal) -> None:
    """Start a journal of image downloads, unless a killed process left one to continue."""
    if journal.header() != _HEADER:
        journal.begin(_HEADER)


def add_to_journal(journal: Journal, url: str, image: StoredImage) -> None:
    """Record an image on disk at once, so that a kill does not lose it."""
    journal.add([FinishedSource(url, "", files={image.path: image.sha256})])


def read_image_manifest(folder: Path, journal: Journal) -> ImageManifest:
    """Read the manifest, with the entries that a killed process left in the journal."""
    path, manifest = folder / IMAGE_MANIFEST, ImageManifest()
    if path.is_file():
        expected = "the file as `data pull` wrote it, or no file: the images are then checked again"
        manifest = decode_json(read_bytes(path), ImageManifest, path, "an image manifest", expected=expected)
    recorded = {
        url: StoredImage(name, digest)
        for url, done in journal.read().items()
        for name, digest in done.files.items()
    }
    missing = {url: image for url, image in manifest.missing.items() if url not in recorded}
    return ImageManifest({**manifest.images, **recorded}, missing)


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
    """Write image_manifest.json."""
    content = msgspec.json.encode(manifest, order="sorted")
    write_atomically(folder / IMAGE_MANIFEST, [msgspec.json.format(content, indent=1), b"\n"])
