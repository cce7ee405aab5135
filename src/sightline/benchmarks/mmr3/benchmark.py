"""MM-R3: consistency under rephrased questions, restyled images and masked objects (Chou et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sightline.benchmarks.base import BenchmarkOption, Setting, by_name
from sightline.benchmarks.groups.benchmark import OPTIONS, SAMPLING, SAMPLING_SOURCE, Groups
from sightline.benchmarks.groups.data import GROUPS
from sightline.errors import UserError
from sightline.formats.groups import ORIGINAL, GroupLine, by_group, read_groups
from sightline.formats.prediction import AnswerFiles
from sightline.text import UNDECODABLE


def _setting(task: str, summary: str, reproduces: str) -> Setting:
    return Setting(task, summary, reproduces, {"task": task}, SAMPLING, SAMPLING_SOURCE)


class MMR3(Groups):
    """Three tasks over groups files of `sightline build`: 1,172, 1,332 and 1,500 groups in the paper
    (3.2)."""

    name = "mmr3"
    title = "MM-R3: consistency under rephrasing, restyling and masking"
    citation = "Chou et al. 2024, MM-R3: On (In-)Consistency of Multi-modal Large Language Models"
    published = Path(__file__).with_name("published.json")
    released_digests = Path(__file__).with_name("released.json")
    answer_files = AnswerFiles(variants="'original', 'r1', 'm0', a style's name, ...")
    settings = by_name(
        _setting("rephrasing", "one question, three rephrasings", "Tables 2, 5, 7 and 9"),
        _setting("restyling", "one image, four styles", "Tables 3, 5, 7, 8, 9 and 10"),
        _setting("context", "one image, three maskings of an object", "Tables 4, 5, 7, 9 and 11-13"),
    )
    options: Mapping[str, BenchmarkOption] = {
        name: option for name, option in OPTIONS.items() if name != "task"
    }

    def groups_file(self, folder: Path | None, options: Mapping[str, Any]) -> Path:
        """The groups file of the setting's task."""
        return task_file(folder, options["task"])

    def released_records(
        self, folder: Path | None, split: str, options: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The places and maskings of the authors' label files; nothing else of the data was released."""
        if folder is None and options["file"] is None:
            return {}
        return assigned_values(by_group(read_groups(self.file(folder, options))), options["task"])


# -- Finds the groups file of a task of MM-R3 in a data folder

_BUILDERS = {"rephrasing": "rephrase", "restyling": "restyle", "context": "mask"}
"""Task -> the kind of builder that makes its groups."""


class _BuiltManifest(Struct):
    """The field of a built folder's manifest that names its builder."""

    kind: str


def task_file(folder: Path | None, task: str) -> Path:
    """Find the groups file of a task: in the subfolder of that name, or in the data folder itself."""
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
