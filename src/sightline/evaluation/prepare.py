"""Everything that can be found out before the first call, and before anything is written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.config import Config, load_config
from sightline.data.sources import differs_from_release
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.evaluation.augment import Augment, augment_of, images_of, refuse_nothing_to_tell
from sightline.formats.synthetic_marker import is_synthetic
from sightline.judging.judges import (
    HUMAN_PREFIX,
    HumanJudge,
    Judge,
    ModelJudge,
    RulesJudge,
    check_judge_kinds,
    current_judge_name,
    judge_kind,
    with_deciding_rules,
)
from sightline.judging.measures import AnswerMeasures
from sightline.judging.panel import JudgePanel, judged_partners
from sightline.judging.similarity import similarity, vector_scorer
from sightline.judging.text_metrics import TextMeasures, identities_of, metrics_of
from sightline.metrics.agreement import DEFINITIONS as AGREEMENT_METRICS
from sightline.models.base import Cautious, Model
from sightline.models.embedder import Embedder, embedder
from sightline.models.resolve import ModelOptions, resolve
from sightline.models.text_metrics import TextMetric
from sightline.plan.effective import EffectiveOptions, effective, setting_of, split_of
from sightline.plan.plan import choose, digest_of
from sightline.plan.spec import Spec
from sightline.published import published
from sightline.registry import benchmark as find_benchmark
from sightline.results.aggregate import EvaluationDescription
from sightline.results.fail_if_value import Condition, check_metrics, conditions
from sightline.results.folder import Folder
from sightline.scoring.scorer import JUDGE_SAMPLING, ModelScorer
from sightline.types import UNCHANGED, ImageRef, Sample


class Prepared(NamedTuple):
    """Everything that was found out before the first call, and before anything was written."""

    spec: Spec
    benchmark: Benchmark
    setting: str
    options: EffectiveOptions
    samples: list[Sample]
    split: str
    models: list[Model]
    augment: Augment | None
    judge_models: dict[str, list[Model]]
    humans: dict[str, HumanJudge]
    embedder: Embedder | None
    texts: dict[str, TextMetric]
    config: Config
    wanted: tuple[Condition, ...]


def prepare(spec: Spec, *, asks: bool = True, keyless: bool = False) -> Prepared:
    """Check all that can be checked before the first call. Raises UserError; writes nothing.

    `asks` is False where no model is to be asked for answers, because they are there; `keyless` where
    nobody is asked at all.
    """
    wanted = conditions(spec.fail_if)
    benchmark = find_benchmark(spec.task.partition(":")[0])
    setting = setting_of(benchmark, spec.task)
    options = effective(benchmark, setting, spec)
    check_metrics(wanted, [*(one.name for one in benchmark.metrics(options.benchmark)), *AGREEMENT_METRICS])
    split = split_of(benchmark, spec)
    judges = [current_judge_name(judge) for judge in spec.judge]
    check_judge_kinds(benchmark, judges)
    spec = replace(spec, judge=with_deciding_rules(benchmark, judges, options.benchmark))
    embedder = _embedder(benchmark, options.benchmark)
    texts = metrics_of(options.benchmark)
    config = load_config(spec.config)
    model_options = ModelOptions(config, spec.model_arg, spec.model_id, spec.seed, keyless)
    models = resolve(spec.model, model_options) if asks else []
    augment = augment_of(spec, keyless=keyless) if asks else None
    judge_models = {
        judge: resolve(judge, ModelOptions(config, seed=spec.seed, keyless=keyless))
        for judge in spec.judge
        if judge_kind(judge) == "model"
    }
    humans = {
        judge: HumanJudge.from_file(judge.removeprefix(HUMAN_PREFIX))
        for judge in spec.judge
        if judge_kind(judge) == "human"
    }
    samples = benchmark.samples(data_of(spec), split, options.benchmark)
    chosen = choose(samples, spec.limit, spec.shuffle, spec.seed)
    if not chosen:
        raise UserError(f"the {split} split of {benchmark.name} holds no samples", file=data_of(spec))
    if models:
        _refuse_nothing_to_ask(benchmark, chosen, options)
        _check_capabilities(benchmark, chosen, options, models[0], sees=augment is None)
        if augment is not None:
            refuse_nothing_to_tell(augment, models[0], images_of(benchmark, chosen, [options.benchmark]))
        _refuse_drawn_likelihood(options, spec)
    _check_sight(benchmark, options, judge_models)
    if spec.max_cost is not None:
        _check_prices(config, [spec.model, *judge_models] if asks else list(judge_models))
    if spec.against is not None:
        published(benchmark.name, setting.name, spec.against)
    Folder.check(spec.out)
    return Prepared(
        spec,
        benchmark,
        setting.name,
        options,
        chosen,
        split,
        models,
        augment,
        judge_models,
        humans,
        embedder,
        texts,
        config,
        wanted,
    )


def _refuse_drawn_likelihood(options: EffectiveOptions, spec: Spec) -> None:
    """Raise UserError where answers that are weighed, not said, are to be drawn in some way."""
    wanted = "--gen" if spec.gen or spec.preset else "--repeats" if spec.repeats > 1 else None
    if wanted and options.benchmark.get("answer_by") == "likelihood":
        raise UserError(
            f"{wanted} with --set answer_by=likelihood: nothing is drawn, the likeliest option is taken",
            expected="the one without the other",
        )


def measures_of(ready: Prepared, store: Store, show_progress: bool) -> AnswerMeasures:
    """The similarity and the text metrics of answers that the options ask for."""
    made, compared, texts = ready.embedder, None, None
    if made is not None:
        options = ready.options.benchmark
        compared = similarity(
            ready.benchmark, options, made.identity, lambda: made, store, show_progress=show_progress
        )
    if ready.texts:
        texts = TextMeasures(
            identities_of(ready.texts), ready.texts.__getitem__, store, show_progress=show_progress
        )
    return AnswerMeasures(similarity=compared, texts=texts)


def panel_of(ready: Prepared, judges: Sequence[Judge]) -> JudgePanel:
    """These judges, with the settings that metrics need judged."""
    return JudgePanel(
        benchmark=ready.benchmark,
        judges=judges,
        decide=ready.spec.decide,
        judged_partners=judged_partners(ready.benchmark.metrics(ready.options.benchmark)),
    )


def judge_sampling(spec: Spec, model: Model) -> dict[str, Any]:
    """The sampling options that a judge model is asked with."""
    wanted = {**JUDGE_SAMPLING, **spec.judge_gen}
    return model.effective({name: value for name, value in wanted.items() if value is not None})


def make_judges(ready: Prepared) -> list[Judge]:
    """The judges in the order in which they were named."""
    made: list[Judge] = []
    for name in ready.spec.judge:
        if name in ready.judge_models:
            model = ready.judge_models[name][0]
            made.append(
                ModelJudge(
                    name,
                    model.identity,
                    ready.benchmark,
                    ready.options.benchmark,
                    judge_sampling(ready.spec, model),
                    model.capabilities.limits,
                )
            )
        elif name in ready.humans:
            made.append(ready.humans[name])
        else:
            made.append(RulesJudge(ready.benchmark, ready.options.benchmark))
    return made


def partner_options(ready: Prepared) -> dict[str, dict[str, Any]]:
    """The options of every other setting that some metric reads the answers of."""
    options = ready.options.benchmark
    needs = sorted({metric.needs for metric in ready.benchmark.metrics(options) if metric.needs})
    return {setting: ready.benchmark.partner(setting, options) for setting in needs}


def describe(ready: Prepared) -> EvaluationDescription:
    """What the evaluation is, with all effective options."""
    spec = ready.spec
    return EvaluationDescription(
        benchmark=ready.benchmark.name,
        setting=ready.setting,
        model=spec.model,
        identity=_identity(ready),
        judges=spec.judge,
        decide=spec.decide,
        benchmark_options=ready.options.benchmark,
        options={
            **ready.options.benchmark,
            "sampling": ready.models[0].effective(ready.options.sampling) if ready.models else None,
            "judge_sampling": {
                name: judge_sampling(spec, models[0]) for name, models in ready.judge_models.items()
            }
            or None,
            "split": ready.split,
            "limit": spec.limit,
            "shuffle": spec.shuffle or None,
            "repeats": spec.repeats,
            "seed": spec.seed,
            "fresh": spec.fresh or None,
            **(ready.augment.options if ready.augment else {"augment": None}),
            "decide": spec.decide,
            "drawn": is_synthetic(data_of(spec)) or None,
            "own": differs_from_release(ready.benchmark.name, data_of(spec), ready.split) or None,
        },
        data_digest=digest_of(ready.samples),
        planned_samples=len(ready.samples),
        against=spec.against,
        seed=spec.seed,
        notes=[*_cold_draws(ready), *_cautions(ready)],
    )


def _identity(ready: Prepared) -> str:
    """Whose answers these are: the model's own, or those that it gives of images in words."""
    if not ready.models:
        return ready.spec.model_id or ready.spec.model
    identity = ready.models[0].identity
    return identity if ready.augment is None else f"{identity} {ready.augment.identity}"


