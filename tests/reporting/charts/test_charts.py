"""Charts hold the numbers of their tables, with units, n and intervals, and are the same bytes twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from tests.reporting.conftest import estimate

from sightline.benchmarks.released import add_published
from sightline.errors import UserError
from sightline.reporting.chart_kinds import (
    HATCHES,
    PAPER,
    SERIES,
    bars,
    forest,
    matrix,
    n_words,
    radar,
    scatter,
    series_style,
    value_words,
)
from sightline.reporting.charts import (
    SETTINGS,
    THEMES,
    WIDTHS,
    ChartRequest,
    PaperColumns,
    chart_bytes,
    check_chart_file,
    default_chart,
    draw_results,
    results_chart,
    varied_chart,
)
from sightline.reporting.metric_pairs import metric_pairs
from sightline.reporting.notes import published_marks, published_notes, result_points
from sightline.reporting.table import flat
from sightline.reporting.tables import summary
from sightline.types import MetricValue, Result

pytest.importorskip("matplotlib")

Make = Callable[..., Result]

JUDGES = [
    estimate("agreement", f"judges={pair}", value, 706, 216)
    for pair, value in (("rules and gpt-4", 93.25), ("rules and claude", 88.0), ("gpt-4 and claude", 96.5))
]


def models(make: Make, **changes: Any) -> list[Result]:
    """Three models with different values."""
    return [
        replace(result, metrics=[_shifted(metric, 3.0 * nth) for metric in result.metrics])
        for nth in range(3)
        for result in [make(model=f"maker/model-{nth}", model_identity=str(nth), **changes)]
    ]


def _shifted(metric: MetricValue, shift: float) -> MetricValue:
    if metric.value is None or metric.low is None or metric.high is None:
        return metric
    return replace(metric, value=metric.value + shift, low=metric.low + shift, high=metric.high + shift)


def drawn(results: Sequence[Result], path: Path, columns: PaperColumns = 2, **more: Any) -> str:
    request = ChartRequest(path, more.pop("kind", None), tuple(more.pop("metrics", ())), columns)
    return draw_results(result_points(results), request, **more)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "form"),
    [("forest", "svg"), ("forest", "pdf"), ("forest", "png"), ("bars", "svg"), ("radar", "svg")],
)
def test_the_same_results_give_the_same_bytes(iibench: Make, tmp_path: Path, kind: str, form: str) -> None:
    import matplotlib

    results = [add_published(result, "GPT-4V") for result in models(iibench)]
    drawn(results, tmp_path / f"a.{form}", kind=kind, by="domain")
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 9, "svg.fonttype": "none"}):
        drawn(results, tmp_path / f"b.{form}", kind=kind, by="domain")
        assert matplotlib.rcParams["font.size"] == 20
    assert (tmp_path / f"a.{form}").read_bytes() == (tmp_path / f"b.{form}").read_bytes()


@pytest.mark.parametrize("form", ["svg", "pdf"])
def test_nothing_in_a_file_says_when_it_was_drawn(codis: Make, tmp_path: Path, form: str) -> None:
    drawn([codis()], tmp_path / f"c.{form}")
    assert not re.search(rb"dc:date|CreationDate|20\d\d-\d\d", (tmp_path / f"c.{form}").read_bytes())


def test_a_chart_is_as_wide_as_the_columns_of_a_paper(codis: Make, tmp_path: Path) -> None:
    widths: dict[PaperColumns, str] = {1: "241.2pt", 2: "496.8pt"}
    for columns, width in widths.items():
        drawn([codis()], tmp_path / "c.svg", columns, by="category")
        assert f'width="{width}"' in (tmp_path / "c.svg").read_text()


def test_each_table_has_its_own_chart(codis: Make, iibench: Make, mmr3: Make) -> None:
    def kind(results: Sequence[Result], by: str | None = None, *, pivot: bool = False) -> str:
        return default_chart(result_points(results), by, pivot=pivot)

    assert kind([codis()]) == "forest"
    assert kind([codis()], "category") == "forest"
    assert kind([iibench()], "domain") == "radar"
    assert kind([iibench()], "emotion") == "forest"
    assert kind([codis()], "judges") == "matrix"
    assert kind(models(mmr3), pivot=True) == "bars"
    assert kind([mmr3(chosen={"size": size}) for size in (224, 640)]) == "curves"


@pytest.mark.parametrize("by", [None, "category"])
def test_a_chart_holds_the_numbers_of_its_table(codis: Make, by: str | None) -> None:
    result = codis()
    chart = results_chart([result], by, ["acc_p", "acc_q"])
    table = flat(summary([result], by)[0])
    rows = [row for row in table if row["metric"] in ("acc_p", "acc_q")]
    metrics = [value.metric for value in chart.values]
    assert [(m.value, m.low, m.high, m.n) for m in metrics] == [
        (row["value"], row["low"], row["high"], row["n"]) for row in rows
    ]


def test_a_forest_plot_writes_value_interval_n_and_unit(codis: Make) -> None:
    figure = forest(results_chart([codis()]), WIDTHS[2])
    axes = figure.axes[0]
    texts = [text.get_text() for text in axes.texts]
    assert "32.5 [28.5, 36.5]" in texts or "32.4 [28.4, 36.5]" in texts
    assert {"353", "706", "n", "value [95 % CI]"} <= set(texts)
    assert axes.get_xlabel() == "value (%)"
    assert axes.get_xlim() == (-2.0, 102.0)


def test_whiskers_reach_from_bound_to_bound(codis: Make) -> None:
    chart = results_chart([codis()], None, ["acc_p"])
    metric = chart.values[0].metric
    lines = forest(chart, 3.35).axes[0].lines
    assert [metric.low, metric.high] in [np.asarray(line.get_xdata()).tolist() for line in lines]


def test_equal_published_figures_of_several_runs_are_one_mark(codis: Make) -> None:
    results = [add_published(result, "GPT-4V") for result in models(codis)]
    axes = forest(results_chart(results, None, ["acc_p"]), 6.9).axes[0]
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == PAPER]
    assert sorted(np.asarray(line.get_xdata()).item() for line in hollow) == [32.3, 86.2]


def test_series_differ_without_their_colours() -> None:
    assert len({series_style(nth)["marker"] for nth in range(SERIES)}) == len(set(HATCHES)) == SERIES


def test_a_theme_changes_colours_alone(codis: Make) -> None:
    chart = results_chart([codis()], "category")
    light, dark = (chart_bytes(lambda: forest(chart, 6.9), ".svg", theme).decode() for theme in THEMES)
    assert re.findall(' d="[^"]*"', light) == re.findall(' d="[^"]*"', dark)
    assert [colours[-1] in text for colours, text in zip(THEMES.values(), (light, dark), strict=True)] == [
        True
    ] * 2
    assert THEMES["light"][-1] not in dark


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("kind", ["forest", "bars", "radar", "scatter", "matrix", "pivot"])
def test_no_text_leaves_the_chart(
    codis: Make, iibench: Make, mmr3: Make, kind: str, columns: PaperColumns
) -> None:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    width = WIDTHS[columns]
    with matplotlib.rc_context(SETTINGS):
        match kind:
            case "forest":
                results = [add_published(one, "GPT-4V", "Gemini") for one in models(codis)]
                figure = forest(results_chart(results, "category"), width)
            case "bars":
                figure = bars(results_chart(models(iibench), "domain"), width)
            case "radar":
                figure = radar(results_chart(models(iibench), "domain"), width)
            case "scatter":
                figure = scatter([add_published(one, "GPT-4o") for one in models(mmr3)], width)
            case "matrix":
                figure = matrix("agreement of judges", {"": JUDGES}, width)
            case _:
                figure = bars(varied_chart(result_points(models(mmr3))), width)
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
    drawn_box = figure.get_tightbbox(canvas.get_renderer())
    right, top = figure.get_size_inches()
    assert min(drawn_box.x0, drawn_box.y0) > -0.01
    assert drawn_box.x1 < right + 0.01
    assert drawn_box.y1 < top + 0.01


def test_a_scatter_plot_has_the_pairs_that_the_paper_discusses(mmr3: Make) -> None:
    results = [add_published(result, "GPT-4o") for result in models(mmr3)]
    figure = scatter(results, 6.9)
    assert [(axes.get_xlabel(), axes.get_ylabel()) for axes in figure.axes] == [
        ("acc (%), n 5,328", "con (%), n 7,992"),
        ("acc (%), n 5,328", "s_c (%), n 7,992"),
    ]
    (published,) = [pair for pair in metric_pairs(results, ("acc", "con")) if pair.figures]
    assert (published.x.value, published.y.value) == (16.31, 79.6)


def test_a_matrix_of_several_runs_has_a_panel_for_each_by_its_name() -> None:
    figure = matrix("agreement", {"alpha": JUDGES, "beta": JUDGES[:1], "gamma": []}, 6.9)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["alpha", "beta"]
    assert [len(axes.texts) for axes in figure.axes] == [2 * len(JUDGES), 2]
    assert "gamma: no two judges." in figure.legends[0].get_title().get_text()


def test_a_matrix_is_symmetrical_and_names_both_judges() -> None:
    axes = matrix("agreement", {"": JUDGES}, 6.9).axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["rules", "gpt-4", "claude"]
    cells = {text.get_position(): text.get_text() for text in axes.texts}
    assert len(cells) == 6
    assert all(cells[column, row] == text for (row, column), text in cells.items())


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"by": "colour"}, "category"),
        ({"metrics": ["acc"]}, "acc_p"),
        ({"kind": "scatter", "metrics": ["acc_p"]}, "--plot-metric X --plot-metric Y"),
        ({"kind": "matrix"}, "every two judges"),
        ({"kind": "curves"}, "no option has two numbers"),
    ],
)
def test_what_cannot_be_drawn_is_an_error_with_its_remedy(
    codis: Make, tmp_path: Path, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        drawn([codis()], tmp_path / "c.svg", **more)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["c.jpg", "c", "none/c.png", "."])
def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError):
        check_chart_file(tmp_path / name)


def test_without_matplotlib_the_error_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.reporting.charts.find_spec", lambda name: None)
    with pytest.raises(UserError) as caught:
        check_chart_file(tmp_path / "c.svg")
    assert "pip install 'sightline[plot]'" in str(caught.value)


def test_words_of_a_value() -> None:
    value = MetricValue("acc", "all", -3.25, 12, 12, -8.0, 1.5, "wilson, approximate")
    assert value_words(value, sign=True) == "\u22123.2 ~[\u22128.0, +1.5]"
    assert value_words(replace(value, value=None)) == "\u2013"
    assert n_words([value, replace(value, n=1399)]) == "12\u20131,399"


def test_a_row_that_a_paper_prints_twice_is_one_mark(codis: Make) -> None:
    metric = add_published(codis(), "GPT-4V").metrics[0]
    names = [name for name, _ in published_marks(metric)]
    assert len(names) == len({name.split(",")[0] for name in names})


def test_texts_of_data_are_no_formulas(codis: Make, tmp_path: Path) -> None:
    drawn([codis(model=r"$\frac{x$"), codis(model="b\n$y$")], tmp_path / "c.svg")
    assert (tmp_path / "c.svg").stat().st_size > 1000


def test_published_figures_have_the_marks_and_the_notes_of_the_tables(codis: Make) -> None:
    result = add_published(codis(), "GPT-4V")
    chart = results_chart([result], None, ["acc_p"])
    figures = [one for value in chart.values for one in value.metric.published or ()]
    assert figures
    assert all(
        any(name.endswith(f" {figure.mark}") for name in chart.published_rows)
        for figure in figures
        if figure.mark
    )
    notes = published_notes([("acc_p", figure) for figure in figures[:1] + figures[-1:]])
    assert notes
    assert all(note in chart.note() for note in notes)
