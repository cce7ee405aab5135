"""manifest.json: the content of a built folder, what it was built from, and the fingerprint of the build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

import sightline
from sightline.decoding import decode_json
from sightline.errors import UserError
from sightline.formats.content import read_bytes
from sightline.formats.digests import file_digest, json_digest
from sightline.formats.files import write_atomically
from sightline.formats.journal import header_of

MANIFEST = "manifest.json"


class BuildIdentity(Struct, frozen=True):
    """What a folder is built from.

    `header` holds kind, settings and versions, which a message can print. `fingerprint` is a digest of
    everything that decides the content: equal fingerprints mean equal bytes.
    """

    header: Mapping[str, Any]
    fingerprint: str


class ExcludedFolder(Struct, frozen=True):
    """A built folder whose images are excluded: its name, its manifest's SHA-256, its number of images."""

    folder: str
    manifest: str
    images: int


class BuildManifest(Struct, frozen=True):
    """The content of manifest.json.

    Attributes:
        versions: Versions of the software that may change bytes.
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


def build_identity(
    kind: str,
    settings: Mapping[str, Any],
    *content: Any,
    versions: Mapping[str, str] | None = None,
) -> BuildIdentity:
    """Identify a build.

    Args:
        versions: Versions of other software that may change bytes; Sightline's own is always included.
    """
    header = {
        "kind": kind,
        "settings": settings,
        "versions": {"sightline": sightline.__version__, **(versions or {})},
    }
    return BuildIdentity(header, json_digest([header, *content] if content else header))


def read_manifest(folder: Path) -> BuildManifest:
    """Read the manifest of a built folder."""
    path = folder / MANIFEST
    if not path.is_file():
        problem = "is not finished" if header_of(folder) else "is not a folder of `sightline build`"
        raise UserError(problem, file=folder, expected=f"a folder with {MANIFEST}")
    return decode_json(read_bytes(path), BuildManifest, path, "a manifest")


def write_manifest(manifest: BuildManifest, folder: Path) -> None:
    """Write manifest.json. Write it last: a folder with a manifest counts as finished."""
    write_atomically(folder / MANIFEST, [indented_json(manifest)])


def read_excluded(folders: Sequence[Path]) -> tuple[tuple[ExcludedFolder, ...], dict[str, str]]:
    """Read which images the folders of `--apart-from` use."""
    excluded: list[ExcludedFolder] = []
    folder_of: dict[str, str] = {}
    for folder in folders:
        images = set(read_manifest(folder).sources.values())
        name = folder.resolve().name
        folder_of.update(dict.fromkeys(images, name))
        excluded.append(ExcludedFolder(name, file_digest(folder / MANIFEST), len(images)))
    return tuple(excluded), folder_of


def image_versions() -> dict[str, str]:
    """Versions of the software that writes images; another version may write other bytes."""
    import PIL
    from PIL import features

    codecs = {name: features.version(name) or "" for name in ("jpg", "zlib")}
    return {"pillow": PIL.__version__, **codecs}


def indented_json(content: Any) -> bytes:
    """Encode data as the indented JSON of manifests and reports."""
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def describe_difference(old: Any, new: Mapping[str, Any]) -> str:
    """Describe how two builds differ.

    Returns:
        The differences of kind, settings and versions; '' if there are none.

    >>> one = {"kind": "mask", "settings": {"seed": 1}, "versions": {}}
    >>> describe_difference(one, {**one, "settings": {"seed": 2}})
    'seed 1 instead of 2'
    """
    if not isinstance(old, dict) or old.get("kind") != new["kind"]:
        return f"kind {old.get('kind') if isinstance(old, dict) else old!r} instead of {new['kind']!r}"
    differences = []
    for part in ("settings", "versions"):
        before = old.get(part) or {}
        keys = [key for key in {**before, **new[part]} if before.get(key) != new[part].get(key)]
        differences += [f"{key} {before.get(key)!r} instead of {new[part].get(key)!r}" for key in keys]
    return ", ".join(differences)
