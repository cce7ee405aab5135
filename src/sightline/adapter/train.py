"""Training an adapter on a frozen model, from one checkpoint to the next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Literal, NamedTuple

import torch
from msgspec import Struct
from torch import Tensor

from sightline.adapter.attach import Attached
from sightline.adapter.batch import Batch, Maker, Ready, compose
from sightline.adapter.examples import Example, Examples
from sightline.adapter.loss import cross_entropy, disagreement
from sightline.errors import UserError

CONSISTENCY = 1.0
"""How much the disagreement of a group's variants weighs beside the cross-entropy of a token."""
WINDOW = 20
"""Steps over which the loss is averaged before it is said to diverge."""


class Recipe(Struct, frozen=True, kw_only=True):
    """How an adapter is trained. `batch` is groups a step, all variants of each; `rate` falls linearly to
    zero over `steps`; `accumulate` splits a step's groups into so many passes."""

    steps: int
    batch: int
    rate: float
    loss: Literal["ce", "ce+consistency"] = "ce"
    consistency: float = CONSISTENCY
    accumulate: int = 1
    seed: int = 0


class Step(NamedTuple):
    """What a step did: its number from 1, its loss a token, and the disagreement of its groups."""

    number: int
    loss: float
    apart: float


class DivergedError(UserError):
    """The loss or a weight is no number, or the loss has risen far above where it began."""


class Trainer:
    """An adapter in training. Its state after any step is `state()`, from which another goes on exactly."""

    def __init__(self, attached: Attached, maker: Maker, groups: Examples, recipe: Recipe) -> None:
        self._attached, self._maker, self._groups, self._recipe = attached, maker, groups, recipe
        # Adam, as Newman et al. 2022, whom the paper follows; it does not say.
        self._optimizer = torch.optim.Adam(attached.weights.values(), lr=recipe.rate)
        self._losses: list[float] = []
        self.done = 0

    def steps(self) -> Iterator[Step]:
        """The steps that are left, each once it is done. Raises DivergedError."""
        while self.done < self._recipe.steps:
            step = self._step()
            self.done += 1
            yield step

    def state(self) -> dict[str, Any]:
        """All that the next step depends on."""
        return {
            "weights": {name: weight.detach() for name, weight in self._attached.weights.items()},
            "optimizer": self._optimizer.state_dict(),
            "losses": self._losses,
            "done": self.done,
        }

    def take_up(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        with torch.no_grad():
            for name, weight in self._attached.weights.items():
                weight.copy_(state["weights"][name])
        self._optimizer.load_state_dict(state["optimizer"])
        self._losses, self.done = list(state["losses"]), state["done"]

    def _step(self) -> Step:
        for group in self._optimizer.param_groups:
            group["lr"] = self._recipe.rate * (1 - self.done / self._recipe.steps)
        self._optimizer.zero_grad(set_to_none=True)
        chosen = [[self._maker.make(one) for one in group] for group in self._chosen()]
        tokens = sum(len(one.answer) for group in chosen for one in group)
        loss = apart = 0.0
        for part in _parts(chosen, self._recipe.accumulate):
            said, disagreed = self._learn(part, tokens, len(chosen))
            loss, apart = loss + said, apart + disagreed
        self._losses.append(loss)
        self._refuse_divergence()
        self._optimizer.step()
        if not all(bool(weight.isfinite().all()) for weight in self._attached.weights.values()):
            raise self._diverged("a weight is no number after")
        return Step(self.done + 1, loss, apart)

    def _learn(self, groups: Sequence[Sequence[Ready]], tokens: int, count: int) -> tuple[float, float]:
        """Add the gradients of some of a step's groups; their share of its loss and of its disagreement."""
        batch = compose(self._attached.loaded, [one for group in groups for one in group])
        logits = answer_logits(self._attached, batch)
        said = cross_entropy(logits, batch.targets) / tokens
        if self._recipe.loss == "ce":
            with torch.no_grad():
                apart = disagreement(logits, batch.targets, _rows(groups)) / count
            said.backward()  # type: ignore[no-untyped-call]
        else:
            apart = disagreement(logits, batch.targets, _rows(groups)) / count
            (said + self._recipe.consistency * apart).backward()  # type: ignore[no-untyped-call]
        return said.item(), apart.item()

    def _chosen(self) -> list[list[Example]]:
        """The groups of the step: each epoch goes through all of them in an order of its own."""
        first = self.done * self._recipe.batch
        return [self._at(place) for place in range(first, first + self._recipe.batch)]

    def _at(self, place: int) -> list[Example]:
        epoch, within = divmod(place, len(self._groups))
        order = list(range(len(self._groups)))
        Random(f"adapter {self._recipe.seed} {epoch}").shuffle(order)
        return self._groups[order[within]]

    def _refuse_divergence(self) -> None:
        first, last = self._losses[:WINDOW], self._losses[-WINDOW:]
        # One more than twice: a model that is right already may begin near zero.
        has_risen = len(last) == WINDOW and sum(last) > 2 * sum(first) + WINDOW
        if not math.isfinite(last[-1]):
            raise self._diverged("the loss is no number at")
        if has_risen:
            before, now = sum(first) / WINDOW, sum(last) / WINDOW
            raise self._diverged(f"over {WINDOW} steps the loss is {before:.3g} at first and {now:.3g} up to")

    def _diverged(self, what: str) -> DivergedError:
        return DivergedError(
            f"the training diverges: {what} step {self.done + 1}", expected="a smaller --rate"
        )


def answer_logits(attached: Attached, batch: Batch) -> Tensor:
    """The model's logits (B, T, vocabulary), the adapter's vectors put before each prompt."""
    if attached.loaded.before is not None:
        attached.loaded.before.arm(batch.seen)
    device = attached.loaded.device.type
    with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        logits: Tensor = attached.loaded.model(**batch.inputs, use_cache=False).logits
    return logits


def _parts(groups: Sequence[Sequence[Ready]], count: int) -> list[Sequence[Sequence[Ready]]]:
    size = math.ceil(len(groups) / count)
    return [groups[first : first + size] for first in range(0, len(groups), size)]


def _rows(groups: Sequence[Sequence[Ready]]) -> list[range]:
    """Which rows of a batch are each group's."""
    found, first = [], 0
    for group in groups:
        found.append(range(first, first + len(group)))
        first += len(group)
    return found
