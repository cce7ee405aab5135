"""The quality of labels that several annotators gave: who errs how, and which items to adjudicate first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sightline.metrics.agreement import majority
from sightline.metrics.statistics import Floats


class ItemLabel(Struct, frozen=True):
    """The label of an item by majority and by the model.

    Attributes:
        posterior: The probability of each label, 0-1.
        loss: The probability that the label that counts is wrong: the majority, for a tie the most probable
            label.
    """

    item: str
    majority: str | None
    likely: str
    posterior: Mapping[str, float]
    loss: float


class AnnotatorQuality(Struct, frozen=True):
    """How often an annotator gives the true label, as the model estimates it.

    Attributes:
        accuracy: The expected share of right labels among these votes, 0-1.
        confusion: True label -> given label -> probability.
    """

    annotator: str
    votes: int
    accuracy: float
    confusion: Mapping[str, Mapping[str, float]]


class LabelQuality(Struct, frozen=True):
    """Items and annotators as the model of Dawid and Skene sees them.

    Attributes:
        items: By descending loss; in the order of the votes if there are fewer than FEWEST_ITEMS.
    """

    items: list[ItemLabel]
    annotators: list[AnnotatorQuality]
    prior: Mapping[str, float]
    iterations: int
    converged: bool

    @property
    def orders(self) -> bool:
        """Whether there are enough items to say which to adjudicate first."""
        return len(self.items) >= FEWEST_ITEMS

    def notes(self) -> list[str]:
        few = f"{len(self.items)} items, fewer than {FEWEST_ITEMS}: too few to order for adjudication"
        doubt = f"the estimate did not converge in {self.iterations:,} iterations"
        return [*([] if self.orders else [few]), *([] if self.converged else [doubt])]


def label_quality(votes: Iterable[Vote]) -> LabelQuality | str:
    """Estimate the labels of items and the accuracy of annotators from their votes.

    >>> votes = [Vote(item, name, "yes") for item in "ab" for name in ("ann", "ben", "cleo")]
    >>> label_quality(votes)
    'error rates need two labels: all votes are the same'
    """
    cast = list(votes)
    model = dawid_skene(cast)
    if isinstance(model, str):
        return model
    by_item: dict[str, list[str]] = defaultdict(list)
    for vote in cast:
        by_item[vote.item].append(vote.label)
    posteriors = {
        item: dict(zip(model.labels, row, strict=True))
        for item, row in zip(model.items, model.posteriors.tolist(), strict=True)
    }
    items = [_item_label(item, by_item[item], posterior) for item, posterior in posteriors.items()]
    return LabelQuality(
        items=sorted(items, key=lambda one: -one.loss) if len(items) >= FEWEST_ITEMS else items,
        annotators=_annotators(model, cast, posteriors),
        prior=dict(zip(model.labels, model.prior.tolist(), strict=True)),
        iterations=model.iterations,
        converged=model.converged,
    )


def _item_label(item: str, labels: list[str], posterior: Mapping[str, float]) -> ItemLabel:
    most, likely = majority(labels), max(posterior, key=posterior.__getitem__)
    counts = likely if most is None else most
    return ItemLabel(item, most, likely, posterior, 1 - posterior[counts])


def _annotators(
    model: LabelModel, votes: list[Vote], posteriors: Mapping[str, Mapping[str, float]]
) -> list[AnnotatorQuality]:
    right: dict[str, list[float]] = defaultdict(list)
    for vote in votes:
        right[vote.annotator].append(posteriors[vote.item][vote.label])
    rates = dict(zip(model.annotators, model.confusion.tolist(), strict=True))
    return [
        AnnotatorQuality(
            annotator=annotator,
            votes=len(own),
            accuracy=sum(own) / len(own),
            confusion={
                true: dict(zip(model.labels, row, strict=True))
                for true, row in zip(model.labels, rates[annotator], strict=True)
            },
        )
        for annotator, own in right.items()
    ]


# -- The model of Dawid and Skene (1979): true labels and error rates of annotators, from their votes

FEWEST_ANNOTATORS = 3
"""The error rates of fewer annotators do not follow from their votes: the model has more parameters."""

TOO_FEW_ANNOTATORS = f"error rates need {FEWEST_ANNOTATORS} annotators who share items with others"
ONE_LABEL = "error rates need two labels: all votes are the same"

PSEUDO_COUNTS = 1.0
"""The prior of the error rates, in votes: so many in each cell of an annotator's table, and as many again on
its diagonal. Without it the rates of few votes are extreme: of 60 items with three annotators (right in
0.9, 0.8 and 0.7 of them) the model has 53.4 right, with it 54.1, the majority 54.2 (means of 60 draws)."""

FEWEST_ITEMS = 100
"""Of fewer items, the model does not say which to adjudicate first."""

LEAST_COUNT = 1e-10
"""Counts are at least this large, so that without a prior a label that was never given stays possible."""

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
    """The estimate of the model: i items, a annotators, k labels.

    Attributes:
        posteriors: The probability of each label of each item, shape (i, k).
        prior: The share of each label, shape (k,).
        confusion: The probability that an annotator gives a label, by true label: shape (a, k true, k given).
    """

    items: tuple[str, ...]
    annotators: tuple[str, ...]
    labels: tuple[str, ...]
    posteriors: Floats
    prior: Floats
    confusion: Floats
    iterations: int
    converged: bool


def dawid_skene(
    votes: Iterable[Vote], most_iterations: int = MOST_ITERATIONS, pseudo_counts: float = PSEUDO_COUNTS
) -> LabelModel | str:
    """Estimate the true labels and the error rates of the annotators by expectation maximisation.

    The true label of each item is unknown; given the true label, the annotators err independently, each with
    rates of their own (Dawid and Skene 1979). EM starts from the shares of the votes on each item.

    Args:
        pseudo_counts: As PSEUDO_COUNTS; 0 gives the maximum-likelihood estimate of the paper.

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
    votes_before = np.tile(pseudo_counts * (1 + np.eye(len(labels))), (len(annotators), 1, 1))

    posteriors = np.zeros((len(items), len(labels)))
    np.add.at(posteriors, (item_of, given), 1.0)
    posteriors /= posteriors.sum(axis=1, keepdims=True)
    iterations, change = 0, np.inf
    prior, confusion = _maximise(posteriors, item_of, annotator_of, given, votes_before)
    while iterations < most_iterations and change > TOLERANCE:
        before, iterations = posteriors, iterations + 1
        posteriors = _expect(prior, confusion, item_of, annotator_of, given, len(items))
        prior, confusion = _maximise(posteriors, item_of, annotator_of, given, votes_before)
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
    votes_before: Floats,
) -> tuple[Floats, Floats]:
    """The M step, equations 2.3 and 2.4 with a prior: the shares of the labels, and the error rates."""
    counts = votes_before.copy()  # annotator, given, true; it is symmetric
    np.add.at(counts, (annotators, given), posteriors[items])
    rates = np.maximum(counts.transpose(0, 2, 1), LEAST_COUNT)
    return posteriors.mean(axis=0), rates / rates.sum(axis=2, keepdims=True)
