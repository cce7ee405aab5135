"""Conditions of `--fail-if` on the numbers of one result, such as `acc_p<30`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from sightline.errors import UserError, some_of, unknown_name
from sightline.metric_types import Result
from sightline.results.undecided import undecided_share

FORMS = (
    "METRIC<NUMBER, as in acc_p<30, acc_p[category=Attributes]<=20.5 or acc_p.high<30 (`sightline compare` "
    "accepts --fail-if worse for two runs)"
)

BOUNDS = ("value", "low", "high")
"""The numbers of a metric that a condition may compare: its value, and the bounds of its interval."""

_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_METRIC_AND_REST = re.compile(r"\s*(\w*)\s*(?:\[(.+)\])?\s*(.*)", re.DOTALL)
_COMPARED = re.compile(r"(?:\.(?P<bound>\w+))?\s*(?P<sign>[<>]=?)(?P<number>.*)")


class ConditionParts(NamedTuple):
    """A metric ('' if none is named), its subset ('all' by default), and the rest of a condition."""

    metric: str
    subset: str
    rest: str


class Condition(Struct, frozen=True):
    """A comparison of a metric, or of a bound of its interval, with a number; `text` is how it was given."""

    text: str
    metric: str
    subset: str
    bound: str
    sign: str
    number: float

    def met(self, result: Result) -> str | None:
        """Check the condition.

        The condition also holds if there is no number, or if the value would meet it with all undecided
        verdicts right: the line then says that it could hold.

        Returns:
            Why the condition holds, so that the command fails; None if it does not hold.
        """
        values = {metric.subset: metric for metric in result.metrics if metric.metric == self.metric}
        metric = values.get(self.subset)
        if metric is None:
            return f"{self.text}: there is no such number{_other_subsets(values)}"
        number = getattr(metric, self.bound)
        if number is None:
            return f"{self.text}: there is no number to compare ({metric.reason or 'no confidence interval'})"
        if_right = metric.changed_if_right
        could_hold = self.bound == "value" and if_right is not None and self._compares(if_right)
        if not self._compares(number) and not could_hold:
            return None
        line = f"{self.text}: it is {_distinct(number, self.number)}"
        if if_right is not None:
            changed = "" if self.bound == "value" else "the value "
            line += f", or {changed}{_distinct(if_right, self.number)} if all undecided verdicts"
            line += f" ({undecided_share(result)}) were right"
        if result.not_sent:
            line += f"; {result.not_sent:,} of {result.probes:,} probes were not sent"
        return line

    def _compares(self, number: float) -> bool:
        """Whether a number meets the comparison."""
        return _SIGNS[self.sign](number, self.number)


def parse_conditions(texts: Iterable[str]) -> tuple[Condition, ...]:
    """Parse the values of `--fail-if`."""
    return tuple(_parse(text) for text in texts)


def check_condition_metrics(conditions: Iterable[Condition], names: Collection[str]) -> None:
    """Refuse conditions on metrics that do not exist."""
    for condition in conditions:
        if condition.metric not in names:
            raise unknown_name("metric in --fail-if", condition.metric, names)


def conditions_met(conditions: Iterable[Condition], result: Result) -> tuple[str, ...]:
    return tuple(filter(None, (condition.met(result) for condition in conditions)))


def split_condition(text: str) -> ConditionParts:
    """Split a condition into the number that it is about and the rest.

    >>> split_condition("acc_p[category=Attributes] <= 20.5")
    ConditionParts(metric='acc_p', subset='category=Attributes', rest='<= 20.5')
    >>> split_condition("miss: higher")
    ConditionParts(metric='miss', subset='all', rest=': higher')
    """
    metric, subset, rest = _METRIC_AND_REST.findall(text)[0]
    return ConditionParts(metric, subset or "all", rest)


def _parse(text: str) -> Condition:
    metric, subset, rest = split_condition(text)
    form = _COMPARED.fullmatch(rest)
    if form is None or not metric:
        raise UserError(f"--fail-if {text!r} is not a condition on a number", expected=FORMS)
    bound = form["bound"] or "value"
    if bound not in BOUNDS:
        raise UserError(f"--fail-if {text!r}: no metric has .{bound}", expected=".low, .high, or neither")
    try:
        number = float(form["number"])
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UserError(f"--fail-if {text!r} has no number", found=form["number"].strip(), expected=FORMS)
    return Condition(text.strip(), metric, subset, bound, form["sign"], number)


def _other_subsets(subsets: Iterable[str]) -> str:
    """The first subsets that exist, for a message."""
    names = list(subsets)
    return f", only for {some_of(names, 4)}" if names else ""


def _distinct(value: float, number: float) -> str:
    """A value with at least two decimals, and as many as distinguish it from a number."""
    return next((f"{value:.{n}f}" for n in range(2, 12) if round(value, n) != round(number, n)), f"{value:g}")
