"""AnswersByKey computed anew from the store: the numbers of an earlier run, explained by its rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
from msgspec.structs import replace

from sightline.engine.store import Store
from sightline.images import ImageLimits
from sightline.judging.groups import CollectedAnswers
from sightline.judging.judges import HumanJudge, Judge, ModelJudge, RulesJudge, judge_kind
from sightline.judging.measures import AnswerMeasures
from sightline.judging.panel import JudgedGroup, JudgePanel, judged_partners
from sightline.judging.similarity import similarity
from sightline.judging.text_metrics import TextMeasures, loading
from sightline.models.embedder import embedder
from sightline.plan.stored_probe import read_stored_probes
from sightline.published import attach
from sightline.registry import benchmark as find_benchmark
from sightline.results.aggregate import EvaluationDescription, aggregate
from sightline.types import Result

UNFINISHED = "did not finish, or is still going on: the same command asks what it lacks, as a run of its own"


def rebuild(
    store: Store,
    run: int | None = None,
    against: str | None = None,
    *,
    on_group: Callable[[JudgedGroup], None] | None = None,
) -> Result:
    """The result of a run (the latest finished one by default), judged and tallied again.

    Nothing is asked: rules decide anew, replies of judge models and verdicts of humans are read from the
    store. `on_group` receives the judged groups. The notes name a run that did not finish. Raises UserError
    where there is no such run.
    """
    number, body, ended = store.run(run)
    description = msgspec.convert(body["description"], EvaluationDescription)
    if not ended:
        description = replace(description, notes=[*description.notes, f"run {number} {UNFINISHED}"])
    benchmark = find_benchmark(description.benchmark)
    options = description.benchmark_options
    judges: list[Judge] = []
    for name in description.judges:
        if judge_kind(name) == "rules":
            judges.append(RulesJudge(benchmark, options))
        elif judge_kind(name) == "human":
            judges.append(HumanJudge(name, [v for v in store.verdicts(number) if v.scorer == name]))
        else:
            kept = body["judges"][name]
            limits = msgspec.convert(kept.get("limits", {}), ImageLimits)
            judges.append(ModelJudge(name, kept["identity"], benchmark, options, kept["sampling"], limits))
    identity, texts = body.get("embedder"), body.get("texts")
    measures = AnswerMeasures(
        similarity=similarity(
            benchmark, options, identity, partial(embedder, options.get("embedder", "")), store
        )
        if identity
        else None,
        texts=TextMeasures(texts, loading(options), store) if texts else None,
    )
    panel = JudgePanel(
        benchmark=benchmark,
        judges=judges,
        decide=description.decide,
        judged_partners=judged_partners(benchmark.metrics(options)),
    )
    collected = CollectedAnswers(probes=lambda: read_stored_probes(store, number), answers=store)
    result = aggregate(description, collected, panel, store, measures=measures, on_group=on_group).result
    return attach(result, against or description.against)
