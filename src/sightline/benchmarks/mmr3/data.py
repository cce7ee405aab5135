"""Finds the groups file of a task of MM-R3 in a data folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sightline.benchmarks.groups.data import GROUPS
from sightline.decoding import UNDECODABLE
from sightline.errors import UserError
from sightline.formats.groups import ORIGINAL, GroupLine

_BUILDERS = {"rephrasing": "rephrase", "restyling": "restyle", "context": "mask"}
"""Task -> the kind of builder that makes its groups."""


class _BuiltManifest(Struct):
    """The field of a built folder's manifest that names its builder."""

    kind: str


def task_file(folder: Path | None, task: str) -> Path:
    """Find the groups file of a task: in the data folder's subfolder of that name, or in the folder itself.

    Args:
        folder: The data folder, or None.
    """
    if folder is None:
        raise UserError(
            f"no data folder for mmr3:{task}",
            expected=f"--data DIR or SIGHTLINE_DATA with the output of `sightline build {_BUILDERS[task]}`",
        )
    for candidate in (folder / task, folder / "mmr3" / task, folder):
        if (candidate / GROUPS).is_file():
            _refuse_other_task(candidate, task)
            return candidate / GROUPS
    if not folder.is_dir():
        raise UserError("this data folder does not exist", file=folder, expected=f"a folder with {GROUPS}")
    raise UserError(
        f"{GROUPS} is neither in this folder nor in its subfolder {task}",
        file=folder,
        expected=f"the output of `sightline build {_BUILDERS[task]} --out {folder / task}`",
    )


def assigned_values(groups: Mapping[str, Sequence[GroupLine]], task: str) -> dict[str, Any]:
    """Describe groups in the terms of the authors' label files.

    These files name the place in each image (indoor_labels.json, landmarks_labels.json), or its masked object
    and its three maskings (labels.json, types.json). No questions were released.

    Returns:
        Group -> its references, and for context the colour, number of lines and shape of each masking; none
        for rephrasing.
    """
    if task == "restyling":
        return {name: lines[0].references for name, lines in groups.items()}
    if task != "context":
        return {}
    return {
        name: [
            lines[0].references,
            {
                line.variant: [line.labels.get(label) for label in ("colour", "lines", "shape")]
                for line in lines
                if line.variant != ORIGINAL
            },
        ]
        for name, lines in groups.items()
    }


def _refuse_other_task(folder: Path, task: str) -> None:
    """Raise UserError if the manifest next to the groups file names the builder of another task."""
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        return
    try:
        kind = msgspec.json.decode(manifest.read_bytes(), type=_BuiltManifest).kind
    except (OSError, *UNDECODABLE):
        return
    if kind in _BUILDERS.values() and kind != _BUILDERS[task]:
        raise UserError(
            f"was made by `sightline build {kind}`",
            file=folder,
            expected=f"the output of `sightline build {_BUILDERS[task]}`, for mmr3:{task}",
        )
