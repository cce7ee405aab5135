"""Answers from the file of another tool, as outcomes without verdicts, and the verdicts of the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.options import Setting
from sightline.clusters import cluster_of, inspect_sample
from sightline.formats.asked import as_asked
from sightline.formats.match import match
from sightline.formats.prediction import Prediction
from sightline.judging.file_answers import FileAnswers
from sightline.judging.groups import answered_groups
from sightline.plan.data_folder import spec_data_folder
from sightline.plan.effective import effective, setting_of, split_of
from sightline.plan.spec import Spec
from sightline.plan.stored_probe import StoredProbe
from sightline.registry import benchmark as find_benchmark
from sightline.types import Outcome, Probe, Verdict


class ImportedAnswer(Struct, frozen=True, kw_only=True):
    """An answer that is not judged yet, and the verdicts that its file gives on it.

    `model` is the name of the model, '' if the file does not name one.
    """

    outcome: Outcome
    model: str
    verdicts: tuple[Verdict, ...]


class _Match(NamedTuple):
    """An answer of the file with its probe and cluster; without a data folder there is no probe."""

    prediction: Prediction
    probe: Probe | None
    cluster: str


def import_answers(spec: Spec, predictions: Sequence[Prediction], file: Path) -> list[ImportedAnswer]:
    """Turn predictions into outcomes, model by model.

    With a data folder the ids are checked against it, the questions, labels and references are added, and
    the order is that of the data. Otherwise the order is that of the file.
    """
    benchmark = find_benchmark(spec.task.partition(":")[0])
    setting = setting_of(benchmark, spec.task)
    by_model: dict[str, list[Prediction]] = {}
    for prediction in predictions:
        by_model.setdefault(prediction.model, []).append(prediction)
    if spec_data_folder(spec) is None:
        matches = [
            _Match(answer, None, answer.image or answer.sample)
            for answers in by_model.values()
            for answer in answers
        ]
        return list(_imported(benchmark.name, setting.name, matches))
    samples = _clustered_probes(spec, benchmark, setting)
    expected = [(probe.sample, probe.variant) for _, probes in samples for probe in probes]
    matches = []
    for answers in by_model.values():
        matched = match(answers, expected, file=file, allow_missing=spec.allow_missing)
        draws = sorted({answer.draw for answer in answers})
        for cluster, probes in samples:
            for draw, probe in ((draw, probe) for draw in draws for probe in probes):
                answer = matched.get((probe.sample, probe.variant, draw))
                if answer is not None:
                    matches.append(_Match(answer, probe, cluster))
    return list(_imported(benchmark.name, setting.name, matches))


def _clustered_probes(spec: Spec, benchmark: Benchmark, setting: Setting) -> list[tuple[str, list[Probe]]]:
    """The cluster and the probes of each sample, in the order of the data."""
    options = effective(benchmark, setting, spec).benchmark
    samples = benchmark.samples(spec_data_folder(spec), split_of(benchmark, spec), options)
    return [
        (cluster_of(sample, inspect_sample(sample)), list(benchmark.probes(sample, options)))
        for sample in samples
    ]


def _imported(benchmark: str, setting: str, matches: Iterable[_Match]) -> Iterator[ImportedAnswer]:
    answers = FileAnswers()
    matches = list(matches)
    stored = [_stored(match, answers.add(benchmark, setting, match.prediction)) for match in matches]
    outcomes = (outcome for group in answered_groups(stored, answers) for outcome in group)
    for (prediction, _, _), outcome in zip(matches, outcomes, strict=True):
        verdicts = (
            replace(verdict, targets=(outcome.key,), variant=outcome.variant)
            for verdict in prediction.verdicts
        )
        if outcome.status == "empty":  # wrong without a judge, but `import` does not judge
            outcome = replace(outcome, verdict="unscored")
        yield ImportedAnswer(outcome=outcome, model=prediction.model, verdicts=tuple(verdicts))


def _stored(match: _Match, key: str) -> StoredProbe:
    """The probe of an answer, with the question and the order of options that the file gives."""
    prediction, probe, cluster = match
    asked = probe and as_asked(probe, prediction)
    return StoredProbe(
        sample=prediction.sample,
        variant=prediction.variant,
        draw=prediction.draw,
        key=key,
        cluster=cluster,
        question=asked.question if asked else prediction.question,
        labels=asked.labels if asked else prediction.labels,
        references=asked.references if asked else (),
        options=asked.options if asked else prediction.options,
        context=asked.context if asked else prediction.context,
        images=prediction.images,
        prompt=prediction.prompt,
    )
