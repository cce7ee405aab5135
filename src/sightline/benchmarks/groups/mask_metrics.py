"""Metrics of MM-R3's context task: the share of answers that name the mask and not what it hides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sightline.benchmarks.groups.mask_words import names_colour, names_lines, names_shape
from sightline.types import PERCENT, Group, Metric, Term


def mask_terms(names: Callable[[str, str], bool], label: str) -> Callable[[Group], Iterable[Term]]:
    """Count the answers that name a property of their mask (MM-R3 4.3.1).

    Args:
        names: Whether a response names a property, such as the colour 'green'.
        label: The label that holds the property of the mask.

    Returns:
        The terms of a metric: one for each answer with the label, under its own labels.
    """

    def terms(group: Group) -> Iterator[Term]:
        for outcome in group:
            value = outcome.labels.get(label)
            if isinstance(value, str) and outcome.answered:
                yield Term(names(outcome.response, value), 1, outcome.labels)

    return terms


MASK_METRICS = tuple(
    Metric(
        name=name,
        terms=mask_terms(names, label),
        meaning=f"answers that name the {label} of the mask",
        better="lower",
        range=PERCENT,
        source="MM-R3 4.3.1 and A.9.3",
        judged=None,
        absent=f"no label '{label}'",
    )
    for name, names, label in (
        ("names_colour", names_colour, "colour"),
        ("names_shape", names_shape, "shape"),
        ("names_lines", names_lines, "lines"),
    )
)
