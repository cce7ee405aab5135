"""Conditions on a comparison of runs under which it fails: `--fail-if worse`, `--fail-if 'acc_p: lower'`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from msgspec import Struct

from sightline.errors import UserError
from sightline.metrics.comparison import MetricSubset
from sightline.metrics.significance import Significance
from sightline.results.fail_if import named
from sightline.types import MetricDefinition, MetricValue

Direction = Literal["worse", "lower", "higher"]

FORMS = (
    "worse, 'METRIC: worse', or 'METRIC[LABEL=VALUE]: lower' or higher (a number is held against one run, by"
    " `sightline report RUN --fail-if`)"
)


class Loss(Struct, frozen=True):
    """A significant difference in one direction: of one row of a table, or (`metric` None) of any of them."""

    text: str
    metric: str | None
    subset: str
    direction: str
    definitions: Mapping[str, MetricDefinition]

    def found(self, rows: Iterable[MetricValue], tested: Mapping[MetricSubset, Significance]) -> list[str]:
        """What is found of each row where the condition holds. Without a difference it holds too: what could
        not be measured does not pass."""
        said = []
        for row in rows:
            if self.metric is not None and (row.metric, row.subset) != (self.metric, self.subset):
                continue
            where = row.metric if row.subset == "all" else f"{row.metric}[{row.subset}]"
            one = tested.get((row.metric, row.subset))
            if one is None or row.value is None:
                said.append(f"{self.text}: {where} has no difference ({row.reason})")
            elif one.significant and (row.value > 0 if self._bad(row.metric) == "higher" else row.value < 0):
                said.append(f"{self.text}: {where} differs by {row.value:+.3g} (p {one.holm:.2g}, Holm)")
        return said

    def _bad(self, metric: str) -> str:
        """The direction that fails: `higher` or `lower`."""
        if self.direction != "worse":
            return self.direction
        return "higher" if self.definitions[metric].better == "lower" else "lower"


def losses(
    texts: Iterable[str], rows: Sequence[MetricValue], definitions: Mapping[str, MetricDefinition]
) -> tuple[Loss, ...]:
    """The conditions of `--fail-if` on the rows of a comparison.

    Args:
        texts: The conditions as given: `worse`, `METRIC: worse`, `METRIC[LABEL=VALUE]: lower`.
        rows: The differences that the table shows.
        definitions: The definitions of the metrics by name; they say which direction is better.

    Returns:
        A condition for each text.

    Raises:
        UserError: A text is not a condition, names a row that the table lacks, or asks whether a metric is
            worse that has no better direction.
    """
    return tuple(_loss(text, rows, definitions) for text in texts)


def _loss(text: str, rows: Sequence[MetricValue], definitions: Mapping[str, MetricDefinition]) -> Loss:
    metric, subset, said = named(text)
    one = said.startswith(":") and metric != ""
    direction = said[1:].strip() if one else text.strip()
    if direction not in get_args(Direction):
        raise UserError(f"--fail-if {text!r} is no condition on two runs", expected=FORMS)
    loss = Loss(text.strip(), metric if one else None, subset, direction, definitions)
    shown = list(dict.fromkeys(row.metric for row in rows))
    if loss.metric is not None:
        _refuse_absent(loss, rows, shown)
    elif loss.direction != "worse":
        raise UserError(f"--fail-if {text!r} names no metric", expected=f"'METRIC: {loss.direction}'")
    about = shown if loss.metric is None else [loss.metric]
    others = [name for name in about if name not in definitions or definitions[name].better == "neither"]
    if loss.direction == "worse" and others:
        raise UserError(
            f"--fail-if {text!r}: neither direction of {others[0]} is better",
            expected=f"'{others[0]}: lower' or '{others[0]}: higher'",
        )
    return loss


def _refuse_absent(loss: Loss, rows: Sequence[MetricValue], shown: Sequence[str]) -> None:
    """Raise UserError where the row that a condition is about is not in the table."""
    if loss.metric not in shown:
        raise UserError(
            f"--fail-if {loss.text!r}: the metric is not in this table",
            found=", ".join(shown),
            expected=f"--metric {loss.metric} beside it, where the runs have that",
        )
    if not any((row.metric, row.subset) == (loss.metric, loss.subset) for row in rows):
        raise UserError(
            f"--fail-if {loss.text!r}: {loss.metric} has no such row in this table",
            found=", ".join(row.subset for row in rows if row.metric == loss.metric),
            expected="--by LABEL beside it, and a value of that label",
        )
