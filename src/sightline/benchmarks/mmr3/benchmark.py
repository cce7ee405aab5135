"""MM-R3: the same question reworded, the same image restyled, the same object masked (Chou et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sightline.benchmarks.base import Setting
from sightline.benchmarks.groups.benchmark import OPTIONS, SAMPLING, SAMPLING_SOURCE, Groups
from sightline.benchmarks.groups.data import task_file


def mmr3() -> Groups:
    """Three tasks over what `sightline build` makes: 1,172, 1,332 and 1,500 groups in the paper (3.2)."""
    return Groups(
        name="mmr3",
        title="MM-R3: consistency under rephrasing, restyling and masking",
        citation="Chou et al. 2024, MM-R3: On (In-)Consistency of Multi-modal Large Language Models",
        settings=[
            _setting("rephrasing", "one question, three rephrasings", "Tables 2, 5, 7 and 9"),
            _setting("restyling", "one image, four styles", "Tables 3, 5, 7, 8, 9 and 10"),
            _setting("context", "one image, three maskings of an object", "Tables 4, 5, 7, 9 and 11-13"),
        ],
        options={name: option for name, option in OPTIONS.items() if name != "task"},
        locate=_task_file,
    )


def _setting(task: str, summary: str, reproduces: str) -> Setting:
    return Setting(task, summary, reproduces, {"task": task}, SAMPLING, SAMPLING_SOURCE)


def _task_file(folder: Path | None, options: Mapping[str, Any]) -> Path:
    return task_file(folder, options["task"])
