"""The quality of labels that several annotators gave: who errs how, and which items to adjudicate first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from msgspec import Struct

from sightline.metrics.dawid_skene import LabelModel, Vote, dawid_skene
from sightline.scoring.majority import majority


class ItemLabel(Struct, frozen=True):
    """The label of an item by majority and by the model.

    Attributes:
        majority: The label with the most votes; None for a tie.
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
        votes: The number of votes.
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
        iterations: The number of iterations of EM.
    """

    items: list[ItemLabel]
    annotators: list[AnnotatorQuality]
    prior: Mapping[str, float]
    iterations: int
    converged: bool


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
        items=sorted(items, key=lambda one: -one.loss),
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
