"""Checks that a file of answers belongs to the setting under which it is scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.options import FILE
from sightline.errors import UserError
from sightline.formats.prediction import Prediction
from sightline.formats.run_metadata import METRICS, read_run_metadata
from sightline.types import Probe, Text


def check_setting(file: Path, benchmark: Benchmark, setting: str, options: Mapping[str, Any]) -> None:
    """Check that the results folder of a file names the setting under which the file is scored.

    Options that make a task of their own (`Benchmark.task_arguments`) are compared too. The name of a
    setting that is a file is not compared: the file may have moved.

    Args:
        file: The file of answers.
        benchmark: The benchmark.
        setting: The setting under which the answers are scored.
        options: Its benchmark options.

    Raises:
        UserError: The folder's metrics.json names another setting.
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


def prompts_note(
    predictions: Mapping[tuple[str, str, int], Prediction], probes: Iterable[Probe], task: str
) -> str | None:
    """A note on prompts in a file that differ from those of the setting.

    Args:
        predictions: The answers of the file by sample, variant and draw.
        probes: The probes of the setting.
        task: The task, as `codis:plain`.

    Returns:
        The note; None if no prompt differs.
    """
    texts = {(probe.sample, probe.variant): _text(probe) for probe in probes}
    prompts = [(key, prediction.prompt) for key, prediction in predictions.items() if prediction.prompt]
    different = sum(texts.get((sample, variant)) != prompt for (sample, variant, _), prompt in prompts)
    if not different:
        return None
    return f"{different:,} of {len(prompts):,} prompts in the file are not those of {task}"


def _text(probe: Probe) -> str:
    return "".join(part.text for part in probe.messages[-1].parts if isinstance(part, Text))


def _task_name(benchmark: str, setting: str, arguments: str) -> str:
    """The task as the command line writes it."""
    return f"{benchmark}:{setting} {arguments}".rstrip()
