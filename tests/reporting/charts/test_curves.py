"""Curves: a panel for each metric, a line for each model, along the one option that has numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sightline.errors import UserError
from sightline.reporting.chart_kinds import PAPER, curves, growth, numeric_options
from sightline.reporting.notes import ResultPoint
from sightline.types import MetricValue, PublishedValue, Result

pytest.importorskip("matplotlib")


def point(model: str, value: float | None, at: dict[str, Any], setting: str = "default") -> ResultPoint:
    printed = [PublishedValue("GPT-4V", 30.0, "Table 3")]
    metrics = [
        MetricValue(name, "all", value, 353, 216, None if value is None else value - 3, 60, published=printed)
        for name in ("acc_p", "acc_q")
    ]
    result = Result(
        benchmark="codis",
        setting=setting,
        model=model,
        model_identity=model,
        judge="rules",
        options={},
        samples=353,
        probes=706,
        errors=0,
        misses=0,
        undecided=0,
        truncated=0,
        versions={},
        data_digest="",
        metrics=metrics,
    )
    return ResultPoint(result, at)


POINTS = [point(model, 10.0 * n, {"temperature": n / 4}) for model in ("a/x", "b/y") for n in range(1, 4)]


def test_a_panel_a_metric_a_line_a_model_a_band_and_hollow_marks() -> None:
    figure = curves(POINTS, 6.9)
    (row,) = figure.subfigs
    assert [axes.get_title() for axes in row.axes] == ["acc_p (%), n 353", "acc_q (%), n 353"]
    first = row.axes[0]
    lines = {str(line.get_label()): line for line in first.lines}
    assert list(lines) == ["x", "y", "GPT-4V, Table 3"]
    assert np.asarray(lines["x"].get_xdata()).tolist() == [0.25, 0.5, 0.75]
    assert np.asarray(lines["x"].get_ydata()).tolist() == [10.0, 20.0, 30.0]
    assert lines["GPT-4V, Table 3"].get_markerfacecolor() == PAPER
    assert len(first.collections) == 2
    bounds = first.collections[0].get_paths()[0].get_extents()
    assert (bounds.ymin, bounds.ymax) == (7.0, 60.0)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(lines)


def test_a_row_of_panels_a_setting_and_a_line_a_combination() -> None:
    points = [
        point("a/x", 10.0 * n, {"size": str(n), "cot": cot}, setting)
        for setting in ("default", "plain")
        for cot in (True, False)
        for n in (1, 2)
    ]
    figure = curves(points, 6.9)
    assert len(figure.subfigs) == 2
    assert [str(line.get_label()) for line in figure.subfigs[0].axes[0].lines][:2] == [
        "x, cot=on",
        "x, cot=off",
    ]


def test_a_point_without_number_or_value_is_left_out() -> None:
    points = [*POINTS[:3], point("a/x", 50.0, {"temperature": None}), point("a/x", None, {"temperature": 2})]
    line = curves(points, 6.9).subfigs[0].axes[0].lines[0]
    assert np.asarray(line.get_xdata()).tolist() == [0.25, 0.5, 0.75]


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ([{"cot": True}, {"cot": False}], "no option has two numbers"),
        ([{}], "no option has two numbers"),
        ([{"t": 1, "s": 1}, {"t": 2, "s": 2}], "t and s both have numbers"),
    ],
)
def test_curves_need_one_option_with_numbers(places: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        curves([point("a/x", 10.0, at) for at in places], 6.9)


def test_numbers_may_be_written_as_text() -> None:
    places: list[dict[str, Any]] = [{"size": None}, {"size": "224"}, {"size": "640"}]
    assert numeric_options(places) == ["size"]


def test_an_agreement_below_chance_is_drawn() -> None:
    values = [
        (items, MetricValue("alpha", "all", alpha, items, items, -0.6, 0.2))
        for items, alpha in ((5, -0.3), (9, -0.1))
    ]
    (axes,) = growth("alpha", values, 3.0).axes
    low, high = axes.get_ylim()
    assert (low, high) == (-0.6, 1.0)
    above = [(items, MetricValue("alpha", "all", 0.5, items, items, 0.2, 0.8)) for items in (5, 9)]
    assert growth("alpha", above, 3.0).axes[0].get_ylim() == (0.0, 1.0)
