"""Turns the answers of a test into the values of its groups, as `sightline run mmr3:TASK` computes them.

Two differences keep the values rectangular: a pair with an empty answer does not agree (`sightline run`
leaves it out of agree), and similarities are rounded to thousandths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from sightline.scoring.similarity import THRESHOLD
from sightline.scoring.text import Task, contains, normalised, post_process
from training.adapter.result_files import SIMILARITY_OFFSET, TaskValues, encode
from training.adapter.scenes import TestGroup

Vectors = Mapping[str, Any]
"""The unit-length embedding of each text."""


class Embeddings:
    """Embeddings that are computed once for each text."""

    def __init__(self, embed: Callable[[Sequence[str]], Any]) -> None:
        """Start without a text.

        Args:
            embed: Computes unit-length embeddings, shape (texts, width).
        """
        self._embed = embed
        self._vectors: dict[str, Any] = {}

    def of(self, texts: Sequence[str]) -> Vectors:
        """The embeddings of some texts.

        Args:
            texts: The texts.

        Returns:
            All embeddings so far by text.
        """
        new = sorted({text for text in texts if text} - self._vectors.keys())
        if new:
            self._vectors.update(zip(new, self._embed(new), strict=True))
        return self._vectors


def task_values(
    groups: Sequence[TestGroup], answers: Sequence[Sequence[str]], task: Task, embeddings: Embeddings
) -> TaskValues:
    """Score the answers of a task.

    Args:
        groups: The groups of the test.
        answers: The answers of each group.
        task: The task of MM-R3.
        embeddings: Computes the similarities of answers.

    Returns:
        The values of every group.
    """
    processed = [[post_process(text, task) for text in group] for group in answers]
    vectors = embeddings.of([text for group in processed for text in group])
    counts: dict[str, list[int]] = {name: [] for name in TaskValues.__struct_fields__}
    for group, texts, compared in zip(groups, answers, processed, strict=True):
        right = [contains(text, group.references, task) for text in texts]
        normal = [normalised(text) for text in compared]
        pairs = list(combinations(range(len(texts)), 2))
        similar = {pair: _cosine(compared, pair, vectors) for pair in pairs}
        consistent = {pair for pair, value in similar.items() if value > THRESHOLD}
        counts["acc"].append(sum(right))
        counts["con"].append(len(consistent))
        counts["agree"].append(sum(bool(normal[i]) and normal[i] == normal[j] for i, j in pairs))
        mean = sum(similar.values()) / len(pairs)
        counts["s_c"].append(max(0, round(1000 * mean) + SIMILARITY_OFFSET))
        counts["label_acc"].append(sum(right[i] for i in group.labelled))
        counts["label_con"].append(sum((i in group.labelled) + (j in group.labelled) for i, j in consistent))
    return TaskValues(**{name: encode(of, 2 if name == "s_c" else 1) for name, of in counts.items()})


def _cosine(texts: Sequence[str], pair: tuple[int, int], vectors: Vectors) -> float:
    """The similarity of two answers; 0 if one is empty."""
    first, second = (texts[place] for place in pair)
    return float(np.dot(vectors[first], vectors[second])) if first and second else 0.0
