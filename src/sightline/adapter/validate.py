"""How consistent a model is on groups that are held out of its adapter's training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from threading import Event
from typing import Any

import numpy as np
import torch
from msgspec import Struct

from sightline.adapter.attach import Attached
from sightline.adapter.batch import Maker, compose
from sightline.adapter.examples import Example, Examples
from sightline.adapter.loss import cross_entropy
from sightline.adapter.train import answer_logits
from sightline.models.local.batches import alike
from sightline.models.local.generate import generate
from sightline.scoring.containment import contains, normalised, post_process
from sightline.scoring.similarity import THRESHOLD

Embed = Callable[[Sequence[str]], Any]


class Validation(Struct, frozen=True):
    """`loss` a token; shares from 0 to 1, as `groups:FILE` counts them: of answers that hold their
    reference, of pairs of answers that say anything and are equal, and of pairs that are similar as `con`
    counts them (None without an embedder)."""

    loss: float
    acc: float
    agree: float
    con: float | None


def validate(
    attached: Attached, maker: Maker, groups: Examples, embed: Embed | None, *, size: int, stop: Event
) -> Validation:
    """Ask all examples of the groups, greedily and `size` at a time, and hold the answers of each group
    against each other. Raises KeyboardInterrupt once `stop` is set."""
    examples = [one for group in groups for one in group]
    answers = _answers(attached, maker, examples, size, stop)
    texts = [[answers[one.request.key] for one in group] for group in groups]
    said = [[normalised(text) for text in each] for each in texts]
    return Validation(
        loss=_loss(attached, maker, examples, size),
        acc=_mean(contains(answers[one.request.key], one.references) for one in examples),
        agree=_mean(
            first == second for texts in said for first, second in combinations(texts, 2) if first and second
        ),
        con=None if embed is None else _con(texts, embed),
    )


def _answers(
    attached: Attached, maker: Maker, examples: Sequence[Example], size: int, stop: Event
) -> dict[str, str]:
    found: dict[str, str] = {}
    for first in range(0, len(examples), size):
        encoded = [(place, maker.encode(one)) for place, one in enumerate(examples[first : first + size])]
        for batch in alike(encoded):
            asked = [one for _, one in batch]
            for one, answer in zip(asked, generate(attached.loaded, asked, stop, ""), strict=True):
                found[one.request.key] = answer.text
        if stop.is_set():
            raise KeyboardInterrupt
    return found


@torch.no_grad()
def _loss(attached: Attached, maker: Maker, examples: Sequence[Example], size: int) -> float:
    total, tokens = 0.0, 0
    for first in range(0, len(examples), size):
        ready = [maker.make(one) for one in examples[first : first + size]]
        batch = compose(attached.loaded, ready)
        total += cross_entropy(answer_logits(attached, batch), batch.targets).item()
        tokens += sum(len(one.answer) for one in ready)
    return total / tokens


def _con(answers: Sequence[Sequence[str]], embed: Embed) -> float:
    """MM-R3 3.3: the share of pairs whose cosine is above 0.7; an answer that says nothing is like none."""
    said = [[post_process(text, "other").strip() for text in group] for group in answers]
    texts = sorted({text for group in said for text in group if text})
    vectors = dict(zip(texts, embed(texts), strict=True)) if texts else {}
    pairs = [pair for group in said for pair in combinations(group, 2)]
    return _mean(
        first in vectors and second in vectors and float(np.dot(vectors[first], vectors[second])) > THRESHOLD
        for first, second in pairs
    )


def _mean(values: Iterable[bool]) -> float:
    found = [float(value) for value in values]
    return float(np.mean(found)) if found else 0.0
