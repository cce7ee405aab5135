"""An interval and a p-value that disagree about 0 are explained below their table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sightline.metrics.significance import PairedValues, Significance, significance
from sightline.metrics.statistics import Interval, difference_intervals
from sightline.reporting.comparison import ONLY_CORRECTED, ONLY_INTERVAL, ONLY_P, disagreements, drawn_notes
from sightline.types import MetricValue


def row(low: float, high: float, metric: str = "con") -> MetricValue:
    """A difference with its interval."""
    return MetricValue(metric, "all", (low + high) / 2, 40, 40, low, high, unit="points")


def p_values(p: float, holm: float) -> Significance:
    """A test with these p-values."""
    return Significance(p=p, t=None, mcnemar=None, detectable=None, holm=holm)


@pytest.mark.parametrize(
    ("low", "high", "p", "holm", "note"),
    [
        (-1.3, 15.6, 0.0001, 0.0001, [f"con: {ONLY_P}"]),
        (1.3, 15.6, 0.02, 0.08, [f"con: {ONLY_CORRECTED}"]),
        (1.3, 15.6, 0.06, 0.06, [f"con: {ONLY_INTERVAL}"]),
        (1.3, 15.6, 0.02, 0.04, []),
        (-1.3, 15.6, 0.2, 0.4, []),
    ],
)
def test_a_row_is_explained_where_its_interval_and_p_disagree(
    low: float, high: float, p: float, holm: float, note: list[str]
) -> None:
    assert disagreements([row(low, high)], {("con", "all"): p_values(p, holm)}) == note


def test_rows_of_one_reason_share_a_note() -> None:
    rows = [row(-1, 9), row(-2, 8, "acc")]
    tests = {("con", "all"): p_values(0.001, 0.002), ("acc", "all"): p_values(0.001, 0.002)}
    assert disagreements(rows, tests) == [f"con, acc: {ONLY_P}"]


def test_a_p_from_random_exchanges_is_named_with_the_least_that_it_can_be() -> None:
    rows = [row(1, 9), row(2, 8, "s_c")]
    drawn = replace(p_values(0.0001, 0.0002), draws=10_000)
    tests = {("con", "all"): p_values(1e-14, 2e-14), ("s_c", "all"): drawn}
    assert drawn_notes(rows, tests) == ["s_c: p is from 10,000 random exchanges, and never below 0.0001"]
    assert drawn_notes(rows[:1], tests) == []


def test_gains_without_a_loss_can_be_significant_while_a_rare_large_loss_is_possible() -> None:
    """Eleven of forty groups gain 30 points: no exchange gives more, and the mean may still be 0 or less."""
    gains = np.array([0.3] * 11 + [0.0] * 29)
    (test,) = significance([PairedValues(np.zeros(40), gains, np.arange(40))])
    (found,) = difference_intervals(gains[None], np.ones((1, 40)), [(-1, 1)])
    assert isinstance(found, Interval)
    assert test.p == pytest.approx(2 * 0.5**11)
    assert found.low < 0 < found.high
    (note,) = disagreements([row(100 * found.low, 100 * found.high)], {("con", "all"): test})
    assert note == f"con: {ONLY_P}"


@given(st.floats(-50, 50), st.floats(0, 50), st.floats(0, 1), st.floats(0, 1))
def test_a_note_stands_exactly_where_interval_and_decision_differ(
    low: float, width: float, p: float, more: float
) -> None:
    test = p_values(p, min(1.0, p + more))
    notes = disagreements([row(low, low + width)], {("con", "all"): test})
    assert bool(notes) == (test.significant == (low <= 0 <= low + width))
