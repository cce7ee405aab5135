"""Scoring answers that were collected before, by any tool: nothing is asked but judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from sightline.clusters import cluster_of, look_at
from sightline.engine.counts import Counts
from sightline.engine.keys import key_of
from sightline.engine.limiter import Limiter
from sightline.engine.store import Store
from sightline.errors import UserError, unknown_name
from sightline.evaluation.prepare import (
    Prepared,
    data_of,
    describe,
    make_judges,
    measures_of,
    panel_of,
    partner_options,
    prepare,
)
from sightline.evaluation.provenance import prompts_note, refuse_other_setting
from sightline.evaluation.run import Evaluation, ask_judges
from sightline.formats.match import match
from sightline.formats.prediction import Prediction
from sightline.formats.read import of_model, read_predictions
from sightline.images import BadImage
from sightline.judging.groups import CollectedAnswers
from sightline.judging.measures import NO_MEASURES
from sightline.plan.effective import setting_of
from sightline.plan.plan import grouped, partner_draws
from sightline.plan.spec import Spec
from sightline.plan.stored_probe import StoredProbe, judge_images, stored_probe
from sightline.published import attach
from sightline.registry import benchmark as find_benchmark
from sightline.report.markdown import report_markdown
from sightline.results.aggregate import aggregate
from sightline.results.fail_if_value import failed
from sightline.results.folder import Folder
from sightline.types import Answer, Failure, ImageFile, Probe

Matched = Mapping[tuple[str, str, int], Prediction]


class Read:
    """Answers that were read from a file, by the keys made for them."""

    def __init__(self) -> None:
        self._by_key: dict[str, Answer | Failure] = {}

    def look_up(self, keys: Sequence[str]) -> Mapping[str, Answer | Failure]:
        """What the file holds of these keys."""
        return {key: self._by_key[key] for key in keys if key in self._by_key}

    def put(self, benchmark: str, setting: str, prediction: Prediction) -> str:
        """Take a prediction; returns its key. UserError where its key has another answer already."""
        key = key_of_prediction(benchmark, setting, prediction)
        result: Answer | Failure = (
            Failure("permanent", prediction.error)
            if prediction.error is not None
            else Answer(
                prediction.response,
                finish_reason=prediction.finish_reason,
                usage=prediction.usage,
                version=prediction.version,
            )
        )
        if self._by_key.setdefault(key, result) != result:
            raise UserError(
                "two different answers bear the same key",
                record=prediction.sample,
                field="key",
                found=key,
                expected="the keys of one answers.jsonl, or none",
            )
        return key


def key_of_prediction(benchmark: str, setting: str, prediction: Prediction) -> str:
    """The key of an answer from a file: its own, or one made from what it says."""
    said = [benchmark, setting, prediction.sample, prediction.variant, prediction.draw, prediction.response]
    whose = [prediction.model] if prediction.model else []
    return prediction.key or key_of(repr(said + whose).encode())


async def ascore(
    spec: Spec, file: str, partners: Mapping[str, str] | None = None, *, show_progress: bool = False
) -> Evaluation:
    """Score a file of predictions in any layout that `formats` reads.

    `partners` names files with the answers under other settings, for the metrics that need them. Raises
    UserError for unknown or missing ids, and all that is wrong before the first call.
    """
    shown = _as_shown(spec, file)
    ready = prepare(replace(shown, model=spec.model or f"file:{Path(file).name}"), asks=False)
    options = ready.options.benchmark
    known = partner_options(ready)
    for name in partners or {}:
        if name not in known:
            raise unknown_name(f"setting that {ready.benchmark.name}:{ready.setting} needs", name, known)
    refuse_other_setting(Path(file), ready.benchmark, ready.setting, options)
    for name, read in (partners or {}).items():
        setting = name if name in ready.benchmark.settings else ready.setting
        refuse_other_setting(Path(read), ready.benchmark, setting, known[name])
    own = _Setting(ready.setting, options, _predictions(ready, ready.setting, file, options))
    found = [
        _Setting(name, chosen, _predictions(ready, name, other, chosen))
        for name, other in (partners or {}).items()
        for chosen in [known[name]]
    ]
    probes = (probe for sample in ready.samples for probe in ready.benchmark.probes(sample, options))
    note = prompts_note(own.predictions, probes, f"{ready.benchmark.name}:{ready.setting}")
    description = replace(describe(ready), notes=[note] if note else [])
    answers = Read()
    rows = list(_rows(ready, own, found, answers))
    collected = CollectedAnswers(probes=lambda: rows, answers=answers)
    judges = make_judges(ready)
    counts = Counts()
    store = Store.open(spec.store) if ready.judge_models or ready.embedder or ready.texts else None
    try:
        if store is not None:
            hosts = [model.host for models in ready.judge_models.values() for model in models]
            limiters = {host: Limiter(host, spec.concurrency) for host in hosts}
            counts = await ask_judges(
                ready, store, judges, collected, limiters, Counts(), show_progress=show_progress
            )
        with Folder(spec.out) as folder:
            aggregated = aggregate(
                description,
                collected,
                panel_of(ready, judges),
                store or answers,
                measures=measures_of(ready, store, show_progress) if store else NO_MEASURES,
                on_group=folder.write,
            )
            result = attach(aggregated.result, spec.against)
            folder.finish(result, report=report_markdown(result), data=data_of(spec), split=ready.split)
    finally:
        if store is not None:
            store.close()
    lost = failed(ready.wanted, result.metrics)
    return Evaluation(result, None, Counts(), counts, aggregated.unanswered, spec.out, lost)


def _as_shown(spec: Spec, file: str) -> Spec:
    """Where the file says itself what was shown or asked, that is what is scored."""
    benchmark = find_benchmark(spec.task.partition(":")[0])
    setting = setting_of(benchmark, spec.task).name
    read = _read(spec, file, benchmark.name, setting)
    shown = benchmark.shown_in(file, read, data_of(spec))
    return replace(spec, set={**shown, **spec.set})


def _predictions(ready: Prepared, setting: str, file: str, options: Mapping[str, Any]) -> Matched:
    """The answers in a file by probe; it may hold those of samples that --limit leaves out."""
    spec = ready.spec
    # Where all probes of a setting bear one name, it is what an answer without one is to.
    read = _read(spec, file, ready.benchmark.name, options.get("variant", setting))
    every = ready.samples
    if spec.limit is not None:
        every = list(ready.benchmark.samples(data_of(spec), ready.split, options))
    left_out = {sample.id for sample in every} - {sample.id for sample in ready.samples}
    expected = [
        (probe.sample, probe.variant)
        for sample in ready.samples
        for probe in ready.benchmark.probes(sample, options)
    ]
    if not expected:
        raise UserError(
            f"what setting '{setting}' asks does not follow from the answers that are scored",
            file=file,
            expected="--data DIR, where it is known",
        )
    wanted = [prediction for prediction in read if prediction.sample not in left_out]
    matched, _ = match(wanted, expected, file=Path(file), allow_missing=spec.allow_missing)
    return matched


def _read(spec: Spec, file: str, benchmark: str, variant: str) -> list[Prediction]:
    """The answers in a file; of several models, those of the one that is named."""
    path = Path(file)
    read = read_predictions(path, benchmark=benchmark, setting=variant, allow_missing=spec.allow_missing)
    return of_model(read, spec.model, path)


class _Setting(NamedTuple):
    """A setting whose answers were read: its name, its options, the answers by probe."""

    name: str
    options: Mapping[str, Any]
    predictions: Matched


def _rows(
    ready: Prepared, own: _Setting, partners: Sequence[_Setting], answers: Read
) -> Iterator[StoredProbe]:
    benchmark, draws = ready.benchmark, sorted({draw for _, _, draw in own.predictions}) or [0]
    for sample in ready.samples:
        probes = list(benchmark.probes(sample, own.options))
        seen = look_at(sample, probes)
        cluster = cluster_of(sample, seen)
        for members in grouped(probes, draws):
            first, *rest = (_row(ready, own, *member, cluster, answers, seen) for member in members)
            others = {
                partner.name: tuple(
                    _row(ready, partner, *member, cluster, answers, seen)
                    for member in partner_draws(benchmark.probes(sample, partner.options), first.draw)
                )
                for partner in partners
            }
            yield replace(first, partners=others)
            yield from rest


def _row(
    ready: Prepared,
    setting: _Setting,
    probe: Probe,
    draw: int,
    cluster: str,
    answers: Read,
    seen: Mapping[str, ImageFile | BadImage],
) -> StoredProbe:
    prediction = setting.predictions.get((probe.sample, probe.variant, draw))
    if prediction is None:
        key = key_of(f"missing {probe.sample} {probe.variant} {draw}".encode())
        return stored_probe(probe, draw, key, cluster, error="the file holds no answer to this probe")
    key = answers.put(ready.benchmark.name, setting.name, prediction)
    return stored_probe(probe, draw, key, cluster, evidence=judge_images(probe, seen))
