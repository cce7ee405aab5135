"""Trains an adapter on a frozen model, step by step, and measures its consistency on held-out groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from random import Random
from threading import Event
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from msgspec import Struct
from torch import Tensor

from sightline.adapter.attach import AdaptedModel
from sightline.adapter.batch import IGNORED, EncodedExample, ExampleEncoder, TrainingBatch, training_batch
from sightline.adapter.examples import ExampleGroups, TrainingExample
from sightline.errors import UserError
from sightline.models.local.encode import compatible_batches
from sightline.models.local.generate import generate
from sightline.scoring.similarity import THRESHOLD
from sightline.scoring.text import contains, normalised, post_process

CONSISTENCY = 1.0
"""The default weight of a group's disagreement relative to the cross-entropy of one token."""
WINDOW = 20
"""The number of steps over which the loss is averaged to detect divergence."""


class Recipe(Struct, frozen=True, kw_only=True):
    """The hyperparameters of a training.

    `batch` counts groups in a step, with all variants of each. The learning rate `rate` falls linearly to
    zero over `steps`. `accumulate` splits the groups of a step into that many forward passes.
    """

    steps: int
    batch: int
    rate: float
    loss: Literal["ce", "ce+consistency"] = "ce"
    consistency: float = CONSISTENCY
    accumulate: int = 1
    seed: int = 0


EncodedGroup = Sequence[EncodedExample]


class TrainingStep(NamedTuple):
    """The result of a step: its number from 1, its loss per token, and the disagreement of its groups."""

    number: int
    loss: float
    disagreement: float


class DivergedError(UserError):
    """The loss or a weight is not finite, or the loss has risen far above its initial value."""


