"""manifest.json: what a builder's folder holds, from what it was made, and how to know it again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

import sightline
from sightline.errors import UserError
from sightline.formats.digests import file_digest
from sightline.formats.files import read_bytes, write_atomically
from sightline.formats.journal import header_of

MANIFEST = "manifest.json"


class ExcludedFolder(Struct, frozen=True):
    """Another builder's folder, whose images must not occur: its name, its manifest's SHA-256, how many."""

    folder: str
    manifest: str
    images: int


class BuildManifest(Struct, frozen=True):
    """What a builder's folder holds and how it came about: the whole of manifest.json.

    `sources` maps the id of each source that was used to the SHA-256 of its image, `made` each file's path
    in the folder to its own, `dropped` the id of a source that was left out to the reason; `passed_over`
    counts by reason what never was a source (a question that is too short, an image without an object that
    fits). `versions` are
    those that may change bytes. `fingerprint` covers all that decides what is made.
    """

    kind: str
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    groups: int
    probes: int
    images: int
    fingerprint: str = ""
    apart_from: tuple[ExcludedFolder, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict)
    passed_over: Mapping[str, int] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    made: Mapping[str, str] = field(default_factory=dict)
    schema: int = 1


def read_manifest(folder: Path) -> BuildManifest:
    """What a builder's folder says of itself; UserError where it is none, or is not finished."""
    path = folder / MANIFEST
    if not path.is_file():
        what = "is not finished" if header_of(folder) else "is no folder of `sightline build`"
        raise UserError(what, file=folder, expected=f"a folder with {MANIFEST}")
    try:
        return msgspec.json.decode(read_bytes(path), type=BuildManifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"is no manifest: {error}", file=path) from None


def write_manifest(manifest: BuildManifest, folder: Path) -> None:
    """Write manifest.json; by it a folder counts as finished, so that it comes last."""
    write_atomically(folder / MANIFEST, [msgspec.json.format(msgspec.json.encode(manifest), indent=1), b"\n"])


def held_against(folders: Sequence[Path]) -> tuple[tuple[ExcludedFolder, ...], dict[str, str]]:
    """Other builders' folders as the manifest names them, and each image used there: SHA-256 -> folder.

    UserError where one is no finished folder of a builder.
    """
    apart: list[ExcludedFolder] = []
    held: dict[str, str] = {}
    for folder in folders:
        images = set(read_manifest(folder).sources.values())
        name = folder.resolve().name
        held.update(dict.fromkeys(images, name))
        apart.append(ExcludedFolder(name, file_digest(folder / MANIFEST), len(images)))
    return tuple(apart), held


def versions() -> dict[str, str]:
    """The versions of what writes images; another one may give other bytes."""
    import PIL
    from PIL import features

    codecs = {name: features.version(name) or "" for name in ("jpg", "zlib")}
    return {"sightline": sightline.__version__, "pillow": PIL.__version__, **codecs}


def fingerprint(content: Any) -> str:
    """The SHA-256 of plain data as JSON, keys in order."""
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


def difference(old: Any, new: Mapping[str, Any]) -> str:
    """In words how two builds (kind, settings, versions) differ; '' where they do not.

    >>> one = {"kind": "mask", "settings": {"seed": 1}, "versions": {}}
    >>> difference(one, {**one, "settings": {"seed": 2}})
    'seed 1 instead of 2'
    """
    if not isinstance(old, dict) or old.get("kind") != new["kind"]:
        return f"kind {old.get('kind') if isinstance(old, dict) else old!r} instead of {new['kind']!r}"
    found = []
    for part in ("settings", "versions"):
        before = old.get(part) or {}
        keys = [key for key in {**before, **new[part]} if before.get(key) != new[part].get(key)]
        found += [f"{key} {before.get(key)!r} instead of {new[part].get(key)!r}" for key in keys]
    return ", ".join(found)
