"""The same results give the same curves, byte for byte; what cannot be drawn is said beforehand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sightline.errors import UserError
from sightline.metric_types import MetricValue, PublishedValue, Result
from sightline.report.curves import check_plot, curves
from sightline.report.varied_options import ResultPoint

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


@pytest.mark.parametrize("name", ["c.png", "c.svg"])
def test_the_same_results_give_the_same_bytes(tmp_path: Path, name: str) -> None:
    curves(POINTS, tmp_path / name)
    first = (tmp_path / name).read_bytes()
    curves(POINTS, tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_no_setting_of_the_users_changes_them(tmp_path: Path) -> None:
    import matplotlib

    curves(POINTS, tmp_path / "a.svg")
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 9, "svg.fonttype": "none"}):
        curves(POINTS, tmp_path / "b.svg")
        assert matplotlib.rcParams["font.size"] == 20
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_panel_a_metric_a_line_a_model_a_band_and_hollow_marks(tmp_path: Path) -> None:
    from sightline.report.curves import _figure

    figure = _figure(POINTS, "temperature")
    (row,) = figure.subfigs
    assert [axes.get_title() for axes in row.axes] == ["acc_p (%)", "acc_q (%)"]
    first = row.axes[0]
    lines = {str(line.get_label()): line for line in first.lines}
    assert list(lines) == ["x", "y", "GPT-4V (Table 3)"]
    assert np.asarray(lines["x"].get_xdata()).tolist() == [0.25, 0.5, 0.75]
    assert np.asarray(lines["x"].get_ydata()).tolist() == [10.0, 20.0, 30.0]
    assert lines["GPT-4V (Table 3)"].get_markerfacecolor() == "none"
    assert len(first.collections) == 2
    bounds = first.collections[0].get_paths()[0].get_extents()
    assert (bounds.ymin, bounds.ymax) == (7.0, 60.0)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(lines)


def test_a_row_of_panels_a_setting_and_a_line_a_combination(tmp_path: Path) -> None:
    from sightline.report.curves import _figure

    points = [
        point("a/x", 10.0 * n, {"size": str(n), "cot": cot}, setting)
        for setting in ("default", "plain")
        for cot in (True, False)
        for n in (1, 2)
    ]
    figure = _figure(points, "size")
    assert len(figure.subfigs) == 2
    assert [str(line.get_label()) for line in figure.subfigs[0].axes[0].lines][:2] == [
        "x, cot=on",
        "x, cot=off",
    ]


def test_a_point_without_number_or_value_is_left_out(tmp_path: Path) -> None:
    from sightline.report.curves import _figure

    points = [*POINTS[:3], point("a/x", 50.0, {"temperature": None}), point("a/x", None, {"temperature": 2})]
    line = _figure(points, "temperature").subfigs[0].axes[0].lines[0]
    assert np.asarray(line.get_xdata()).tolist() == [0.25, 0.5, 0.75]


def test_nothing_in_an_svg_says_when_it_was_drawn(tmp_path: Path) -> None:
    curves(POINTS, tmp_path / "c.svg")
    assert not re.search(r"dc:date|20\d\d-\d\d", (tmp_path / "c.svg").read_text())


@pytest.mark.parametrize(
    ("name", "places", "message"),
    [
        ("c.pdf", [{"t": 1}, {"t": 2}], "ending in .png or .svg"),
        ("c.png", [{"cot": True}, {"cot": False}], "no option has two numbers"),
        ("c.png", [{}], "no option has two numbers"),
        ("c.png", [{"t": 1, "s": 1}, {"t": 2, "s": 2}], "t and s both have numbers"),
        ("none/c.png", [{"t": 1}, {"t": 2}], "an existing folder"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    tmp_path: Path, name: str, places: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        check_plot(tmp_path / name, places)


def test_numbers_may_be_written_as_text(tmp_path: Path) -> None:
    places: list[dict[str, Any]] = [{"size": None}, {"size": "224"}, {"size": "640"}]
    assert check_plot(tmp_path / "c.png", places) == "size"
