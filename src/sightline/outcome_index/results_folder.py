"""Opens results folders: each becomes a run of a store, with an index of its lines and without requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path

import msgspec

from sightline.engine.store import Store
from sightline.formats.verdicts import read_recorded_verdicts
from sightline.judging.panel import JudgedGroup
from sightline.metric_types import Result
from sightline.outcome_index.builder import IndexBuilder
from sightline.outcome_index.image_digests import image_digests
from sightline.outcome_index.index_key import index_key
from sightline.plan.spec import Decide
from sightline.registry import benchmark as find_benchmark
from sightline.results.description import EvaluationDescription
from sightline.results.judged_run import read_judged_run
from sightline.types import Group, Verdict


def import_results(
    store: Store, folder: Path, data: Sequence[Path] = (), *, source: Path | None = None
) -> int:
    """Make a run of a results folder, and index it.

    Args:
        source: What the note of the run names; None for the folder.
    """
    judged = read_judged_run(folder)
    by_answer = _verdicts_by_answer(read_recorded_verdicts(folder / "verdicts.jsonl"))
    body = {
        "description": msgspec.to_builtins(_description(judged.result)),
        "folders": [str(one.resolve()) for one in data],
    }
    run = store.runs.start(body)
    store.runs.finish(run, body)
    digests = image_digests(store, data)
    builder = IndexBuilder(store, run, index_key(store, run), judged.result.samples, digests)
    for group in judged.groups.values():
        builder.add(JudgedGroup(group, _verdicts_of(group, by_answer)))
    builder.finish(judged.result)
    store.labels.set_note(run, str(source or folder))
    return run


def _description(result: Result) -> EvaluationDescription:
    options = find_benchmark(result.benchmark).options
    names, _, decides = result.judge.partition(" (decides: ")
    decide: Decide = "majority" if decides.startswith("majority") else "first"
    return EvaluationDescription(
        benchmark=result.benchmark,
        setting=result.setting,
        model=result.model,
        identity=result.model_identity,
        judges=tuple(names.split(", ")),
        decide=decide,
        benchmark_options={name: result.options[name] for name in options if name in result.options},
        options=result.options,
        data_digest=result.data_digest,
        planned_samples=result.samples,
        notes=result.notes,
        ids_digest=result.ids_digest,
    )


def _verdicts_by_answer(verdicts: Iterable[Verdict]) -> Mapping[str, Mapping[int, Verdict]]:
    """Answer key -> the verdicts about it, with the numbers of their lines."""
    found: defaultdict[str, dict[int, Verdict]] = defaultdict(dict)
    for number, verdict in enumerate(verdicts):
        for target in verdict.targets:
            found[target][number] = verdict
    return found


def _verdicts_of(group: Group, by_answer: Mapping[str, Mapping[int, Verdict]]) -> list[Verdict]:
    """The verdicts about answers of a group, in the order of their lines.

    Samples that share requests repeat their verdicts: equal ones count once.
    """
    numbered: dict[int, Verdict] = {}
    for outcome in group:
        numbered |= by_answer.get(outcome.key, {})
    distinct: list[Verdict] = []
    for _, verdict in sorted(numbered.items(), key=itemgetter(0)):
        if verdict not in distinct:
            distinct.append(verdict)
    return distinct