def _cold_draws(ready: Prepared) -> list[str]:
    """What to tell where the same is asked again and again of a model that does not sample."""
    unchanged = ready.options.benchmark.get(UNCHANGED)
    if not (unchanged and ready.models and ready.options.sampling.get("temperature") == 0):
        return []
    return ["Sampling at temperature 0: the draws tell how far the server repeats itself, and little more"]


def _cautions(ready: Prepared) -> list[str]:
    """What the model has to tell of the data before it is asked about it."""
    if not ready.models or not isinstance(ready.models[0], Cautious):
        return []
    folders = {image.root for sample in ready.samples for image in sample.images if image.root}
    return [said for folder in sorted(folders) if (said := ready.models[0].caution(Path(folder)))]


def data_of(spec: Spec) -> Path | None:
    """The data folder: --data, else SIGHTLINE_DATA."""
    named = spec.data or os.environ.get("SIGHTLINE_DATA")
    return Path(named) if named else None


def _embedder(benchmark: Benchmark, options: Mapping[str, Any]) -> Embedder | None:
    """The embedder that the benchmark wants. Raises UserError where it is not installed or not known."""
    if vector_scorer(benchmark, options) is None:
        return None
    return embedder(options["embedder"])


def _check_prices(config: Config, models: Sequence[str]) -> None:
    for model in models:
        if config.price(model) is None:
            raise UserError(
                f"--max-cost without a price for {model}",
                expected=f'[prices."{model}"] prompt and completion, per million tokens, in sightline.toml',
            )


