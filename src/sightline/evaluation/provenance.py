"""Whether a file of answers is of the setting under which it is scored, as far as the file can tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.options import FILE
from sightline.errors import UserError
from sightline.formats.prediction import Prediction
from sightline.formats.run_metadata import METRICS, read_run_metadata
from sightline.types import UNCHANGED, Probe, Text


def check_setting(file: Path, benchmark: Benchmark, setting: str, options: Mapping[str, Any]) -> None:
    """Raise UserError where the results folder of a file says that another setting was run.

    Asking the unchanged input counts as one. Where settings are files, one may have moved: the groups that
    the answers are about tell more than its name.
    """
    run = read_run_metadata(file.parent) if file.name == "answers.jsonl" else None
    if run is None:
        return
    ran = setting if FILE in benchmark.settings and run.benchmark == benchmark.name else run.setting
    given = _named(run.benchmark, ran, run.options)
    wanted = _named(benchmark.name, setting, options)
    if given != wanted:
        raise UserError(
            f"these answers were given to {given}, as {METRICS} beside them says",
            file=file,
            expected=f"{given} in place of {wanted}",
        )


def prompts_note(
    predictions: Mapping[tuple[str, str, int], Prediction], probes: Iterable[Probe], task: str
) -> str | None:
    """What to tell where the prompts that a file holds are not those of the setting."""
    texts = {(probe.sample, probe.variant): _text(probe) for probe in probes}
    held = [(key, said.prompt) for key, said in predictions.items() if said.prompt]
    other = sum(texts.get((sample, variant)) != prompt for (sample, variant, _), prompt in held)
    return f"{other:,} of {len(held):,} prompts in the file are not those of {task}" if other else None


def _text(probe: Probe) -> str:
    return "".join(part.text for part in probe.messages[-1].parts if isinstance(part, Text))


def _named(benchmark: str, setting: str, options: Mapping[str, Any]) -> str:
    """A setting as the command line names it."""
    return f"{benchmark}:{setting}" + (f" --{UNCHANGED}" if options.get(UNCHANGED) else "")
