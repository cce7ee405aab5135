"""Conditions of `--fail-if` on a comparison of runs, such as `worse` or `acc_p: lower`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, get_args

from msgspec import Struct

from sightline.errors import UserError
from sightline.metric_types import MetricDefinition, MetricValue
from sightline.metrics.margin import MarginVerdict
from sightline.metrics.significance import Significance
from sightline.metrics.tally import NO_ANSWER
from sightline.results.comparison import Comparison, MetricSubset
from sightline.results.fail_if import split_condition

Direction = Literal["worse", "lower", "higher", "not-non-inferior", "not-equivalent"]

Verdicts = Mapping[MetricSubset, MarginVerdict]

_OF_MARGIN = {"not-non-inferior": "non-inferior", "not-equivalent": "equivalent"}
"""The conditions on the verdicts of --margin, and the claim that each needs."""

FORMS = (
    "worse, 'METRIC: worse', or 'METRIC[LABEL=VALUE]: lower' or higher, with --margin not-non-inferior or "
    "not-equivalent (`sightline report RUN --fail-if` "
    "compares one run with a number)"
)


class DifferenceCondition(Struct, frozen=True):
    """A significant difference in one direction, or a claim about a margin that does not hold, in one row of
    a table, or (`metric` None) in any row. `verdicts` are those of the margin, if there is one."""

    text: str
    metric: str | None
    subset: str
    direction: str
    definitions: Mapping[str, MetricDefinition]
    verdicts: Verdicts | None = None

    def met(
        self,
        rows: Iterable[MetricValue],
        tests: Mapping[MetricSubset, Significance],
        undecided_bounds: Mapping[MetricSubset, tuple[float, float]] | None = None,
        *,
        not_applicable: Collection[MetricSubset] = (),
    ) -> list[str]:
        """Check the condition. It also holds for a row without a difference: what is not measured fails.

        A condition on any row leaves out the rows that neither run can have, unless no other row is there.
        """
        lines = []
        for row in self._affected(rows, not_applicable):
            name = row.metric if row.subset == "all" else f"{row.metric}[{row.subset}]"
            test = tests.get((row.metric, row.subset))
            if test is None or row.value is None:
                lines.append(f"{self.text}: {name} has no difference ({row.reason})")
            elif self.direction in _OF_MARGIN:
                lines += self._unsupported((row.metric, row.subset), name)
            elif test.significant and self._has_direction(row.metric, row.value):
                low, high = (undecided_bounds or {}).get((row.metric, row.subset), (row.value, row.value))
                allowed = f"; undecided verdicts allow {low:+.3g} to {high:+.3g}" if low < high else ""
                line = f"{name} differs by {row.value:+.3g} (p {test.holm:.2g}, Holm){allowed}"
                lines.append(f"{self.text}: {line}")
        return lines

    def _affected(
        self, rows: Iterable[MetricValue], not_applicable: Collection[MetricSubset]
    ) -> list[MetricValue]:
        """The rows that the condition is about."""
        if self.metric is not None:
            return [row for row in rows if (row.metric, row.subset) == (self.metric, self.subset)]
        every = list(rows)
        return [row for row in every if (row.metric, row.subset) not in not_applicable] or every

    def _unsupported(self, row: MetricSubset, name: str) -> list[str]:
        """A line if the claim about the margin does not hold, or cannot be tested."""
        verdict = (self.verdicts or {}).get(row, MarginVerdict())
        holds = verdict.equivalent if self.direction == "not-equivalent" else verdict.non_inferior
        why = f" ({verdict.reason})" if holds is None else ""
        return [] if holds else [f"{self.text}: {name} is not shown to be {_OF_MARGIN[self.direction]}{why}"]

    def _has_direction(self, metric: str, difference: float) -> bool:
        """Whether a difference has the direction of this condition."""
        direction = self.direction
        if direction == "worse":
            direction = "higher" if self.definitions[metric].better == "lower" else "lower"
        return difference > 0 if direction == "higher" else difference < 0


def not_applicable(comparison: Comparison) -> frozenset[MetricSubset]:
    """The values that neither run can have, such as similarities of questions with options."""
    base, other = (
        {(row.metric, row.subset) for row in side if row.value is None and row.reason != NO_ANSWER}
        for side in (comparison.base, comparison.other)
    )
    return frozenset(base & other)


def parse_difference_conditions(
    texts: Iterable[str],
    rows: Sequence[MetricValue],
    definitions: Mapping[str, MetricDefinition],
    verdicts: Verdicts | None = None,
) -> tuple[DifferenceCondition, ...]:
    """Parse the values of `--fail-if` of a comparison.

    Args:
        verdicts: The verdicts of --margin; None without it.
    """
    return tuple(_parse(text, rows, definitions, verdicts) for text in texts)


def _parse(
    text: str,
    rows: Sequence[MetricValue],
    definitions: Mapping[str, MetricDefinition],
    verdicts: Verdicts | None,
) -> DifferenceCondition:
    metric, subset, rest = split_condition(text)
    of_one_metric = rest.startswith(":") and metric != ""
    direction = rest[1:].strip() if of_one_metric else text.strip()
    if direction not in get_args(Direction):
        raise UserError(f"--fail-if {text!r} is not a condition on two runs", expected=FORMS)
    if direction in _OF_MARGIN and verdicts is None:
        raise UserError(f"--fail-if {text!r} needs a margin", expected="--margin X too")
    named = metric if of_one_metric else None
    condition = DifferenceCondition(text.strip(), named, subset, direction, definitions, verdicts)
    names = list(dict.fromkeys(row.metric for row in rows))
    if named is not None:
        _check_row_exists(condition, rows, names)
    elif direction in ("lower", "higher"):
        raise UserError(f"--fail-if {text!r} names no metric", expected=f"'METRIC: {direction}'")
    affected = names if named is None else [named]
    undirected = [
        name for name in affected if name not in definitions or definitions[name].better == "neither"
    ]
    if direction in ("worse", "not-non-inferior") and undirected:
        raise UserError(
            f"--fail-if {text!r}: neither direction of {undirected[0]} is better",
            expected=f"'{undirected[0]}: lower' or '{undirected[0]}: higher'",
        )
    return condition


def _check_row_exists(
    condition: DifferenceCondition, rows: Sequence[MetricValue], names: Sequence[str]
) -> None:
    """Raise UserError if the table lacks the row of a condition."""
    if condition.metric not in names:
        raise UserError(
            f"--fail-if {condition.text!r}: the metric is not in this table",
            found=", ".join(names),
            expected=f"--metric {condition.metric} too, if the runs have this metric",
        )
    if not any((row.metric, row.subset) == (condition.metric, condition.subset) for row in rows):
        raise UserError(
            f"--fail-if {condition.text!r}: {condition.metric} has no such row in this table",
            found=", ".join(row.subset for row in rows if row.metric == condition.metric),
            expected="--by LABEL too, and a value of that label",
        )