class Trainer:
    """An adapter in training. From a copy of `state()`, another trainer continues to the same weights."""

    def __init__(
        self, adapted: AdaptedModel, encoder: ExampleEncoder, groups: ExampleGroups, recipe: Recipe
    ) -> None:
        self._adapted, self._encoder, self._groups, self._recipe = adapted, encoder, groups, recipe
        # The paper does not name the optimizer. Newman et al. 2022, on whom it builds, use Adam.
        self._optimizer = torch.optim.Adam(adapted.weights.values(), lr=recipe.rate)
        self._losses: list[float] = []
        self.done = 0

    def steps(self) -> Iterator[TrainingStep]:
        while self.done < self._recipe.steps:
            step = self._step()
            self.done += 1
            yield step

    def state(self) -> dict[str, Any]:
        return {
            "weights": {name: weight.detach() for name, weight in self._adapted.weights.items()},
            "optimizer": self._optimizer.state_dict(),
            "losses": self._losses,
            "done": self.done,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        with torch.no_grad():
            for name, weight in self._adapted.weights.items():
                weight.copy_(state["weights"][name])
        self._optimizer.load_state_dict(state["optimizer"])
        self._losses, self.done = list(map(float, state["losses"])), int(state["done"])

    def _step(self) -> TrainingStep:
        for group in self._optimizer.param_groups:
            group["lr"] = self._recipe.rate * (1 - self.done / self._recipe.steps)
        self._optimizer.zero_grad(set_to_none=True)
        groups = [[self._encoder.encode(example) for example in group] for group in self._next_groups()]
        tokens = sum(len(example.answer) for group in groups for example in group)
        loss = difference = 0.0
        for part in _parts(groups, self._recipe.accumulate):
            part_loss, part_difference = self._learn(part, tokens, len(groups))
            loss, difference = loss + part_loss, difference + part_difference
        self._losses.append(loss)
        self._refuse_divergence()
        self._optimizer.step()
        if not all(bool(weight.isfinite().all()) for weight in self._adapted.weights.values()):
            raise self._diverged("a weight is not finite after")
        return TrainingStep(self.done + 1, loss, difference)

    def _learn(self, groups: Sequence[EncodedGroup], tokens: int, count: int) -> tuple[float, float]:
        """Add the gradients of some groups of a step; returns their part of its loss and disagreement."""
        batch = training_batch(self._adapted.loaded, [example for group in groups for example in group])
        logits = answer_logits(self._adapted, batch)
        loss = cross_entropy(logits, batch.targets) / tokens
        if self._recipe.loss == "ce":
            with torch.no_grad():
                difference = disagreement(logits, batch.targets, _rows(groups)) / count
            loss.backward()  # type: ignore[no-untyped-call]
        else:
            difference = disagreement(logits, batch.targets, _rows(groups)) / count
            (loss + self._recipe.consistency * difference).backward()  # type: ignore[no-untyped-call]
        return loss.item(), difference.item()

    def _next_groups(self) -> list[list[TrainingExample]]:
        """The groups of the next step: each epoch shuffles all of them anew."""
        first = self.done * self._recipe.batch
        return [self._group(position) for position in range(first, first + self._recipe.batch)]

    def _group(self, position: int) -> list[TrainingExample]:
        epoch, within = divmod(position, len(self._groups))
        order = list(range(len(self._groups)))
        Random(f"adapter {self._recipe.seed} {epoch}").shuffle(order)
        return self._groups[order[within]]

    def _refuse_divergence(self) -> None:
        first, last = self._losses[:WINDOW], self._losses[-WINDOW:]
        # The margin of 1 allows for models whose loss is near zero from the start.
        has_risen = len(last) == WINDOW and sum(last) > 2 * sum(first) + WINDOW
        if not math.isfinite(last[-1]):
            raise self._diverged("the loss is not finite at")
        if has_risen:
            before, now = sum(first) / WINDOW, sum(last) / WINDOW
            raise self._diverged(
                f"the mean loss over {WINDOW} steps rose from {before:.3g} to {now:.3g} up to"
            )

    def _diverged(self, what: str) -> DivergedError:
        return DivergedError(
            f"the training diverges: {what} step {self.done + 1}", expected="a smaller --rate"
        )


def answer_logits(adapted: AdaptedModel, batch: TrainingBatch) -> Tensor:
    """The logits of a batch, shape (B, T, vocabulary), computed in bfloat16 on a GPU."""
    if adapted.loaded.prefix_vectors is not None:
        adapted.loaded.prefix_vectors.activate(batch.prompt_mask)
    device = adapted.loaded.device.type
    with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        logits: Tensor = adapted.loaded.model(**batch.inputs, use_cache=False).logits
    return logits


def _parts(groups: Sequence[EncodedGroup], count: int) -> list[Sequence[EncodedGroup]]:
    size = math.ceil(len(groups) / count)
    return [groups[first : first + size] for first in range(0, len(groups), size)]


def _rows(groups: Sequence[EncodedGroup]) -> list[range]:
    rows, first = [], 0
    for group in groups:
        rows.append(range(first, first + len(group)))
        first += len(group)
    return rows


# -- Measures how consistent a model is on the groups that are held out of its adapter's training

Embed = Callable[[Sequence[str]], Any]
"""Computes unit-length embeddings of texts, shape (texts, width)."""


class Validation(Struct, frozen=True):
    """The result of a validation. The shares run from 0 to 1 and match the metrics of `groups:FILE`.

    `loss` is the cross-entropy per token, `acc` the share of answers that contain their reference, `agree`
    the share of answer pairs that are equal and not empty, `con` the share of answer pairs that are similar
    (None without an embedder).
    """

    loss: float
    acc: float
    agree: float
    con: float | None


def validate(
    adapted: AdaptedModel,
    encoder: ExampleEncoder,
    groups: ExampleGroups,
    embed: Embed | None,
    *,
    batch: int,
    stop: Event,
) -> Validation:
    """Answer all examples greedily and compare the answers within each group; `embed` serves `con`."""
    examples = [example for group in groups for example in group]
    answers = _answers(adapted, encoder, examples, batch, stop)
    texts = [[answers[example.request.key] for example in group] for group in groups]
    normal = [[normalised(text) for text in group] for group in texts]
    return Validation(
        loss=_loss(adapted, encoder, examples, batch),
        acc=_mean(contains(answers[example.request.key], example.references) for example in examples),
        agree=_mean(
            first == second
            for group in normal
            for first, second in combinations(group, 2)
            if first and second
        ),
        con=None if embed is None else _con(texts, embed),
    )


def _answers(
    adapted: AdaptedModel,
    encoder: ExampleEncoder,
    examples: Sequence[TrainingExample],
    size: int,
    stop: Event,
) -> dict[str, str]:
    answers: dict[str, str] = {}
    for first in range(0, len(examples), size):
        encoded = [
            (index, encoder.encode_prompt(prompt))
            for index, prompt in enumerate(examples[first : first + size])
        ]
        for batch in compatible_batches(encoded):
            prompts = [prompt for _, prompt in batch]
            for prompt, answer in zip(prompts, generate(adapted.loaded, prompts, stop, ""), strict=True):
                answers[prompt.request.key] = answer.text
        if stop.is_set():
            raise KeyboardInterrupt
    return answers


@torch.no_grad()
def _loss(
    adapted: AdaptedModel, encoder: ExampleEncoder, examples: Sequence[TrainingExample], size: int
) -> float:
    total, tokens = 0.0, 0
    for first in range(0, len(examples), size):
        encoded = [encoder.encode(example) for example in examples[first : first + size]]
        batch = training_batch(adapted.loaded, encoded)
        total += cross_entropy(answer_logits(adapted, batch), batch.targets).item()
        tokens += sum(len(example.answer) for example in encoded)
    return total / tokens


def _con(answers: Sequence[Sequence[str]], embed: Embed) -> float:
    """MM-R3 3.3: the share of pairs with a cosine above 0.7. An empty answer is similar to none."""
    processed = [[post_process(text, "other").strip() for text in group] for group in answers]
    texts = sorted({text for group in processed for text in group if text})
    vectors = dict(zip(texts, embed(texts), strict=True)) if texts else {}
    pairs = [pair for group in processed for pair in combinations(group, 2)]
    return _mean(
        first in vectors and second in vectors and float(np.dot(vectors[first], vectors[second])) > THRESHOLD
        for first, second in pairs
    )


def _mean(values: Iterable[bool]) -> float:
    numbers = [float(value) for value in values]
    return float(np.mean(numbers)) if numbers else 0.0


# -- The training loss: cross-entropy of the answers, and disagreement between the variants of a group


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Sum the cross-entropy over all answer tokens (MM-R3, 5.2).

    Args:
        logits: Shape (B, T, vocabulary).
        targets: Shape (B, T), IGNORED at positions that are not part of an answer.
    """
    answer_logits, answers = logits[targets != IGNORED], targets[targets != IGNORED]
    return torch.nn.functional.cross_entropy(answer_logits.float(), answers, reduction="sum")


def disagreement(logits: Tensor, targets: Tensor, groups: Sequence[range]) -> Tensor:
    """Measure how much the token distributions differ between the rows of each group.

    The value of a group is the mean Kullback-Leibler divergence over ordered pairs of rows and over the
    tokens of the answer. Rows whose answer differs from that of the group's first row are left out.

    Args:
        logits: Shape (B, T, vocabulary).
        targets: Shape (B, T), IGNORED at positions that are not part of an answer.
    """
    total = logits.new_zeros((), dtype=torch.float32)
    for rows in groups:
        answers = {row: targets[row][targets[row] != IGNORED] for row in rows}
        same_answer = [row for row in rows if answers[row].equal(answers[rows[0]])]
        if len(same_answer) > 1:
            row_logits = torch.stack([logits[row][targets[row] != IGNORED] for row in same_answer])
            total = total + _divergence(row_logits.float().log_softmax(-1))
    return total


def _divergence(log_probabilities: Tensor) -> Tensor:
    """The mean of KL(i || j) over ordered pairs of rows, for log-probabilities (rows, tokens, vocabulary)."""
    count = len(log_probabilities)
    others = log_probabilities.sum(0, keepdim=True) - log_probabilities
    of_row = (log_probabilities.exp() * ((count - 1) * log_probabilities - others)).sum(-1).mean(-1)
    return of_row.sum() / (count * (count - 1))
