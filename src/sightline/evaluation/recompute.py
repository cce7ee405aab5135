"""Results computed anew from the store: the numbers of an earlier run, explained by its rows."""

from __future__ import annotations

from functools import partial

import msgspec
from msgspec.structs import replace

from sightline.engine.store import Store
from sightline.images import ImageLimits
from sightline.judging.groups import Judged
from sightline.judging.judges import HumanJudge, Judge, ModelJudge, Rules, judge_kind
from sightline.judging.similarity import similarity
from sightline.judging.text_metrics import TextMeasures, loading
from sightline.models.embedder import embedder
from sightline.plan.stored_probe import read_stored_probes
from sightline.published import attach
from sightline.registry import benchmark as find_benchmark
from sightline.results.aggregate import Description, Sink, conclude
from sightline.types import Result

UNFINISHED = "did not finish, or is still going on: the same command asks what it lacks, as a run of its own"


def rebuild(
    store: Store, run: int | None = None, against: str | None = None, *, sink: Sink | None = None
) -> Result:
    """The result of a run (the latest finished one by default), judged and tallied again.

    Nothing is asked: rules decide anew, model judges are read from what they replied, people from what
    was kept of theirs; `sink` is given the judged groups. The notes tell of a run that did not finish. Raises
    UserError where there is no such run.
    """
    number, body, ended = store.run(run)
    description = msgspec.convert(body["description"], Description)
    if not ended:
        description = replace(description, notes=[*description.notes, f"run {number} {UNFINISHED}"])
    benchmark = find_benchmark(description.benchmark)
    options = description.chosen
    judges: list[Judge] = []
    for name in description.judges:
        if judge_kind(name) == "rules":
            judges.append(Rules(benchmark, options))
        elif judge_kind(name) == "human":
            judges.append(HumanJudge(name, [v for v in store.verdicts(number) if v.scorer == name]))
        else:
            kept = body["judges"][name]
            limits = msgspec.convert(kept.get("limits", {}), ImageLimits)
            judges.append(ModelJudge(name, kept["identity"], benchmark, options, kept["sampling"], limits))
    identity, texts = body.get("embedder"), body.get("texts")
    result, _ = conclude(
        description,
        benchmark,
        lambda: read_stored_probes(store, number),
        store,
        judges,
        store,
        sink or _Nowhere(),
        similarity(benchmark, options, identity, partial(embedder, options.get("embedder", "")), store)
        if identity
        else None,
        TextMeasures(texts, loading(options), store) if texts else None,
    )
    return attach(result, against or description.against)


class _Nowhere:
    """Takes judged groups and lets them go."""

    def take(self, judged: Judged) -> None:
        """Let it go."""
