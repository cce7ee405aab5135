"""The training loss: cross-entropy of the answers, and disagreement between the variants of a group."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sightline.adapter.batch import IGNORED


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
