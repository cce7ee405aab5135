"""The judges of an evaluation, made from what was prepared or from what the store keeps of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sightline.benchmarks.base import Benchmark
from sightline.engine.store import Store
from sightline.evaluation.description import judge_sampling
from sightline.evaluation.prepared import Prepared
from sightline.judging.judges import HumanJudge, Judge, JudgeModel, ModelJudge, RulesJudge, judge_kind
from sightline.judging.panel import JudgePanel, judged_partners
from sightline.plan.spec import Decide
from sightline.results.stored_run import StoredRun


def prepared_panel(prepared: Prepared) -> JudgePanel:
    """The judges of a prepared evaluation, in the order of --judge."""
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
