"""Everything that an evaluation can check and load before its first call, and before it writes anything."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.published import published
from sightline.config import Config, load_config
from sightline.evaluation.augment import image_replacement
from sightline.evaluation.checks import (
    check_batch,
    check_distinct_judges,
    check_judge_images,
    check_model,
    check_sampling_names,
    probe_check,
)
from sightline.evaluation.human_verdicts import human_judge
from sightline.evaluation.label_run import check_labels
from sightline.evaluation.measures import prepare_measures
from sightline.evaluation.prepared import (
    Prepared,
    PreparedJudges,
    PreparedModels,
    PreparedTask,
)
from sightline.evaluation.survey import survey_samples
from sightline.judging.judges import (
    check_judge_kinds,
    judge_kind,
    with_deciding_rules,
)
from sightline.metrics.agreement_definitions import DEFINITIONS as AGREEMENT_METRICS
from sightline.models.resolve import ModelOptions
from sightline.plan.data_folder import spec_data_folder
from sightline.plan.effective import EffectiveOptions, effective, setting_of, split_of
from sightline.plan.samples import Samples, SampleSelection
from sightline.plan.spec import Spec
from sightline.registry import benchmark as find_benchmark
from sightline.replicas.distribute import check_place, resolve_on
from sightline.results.fail_if import check_condition_metrics, parse_conditions
from sightline.results.folder import ResultsFolder


def prepare_evaluation(spec: Spec, *, calls_model: bool = True, keyless: bool = False) -> Prepared:
    """Check everything that can be checked before the first call. Nothing is written."""
    fail_if = parse_conditions(spec.fail_if)
    benchmark = find_benchmark(spec.task.partition(":")[0])
    setting = setting_of(benchmark, spec.task)
    options = effective(benchmark, setting, spec)
    check_condition_metrics(
        fail_if, [*(one.name for one in benchmark.metrics(options.benchmark)), *AGREEMENT_METRICS]
    )
    split = split_of(benchmark, spec)
    check_judge_kinds(benchmark, spec.judge)
    spec = replace(spec, judge=with_deciding_rules(benchmark, spec.judge, options.benchmark))
    measures = prepare_measures(benchmark, options.benchmark)
    config = load_config(spec.config)
    models = _models(spec, benchmark, config, keyless) if calls_model else PreparedModels()
    judges = _judges(spec, config, keyless)
    check_distinct_judges(spec, judges)
    task = _task(spec, benchmark, setting.name, split, options)
    prepared = Prepared(
        spec=spec,
        config=config,
        task=task,
        survey=survey_samples(task, probe_check(models, options.benchmark)),
        models=models,
        judges=judges,
        measures=measures,
        fail_if=fail_if,
    )
    _check(prepared)
    return prepared


def _models(spec: Spec, benchmark: Benchmark, config: Config, keyless: bool) -> PreparedModels:
    options = ModelOptions(
        config,
        spec.model_arg,
        spec.model_id,
        spec.seed,
        keyless,
        batch=spec.batch,
        answer_files=benchmark.answer_files,
        images=spec_data_folder(spec),
    )
    models = resolve_on(spec.on, spec.model, options, spec.concurrency)
    return PreparedModels(models=models, replacement=image_replacement(spec, keyless=keyless))


def _judges(spec: Spec, config: Config, keyless: bool) -> PreparedJudges:
    kinds = {judge: judge_kind(judge) for judge in spec.judge}
    options = ModelOptions(
        config, seed=spec.seed, keyless=keyless, batch=spec.batch, images=spec_data_folder(spec)
    )
    return PreparedJudges(
        models={
            judge: resolve_on(spec.on, judge, options, spec.concurrency)
            for judge, kind in kinds.items()
            if kind == "model"
        },
        humans={judge: human_judge(judge, spec.store) for judge, kind in kinds.items() if kind == "human"},
    )


def _task(
    spec: Spec, benchmark: Benchmark, setting: str, split: str, options: EffectiveOptions
) -> PreparedTask:
    """The task, whose samples are not read yet."""
    folder = spec_data_folder(spec)
    samples = Samples(
        benchmark,
        partial(benchmark.samples, folder, split, options.benchmark),
        SampleSelection(spec.limit, spec.shuffle, spec.seed),
    )
    return PreparedTask(
        benchmark=benchmark,
        setting=setting,
        options=options,
        split=split,
        folder=folder,
        samples=samples,
    )


def _check(prepared: Prepared) -> None:
    """Raise UserError where parts of the evaluation do not fit each other, or results cannot be written."""
    spec, task, models = prepared.spec, prepared.task, prepared.models
    if models.models:
        check_model(spec, task, models)
    check_judge_images(task, prepared.judges)
    check_sampling_names(spec, models, prepared.judges)
    check_batch(spec, models, prepared.judges)
    check_place(
        spec.on, [*models.models, *(one for several in prepared.judges.models.values() for one in several)]
    )
    check_labels(spec)
    if spec.max_cost is not None:
        prepared.config.require_prices([*([spec.model] if models.models else []), *prepared.judges.models])
    for row in spec.against:
        published(task.benchmark.name, task.setting, row)
    ResultsFolder.check(spec.out)
