"""`adapter train` from start to end: data, checkpoints, validation, the adapter in its folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import torch
from msgspec import Struct, field

from sightline.adapter.attach import Attached, attach
from sightline.adapter.batch import Maker
from sightline.adapter.checkpoint import Checkpoint
from sightline.adapter.examples import Examples, images_in, read_examples, refuse_overlap, split
from sightline.adapter.kinds import BiLstm, Kind
from sightline.adapter.saved import SETTINGS, Settings, save_adapter
from sightline.adapter.train import CONSISTENCY, Recipe, Step, Trainer
from sightline.adapter.validate import Validation, validate
from sightline.errors import UserError
from sightline.formats.files import refuse_unwritable
from sightline.models.embedder import embedder
from sightline.models.local.load import Loaded, load
from sightline.models.local.model import LocalModel
from sightline.models.resolve import ModelOptions, refuse_remote, resolve
from sightline.progress import progress


class Training(Struct, frozen=True, kw_only=True):
    """What is trained on what.

    `data` are groups files; `test` are others, which may show none of their images. `without` are labels
    and values of the lines to leave out. `held_out` is the share of groups for validation, which happens
    every `every` steps, with `con` where there is an `embedder`. `longest` is how many tokens an answer may
    have, `room` how many bytes of prepared examples are remembered.
    """

    model: str
    data: Sequence[str]
    out: str
    recipe: Recipe
    adapter: Kind = field(default_factory=BiLstm)
    test: Sequence[str] = ()
    without: Mapping[str, Sequence[str]] = field(default_factory=dict)
    held_out: float = 0.1
    every: int = 100
    embedder: str | None = None
    longest: int = 64
    room: int = 2 * 1024**3
    model_args: Mapping[str, Any] = field(default_factory=dict)


class Trained(Struct, frozen=True):
    """The adapter that was made: how many numbers it holds, of how many groups it learned, validation of
    the model without and with it, where groups were held out, and what there is to tell of the training."""

    folder: str
    parameters: int
    groups: int
    validations: Sequence[Validation]
    notes: Sequence[str] = ()


Tell = Callable[[Step, Validation | None], None]
"""Called after each step, at checkpoints with the validation."""


def train_adapter(
    training: Training,
    tell: Tell = lambda *_: None,
    *,
    stop: Event | None = None,
    show_progress: bool = False,
) -> Trained:
    """Train an adapter, going on where the same training was stopped.

    Once `stop` is set the step under way is finished, written, and KeyboardInterrupt raised. The state is
    written before each validation, which is made up for where it failed. Raises UserError where the data,
    the model or a setting is wrong, and where the training diverges: the last checkpoint is kept then.
    """
    _refuse_odd(training)
    stop = stop or Event()
    folder, files = Path(training.out), [Path(name) for name in training.data]
    refuse_unwritable(folder)
    if (folder / SETTINGS).exists():
        raise UserError("holds an adapter already", file=folder, expected="another --out")
    groups = read_examples(files, training.without)
    shown = images_in(files)
    refuse_overlap(shown, [Path(name) for name in training.test])
    learned, held = split(groups, training.held_out, training.recipe.seed)
    model = _model(training)
    checkpoint = Checkpoint(folder, _decisive(training, model.identity, files, shown))
    state = checkpoint.read()
    look = _validation(training, held, model.args.batch, stop)
    loaded = load(model.checkpoint, model.args)
    maker = _maker(training, model, loaded, ahead=getattr(training.adapter, "prefix", 0))
    _check(maker, groups, show_progress, stop)
    if state is None:
        checkpoint.begin()
        checkpoint.validated(look(Attached(loaded, {}), _maker(training, model, loaded)))
    torch.manual_seed(training.recipe.seed)
    attached = attach(loaded, training.adapter)
    maker = _maker(training, model, attached.loaded)
    trainer = Trainer(attached, maker, learned, training.recipe)
    if state is None:
        checkpoint.write(trainer.state())
    else:
        trainer.take_up(state)
        # What is left of it would be a second copy of all that is learned.
        state.clear()
        if checkpoint.lacks_validation(training.every):
            checkpoint.validated(look(attached, maker))
    versions = _versions(attached)
    steps = training.recipe.steps
    with progress("training", steps, "steps", done=trainer.done, show_progress=show_progress) as advance:
        for step in trainer.steps():
            last = step.number == steps
            ends = last or step.number % training.every == 0
            checkpoint.done(step)
            if ends or stop.is_set():
                checkpoint.write(trainer.state())
            if stop.is_set() and not last:
                raise KeyboardInterrupt
            validation = look(attached, maker) if ends else None
            checkpoint.validated(validation)
            advance(1)
            tell(step, validation)
    if _versions(attached) != versions:
        raise RuntimeError("a weight of the frozen model has changed in training")
    settings = Settings(
        adapter=training.adapter,
        base=model.identity,
        parameters=_count(attached),
        training=checkpoint.training,
        images=tuple(sorted(shown)),
    )
    save_adapter(folder, settings, attached.weights)
    checkpoint.end()
    parameters = sum(weight.numel() for weight in attached.weights.values())
    validations = checkpoint.validations()
    notes = tuple(_notes(training, len(learned), len(held), validations))
    return Trained(str(folder), parameters, len(learned), validations, notes)


def _refuse_odd(training: Training) -> None:
    """Raise UserError for a number out of range, and for what would have no effect."""
    recipe = training.recipe
    counts = {
        "--steps": recipe.steps,
        "--batch": recipe.batch,
        "--accumulate": recipe.accumulate,
        "--every": training.every,
        "--max-target": training.longest,
        "--set prefix": getattr(training.adapter, "prefix", 1),
    }
    for name, count in counts.items():
        if count < 1:
            raise UserError(f"{name} is too small", found=count, expected="1 or more")
    if not 0 <= training.held_out < 1:
        raise UserError("--held-out is no share", found=training.held_out, expected="from 0 to below 1")
    if not recipe.rate > 0 or not recipe.consistency > 0:
        raise UserError("--rate and --consistency must be above 0")
    if recipe.loss == "ce" and recipe.consistency != CONSISTENCY:
        raise UserError("--consistency has no effect with --loss ce", expected="--loss ce+consistency")
    if training.embedder is not None and not training.held_out:
        raise UserError("--embedder has no effect with --held-out 0", expected="groups held out")
    files = [Path(name).resolve() for name in training.data]
    for file in files:
        if files.count(file) > 1:
            raise UserError("--data names it twice", file=file, expected="each groups file once")
    refuse_remote(training.model)
    if "adapter" in training.model_args:
        raise UserError("an adapter is trained on a model without one", expected="no --model-arg adapter")


def _notes(training: Training, learned: int, held: int, validations: Sequence[Validation]) -> Iterator[str]:
    """What looks like a mistake, and is none for certain."""
    if training.recipe.batch > learned:
        yield (
            f"--batch {training.recipe.batch:,} is more than the {learned:,} groups of the training: a step"
            " shows some several times"
        )
    if training.held_out and not held:
        yield (
            f"nothing was held out: of {learned:,} groups, those that share an image together, none can be"
            f" spared for --held-out {training.held_out:g}"
        )
    if validations and validations[-1].loss >= validations[0].loss:
        yield (
            f"the held-out loss is no lower than without the adapter ({validations[0].loss:.4f} before,"
            f" {validations[-1].loss:.4f} after): another --rate, or more --steps"
        )


def _maker(training: Training, model: LocalModel, loaded: Loaded, *, ahead: int = 0) -> Maker:
    return Maker(loaded, model.args.template, room=training.room, longest=training.longest, ahead=ahead)


def _check(maker: Maker, groups: Examples, show_progress: bool, stop: Event) -> None:
    """Raise UserError for an example that cannot be learned, before any is."""
    with progress("checking", sum(map(len, groups)), "examples", show_progress=show_progress) as advance:
        for group in groups:
            for one in group:
                maker.check(one)
            advance(len(group))
            if stop.is_set():
                raise KeyboardInterrupt


def _validation(
    training: Training, held: Examples, size: int, stop: Event
) -> Callable[[Attached, Maker], Validation | None]:
    embed = embedder(training.embedder).embed if training.embedder is not None else None

    def look(attached: Attached, maker: Maker) -> Validation | None:
        return validate(attached, maker, held, embed, size=size, stop=stop) if held else None

    return look


def _decisive(
    training: Training, identity: str, files: Sequence[Path], images: Iterable[str]
) -> dict[str, Any]:
    """All that decides what is learned, as it is kept beside the weights; `images` by their digests."""
    return {
        "model": identity,
        "adapter": msgspec.to_builtins(training.adapter),
        **msgspec.to_builtins(training.recipe),
        "data": [
            [file.resolve().parent.name, hashlib.sha256(file.read_bytes()).hexdigest()] for file in files
        ],
        "images": hashlib.sha256(" ".join(sorted(images)).encode()).hexdigest(),
        "without": {label: list(values) for label, values in training.without.items()},
        "held_out": training.held_out,
        "longest": training.longest,
    }


def _count(attached: Attached) -> int:
    """How many numbers the frozen model has."""
    own = set(map(id, attached.weights.values()))
    return sum(weight.numel() for weight in attached.loaded.model.parameters() if id(weight) not in own)


def _versions(attached: Attached) -> dict[str, int]:
    """How often each weight of the frozen model was changed in place."""
    own = set(map(id, attached.weights.values()))
    return {
        name: weight._version
        for name, weight in attached.loaded.model.named_parameters()
        if id(weight) not in own
    }


def _model(training: Training) -> LocalModel:
    model = resolve(training.model, ModelOptions(args=training.model_args))[0]
    assert isinstance(model, LocalModel)
    return model