def _check_sight(
    benchmark: Benchmark, options: EffectiveOptions, judges: Mapping[str, Sequence[Model]]
) -> None:
    """Raise UserError where a judge is to be shown images and takes none."""
    scorer = benchmark.scorer("correct", "model", options.benchmark)
    for name, models in judges.items():
        if isinstance(scorer, ModelScorer) and scorer.sees and not models[0].capabilities.images:
            raise UserError(
                f"the judge {name} takes no images", expected="one that does, or to judge by text"
            )


def _refuse_nothing_to_ask(
    benchmark: Benchmark, samples: Sequence[Sample], options: EffectiveOptions
) -> None:
    """Raise UserError where samples that come from answers alone are to be asked about."""
    probe = next(iter(benchmark.probes(samples[0], options.benchmark)))
    if not any(message.parts for message in probe.messages):
        raise UserError(
            "there is nothing to ask: neither prompt nor image",
            record=probe.sample,
            expected="the data in place of answers to them, or `sightline score`",
        )


def _check_capabilities(
    benchmark: Benchmark, samples: Sequence[Sample], options: EffectiveOptions, model: Model, *, sees: bool
) -> None:
    """Raise UserError where the model cannot take what is asked; `sees` is whether it is shown images."""
    probe = next(iter(benchmark.probes(samples[0], options.benchmark)))
    shown = [part for message in probe.messages for part in message.parts if isinstance(part, ImageRef)]
    images = len(shown) if sees else 0
    if images and not model.capabilities.images:
        raise UserError(f"{model.name} takes no images", expected="a setting without, or --augment")
    if images > 1 and not model.capabilities.several_images:
        raise UserError(f"{model.name} takes one image a request", expected="a setting with one image")
    if options.benchmark.get("answer_by") == "likelihood" and not model.capabilities.likelihood:
        raise UserError(
            f"{model.name} does not say how likely an answer is",
            expected="a local model (hf/...), or without --set answer_by=likelihood",
        )
