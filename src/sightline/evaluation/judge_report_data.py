"""The data of a judge report: runs of the store, results folders, and files, with the verdicts of humans."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sightline.engine.store import Store
from sightline.evaluation.human_verdicts import human_verdicts
from sightline.evaluation.recompute import recompute
from sightline.formats.verdict_flags import Partly
from sightline.judging.judge_data import JudgeData, judge_data
from sightline.judging.judge_sources import (
    MEASURES,
    AttributedAnswer,
    JudgeSources,
    judge_options,
    read_source,
)
from sightline.judging.panel import JudgedGroup
from sightline.judging.text_metrics import TextMeasures
from sightline.plan.spec import Spec
from sightline.results.run_names import find_run, name_or_number
from sightline.results.run_source import is_stored


def read_judge_data(
    sources: Sequence[str],
    human: Sequence[str],
    spec: Spec,
    *,
    partly: Partly = "wrong",
    texts: TextMeasures | None = None,
) -> JudgeData:
    """Read runs, results folders, verdicts.jsonl files, and files of answers that carry verdicts.

    With a verdicts.jsonl, the answers.jsonl and metrics.json of its folder are read too, if they exist. The
    rules of a stored run decide again; nothing is sent.

    Args:
        texts: Text metrics to measure on answers with references; None uses those of the sources.
    """
    read = JudgeSources()
    for source in dict.fromkeys(sources):
        if is_stored(source, spec.store) and not Path(source).exists():
            _read_run(source, spec.store, read)
        else:
            read_source(Path(source), spec, read)
    humans = [verdict for word in human for verdict in human_verdicts(word, spec.store)]
    return judge_data(read, humans, partly=partly, texts=texts)


def _read_run(word: str, url: str, read: JudgeSources) -> None:
    """Read a run of the store like its results folder."""
    store = Store.open(url, create=False)
    try:
        judged: list[JudgedGroup] = []
        number = find_run(store, word)
        result = recompute(store, number, on_group=judged.append)
        name = name_or_number(store, number)
    finally:
        store.close()
    read.benchmarks[result.benchmark] = None
    for measure, model in result.versions.items():
        if measure in MEASURES:
            read.versions[measure].setdefault(model, name)
    for group, verdicts in judged:
        read.answers += [AttributedAnswer(result.model, result.benchmark, one) for one in group.outcomes]
        for verdict in verdicts:
            options = judge_options(result.options, verdict.judge) if verdict.kind == "model" else {}
            read.verdicts.append((verdict, options))
