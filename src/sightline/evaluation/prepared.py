"""What an evaluation needs before the first request, and the judges and measures that are made from it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from sightline.benchmarks.base import FILE, Benchmark
from sightline.benchmarks.records import read_captions
from sightline.config import Config
from sightline.engine.client import SAMPLING, Captioner, ClientOptions, ModelClient
from sightline.engine.limits import Account, Counts
from sightline.errors import UserError
from sightline.evaluation.fail_if import Condition
from sightline.evaluation.judges import (
    HUMAN_PREFIX,
    HumanJudge,
    Judge,
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
from sightline.evaluation.options import (
    EffectiveOptions,
    EvaluationDescription,
    JudgeModel,
    reasoning_names,
    recorded_tags,
)
from sightline.evaluation.plan import Samples
from sightline.evaluation.registry import load_project_verdicts
from sightline.evaluation.runs import StoredRun
from sightline.evaluation.spec import Decide, Spec, recorded_options
from sightline.formats.export import counted_notes
from sightline.formats.files import is_synthetic, text_digest
from sightline.formats.jsonl import read_verdicts
from sightline.formats.prediction import Prediction
from sightline.formats.run_metadata import ANSWERS, METRICS, as_asked, prompt_text, read_run_metadata
from sightline.models.base import Model
from sightline.models.embedder import Embedder, embedder
from sightline.models.ocr import CAPTIONED, Reader
from sightline.models.text_metrics import TextMetric
from sightline.scoring.scorer import JUDGE_SAMPLING
from sightline.store.database import NoStoreError
from sightline.store.store import Store
from sightline.types import Augmentation, ImageRef, Origin, Probe, Sample, Verdict


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


class Survey(Struct, frozen=True, kw_only=True):
    """What the samples of an evaluation are."""

    data_digest: str
    ids_digest: str
    samples: int
    probes: int
    folders: tuple[str, ...]
    is_foreign: bool = False
    left_out: tuple[str, ...] = ()


class PreparedModels(Struct, frozen=True, kw_only=True):
    """What answers the probes: one model at one or several hosts. Empty where the answers exist already.

    `replacement` is the text that the model gets instead of images, None if it sees them.
    """

    models: Sequence[Model] = ()
    replacement: ImageReplacement | None = None


class PreparedJudges(Struct, frozen=True, kw_only=True):
    """The judges that need more than the benchmark: models to call, and verdicts of humans, by judge name."""

    models: Mapping[str, Sequence[Model]] = field(default_factory=dict)
    humans: Mapping[str, HumanJudge] = field(default_factory=dict)


class PreparedMeasures(Struct, frozen=True, kw_only=True):
    """What measures responses without judging them; each part loads a model of its own when it is needed."""

    embedder: Embedder | None = None
    text_metrics: Mapping[str, TextMetric] = field(default_factory=dict)


class Prepared(Struct, frozen=True, kw_only=True):
    """An evaluation that was checked and can start.

    `fail_if` are the parsed conditions of --fail-if.
    """

    spec: Spec
    config: Config
    task: PreparedTask
    survey: Survey
    models: PreparedModels
    judges: PreparedJudges
    measures: PreparedMeasures
    fail_if: tuple[Condition, ...] = ()


# -- Augmentation: OCR text and captions that replace images for a model that gets text only

CAPTIONS = f"--augment {CAPTIONED}"


class CaptionFile(NamedTuple):
    """Captions from a file, by the image names that `sightline build caption` writes."""

    path: str
    digest: str
    captions: Mapping[str, str]

    def name_of(self, image: ImageRef) -> str | None:
        """The image's path, or the longest end of it, as the file has it; None without a caption."""
        path = os.path.relpath(image.path, image.root) if image.root else image.path
        parts = Path(path).as_posix().split("/")
        ends = ("/".join(parts[start:]) for start in range(len(parts)))
        return next((end for end in ends if end in self.captions), None)


class CaptionModel(NamedTuple):
    """A model that writes captions, and the client that calls it and counts the calls."""

    client: ModelClient
    captioner: Captioner


