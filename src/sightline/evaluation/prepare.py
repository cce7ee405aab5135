"""Everything that an evaluation checks, loads and plans before its first call, and how it is described."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as replace_options
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.benchmarks.released import foreign_samples, published
from sightline.config import Config, load_config
from sightline.engine.limits import CONCURRENCY, token_limit
from sightline.errors import UserError, did_you_mean
from sightline.evaluation.folder import ResultsFolder, refuse_other_run
from sightline.evaluation.judges import (
    JudgePanel,
    RecordedJudge,
    check_judge_kinds,
    check_judge_options,
    human_judge,
    judge_kind,
    make_judges,
    make_panel,
    with_deciding_rules,
)
from sightline.evaluation.measures import PreparedMeasures, prepare_measures
from sightline.evaluation.options import (
    Condition,
    EffectiveOptions,
    EvaluationDescription,
    JudgeModel,
    check_condition_metrics,
    effective,
    parse_conditions,
    reasoning_names,
    setting_of,
    split_of,
)
from sightline.evaluation.plan import Plan, PlanInputs, Samples, SampleSelection
from sightline.evaluation.spec import Spec, recorded_options, spec_data_folder
from sightline.evaluation.summary import recorded_notes
from sightline.formats.files import SetDigest, is_synthetic
from sightline.formats.jsonl import (
    check_run_name,
    check_tags,
    verdict_line,
)
from sightline.formats.prediction import TOOLS, Prediction
from sightline.metrics.agreement import DEFINITIONS as AGREEMENT_METRICS
from sightline.models.base import Model, refuse_unknown_sampling
from sightline.models.batches import BatchEndpoint
from sightline.models.registry import ModelOptions
from sightline.plugins import wrong_return
from sightline.replicas.fleet import check_place, resolve_on
from sightline.scoring.letters import are_shown
from sightline.scoring.scorer import JUDGE_SAMPLING, ModelScorer, by_question
from sightline.store.store import Store
from sightline.text import counted
from sightline.types import CAPTIONED, ImageRef, Origin, Probe, Sample, Text, Verdict

if TYPE_CHECKING:
    from sightline.evaluation.image_texts import ImageReplacement
    from sightline.models.ocr import Augmented


class PreparedTask(Struct, frozen=True, kw_only=True):
    """What is evaluated: a benchmark under one setting, its effective options and the selected samples.

    Every path needs it: `run`, `score`, `--dry-run` and the inspect tasks. `folder` is the data folder, None
    where there is none.
    """

    benchmark: Benchmark
    setting: str
    options: EffectiveOptions
    split: str
    folder: Path | None
    samples: Samples

    @property
    def name(self) -> str:
        return f"{self.benchmark.name}:{self.setting}"

    @property
    def partners(self) -> dict[str, dict[str, Any]]:
        """The benchmark options of every other setting whose answers some metric reads."""
        options = self.options.benchmark
        needs = sorted({metric.needs for metric in self.benchmark.metrics(options) if metric.needs})
        return {setting: self.benchmark.partner(setting, options) for setting in needs}

    @property
    def shown(self) -> list[Mapping[str, Any]]:
        """The benchmark options of all probes to send: the evaluated setting's, then its partners'."""
        return [self.options.benchmark, *self.partners.values()]


class Survey(Struct, frozen=True, kw_only=True):
    """What the samples of an evaluation are."""

    data_digest: str
    ids_digest: str
    samples: int
    probes: int
    folders: tuple[str, ...]
    with_images: int = 0
    is_foreign: bool = False
    left_out: tuple[str, ...] = ()


class PreparedModels(Struct, frozen=True, kw_only=True):
    """What answers the probes: one model at one or several hosts. Empty where the answers exist already.

    `replacement` is the text that the model gets instead of images, None if it sees them.
    """

    models: Sequence[Model] = ()
    replacement: ImageReplacement | None = None


class PreparedJudges(Struct, frozen=True, kw_only=True):
    """The judges that need more than the benchmark: models to call, and recorded verdicts, by judge name."""

    models: Mapping[str, Sequence[Model]] = field(default_factory=dict)
    recorded: Mapping[str, RecordedJudge] = field(default_factory=dict)


class Prepared(Struct, frozen=True, kw_only=True):
    """An evaluation that was checked and can start. `fail_if` are the parsed conditions of --fail-if."""

    spec: Spec
    config: Config
    task: PreparedTask
    survey: Survey
    models: PreparedModels
    judges: PreparedJudges
    measures: PreparedMeasures
    fail_if: tuple[Condition, ...] = ()


def prepare_evaluation(
    spec: Spec,
    *,
    calls_model: bool = True,
    keyless: bool = False,
    answers: Sequence[Prediction] | None = None,
    own_answers: bool = False,
) -> Prepared:
    """Check everything that can be checked before the first call. Nothing is written.

    `answers` hold the samples, too, where there are no data. `own_answers`: whether the answers are those
    that the data itself holds.
    """
    fail_if = parse_conditions(spec.fail_if)
    benchmark = find_benchmark(spec.task.partition(":")[0])
    setting = setting_of(benchmark, spec.task)
    options = effective(benchmark, setting, spec)
    check_condition_metrics(
        fail_if, [*(one.name for one in benchmark.metrics(options.benchmark)), *AGREEMENT_METRICS]
    )
    split = split_of(benchmark, spec)
    check_judge_kinds(benchmark, spec.judge, options.benchmark, asks_model=calls_model)
    if calls_model:
        check_judge_options(spec.judge, options.benchmark)
    spec = replace_options(spec, judge=with_deciding_rules(benchmark, spec.judge, options.benchmark))
    measures = prepare_measures(benchmark, options.benchmark)
    config = load_config(spec.config)
    models = _models(spec, benchmark, config, keyless) if calls_model else PreparedModels()
    judges = _judges(spec, config, keyless)
    check_distinct_judges(spec, judges)
    task = _task(spec, benchmark, setting.name, split, options, answers)
    prepared = Prepared(
        spec=spec,
        config=config,
        task=task,
        survey=survey_samples(task, probe_check(models, options.benchmark), own_answers=own_answers),
        models=models,
        judges=judges,
        measures=measures,
        fail_if=fail_if,
    )
    _check(prepared)
    if models.models:
        retry_sampling(spec, task, models.models[0])
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
    )
    check_caption_options(spec)
    models = resolve_on(spec.on, spec.model, options, spec.concurrency or CONCURRENCY)
    replacement = None
    if spec.augment is not None:
        from sightline.evaluation.image_texts import image_replacement  # few runs replace images

        replacement = image_replacement(spec, spec.augment, keyless=keyless)
    return PreparedModels(models=models, replacement=replacement)


def _judges(spec: Spec, config: Config, keyless: bool) -> PreparedJudges:
    kinds = {judge: judge_kind(judge) for judge in spec.judge}
    options = ModelOptions(config, seed=spec.seed, keyless=keyless, batch=spec.batch)
    return PreparedJudges(
        models={
            judge: _judge_models(spec, judge, options) for judge, kind in kinds.items() if kind == "model"
        },
        recorded={
            judge: human_judge(judge, spec.store) if kind == "human" else RecordedJudge(judge, [])
            for judge, kind in kinds.items()
            if kind in ("human", "tool")
        },
    )


def _judge_models(spec: Spec, judge: str, options: ModelOptions) -> Sequence[Model]:
    try:
        return resolve_on(spec.on, judge, options, spec.concurrency or CONCURRENCY)
    except UserError as error:
        near = did_you_mean(judge, TOOLS)
        if not near or "/" in judge or not error.message.startswith("unknown model"):
            raise
        tools = ", ".join(TOOLS)
        expected = f"for the scores of the tool of a file, one of {tools}; otherwise rules or a model"
        raise UserError(f"unknown judge '{judge}'{near}", expected=expected) from None


def _task(
    spec: Spec,
    benchmark: Benchmark,
    setting: str,
    split: str,
    options: EffectiveOptions,
    answers: Sequence[Prediction] | None,
) -> PreparedTask:
    folder = spec_data_folder(spec)
    read = partial(benchmark.samples, folder, split, options.benchmark)
    if answers is not None and folder is None:
        read = partial(benchmark.samples_in_answers, answers, split, options.benchmark)
    samples = Samples(
        benchmark,
        read,
        SampleSelection(spec.limit, spec.shuffle, spec.seed, tuple(spec.ids)),
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
    spec, task, models = prepared.spec, prepared.task, prepared.models
    if models.models:
        check_model(spec, task, models)
    check_judge_images(task, prepared.judges)
    check_sampling_names(spec, models, prepared.judges)
    check_batch(spec, models, prepared.judges)
    if spec.on is not None:
        called = [models.models, *prepared.judges.models.values()]
        check_place(spec.on, [one for several in called for one in several])
    check_labels(spec)
    if spec.max_cost is not None:
        prepared.config.require_prices([*([spec.model] if models.models else []), *prepared.judges.models])
    for row in spec.against:
        published(task.benchmark.name, task.setting, row)
    ResultsFolder.check(spec.out)


# -- Checks before the first call: whether models, judges, data and options fit each other

_BATCHES = "openai/NAME or http://HOST/v1#NAME, or no --batch"


def check_labels(spec: Spec) -> None:
    if spec.name is not None:
        check_run_name(spec.name)
    check_tags(spec.tag)


def check_caption_options(spec: Spec) -> None:
    """Check that captions have one source where they replace images, and none elsewhere."""
    sources = [option for option in ("captioner", "captions") if getattr(spec, option) is not None]
    captions = f"--augment {CAPTIONED}"
    if spec.augment != CAPTIONED and sources:
        raise UserError(
            f"--{sources[0]} has an effect with {captions} only",
            expected=f"{captions}, or no --{sources[0]}",
        )
    if spec.augment == CAPTIONED and len(sources) != 1:
        raise UserError(
            f"{captions} needs one source of captions, found {' and '.join(sources) or 'none'}",
            expected="--captioner MODEL, or --captions FILE from `sightline build caption`",
        )


def check_sampling_names(spec: Spec, models: PreparedModels, judges: PreparedJudges) -> None:
    if spec.gen_any:
        return
    for model in models.models[:1]:
        refuse_unknown_sampling(model, spec.gen, "--gen")
    for judge in judges.models.values():
        refuse_unknown_sampling(judge[0], spec.judge_gen, "--judge-gen")


def check_results_folder(spec: Spec, description: EvaluationDescription, scored: Path | None = None) -> None:
    if spec.out is not None and not spec.force:
        refuse_other_run(Path(spec.out), description, scored)


def probe_check(models: PreparedModels, options: Mapping[str, Any]) -> Callable[[Probe], None] | None:
    """The check that a probe is not empty and suits the model; None if no model is called."""
    if not models.models:
        return None
    model, by_likelihood = models.models[0], options.get("answer_by") == "likelihood"
    sees_images = models.replacement is None

    def check(probe: Probe) -> None:
        _check_content(probe)
        _check_capabilities(probe, model, sees_images=sees_images)
        if by_likelihood and not probe.choices:
            raise _unfit(probe, "has no options to choose from", "options, or no answer_by=likelihood")

    return check


def check_model(spec: Spec, task: PreparedTask, models: PreparedModels) -> None:
    model, options = models.models[0], task.options.benchmark
    if models.replacement is not None:
        from sightline.evaluation.image_texts import check_augmentation, images_in_probes

        images = images_in_probes(task.benchmark, task.samples, [options])
        check_augmentation(models.replacement, model, images)
    if options.get("answer_by") == "likelihood":
        _check_likelihood(spec, model)


def check_batch(spec: Spec, models: PreparedModels, judges: PreparedJudges) -> None:
    """Check that --batch applies to every endpoint that would be paid, and to one at least."""
    if not spec.batch:
        return
    called = [model for group in (models.models, *judges.models.values()) for model in group]
    for model in called:
        if model.capabilities.endpoint and not isinstance(model, BatchEndpoint):
            raise UserError(f"--batch: Sightline has no batches for {model.name}", expected=_BATCHES)
    if not any(isinstance(model, BatchEndpoint) for model in called):
        raise UserError("--batch has no effect: neither model nor judge is an endpoint", expected=_BATCHES)
    if spec.captioner is not None:
        raise UserError(
            "--batch writes no captions, which the requests need first",
            found=f"--captioner {spec.captioner}",
            expected="--captions FILE, which `sightline build caption` writes",
        )


def check_distinct_judges(spec: Spec, judges: PreparedJudges) -> None:
    """Check that no judge is named twice, and that repeats have a model to ask.

    Two names are one judge if they lead to the same verdicts of humans, or to one model at one server.
    """
    names: dict[str, str] = {}
    for name in spec.judge:
        if name in judges.models:
            identity = judges.models[name][0].identity
        elif judge_kind(name) == "human":
            identity = _digest(judges.recorded[name].verdicts)
        else:
            identity = name
        if identity in names:
            same = "" if names[identity] == name else f": '{names[identity]}' and '{name}' are the same judge"
            raise UserError(
                f"the judge '{name}' is named twice{same}",
                found=", ".join(f"--judge {judge}" for judge in spec.judge),
                expected="each judge once; --judge-repeats N asks every judge model N times",
            )
        names[identity] = name
    if spec.judge_repeats > 1 and not judges.models:
        raise UserError(
            f"--judge-repeats {spec.judge_repeats} has no effect: no judge is a model",
            found=", ".join(f"--judge {judge}" for judge in spec.judge),
            expected="--judge MODEL, or no --judge-repeats",
        )


def check_judge_images(task: PreparedTask, judges: PreparedJudges) -> None:
    scorers = by_question(task.benchmark.scorers(task.options.benchmark), ModelScorer)
    needs_images = any(scorer.needs_images for scorer in scorers.values())
    for name, models in judges.models.items():
        if needs_images and not models[0].capabilities.images:
            raise UserError(
                f"the judge {name} does not accept images",
                expected="a judge that accepts images, or a judge prompt without images",
            )


def _digest(verdicts: Iterable[Verdict]) -> str:
    return hashlib.sha256(b"\n".join(map(verdict_line, verdicts))).hexdigest()


def _check_likelihood(spec: Spec, model: Model) -> None:
    """Raise UserError where the model cannot choose an option, or sampling options cannot have an effect."""
    if not model.capabilities.likelihood:
        raise UserError(
            f"{model.name} does not report how likely an answer is",
            expected="a local model (hf/...), or no --set answer_by=likelihood",
        )
    option = "--gen" if spec.gen else "--preset" if spec.preset else "--repeats" if spec.repeats > 1 else None
    if option:
        raise UserError(
            f"{option} has no effect with --set answer_by=likelihood: the model takes the likeliest option "
            "and samples nothing",
            expected=f"no {option}, or no answer_by=likelihood",
        )


def _check_content(probe: Probe) -> None:
    """Raise UserError where the probe comes from a file of answers and holds nothing to send."""
    if not any(message.parts for message in probe.messages):
        raise _unfit(
            probe,
            "there is nothing to send: neither prompt nor image",
            "the data folder instead of a file of answers, or `sightline score`",
        )


def _check_capabilities(probe: Probe, model: Model, *, sees_images: bool) -> None:
    able, images = model.capabilities, _count_images(probe)
    if sees_images and images and not able.images:
        raise _unfit(probe, f"{model.name} does not accept images", "a setting without images, or --augment")
    if able.needs_image and not (sees_images and images):
        raise _unfit(probe, f"{model.name} answers nothing without an image", "a setting with an image")
    if sees_images and images > 1 and not able.several_images:
        raise _unfit(probe, f"{model.name} accepts one image per request", "a setting with one image")
    if not able.system_role and any(message.role == "system" for message in probe.messages):
        raise _unfit(probe, f"{model.name} does not accept system messages", "a model that accepts them")


def _count_images(probe: Probe) -> int:
    return sum([isinstance(part, ImageRef) for message in probe.messages for part in message.parts])


def _unfit(probe: Probe, message: str, expected: str) -> UserError:
    return UserError(message, record=f"{probe.sample} {probe.variant}", expected=expected)


# -- What the first pass over the samples of an evaluation finds: digests, counts, folders of images,
#    notes

_encoder = msgspec.json.Encoder(order="sorted")


Check = Callable[[Probe], None]
"""Raises UserError for a probe that the model cannot be asked."""


def survey_samples(task: PreparedTask, check: Check | None, *, own_answers: bool) -> Survey:
    """Read all samples once, and check them; `check` is None if no model is called."""
    benchmark, options = task.benchmark, task.options.benchmark
    surveyor = Surveyor(benchmark, options, check)
    if not task.samples.read_all(surveyor.add):
        raise UserError(f"the {task.split} split of {benchmark.name} contains no samples", file=task.folder)
    names = (sample.id for sample in task.samples)
    found = surveyor.found()
    return replace(
        found,
        is_foreign=bool(foreign_samples(benchmark, names, task.folder, task.split, options)),
        left_out=(
            *found.left_out,
            *_incomplete(benchmark, task.samples.total),
            *benchmark.left_out_notes(task.folder, task.split, options),
            *(() if own_answers else benchmark.unread_answers_notes(task.folder, options)),
        ),
    )


def _incomplete(benchmark: Benchmark, samples: int) -> list[str]:
    """Say that data without a pinned digest are not as many as the released ones."""
    released = benchmark.unpinned.samples if benchmark.unpinned else None
    if released in (None, samples):
        return []
    return [f"the data have {counted(samples, 'sample')}, the release has {released:,}"]


class Surveyor:
    """Surveys samples one by one, and checks their probes."""

    def __init__(self, benchmark: Benchmark, options: Mapping[str, Any], check: Check | None) -> None:
        """Without `check`, only the probes of the first sample are made."""
        self._benchmark = benchmark
        self._options = options
        self._check = check
        self._data = SetDigest()
        self._ids = hashlib.sha256()
        self._samples = 0
        self._probes = self._hidden = self._with_images = 0
        self._folders: set[str] = set()

    def add(self, sample: Sample) -> None:
        self._ids.update(b"," if self._samples else b"[")
        self._ids.update(_encoder.encode(sample.id))
        self._folders.update(image.root for image in sample.images if image.root)
        data = self._benchmark.in_order(sample)
        names = [os.path.basename(image.path) for image in data.images]
        body = [data.id, data.question, names, data.references, data.options, data.labels]
        self._data.add(_encoder.encode([*body, data.record]))
        if self._check is not None or not self._samples:
            for probe in self._benchmark.probes(sample, self._options):
                if not isinstance(probe, Probe):
                    raise wrong_return(self._benchmark.probes, probe, Probe)
                if self._check is not None:
                    self._check(probe)
                    self._probes += 1
                    self._hidden += _hides_options(probe)
                    self._with_images += _count_images(probe) > 0
        self._samples += 1

    def found(self) -> Survey:
        ids = self._ids.copy()
        ids.update(b"]" if self._samples else b"[]")
        return Survey(
            data_digest=self._data.hexdigest(),
            ids_digest=ids.hexdigest(),
            samples=self._samples,
            probes=self._probes,
            folders=tuple(sorted(self._folders)),
            with_images=self._with_images,
            left_out=(HIDDEN_OPTIONS.format(self._hidden, self._probes),) if self._hidden else (),
        )


HIDDEN_OPTIONS = "{:,} of {:,} prompts do not show their options, so the model does not see them"


def _hides_options(probe: Probe) -> bool:
    parts = [part.text for message in probe.messages for part in message.parts if isinstance(part, Text)]
    return bool(probe.options) and not are_shown(probe.options, "\n".join(parts))


# -- The plan of a prepared evaluation


def make_plan(
    prepared: Prepared,
    store: Store,
    augmented: Augmented | None = None,
    *,
    read_only: bool = False,
) -> Plan:
    task, model = prepared.task, prepared.models.models[0]
    inputs = PlanInputs(
        benchmark=task.benchmark,
        samples=task.samples,
        settings=plan_settings(prepared.spec, task, model),
        retries=retry_sampling(prepared.spec, task, model),
        model=model,
        repeats=prepared.spec.repeats,
        fresh=prepared.spec.fresh,
        augmented=augmented,
    )
    return Plan(inputs, store, read_only=read_only)


def plan_settings(spec: Spec, task: PreparedTask, model: Model) -> dict[str, EffectiveOptions]:
    own = EffectiveOptions(task.options.benchmark, model.effective(task.options.sampling))
    partners = {
        setting: EffectiveOptions(options, model.effective(_sampling(spec, task, setting)))
        for setting, options in task.partners.items()
    }
    return {task.setting: own, **partners}


def retry_sampling(spec: Spec, task: PreparedTask, model: Model) -> dict[str, dict[str, Any]]:
    """The sampling options of --retry-truncated by setting; none without it.

    Raises UserError if the limit is not higher than the first one, or the model has none.
    """
    limit = spec.retry_truncated
    if limit is None:
        return {}
    settings = {task.setting: task.options.sampling}
    settings |= {setting: _sampling(spec, task, setting) for setting in task.partners}
    found = {}
    for setting, sampling in settings.items():
        name = "max_completion_tokens" if "max_completion_tokens" in sampling else "max_tokens"
        first, second = model.effective(sampling), model.effective({**sampling, name: limit})
        if token_limit(second) != limit:
            raise UserError(
                f"--retry-truncated has no effect: {model.name} takes no token limit",
                expected="a model that generates text",
            )
        least = token_limit(first)
        if least is not None and limit <= least:
            source = _limit_source(spec, task, setting, sampling, model)
            raise UserError(
                f"--retry-truncated {limit} is not above the token limit of the first requests",
                expected=f"more than {least:,}, which is {source}",
            )
        found[setting] = second
    return found


def _limit_source(
    spec: Spec, task: PreparedTask, setting: str, sampling: Mapping[str, Any], model: Model
) -> str:
    """The option, and whose it is, that gives the token limit of the first requests."""
    name = next((name for name in ("max_tokens", "max_completion_tokens") if name in sampling), None)
    if name is None:
        return f"the default of {model.name}"
    if name in spec.gen:
        return f"{name} of --gen"
    if spec.preset is not None and name in task.benchmark.presets[spec.preset]:
        return f"{name} of --preset {spec.preset}"
    return f"{name} of {setting}"


def _sampling(spec: Spec, task: PreparedTask, setting: str) -> dict[str, object]:
    """The sampling options of a partner setting: its own defaults if it has a name, then the user's."""
    partner = task.benchmark.settings.get(setting)
    if partner is None:
        return dict(task.options.sampling)
    return dict(effective(task.benchmark, partner, replace_options(spec, set={})).sampling)


