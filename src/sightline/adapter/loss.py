"""What training makes small: cross-entropy of the answers, and how far a group's variants disagree."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sightline.adapter.batch import IGNORED


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """The sum over all tokens of answers (5.2); logits (B, T, vocabulary), targets (B, T)."""
    given, wanted = logits[targets != IGNORED], targets[targets != IGNORED]
    return torch.nn.functional.cross_entropy(given.float(), wanted, reduction="sum")


def disagreement(logits: Tensor, targets: Tensor, groups: Sequence[range]) -> Tensor:
    """How far the distributions of a group's rows over the tokens of one answer lie apart: the mean
    Kullback-Leibler divergence of its ordered pairs of rows over tokens, summed over `groups`.

    Rows of a group that should give another answer than its first are not compared.
    """
    found = logits.new_zeros((), dtype=torch.float32)
    for rows in groups:
        answers = {row: targets[row][targets[row] != IGNORED] for row in rows}
        alike = [row for row in rows if answers[row].equal(answers[rows[0]])]
        if len(alike) > 1:
            said = torch.stack([logits[row][targets[row] != IGNORED] for row in alike])
            found = found + _divergence(said.float().log_softmax(-1))
    return found


def _divergence(likely: Tensor) -> Tensor:
    """The mean of KL(i || j) over ordered pairs of rows; log-probabilities (rows, tokens, vocabulary)."""
    count = len(likely)
    others = likely.sum(0, keepdim=True) - likely
    of_row = (likely.exp() * ((count - 1) * likely - others)).sum(-1).mean(-1)
    return of_row.sum() / (count * (count - 1))
