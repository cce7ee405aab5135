"""Measures how consistent a model is on the groups that are held out of its adapter's training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from threading import Event
from typing import Any

import numpy as np
import torch
from msgspec import Struct

from sightline.adapter.attach import AdaptedModel
from sightline.adapter.batch import ExampleEncoder, training_batch
from sightline.adapter.examples import ExampleGroups, TrainingExample
from sightline.adapter.loss import cross_entropy
from sightline.adapter.trainer import answer_logits
from sightline.models.local.batches import compatible_batches
from sightline.models.local.generate import generate
from sightline.scoring.containment import contains, normalised, post_process
from sightline.scoring.similarity import THRESHOLD

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
    """Answer all examples greedily and compare the answers within each group.

    Args:
        embed: The embedder for `con`, or None.
    """
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