# -- The description of an evaluation: names, all effective options, and notes for the reader


def describe_evaluation(prepared: Prepared, notes: list[str] | None = None) -> EvaluationDescription:
    spec, task = prepared.spec, prepared.task
    price = prepared.config.price(spec.model)
    return EvaluationDescription(
        benchmark=task.benchmark.name,
        setting=task.setting,
        model=spec.model,
        identity=model_identity(prepared),
        judges=tuple(spec.judge),
        decide=spec.decide,
        judge_repeats=spec.judge_repeats,
        benchmark_options=task.options.benchmark,
        options=_effective_options(prepared),
        data_digest=prepared.survey.data_digest,
        ids_digest=prepared.survey.ids_digest,
        planned_samples=prepared.survey.samples,
        against=tuple(spec.against),
        price=(price.batch or price) if price and spec.batch else price,
        notes=[
            *_sampling_notes(prepared),
            *_training_data_notes(prepared),
            *_replay_notes(prepared),
            *prepared.survey.left_out,
            *_check_notes(prepared),
            *(notes or []),
        ],
    )


def with_notes(description: EvaluationDescription, notes: Sequence[str]) -> EvaluationDescription:
    return replace(description, notes=[*description.notes, *notes])


def judge_sampling(spec: Spec, model: Model) -> dict[str, Any]:
    options = {**JUDGE_SAMPLING, **spec.judge_gen}
    return model.effective({name: value for name, value in options.items() if value is not None})


