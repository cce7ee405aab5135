"""What a file of answers says about its setting, and the setting under which the answers count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.options import FILE
from sightline.errors import UserError
from sightline.evaluation.prepared import PreparedTask
from sightline.formats.asked import as_asked, prompt_text
from sightline.formats.export import counted
from sightline.formats.prediction import Prediction
from sightline.formats.run_metadata import read_run_metadata
from sightline.formats.whole_results import METRICS
from sightline.models.base import Model
from sightline.types import Origin, Probe


def check_setting(file: Path, benchmark: Benchmark, setting: str, options: Mapping[str, Any]) -> None:
    """Check that the results folder of a file names the setting under which the file is scored.

    Options that make a task of their own (`Benchmark.task_arguments`) are compared too. The name of a
    setting that is a file is not compared: the file may have moved.
    """
    run = read_run_metadata(file.parent) if file.name == "answers.jsonl" else None
    if run is None:
        return
    run_setting = setting if FILE in benchmark.settings and run.benchmark == benchmark.name else run.setting
    answered = _task_name(run.benchmark, run_setting, benchmark.task_arguments(run.options))
    scored = _task_name(benchmark.name, setting, benchmark.task_arguments(options))
    if answered != scored:
        raise UserError(
            f"these answers belong to {answered}, as {METRICS} in the same folder says",
            file=file,
            expected=f"{answered} instead of {scored}",
        )


def replayed(model: Model, task: PreparedTask, draws: int) -> Iterator[tuple[Probe, Prediction]]:
    for sample in task.samples:
        for probe in task.benchmark.probes(sample, task.options.benchmark):
            for draw in range(draws):
                origin = Origin(task.benchmark.name, task.setting, probe.sample, probe.variant, draw)
                if (prediction := model.recorded(origin)) is not None:
                    yield probe, prediction


def recorded_notes(recorded: Iterable[tuple[Probe, Prediction]], task: str) -> list[str]:
    """Notes on what a file of answers says, or does not say, about the probes that it answers."""
    answers, prompts, other_prompts, with_options, without_order, without_right = 0, 0, 0, 0, 0, 0
    for probe, prediction in recorded:
        answers += 1
        asked = as_asked(probe, prediction)
        # With other options, the prompt of the setting is another one too.
        comparable = bool(prediction.prompt) and asked.options == probe.options
        prompts += comparable
        other_prompts += comparable and prediction.prompt != prompt_text(probe.messages)
        with_options += bool(probe.options)
        without_order += bool(probe.options) and not prediction.options
        without_right += bool(probe.references) and not asked.references
    return counted(
        (other_prompts, f"of {prompts:,} prompts in the file are not those of {task}"),
        (
            without_order,
            f"of {with_options:,} answers come without the options that the model saw: the order of {task} "
            "is assumed and cannot be verified",
        ),
        (
            without_right,
            f"of {answers:,} answers have options in the file without the right one of the data: they have "
            "no reference",
        ),
    )


def _task_name(benchmark: str, setting: str, arguments: str) -> str:
    """The task as the command line writes it."""
    return f"{benchmark}:{setting} {arguments}".rstrip()
