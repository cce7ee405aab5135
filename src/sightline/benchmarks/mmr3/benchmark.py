"""MM-R3: consistency under rephrased questions, restyled images and masked objects (Chou et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sightline.benchmarks.groups.benchmark import OPTIONS, SAMPLING, SAMPLING_SOURCE, Groups
from sightline.benchmarks.mmr3.data import assigned_values, task_file
from sightline.benchmarks.options import BenchmarkOption, Setting, by_name
from sightline.formats.group_file import read_groups
from sightline.formats.groups import by_group
from sightline.formats.prediction import AnswerFiles


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
