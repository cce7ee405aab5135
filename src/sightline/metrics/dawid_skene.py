"""The model of Dawid and Skene (1979): true labels and error rates of annotators, from their votes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sightline.metrics.statistics import Floats

FEWEST_ANNOTATORS = 3
"""The error rates of fewer annotators do not follow from their votes: the model has more parameters."""

TOO_FEW_ANNOTATORS = f"error rates need {FEWEST_ANNOTATORS} annotators who share items with others"
ONE_LABEL = "error rates need two labels: all votes are the same"

LEAST_COUNT = 1e-10
"""Counts are at least this large, so that a label that an annotator never gave stays possible."""

MOST_ITERATIONS = 2_000
TOLERANCE = 1e-9
"""EM ends when no probability of a label changes by more."""

_Name = TypeVar("_Name", bound=Hashable)


class Vote(NamedTuple):
    """The label that one annotator gives to one item. An annotator may vote on an item again."""

    item: str
    annotator: str
    label: str


class LabelModel(Struct, frozen=True):
    """The maximum-likelihood estimate of the model: i items, a annotators, k labels.

    Attributes:
        posteriors: The probability of each label of each item, shape (i, k).
        prior: The share of each label, shape (k,).
        confusion: The probability that an annotator gives a label, by true label: shape (a, k true, k given).
        iterations: The number of iterations of EM.
        converged: Whether EM ended because the probabilities did not change any more.
    """

    items: tuple[str, ...]
    annotators: tuple[str, ...]
    labels: tuple[str, ...]
    posteriors: Floats
    prior: Floats
    confusion: Floats
    iterations: int
    converged: bool


def dawid_skene(votes: Iterable[Vote], most_iterations: int = MOST_ITERATIONS) -> LabelModel | str:
    """Estimate the true labels and the error rates of the annotators by expectation maximisation.

    The true label of each item is unknown; given the true label, the annotators err independently, each with
    rates of their own (Dawid and Skene 1979). EM starts from the shares of the votes on each item.

    Args:
        votes: The votes. Items and annotators may have any number of them.
        most_iterations: The number of iterations after which EM ends in any case.

    Returns:
        The estimate, or the reason why there is none: a single label, or fewer than FEWEST_ANNOTATORS.
    """
    cast = list(votes)
    shared = _shared_items(cast)
    if len({vote.annotator for vote in cast if vote.item in shared}) < FEWEST_ANNOTATORS:
        return TOO_FEW_ANNOTATORS
    items, item_of = _numbered([vote.item for vote in cast])
    annotators, annotator_of = _numbered([vote.annotator for vote in cast])
    labels = tuple(sorted({vote.label for vote in cast}))
    if len(labels) < 2:
        return ONE_LABEL
    number = {label: position for position, label in enumerate(labels)}
    given = np.array([number[vote.label] for vote in cast], dtype=np.intp)
    shape = len(annotators), len(labels)

    posteriors = np.zeros((len(items), len(labels)))
    np.add.at(posteriors, (item_of, given), 1.0)
    posteriors /= posteriors.sum(axis=1, keepdims=True)
    iterations, change = 0, np.inf
    prior, confusion = _maximise(posteriors, item_of, annotator_of, given, shape)
    while iterations < most_iterations and change > TOLERANCE:
        before, iterations = posteriors, iterations + 1
        posteriors = _expect(prior, confusion, item_of, annotator_of, given, len(items))
        prior, confusion = _maximise(posteriors, item_of, annotator_of, given, shape)
        change = float(np.abs(posteriors - before).max())
    return LabelModel(
        items, annotators, labels, posteriors, prior, confusion, iterations, converged=change <= TOLERANCE
    )


def _shared_items(votes: Sequence[Vote]) -> set[str]:
    """The items on which several annotators voted."""
    first: dict[str, str] = {}
    return {vote.item for vote in votes if first.setdefault(vote.item, vote.annotator) != vote.annotator}


def _numbered(names: Sequence[_Name]) -> tuple[tuple[_Name, ...], NDArray[np.intp]]:
    """The different names in their order, and the position of each name among them."""
    numbers: dict[_Name, int] = {}
    positions = [numbers.setdefault(name, len(numbers)) for name in names]
    return tuple(numbers), np.array(positions, dtype=np.intp)


def _expect(
    prior: Floats,
    confusion: Floats,
    items: NDArray[np.intp],
    annotators: NDArray[np.intp],
    given: NDArray[np.intp],
    size: int,
) -> Floats:
    """The E step, equation 2.5: the probability of each label of each item, shape (size, k)."""
    logs = np.tile(np.log(np.maximum(prior, LEAST_COUNT)), (size, 1))
    np.add.at(logs, items, np.log(confusion)[annotators, :, given])
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    posteriors: Floats = odds / odds.sum(axis=1, keepdims=True)
    return posteriors


def _maximise(
    posteriors: Floats,
    items: NDArray[np.intp],
    annotators: NDArray[np.intp],
    given: NDArray[np.intp],
    shape: tuple[int, int],
) -> tuple[Floats, Floats]:
    """The M step, equations 2.3 and 2.4: the shares of the labels, and the error rates."""
    size, labels = shape
    counts = np.zeros((size, labels, labels))  # annotator, given, true
    np.add.at(counts, (annotators, given), posteriors[items])
    rates = np.maximum(counts.transpose(0, 2, 1), LEAST_COUNT)
    return posteriors.mean(axis=0), rates / rates.sum(axis=2, keepdims=True)