class ImageReplacement(NamedTuple):
    """The text that replaces an image: in which form, by which OCR reader, with captions from where."""

    how: Augmentation
    reader: Reader
    captions: CaptionFile | CaptionModel | None = None

    def spend_from(self, account: Account) -> None:
        if isinstance(self.captions, CaptionModel):
            self.captions.client.account = account

    @property
    def counts(self) -> Counts:
        return self.captions.client.counts if isinstance(self.captions, CaptionModel) else Counts()

    @property
    def notes(self) -> list[str]:
        return self.captions.client.notes if isinstance(self.captions, CaptionModel) else []

    @property
    def options(self) -> dict[str, Any]:
        return {"augment": self.how, "reader": self.reader.identity, "captioned_by": self._captioned_by()}

    @property
    def identity(self) -> str:
        """What the augmentation adds to the identity of the model."""
        captions = self.captions
        identity = f"with {self.how} by {self.reader.identity}"
        if isinstance(captions, CaptionModel):
            identity += f", captions by {captions.client.identity}"
        return identity + (f", captions {captions.digest}" if isinstance(captions, CaptionFile) else "")

    def _captioned_by(self) -> dict[str, Any] | None:
        if isinstance(self.captions, CaptionModel):
            return {**self.captions.client.description, "prompt": self.captions.captioner.prompt}
        if isinstance(self.captions, CaptionFile):
            return {"file": self.captions.path, "digest": self.captions.digest}
        return None


def image_replacement(spec: Spec, *, keyless: bool) -> ImageReplacement | None:
    """The augmentation that an evaluation asks for; None if the model sees the images."""
    sources = [option for option in ("captioner", "captions") if getattr(spec, option) is not None]
    if spec.augment is None or spec.augment != CAPTIONED:
        if sources:
            raise UserError(
                f"--{sources[0]} has an effect with {CAPTIONS} only",
                expected=f"{CAPTIONS}, or no --{sources[0]}",
            )
        return None if spec.augment is None else ImageReplacement(spec.augment, _reader())
    if len(sources) != 1:
        raise UserError(
            f"{CAPTIONS} needs one source of captions, found {' and '.join(sources) or 'none'}",
            expected="--captioner MODEL, or --captions FILE from `sightline build caption`",
        )
    captions = _caption_model(spec, keyless) if spec.captions is None else _caption_file(spec.captions)
    return ImageReplacement(spec.augment, _reader(), captions)


def images_in_probes(
    benchmark: Benchmark, samples: Iterable[Sample], settings: Sequence[Mapping[str, Any]]
) -> dict[str, ImageRef]:
    return {
        part.path: part
        for sample in samples
        for options in settings
        for probe in benchmark.probes(sample, options)
        for message in probe.messages
        for part in message.parts
        if isinstance(part, ImageRef)
    }


def check_augmentation(replacement: ImageReplacement, model: Model, images: Mapping[str, ImageRef]) -> None:
    """Check that the augmentation has an effect."""
    if model.capabilities.replays:
        raise UserError(
            f"--augment has no effect with {model.name}: it replays answers that exist already",
            expected="a model that receives requests, or no --augment",
        )
    if not images:
        raise UserError(
            "--augment replaces images by text, and this setting has none",
            expected="a setting with images",
        )
    if isinstance(replacement.captions, CaptionFile):
        _check_captions(replacement.captions, images)


def _check_captions(file: CaptionFile, images: Mapping[str, ImageRef]) -> None:
    """Raise UserError where the file has no caption of any image, or one name for two images."""
    paths: dict[str, str] = {}
    for path, image in images.items():
        name = file.name_of(image)
        if name is not None and paths.setdefault(name, path) != path:
            raise UserError(
                f"this name fits two images, {paths[name]} and {path}",
                file=file.path,
                record=name,
                expected="names with their folders",
            )
    if not paths:
        raise UserError(
            "the file contains no caption of any image of these probes",
            file=file.path,
            found=next(iter(file.captions), None),
            expected=f"a name such as {next(iter(images.values())).path}",
        )


def _reader() -> Reader:
    from sightline.models.ocr import RapidOcr

    return RapidOcr()


def _caption_model(spec: Spec, keyless: bool) -> CaptionModel:
    options = ClientOptions(
        model=spec.captioner or "",
        store=spec.store,
        concurrency=spec.concurrency,
        max_requests=spec.max_requests,
        max_cost=spec.max_cost,
        retry_errors=spec.retry_errors,
        config=spec.config,
        fingerprint=spec.fingerprint,
        accept_changed=spec.accept_changed,
        keyless=keyless,
    )
    client = ModelClient(options, SAMPLING)
    if not client.capabilities.images:
        raise UserError(f"--captioner {spec.captioner} does not accept images", expected="a model that does")
    return CaptionModel(client, Captioner(client, again=spec.retry_errors))


def _caption_file(path: str) -> CaptionFile:
    captions = read_captions(path, needed=True)
    lines = {name: " ".join(text.split()) for name, text in captions.items()}
    digest = text_digest(repr(sorted(lines.items())))
    return CaptionFile(path, digest, {name: text for name, text in lines.items() if text})


# -- What a result says about its evaluation: names, all effective options, and notes for the reader


