"""Conditions on the numbers of a result under which a command fails: `--fail-if 'acc_p<30'`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from sightline.errors import UserError, unknown_name
from sightline.results.fail_if import named
from sightline.types import MetricValue

FORMS = (
    "METRIC<NUMBER, as in acc_p<30, acc_p[category=Attributes]<=20.5 or acc_p.high<30 (what is worse is found"
    " of two runs, by `sightline compare`)"
)

PARTS = ("value", "low", "high")
"""What of a metric can be held against a number: it, and the bounds of its interval."""

_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_HELD = re.compile(r"(?:\.(?P<part>\w+))?\s*(?P<sign>[<>]=?)(?P<number>.*)")


class Condition(Struct, frozen=True):
    """A metric, or a bound of its interval, held against a number; `text` is all that as it was given."""

    text: str
    metric: str
    subset: str
    part: str
    sign: str
    number: float

    def found(self, metrics: Iterable[MetricValue]) -> str | None:
        """What is found where the condition holds, else None. Without a number it holds too: what could not
        be measured does not pass."""
        values = {metric.subset: metric for metric in metrics if metric.metric == self.metric}
        metric = values.get(self.subset)
        if metric is None:
            return f"{self.text}: there is no such number{_instead(values)}"
        number = getattr(metric, self.part)
        if number is None:
            reason = metric.reason or "no interval: fewer than two clusters, or all agree"
            return f"{self.text}: there is no number to hold against it ({reason})"
        if not _SIGNS[self.sign](number, self.number):
            return None
        return f"{self.text}: it is {_told(number, self.number)}"


def conditions(texts: Iterable[str]) -> tuple[Condition, ...]:
    """The conditions that these words stand for. Raises UserError for words that are none."""
    return tuple(_condition(text) for text in texts)


def check_metrics(wanted: Iterable[Condition], known: Collection[str]) -> None:
    """Raise UserError for a condition on a metric that there is not, with the nearest that there is."""
    for condition in wanted:
        if condition.metric not in known:
            raise unknown_name("metric in --fail-if", condition.metric, known)


def failed(wanted: Iterable[Condition], metrics: Sequence[MetricValue]) -> tuple[str, ...]:
    """What is found of each condition that holds."""
    return tuple(filter(None, (condition.found(metrics) for condition in wanted)))


def _condition(text: str) -> Condition:
    metric, subset, said = named(text)
    form = _HELD.fullmatch(said)
    if form is None or not metric:
        raise UserError(f"--fail-if {text!r} is no condition on a number", expected=FORMS)
    part = form["part"] or "value"
    if part not in PARTS:
        raise UserError(f"--fail-if {text!r}: no metric has .{part}", expected=".low, .high, or neither")
    try:
        number = float(form["number"])
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UserError(f"--fail-if {text!r} has no number", found=form["number"].strip(), expected=FORMS)
    return Condition(text.strip(), metric, subset, part, form["sign"], number)


def _instead(subsets: Iterable[str]) -> str:
    """Some of the subsets that there are."""
    known = list(subsets)
    rest = f" and {len(known) - 4} more" if len(known) > 4 else ""
    return f", only for {', '.join(known[:4])}{rest}" if known else ""


def _told(value: float, number: float) -> str:
    """A value with as many decimals as tell it from the number that it is held against, two at least."""
    return next((f"{value:.{n}f}" for n in range(2, 12) if round(value, n) != round(number, n)), f"{value:g}")