def _effective_options(prepared: Prepared) -> dict[str, Any]:
    spec, task, models = prepared.spec, prepared.task, prepared.models
    sampling = {name: judge_sampling(spec, judge[0]) for name, judge in prepared.judges.models.items()}
    return {
        **task.options.benchmark,
        "sampling": models.models[0].effective(task.options.sampling) if models.models else None,
        **_image_processor(models),
        "judge_sampling": sampling or None,
        "split": task.split,
        **recorded_options(spec),
        **({"ids": ",".join(spec.ids)} if spec.ids else {}),
        **{
            name: getattr(spec, name) for name in _OF_FILES if getattr(spec, name) not in (False, "error", {})
        },
        **({"reasoning_tags": list(reasoning_names(spec))} if spec.reasoning_tags else {}),
        **({"retry_truncated": spec.retry_truncated} if spec.retry_truncated is not None else {}),
        **(models.replacement.options if models.replacement else {"augment": None}),
        "synthetic": is_synthetic(task.folder) or None,
        "other_data": prepared.survey.is_foreign or None,
    }


_OF_FILES = ("allow_missing", "only_answered", "repeated", "columns")
"""The options of `score` on its file, which are recorded where they are given."""


def _image_processor(models: PreparedModels) -> dict[str, Any]:
    """What a local model's processor makes of images, where it sees them."""
    sees = models.replacement is None and models.models
    sizes = models.models[0].capabilities.image_processor if sees else {}
    return {"image_processor": dict(sizes)} if sizes else {}


