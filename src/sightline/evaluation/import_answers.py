"""Answers from another tool's file as outcomes that nobody judged yet, with what the file says of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from sightline.clusters import cluster_of, look_at
from sightline.evaluation.prepare import data_of
from sightline.evaluation.score import key_of_prediction
from sightline.formats.match import match
from sightline.formats.prediction import Prediction
from sightline.plan.effective import effective, setting_of, split_of
from sightline.plan.spec import Spec
from sightline.registry import benchmark as find_benchmark
from sightline.scoring.multiple_choice import carry_letter
from sightline.types import Outcome, Probe, Usage, Verdict


class Imported(NamedTuple):
    """An answer that nobody judged here, whose it is as its file says ('' where it does not), and the
    verdicts that the file gives on it."""

    outcome: Outcome
    model: str
    verdicts: tuple[Verdict, ...]


def imported(spec: Spec, read: Sequence[Prediction], file: Path) -> list[Imported]:
    """The answers of a file, model by model: in the order of the data where there is a data folder, else in
    their own.

    With data, ids are checked against it, and questions, labels and references are added. Raises UserError
    for an id that the data do not have and, unless the spec allows it, for missing answers; `file` is where
    they were read.
    """
    benchmark = find_benchmark(spec.task.partition(":")[0])
    setting = setting_of(benchmark, spec.task)
    task = (benchmark.name, setting.name)
    by_model: dict[str, list[Prediction]] = {}
    for one in read:
        by_model.setdefault(one.model, []).append(one)
    folder = data_of(spec)
    if folder is None:
        return [
            _imported(task, one, None, one.image or one.sample) for own in by_model.values() for one in own
        ]
    options = effective(benchmark, setting, spec).benchmark
    samples = list(benchmark.samples(folder, split_of(benchmark, spec), options))
    clusters = {sample.id: cluster_of(sample, look_at(sample)) for sample in samples}
    probes = [list(benchmark.probes(sample, options)) for sample in samples]
    expected = [(probe.sample, probe.variant) for several in probes for probe in several]
    found = []
    for own in by_model.values():
        matched, _ = match(own, expected, file=file, allow_missing=spec.allow_missing)
        for several in probes:
            for draw in sorted({one.draw for one in own}):
                for probe in several:
                    said = matched.get((probe.sample, probe.variant, draw))
                    if said is not None:
                        found.append(_imported(task, said, probe, clusters[probe.sample]))
    return found


def _imported(task: tuple[str, str], said: Prediction, probe: Probe | None, cluster: str) -> Imported:
    outcome = _outcome(task, said, probe, cluster)
    about = (replace(one, targets=(outcome.key,), variant=outcome.variant) for one in said.verdicts)
    return Imported(outcome, said.model, tuple(about))


def _outcome(task: tuple[str, str], said: Prediction, probe: Probe | None, cluster: str) -> Outcome:
    """An answer that nobody judged, with what its probe adds to what its file says."""
    failed = said.error is not None
    return Outcome(
        sample=said.sample,
        variant=said.variant,
        draw=said.draw,
        key=key_of_prediction(*task, said),
        labels=probe.labels if probe else said.labels,
        response=said.response,
        status="error" if failed else "ok" if said.response.strip() else "empty",
        finish_reason=said.finish_reason,
        usage=Usage(),
        verdict="error" if failed else "unscored",
        references=_references(said, probe) if probe else (),
        question=said.question or (probe.question if probe else ""),
        options=said.options or (probe.options if probe else ()),
        cluster=cluster,
        error=said.error,
        version=said.version or said.model,
    )


def _references(said: Prediction, probe: Probe) -> tuple[str, ...]:
    """The probe's references; a letter as the file's own order of the options has it."""
    if not said.options or not probe.options:
        return probe.references
    carried = (carry_letter(letter, probe.options, said.options) for letter in probe.references)
    return tuple(letter for letter in carried if letter is not None)
