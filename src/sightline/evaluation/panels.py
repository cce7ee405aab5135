"""Judges and measures of an evaluation, made from what was prepared or what the store keeps of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sightline.benchmarks.base import Benchmark
from sightline.errors import UserError
from sightline.evaluation.judges import (
    HUMAN_PREFIX,
    HumanJudge,
    Judge,
    JudgeModel,
    JudgePanel,
    ModelJudge,
    RulesJudge,
    judge_kind,
    judged_partners,
)
from sightline.evaluation.measures import (
    AnswerMeasures,
    Similarity,
    TextMeasures,
    identities_of,
    loading,
    metrics_of,
    vector_scorer,
)
from sightline.evaluation.prepared import Prepared, PreparedMeasures, judge_sampling
from sightline.evaluation.registry import load_project_verdicts
from sightline.evaluation.runs import StoredRun
from sightline.evaluation.spec import Decide
from sightline.formats.jsonl import read_verdicts
from sightline.models.embedder import embedder
from sightline.store.database import NoStoreError
from sightline.store.store import Store
from sightline.types import Verdict


def prepared_panel(prepared: Prepared) -> JudgePanel:
    benchmark, options = prepared.task.benchmark, prepared.task.options.benchmark
    judges: list[Judge] = []
    for name in prepared.spec.judge:
        if name in prepared.judges.models:
            model = judge_model(prepared, name)
            judges.append(ModelJudge(name, model, benchmark, options, prepared.spec.judge_repeats))
        elif name in prepared.judges.humans:
            judges.append(prepared.judges.humans[name])
        else:
            judges.append(RulesJudge(benchmark, options))
    return make_panel(benchmark, options, judges, prepared.spec.decide)


def judge_model(prepared: Prepared, name: str) -> JudgeModel:
    """What a model judge of an evaluation is called with, which the store keeps for each run."""
    model = prepared.judges.models[name][0]
    return JudgeModel(model.identity, judge_sampling(prepared.spec, model), model.capabilities.limits)


def recorded_panel(
    benchmark: Benchmark, run: StoredRun, store: Store, humans: Sequence[HumanJudge] = ()
) -> JudgePanel:
    """The judges of an earlier run. None is called: their replies and verdicts are in the store."""
    description, options = run.description, run.description.benchmark_options
    judges: list[Judge] = []
    for name in description.judges:
        if judge_kind(name) == "rules":
            judges.append(RulesJudge(benchmark, options))
        elif judge_kind(name) == "human":
            verdicts = [verdict for verdict in store.runs.verdicts(run.number) if verdict.scorer == name]
            judges.append(HumanJudge(name, verdicts))
        else:
            repeats = description.judge_repeats
            judges.append(ModelJudge(name, run.judges[name], benchmark, options, repeats))
    return make_panel(benchmark, options, [*judges, *humans], description.decide)


def make_panel(
    benchmark: Benchmark, options: Mapping[str, Any], judges: Sequence[Judge], decide: Decide = "first"
) -> JudgePanel:
    """A panel of judges that also judges the partner settings whose verdicts some metric reads."""
    partners = judged_partners(benchmark.metrics(options))
    return JudgePanel(benchmark=benchmark, judges=judges, decide=decide, judged_partners=partners)


# -- The models that measure responses without judging them: embedders and text metrics


def prepare_measures(benchmark: Benchmark, options: Mapping[str, Any]) -> PreparedMeasures:
    """The embedder and the text metrics that the options choose; no weights are loaded."""
    compares = vector_scorer(benchmark, options) is not None
    return PreparedMeasures(
        embedder=embedder(options["embedder"]) if compares else None, text_metrics=metrics_of(options)
    )


def answer_measures(
    benchmark: Benchmark,
    options: Mapping[str, Any],
    measures: PreparedMeasures,
    store: Store,
    *,
    show_progress: bool = False,
) -> AnswerMeasures:
    similarity, texts = None, None
    scorer, embedding_model = vector_scorer(benchmark, options), measures.embedder
    if scorer is not None and embedding_model is not None:
        identity = embedding_model.identity
        similarity = Similarity(scorer, identity, lambda: embedding_model, store, show_progress=show_progress)
    if measures.text_metrics:
        identities, load = identities_of(measures.text_metrics), measures.text_metrics.__getitem__
        texts = TextMeasures(identities, load, store, show_progress=show_progress)
    return AnswerMeasures(similarity=similarity, texts=texts)


def recorded_measures(benchmark: Benchmark, run: StoredRun, store: Store) -> AnswerMeasures:
    similarity, texts = None, None
    options, identity = run.description.benchmark_options, run.embedder
    scorer = vector_scorer(benchmark, options)
    if scorer is not None and identity:
        similarity = Similarity(scorer, identity, partial(embedder, options.get("embedder", "")), store)
    if run.text_metrics:
        texts = TextMeasures(run.text_metrics, loading(options), store)
    return AnswerMeasures(similarity=similarity, texts=texts)


# -- The verdicts of humans that a user names: a file, or an annotation project of the store


def human_verdicts(word: str, store: str) -> list[Verdict]:
    if Path(word).is_file():
        return read_verdicts(Path(word))
    found = _of_project(word, store)
    if found is None:
        raise UserError(
            "there is neither such a file of human verdicts nor such an annotation project",
            file=store,
            found=word,
            expected="a verdicts.jsonl, or a project of this store (`sightline annotate status`)",
        )
    return found


def human_judge(name: str, store: str) -> HumanJudge:
    return HumanJudge(name, human_verdicts(name.removeprefix(HUMAN_PREFIX), store))


def _of_project(word: str, url: str) -> list[Verdict] | None:
    try:
        store = Store.open(url, create=False)
    except NoStoreError:
        return None
    try:
        return load_project_verdicts(store, word)
    finally:
        store.close()