def model_identity(prepared: Prepared) -> str:
    spec, models = prepared.spec, prepared.models
    if not models.models:
        return spec.model_id or spec.model
    identity = models.models[0].identity
    return identity if models.replacement is None else f"{identity} {models.replacement.identity}"


def _sampling_notes(prepared: Prepared) -> list[str]:
    task = prepared.task
    if not prepared.models.models:
        return []
    return task.benchmark.sampling_notes(task.options.benchmark, task.options.sampling)


def _check_notes(prepared: Prepared) -> list[str]:
    """A note if --fingerprint off leaves endpoints unchecked."""
    if prepared.spec.fingerprint == "on":
        return []
    return [
        f"--fingerprint off: {model.name} was not checked: its cached answers may come from other weights"
        for models in (prepared.models.models, *prepared.judges.models.values())
        for model in models[:1]
        if model.capabilities.endpoint
    ]


def _training_data_notes(prepared: Prepared) -> list[str]:
    """Notes of the model on the data, for example that it was trained on some of these images."""
    models = prepared.models.models
    if not models:
        return []
    folders = prepared.survey.folders
    return [note for folder in folders if (note := models[0].training_overlap(Path(folder)))]


def _replay_notes(prepared: Prepared) -> list[str]:
    task = prepared.task
    if not any(model.capabilities.replays for model in prepared.models.models):
        return []
    return recorded_notes(replayed(prepared.models.models[0], task, prepared.spec.repeats), task.name)


def replayed(model: Model, task: PreparedTask, draws: int) -> Iterator[tuple[Probe, Prediction]]:
    for sample in task.samples:
        for probe in task.benchmark.probes(sample, task.options.benchmark):
            for draw in range(draws):
                origin = Origin(
                    task.benchmark.name, task.setting, probe.sample, probe.variant, draw, probe.options
                )
                if (prediction := model.recorded(origin)) is not None:
                    yield probe, prediction


# -- The judges of an evaluation


def prepared_panel(prepared: Prepared) -> JudgePanel:
    spec, judges = prepared.spec, prepared.judges
    benchmark, options = prepared.task.benchmark, prepared.task.options.benchmark
    models = {name: judge_model(prepared, name) for name in judges.models}
    tags = reasoning_names(spec)
    made = make_judges(spec.judge, benchmark, options, models, judges.recorded, spec.judge_repeats, tags)
    return make_panel(benchmark, options, made, spec.decide)


def judge_model(prepared: Prepared, name: str) -> JudgeModel:
    """What a model judge of an evaluation is called with, which the store keeps for each run."""
    model = prepared.judges.models[name][0]
    return JudgeModel(model.identity, judge_sampling(prepared.spec, model), model.capabilities.limits)
