"""Builds a folder of synthetic data once: a finished folder is checked and left as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sightline.builders.built_folder import refuse_changed_files
from sightline.builders.manifest import (
    MANIFEST,
    BuildManifest,
    build_identity,
    describe_difference,
    image_versions,
    read_manifest,
    write_manifest,
)
from sightline.errors import UserError
from sightline.formats.digests import file_digest
from sightline.formats.synthetic_marker import MARKER

KIND = "scenes"


def build_once(
    folder: Path, settings: Mapping[str, Any], generate: Callable[[Path], object], *, force: bool = False
) -> bool:
    """Generate synthetic data, unless the folder holds them already."""
    identity = build_identity(KIND, settings, versions=image_versions())
    if (folder / MANIFEST).exists():
        if not force and _is_finished(folder, identity.fingerprint, identity.header):
            return False
        (folder / MANIFEST).unlink()
    generate(folder)
    made = {name: file_digest(folder / name) for name in (folder / MARKER).read_text().splitlines()}
    images = {name: digest for name, digest in made.items() if name.endswith(".png")}
    manifest = BuildManifest(
        **identity.header,
        groups=0,
        probes=0,
        images=len(images),
        fingerprint=identity.fingerprint,
        sources=images,
        made=made,
    )
    write_manifest(manifest, folder)
    return True


def _is_finished(folder: Path, fingerprint: str, header: Mapping[str, Any]) -> bool:
    built = read_manifest(folder)
    if built.fingerprint != fingerprint:
        before = {"kind": built.kind, "settings": built.settings, "versions": built.versions}
        raise UserError(
            f"holds another build: {describe_difference(before, header)}",
            file=folder,
            expected="another --out, or --force to rebuild it",
        )
    refuse_changed_files(folder, built)
    return True