def describe_evaluation(prepared: Prepared, notes: list[str] | None = None) -> EvaluationDescription:
    spec, task = prepared.spec, prepared.task
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
        **({"reasoning_tags": list(reasoning_names(spec))} if spec.reasoning_tags else {}),
        **({"retry_truncated": spec.retry_truncated} if spec.retry_truncated is not None else {}),
        **(models.replacement.options if models.replacement else {"augment": None}),
        "synthetic": is_synthetic(task.folder) or None,
        "other_data": prepared.survey.is_foreign or None,
    }


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
    called = [*([prepared.models.models] if prepared.models.models else []), *prepared.judges.models.values()]
    names = [models[0].name for models in called if models[0].capabilities.endpoint]
    return [
        f"--fingerprint off: {name} was not checked: its cached answers may come from other weights"
        for name in names
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


# -- What a file of answers says about its setting, and the setting under which the answers count


def check_setting(file: Path, benchmark: Benchmark, setting: str, options: Mapping[str, Any]) -> None:
    """Check that the results folder of a file names the setting under which the file is scored.

    Options that make a task of their own (`Benchmark.task_arguments`) are compared too. The name of a
    setting that is a file is not compared: the file may have moved.
    """
    run = read_run_metadata(file.parent) if file.name == ANSWERS else None
    if run is None:
        return
    run_setting = setting if FILE in benchmark.settings and run.benchmark == benchmark.name else run.setting
    answered = _task_name(run.benchmark, run_setting, benchmark.task_arguments(run.options))
    scored = _task_name(benchmark.name, setting, benchmark.task_arguments(options))
    if answered != scored:
        raise UserError(
            f"these answers belong to {answered}, as {METRICS} in the same folder says",
            file=file,
            expected=f"{answered} instead of {scored}",
        )


def replayed(model: Model, task: PreparedTask, draws: int) -> Iterator[tuple[Probe, Prediction]]:
    for sample in task.samples:
        for probe in task.benchmark.probes(sample, task.options.benchmark):
            for draw in range(draws):
                origin = Origin(
                    task.benchmark.name, task.setting, probe.sample, probe.variant, draw, probe.options
                )
                if (prediction := model.recorded(origin)) is not None:
                    yield probe, prediction


def doubts(predictions: Sequence[Prediction]) -> list[str]:
    """Notes on answers that the file repeats, and on responses that a table may have changed."""
    doubtful = Counter(one.doubt for one in predictions if one.doubt)
    repeated = [one.repeated for one in predictions if one.repeated]
    return counted_notes(
        (sum(repeated), f"further answers of {len(repeated):,} probes are in the file and do not count"),
        *((number, f"of {len(predictions):,} responses {doubt}") for doubt, number in doubtful.items()),
    )


def recorded_notes(recorded: Iterable[tuple[Probe, Prediction]], task: str) -> list[str]:
    """Notes on what a file of answers says, or does not say, about the probes that it answers."""
    answers: list[Prediction] = []
    prompts, other_prompts, with_options, without_order, without_right = 0, 0, 0, 0, 0
    for probe, prediction in recorded:
        answers.append(prediction)
        asked = as_asked(probe, prediction)
        # With other options, the prompt of the setting is another one too.
        comparable = bool(prediction.prompt) and asked.options == probe.options
        prompts += comparable
        other_prompts += comparable and prediction.prompt != prompt_text(probe.messages)
        with_options += bool(probe.options)
        without_order += bool(probe.options) and not prediction.options
        without_right += bool(probe.references) and not asked.references
    return counted_notes(
        (other_prompts, f"of {prompts:,} prompts in the file are not those of {task}"),
        (
            without_order,
            f"of {with_options:,} answers come without the options that the model saw: the order of {task} "
            "is assumed and cannot be verified",
        ),
        (
            without_right,
            f"of {len(answers):,} answers have options in the file without the right one of the data: they "
            "have no reference",
        ),
    ) + doubts(answers)


def _task_name(benchmark: str, setting: str, arguments: str) -> str:
    return f"{benchmark}:{setting} {arguments}".rstrip()


# -- Judges and measures of an evaluation, made from what was prepared or what the store keeps of a run


def prepared_panel(prepared: Prepared) -> JudgePanel:
    benchmark, options = prepared.task.benchmark, prepared.task.options.benchmark
    judges: list[Judge] = []
    for name in prepared.spec.judge:
        if name in prepared.judges.models:
            model = judge_model(prepared, name)
            spec = prepared.spec
            judges.append(
                ModelJudge(name, model, benchmark, options, spec.judge_repeats, reasoning_names(spec))
            )
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
            tags = recorded_tags(description)
            judges.append(ModelJudge(name, run.judges[name], benchmark, options, repeats, tags))
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
