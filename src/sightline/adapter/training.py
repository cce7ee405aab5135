"""`adapter train` from start to end: data, checkpoints, validation, and the adapter in its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import msgspec
import torch
from msgspec import Struct, field

from sightline.adapter.architectures import AdapterConfig, BiLstm
from sightline.adapter.attach import AdaptedModel, with_adapter
from sightline.adapter.batch import ExampleEncoder
from sightline.adapter.examples import ExampleGroups, read_content, read_examples, refuse_overlap, split
from sightline.adapter.saved_adapter import METADATA, AdapterMetadata, TrainingCheckpoint, save_adapter
from sightline.adapter.trainer import CONSISTENCY, Recipe, Trainer, TrainingStep, Validation, validate
from sightline.errors import UserError
from sightline.formats.files import file_digest, refuse_unwritable, text_digest
from sightline.models.embedder import embedder
from sightline.models.local.load import Loaded, load
from sightline.models.local.model import LocalModel
from sightline.models.registry import ModelOptions, refuse_remote, resolve
from sightline.progress import progress


class TrainedAdapter(Struct, frozen=True):
    """The result of a training.

    `parameters` counts the adapter's weights, `groups` the training set. `validations` are those of the
    model without and with the adapter, if groups were held out. `notes` describe possible mistakes.
    """

    folder: str
    parameters: int
    groups: int
    validations: Sequence[Validation]
    notes: Sequence[str] = ()


OnStep = Callable[[TrainingStep, Validation | None], None]
"""Called after each step, with the validation if one ran."""

OnBase = Callable[[Validation], None]


def train_adapter(
    training: Training,
    on_step: OnStep = lambda *_: None,
    *,
    on_base: OnBase = lambda _: None,
    stop: Event | None = None,
    show_progress: bool = False,
) -> TrainedAdapter:
    """Train an adapter, or continue a training that was stopped.

    A checkpoint is written before each validation. A validation that failed is repeated. `on_base` is called
    with the validation of the model without the adapter, if one runs.
    """
    check_settings(training)
    folder = Path(training.out)
    refuse_unwritable(folder)
    if (folder / METADATA).exists():
        raise UserError("already contains an adapter", file=folder, expected="another --out")
    data = _read_data(training)
    model = _local_model(training)
    checkpoint = TrainingCheckpoint(folder, _recorded_settings(training, model.identity, data.images))
    run = _TrainingRun(training, data, model, checkpoint, stop or Event())
    adapted = run.train(on_step, on_base, show_progress)
    metadata = AdapterMetadata(
        adapter=training.adapter,
        base=model.identity,
        parameters=sum(weight.numel() for weight in _frozen(adapted).values()),
        training=checkpoint.training,
        images=tuple(sorted(data.images)),
    )
    save_adapter(folder, metadata, adapted.weights)
    checkpoint.finish()
    validations = checkpoint.validations()
    return TrainedAdapter(
        folder=str(folder),
        parameters=sum(weight.numel() for weight in adapted.weights.values()),
        groups=len(data.training),
        validations=validations,
        notes=(
            *data.notes,
            *training_notes(training, len(data.training), len(data.held_out), validations),
        ),
    )


class _TrainingData(NamedTuple):
    """All groups in the order of the files, their split, all images by their digests, and notes."""

    groups: ExampleGroups
    training: ExampleGroups
    held_out: ExampleGroups
    images: Mapping[str, str]
    notes: Sequence[str]


def _read_data(training: Training) -> _TrainingData:
    files = [Path(name) for name in training.data]
    groups = read_examples(files, training.without)
    content = read_content(files)
    notes = refuse_overlap(content, [Path(name) for name in training.test])
    training_set, held_out = split(groups, training.held_out, training.recipe.seed)
    return _TrainingData(groups, training_set, held_out, content.images, notes)


class _TrainingRun:
    """One call of `train_adapter`, after its data are read."""

    def __init__(
        self,
        training: Training,
        data: _TrainingData,
        model: LocalModel,
        checkpoint: TrainingCheckpoint,
        stop: Event,
    ) -> None:
        self._training, self._data, self._model = training, data, model
        self._checkpoint, self._stop = checkpoint, stop
        self._embed = embedder(training.embedder).embed if training.embedder is not None else None

    def train(self, on_step: OnStep, on_base: OnBase, show_progress: bool) -> AdaptedModel:
        state = self._checkpoint.read()
        loaded = load(self._model.checkpoint, self._model.args)
        self._check_examples(loaded, show_progress)
        if state is None:
            self._checkpoint.begin()
            base = self._validate(AdaptedModel(loaded, {}), self._encoder(loaded))
            if base is not None:
                on_base(base)
        torch.manual_seed(self._training.recipe.seed)
        adapted = with_adapter(loaded, self._training.adapter)
        encoder = self._encoder(adapted.loaded)
        trainer = Trainer(adapted, encoder, self._data.training, self._training.recipe)
        if state is None:
            self._checkpoint.write(trainer.state())
        else:
            self._checkpoint.restore(trainer, state)
            # Otherwise memory would hold a second copy of the weights and of the optimizer's state.
            state.clear()
            if self._checkpoint.lacks_validation(self._training.every):
                self._validate(adapted, encoder)
        versions = _versions(adapted)
        self._run_steps(trainer, adapted, encoder, on_step, show_progress)
        if _versions(adapted) != versions:
            raise RuntimeError("a weight of the frozen model has changed in training")
        return adapted

    def _run_steps(
        self,
        trainer: Trainer,
        adapted: AdaptedModel,
        encoder: ExampleEncoder,
        on_step: OnStep,
        show_progress: bool,
    ) -> None:
        steps = self._training.recipe.steps
        with progress("training", steps, "steps", done=trainer.done, show_progress=show_progress) as advance:
            for step in trainer.steps():
                is_last = step.number == steps
                validates = is_last or step.number % self._training.every == 0
                self._checkpoint.add_step(step)
                if validates or self._stop.is_set():
                    self._checkpoint.write(trainer.state())
                if self._stop.is_set() and not is_last:
                    raise KeyboardInterrupt
                validation = self._validate(adapted, encoder) if validates else None
                advance(1)
                on_step(step, validation)

    def _encoder(self, loaded: Loaded, *, prefix_length: int = 0) -> ExampleEncoder:
        return ExampleEncoder(
            loaded,
            self._model.args.template,
            cache_bytes=self._training.cache_bytes,
            max_answer_tokens=self._training.max_answer_tokens,
            prefix_length=prefix_length,
        )

    def _check_examples(self, loaded: Loaded, show_progress: bool) -> None:
        """Check all examples before the first step. Raises UserError for one that cannot be learned."""
        groups = self._data.groups
        encoder = self._encoder(loaded, prefix_length=getattr(self._training.adapter, "prefix", 0))
        with progress("checking", sum(map(len, groups)), "examples", show_progress=show_progress) as advance:
            for group in groups:
                for example in group:
                    encoder.check(example)
                advance(len(group))
                if self._stop.is_set():
                    raise KeyboardInterrupt

    def _validate(self, adapted: AdaptedModel, encoder: ExampleEncoder) -> Validation | None:
        """Validate on the held-out set and log the result; None if nothing is held out."""
        if not self._data.held_out:
            return None
        validation = validate(
            adapted,
            encoder,
            self._data.held_out,
            self._embed,
            batch=self._model.args.batch,
            stop=self._stop,
        )
        self._checkpoint.add_validation(validation)
        return validation


def _local_model(training: Training) -> LocalModel:
    model = resolve(training.model, ModelOptions(args=training.model_arg))[0]
    assert isinstance(model, LocalModel)
    return model


def _recorded_settings(training: Training, identity: str, images: Mapping[str, str]) -> dict[str, Any]:
    """All settings that influence the learned weights, as adapter.json and checkpoints store them."""
    return {
        "model": identity,
        "adapter": msgspec.to_builtins(training.adapter),
        **msgspec.to_builtins(training.recipe),
        "data": [[file.resolve().parent.name, file_digest(file)] for file in map(Path, training.data)],
        "images": text_digest(" ".join(sorted(images))),
        "without": {label: list(values) for label, values in training.without.items()},
        "held_out": training.held_out,
        "max_answer_tokens": training.max_answer_tokens,
    }


def _frozen(adapted: AdaptedModel) -> dict[str, torch.nn.Parameter]:
    trainable = set(map(id, adapted.weights.values()))
    parameters = adapted.loaded.model.named_parameters()
    return {name: weight for name, weight in parameters if id(weight) not in trainable}


def _versions(adapted: AdaptedModel) -> dict[str, int]:
    """How often each weight of the frozen model was changed in place."""
    return {name: weight._version for name, weight in _frozen(adapted).items()}


# -- The settings of a training: what is trained on what, and the checks before anything is read


class Training(Struct, frozen=True, kw_only=True):
    """What is trained on what.

    `data` and `test` are groups files; `test` must share no image with `data`. Lines with a label of
    `without` are not used. `held_out` is the share of groups for validation, which runs every `every` steps,
    with `con` if there is an `embedder`. An answer may have `max_answer_tokens`; encoded examples are cached
    in `cache_bytes` of memory.
    """

    model: str
    data: Sequence[str]
    out: str
    recipe: Recipe
    adapter: AdapterConfig = field(default_factory=BiLstm)
    test: Sequence[str] = ()
    without: Mapping[str, Sequence[str]] = field(default_factory=dict)
    held_out: float = 0.1
    every: int = 100
    embedder: str | None = None
    max_answer_tokens: int = 64
    cache_bytes: int = 2 * 1024**3
    model_arg: Mapping[str, Any] = field(default_factory=dict)


def check_settings(training: Training) -> None:
    _check_numbers(training)
    if training.recipe.loss == "ce" and training.recipe.consistency != CONSISTENCY:
        raise UserError("--consistency has no effect with --loss ce", expected="--loss ce+consistency")
    if training.embedder is not None and not training.held_out:
        raise UserError("--embedder has no effect with --held-out 0", expected="--held-out above 0")
    files = [Path(name).resolve() for name in training.data]
    for file in files:
        if files.count(file) > 1:
            raise UserError("--data names this file twice", file=file, expected="each groups file once")
    refuse_remote(training.model)
    if "adapter" in training.model_arg:
        raise UserError(
            "an adapter cannot be trained on top of another one", expected="no --model-arg adapter"
        )


def _check_numbers(training: Training) -> None:
    recipe = training.recipe
    counts = {
        "--steps": recipe.steps,
        "--batch": recipe.batch,
        "--accumulate": recipe.accumulate,
        "--validate-every": training.every,
        "--max-answer-tokens": training.max_answer_tokens,
        "--set prefix": getattr(training.adapter, "prefix", 1),
    }
    for name, count in counts.items():
        if count < 1:
            raise UserError(f"{name} is too small", found=count, expected="1 or more")
    if not 0 <= training.held_out < 1:
        raise UserError("--held-out is out of range", found=training.held_out, expected="from 0 to below 1")
    if not recipe.rate > 0 or not recipe.consistency > 0:
        raise UserError("--rate and --consistency must be above 0")


def training_notes(
    training: Training, trained: int, held_out: int, validations: Sequence[Validation]
) -> Iterator[str]:
    if training.recipe.batch > trained:
        yield (
            f"--batch {training.recipe.batch:,} is more than the {trained:,} groups of the training set: a"
            " step uses some groups several times"
        )
    if training.held_out and not held_out:
        yield (
            f"no group was held out: {trained:,} groups are too few for --held-out {training.held_out:g},"
            " because groups that share an image stay together"
        )
    if validations and validations[-1].loss >= validations[0].loss:
        yield (
            f"the held-out loss is no lower than without the adapter ({validations[0].loss:.4f} before,"
            f" {validations[-1].loss:.4f} after): try another --rate or more --steps"
        )
