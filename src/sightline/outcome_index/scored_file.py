"""Answers that another tool collected, judged by the rules: a results folder for each model of the file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

from sightline.evaluation.score import score_file
from sightline.formats.read import read_predictions
from sightline.plan.effective import setting_of, variant_of
from sightline.plan.spec import Spec
from sightline.registry import benchmark as find_benchmark


class AnswerTask(NamedTuple):
    """What answers are to: the task, and the split of its data (None for the benchmark's first)."""

    task: str
    split: str | None = None


def scored_folders(file: Path, task: AnswerTask, data: Path | None, scratch: Path) -> list[Path]:
    """Score a file by rules, as `sightline score --allow-missing` does.

    Args:
        data: The data folder; None if the file holds questions and references.
    """
    benchmark = find_benchmark(task.task.partition(":")[0])
    variant = variant_of(benchmark, setting_of(benchmark, task.task))
    answers = read_predictions(file, benchmark.answer_files, setting=variant, allow_missing=True)
    folders = []
    for nth, model in enumerate(dict.fromkeys(answer.model for answer in answers)):
        folders.append(scratch / str(nth))
        spec = Spec(
            task=task.task,
            split=task.split,
            data=None if data is None else str(data),
            model=model,
            allow_missing=True,
            store=str(scratch / "judged.db"),
            out=str(folders[-1]),
        )
        asyncio.run(score_file(spec, str(file)))
    return folders
