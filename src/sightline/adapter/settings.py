"""The settings of a training: what is trained on what, and the checks before anything is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from sightline.adapter.architectures import AdapterConfig, BiLstm
from sightline.adapter.trainer import CONSISTENCY, Recipe
from sightline.adapter.validate import Validation
from sightline.errors import UserError
from sightline.models.resolve import refuse_remote


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
    """Check the settings before any file is read."""
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
    """Describe results of a training that may be mistakes."""
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
