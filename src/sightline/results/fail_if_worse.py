"""Conditions on a comparison of runs under which it fails: `--fail-if worse`, `--fail-if 'acc_p: lower'`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, get_args

from msgspec import Struct

from sightline.errors import UserError
from sightline.metrics.comparison import Place
from sightline.metrics.significance import Significance
from sightline.results.fail_if import named
from sightline.types import MetricValue

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

    def found(self, rows: Iterable[MetricValue], tested: Mapping[Place, Significance]) -> list[str]:
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
            elif one.significant and (row.value > 0 if self.direction == "higher" else row.value < 0):
                said.append(f"{self.text}: {where} differs by {row.value:+.3g} (p {one.holm:.2g}, Holm)")
        return said


def losses(texts: Iterable[str], rows: Sequence[MetricValue], leading: Collection[str]) -> tuple[Loss, ...]:
    """The conditions that these words stand for, on the rows of a table.

    More of a `leading` metric is better; of any other that is not known. Raises UserError for words that
    are no condition, or are about a row that is not in the table.
    """
    return tuple(_loss(text, rows, leading) for text in texts)


def _loss(text: str, rows: Sequence[MetricValue], leading: Collection[str]) -> Loss:
    metric, subset, said = named(text)
    one = said.startswith(":") and metric != ""
    direction = said[1:].strip() if one else text.strip()
    if direction not in get_args(Direction):
        raise UserError(f"--fail-if {text!r} is no condition on two runs", expected=FORMS)
    loss = Loss(text.strip(), metric if one else None, subset, direction)
    shown = list(dict.fromkeys(row.metric for row in rows))
    if loss.metric is not None:
        _refuse_absent(loss, rows, shown)
    elif loss.direction != "worse":
        raise UserError(f"--fail-if {text!r} names no metric", expected=f"'METRIC: {loss.direction}'")
    about = shown if loss.metric is None else [loss.metric]
    if loss.direction == "worse" and (others := [name for name in about if name not in leading]):
        raise UserError(
            f"--fail-if {text!r}: whether more of {others[0]} is better is not known",
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
