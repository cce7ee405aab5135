"""Several results in one table: models down, what was varied across, nothing cut and nothing alone."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from sightline.benchmarks.base import defaults
from sightline.benchmarks.registry import benchmark
from sightline.benchmarks.released import add_published
from sightline.errors import UserError
from sightline.reporting.notes import ResultPoint, result_points, short_names
from sightline.reporting.pivot import pivot, settings_tables
from sightline.reporting.table import ReportTable, Value, csv_text, json_text, show
from sightline.reporting.tables import markdown
from sightline.types import MetricValue, Result

Make = Callable[..., Result]

METRICS = ("acc", "s_gt", "con", "s_c")


def result(model: str, values: Sequence[float | None], options: dict[str, Any], **more: Any) -> Result:
    """A result of MM-R3's restyling with an interval of 2 points to either side."""
    metrics = [
        MetricValue(
            name,
            subset,
            value,
            5328,
            1332,
            None if value is None else value - 2,
            None if value is None else value + 2,
            "wilson",
            reason="nothing counts" if value is None else None,
        )
        for name, value in zip(METRICS, values, strict=True)
        for subset in ("all", "style=candy", "style=udnie")
    ]
    fields = {"samples": 1332, "probes": 5328, "errors": 0, "misses": 0, "undecided": 0, "truncated": 0}
    whole = {"task": "restyling", "sampling": {"temperature": 0.2}} | options
    return Result(
        benchmark="mmr3",
        setting="restyling",
        model=model,
        model_identity=model,
        judge="rules",
        options=whole,
        versions={},
        data_digest="",
        metrics=metrics,
        **{**fields, **more},
    )


@pytest.fixture(scope="module")
def table_8(shared: Any) -> dict[str, dict[str, list[float]]]:
    """Model -> size -> Acc, S_GT, Con, S_C as the paper prints them."""
    rows = json.loads((shared / "data" / "published" / "mmr3.json").read_text())["rows"]
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row["table"] == 8:
            size = row["subset"].rpartition("x")[2]
            found.setdefault(row["model"], {}).setdefault(size, []).append(row["value"])
    return found


def sizes(table_8: dict[str, dict[str, list[float]]]) -> list[ResultPoint]:
    """The results that would print Table 8."""
    return result_points(
        [
            result(f"http://localhost:8000/v1#{model}", values, {"size": size})
            for model, by_size in table_8.items()
            for size, values in by_size.items()
        ]
    )


def printed(tables: Sequence[ReportTable], width: int) -> str:
    file = io.StringIO()
    show(tables, file, width)
    return file.getvalue()


def numbers(table: ReportTable) -> list[list[float | None]]:
    return [[cell.value for cell in row if isinstance(cell, Value)] for row in table.rows]


def test_the_table_has_the_rows_and_columns_of_the_papers_table_8(
    table_8: dict[str, dict[str, list[float]]],
) -> None:
    (table,) = pivot(sizes(table_8))
    assert [row[0] for row in table.rows] == list(table_8)
    assert numbers(table) == [[v for values in row.values() for v in values] for row in table_8.values()]
    assert len(table.columns) == 1 + 3 * 4
    assert [column.head.split("\n")[-1] for column in table.columns[1:]] == list(METRICS) * 3
    assert table.columns[0].head == "size\nmodel"


@pytest.mark.parametrize("width", [80, 100, 140])
def test_it_is_no_wider_than_the_terminal_and_loses_no_number(
    table_8: dict[str, dict[str, list[float]]], width: int
) -> None:
    text = printed(pivot(sizes(table_8)), width)
    assert max(map(len, text.splitlines())) <= width
    words = text.split()
    for by_size in table_8.values():
        for values in by_size.values():
            assert all(f"{value:.1f}" in words for value in values)
    assert text.count("(continued)") == {80: 2, 100: 2, 140: 1}[width]


def test_the_columns_of_one_value_stay_together(table_8: dict[str, dict[str, list[float]]]) -> None:
    tables = pivot(sizes(table_8))
    heads = [line.split() for line in printed(tables, 80).splitlines() if line.startswith("size")]
    assert [head[1:] for head in heads] == [[size] * 4 for size in ("224", "640", "1024")]
    narrow = [line.split() for line in printed(tables, 30).splitlines() if line.startswith("size")]
    assert [head[1:] for head in narrow] == [[size] for size in ("224", "640", "1024") for _ in METRICS]


def test_the_labelled_values_of_an_option_head_the_columns_and_the_second_half_shows_differences() -> None:
    """Table 2, BLIP-2: 25.13 (-5.16) 52.91 (-3.34) 48.15 (-51.85) 63.90 (-36.10) under All."""
    points = result_points(
        [
            result("BLIP-2", (25.13, 52.91, 48.15, 63.9), {"unchanged": False, "repeats": 1}),
            result("BLIP-2", (30.29, 56.25, 100, 100), {"unchanged": True, "repeats": 4}),
        ]
    )
    (table,) = pivot(points)
    cells = [cell for cell in table.rows[0] if isinstance(cell, Value)]
    assert [cell.value for cell in cells] == [30.29, 56.25, 100, 100, 25.13, 52.91, 48.15, 63.9]
    differences = [cell.difference and round(cell.difference, 2) for cell in cells]
    assert differences == [None, None, None, None, -5.16, -3.34, -51.85, -36.1]
    assert table.columns[1].head.startswith("Sampling\n")
    assert table.columns[5].head.startswith("All\n")
    assert "(-51.9)" in printed([table], 100)
    assert "in parentheses: All (unchanged=off) minus Sampling (unchanged=on)" in table.all_notes
    assert any("repeats=4" in note and "unchanged=on" in note for note in table.all_notes)
    assert "unchanged=off acc difference" in csv_text(table)


def test_only_what_differs_within_a_model_was_varied() -> None:
    points = result_points(
        [
            result("a", (1, 2, 3, 4), {"size": "224", "sampling": {"temperature": 0}}),
            result("a", (1, 2, 3, 4), {"size": "640", "sampling": {"temperature": 0}}),
            result("b", (1, 2, 3, 4), {"size": "224", "sampling": {"temperature": 1}}),
        ]
    )
    assert [point.values for point in points] == [{"size": "224"}, {"size": "640"}, {"size": "224"}]
    (table,) = pivot(points)
    assert table.rows[1][-1] is None
    assert [note for note in table.all_notes if "b, size=224: options" in note and "temperature=1" in note]


def test_two_results_at_the_same_point_give_two_rows() -> None:
    same = result("a", (1, 2, 3, 4), {})
    (table,) = pivot(result_points([same, same]))
    assert [row[0] for row in table.rows] == ["a", "a (2)"]


def test_values_of_a_label_are_columns_if_no_option_varies_and_rows_otherwise() -> None:
    """Tables 10-13 print a column a style."""
    two = [result(model, (1, 2, 3, 4), {"size": "224"}) for model in "ab"]
    (table,) = pivot(result_points(two), "style")
    assert [column.key for column in table.columns[1::4]] == [
        "all acc",
        "style=candy acc",
        "style=udnie acc",
    ]
    (table,) = pivot(result_points([*two, result("a", (1, 2, 3, 4), {"size": "640"})]), "style")
    assert [row[:2] for row in table.rows] == [(m, style) for m in "ab" for style in ("candy", "udnie")]
    with pytest.raises(UserError, match="did you mean 'style'"):
        pivot(result_points(two), "styles")


def test_each_setting_has_its_own_table() -> None:
    results = [replace(result("a", (1, 2, 3, 4), {}), setting=name) for name in ("restyling", "context")]
    assert [table.title for table in pivot(result_points(results))] == ["mmr3:restyling", "mmr3:context"]


def test_a_run_without_answers_has_no_value_and_some_missing_answers_are_reported() -> None:
    (table,) = pivot(
        result_points(
            [
                result("a", (0, 0, 0, 0), {"size": "224"}, errors=5328),
                result("a", (1, 2, 3, 4), {"size": "640"}, errors=7),
                result("b", (None, 2, 3, 4), {"size": "224"}),
            ]
        )
    )
    assert table.rows[0][1:5] == (None,) * 4
    notes = "\n".join(table.all_notes)
    assert "a, size=224: no probe has an answer" in notes
    assert "a, size=640: 7 of 5,328 probes have no answer: counted as not right" in notes
    assert "b, size=224: acc: no value, nothing counts" in notes
    assert "0 to 5,328 errors" in notes


def test_published_figures_are_further_rows_with_their_notes(codis: Callable[..., Result]) -> None:
    results = [
        add_published(codis(options={"seed": seed}, samples=samples), "GPT-4V")
        for seed, samples in ((0, 353), (1, 40))
    ]
    (table,) = pivot(result_points(results))
    names = [str(row[0]) for row in table.rows]
    assert names[0] == "gpt-4o"
    assert {"GPT-4V, Table 3", "GPT-4V, Table 3 *"} <= set(names)
    by_name = dict(zip(names, numbers(table), strict=False))
    assert by_name["GPT-4V, Table 3"][0] == 32.3
    assert any("40 pairs here, 353 in the paper" in note for note in table.all_notes)


def test_figures_of_one_table_only_are_beside_each_other(codis: Callable[..., Result]) -> None:
    results = [add_published(codis(options={"seed": seed}), "GPT-4V", "Gemini") for seed in (0, 1)]
    (table,) = pivot(result_points(results))
    tables = {str(row[0]).rpartition(", ")[2].removesuffix(" *") for row in table.rows[1:]}
    printed = {v.table for result in results for m in result.metrics for v in m.published or ()}
    assert len(printed) > 1
    assert len(tables) == 1
    left_out = sorted(printed - tables - {"Table 6"})
    assert any("figures of one table are shown" in note and left_out[0] in note for note in table.all_notes)


II_SETTINGS = ("none", "cot", "domain", "emotion", "rhetoric", "1-shot", "2-shot", "3-shot")


def iibench(setting: str, model: str, accuracy: float = 50.0, **options: Any) -> Result:
    """A result on the 1,399 questions of the test split."""
    base = result(model, [1, 2, 3, 4], {})
    own = benchmark("iibench")
    metric = MetricValue("accuracy", "all", accuracy, 1399, 1187, accuracy - 2, accuracy + 2, "wilson")
    return replace(
        base,
        benchmark="iibench",
        setting=setting,
        samples=1399,
        probes=1399,
        metrics=[metric],
        options={**defaults(own, own.settings[setting]), "split": "test", **options},
    )


def tables_of(results: Sequence[Result], *against: str) -> list[ReportTable]:
    return pivot(result_points([add_published(one, *against) for one in results]))


def test_five_settings_of_iibench_are_the_papers_table_4(shared: Any) -> None:
    """Every printed cell beside the values, in the paper's order, whatever the order of the results."""
    rows = json.loads((shared / "data" / "published" / "iibench.json").read_text())["rows"]
    cells = [row for row in rows if row["table"] == 4]
    printed_rows: dict[str, list[float]] = {}
    for cell in cells:
        printed_rows.setdefault(cell["model"], []).append(cell["value"])
    settings = II_SETTINGS[:5]
    accuracies = dict(zip(settings, (61.0, 62.0, 63.0, 64.0, 65.0), strict=True))
    results = [iibench(one, "mine", accuracies[one]) for one in sorted(settings)]
    (table,) = tables_of(results, *printed_rows)
    found = {
        str(row[0]): [cell.value if isinstance(cell, Value) else None for cell in row[1:]]
        for row in table.rows
    }
    assert found.pop("mine") == list(accuracies.values())
    # Table 11 prints another value: a row of its own, which is marked.
    *_, rhetoric = found.pop("mPLUGw-OWL2, Table 4 *")
    *others, _ = found["mPLUGw-OWL2, Table 4"]
    found["mPLUGw-OWL2, Table 4"] = [*others, rhetoric]
    assert found == {f"{model}, Table 4": values for model, values in printed_rows.items()}
    assert [column.head.split("\n")[0] for column in table.columns[1:]] == list(settings)
    assert table.title == "iibench, by setting"


def test_shots_are_the_papers_table_5_which_has_none_as_its_first_column() -> None:
    results = [iibench(one, "mine") for one in II_SETTINGS]
    prompts, shots = tables_of(results, "GPT-4V")
    assert [column.head.split("\n")[0] for column in prompts.columns[1:]] == list(II_SETTINGS[:5])
    assert [column.head.split("\n")[0] for column in shots.columns[1:]] == ["none", *II_SETTINGS[5:]]
    assert [shots.rows[1][0], *numbers(shots)[1]] == ["GPT-4V, Table 5", 65.9, 65.5, 67.7, 67.1]


def test_accuracy_error_and_miss_of_five_settings_are_the_papers_table_12(shared: Any) -> None:
    """Figures of the table that has all three, and not of Table 4, which has the accuracies."""
    names = ("accuracy", "error", "miss")
    results = [
        replace(one, metrics=[replace(one.metrics[0], metric=name) for name in names])
        for one in (iibench(setting, "mine") for setting in II_SETTINGS[:5])
    ]
    points = result_points([add_published(one, "GPT-4V") for one in results])
    (table,) = pivot(points, metrics=names)
    rows = json.loads((shared / "data" / "published" / "iibench.json").read_text())["rows"]
    words = {"Acc": "accuracy", "Error": "error", "Miss": "miss"}
    wanted = {
        (row["subset"].lower(), words[row["metric"]]): row["value"]
        for row in rows
        if (row["table"], row["model"]) == (12, "GPT-4V") and row["subset"].lower() in II_SETTINGS[:5]
    }
    heads = [tuple(column.head.split("\n")) for column in table.columns[1:]]
    at = [row[0] for row in table.rows].index("GPT-4V, Table 12")
    assert len(wanted) == 15
    assert dict(zip(heads, numbers(table)[at], strict=True)) == wanted


def test_the_three_other_prompts_of_codis_are_one_table_as_table_13(codis: Callable[..., Result]) -> None:
    results = [add_published(codis(setting=one), "GPT-4V") for one in ("plain", "no-cot", "no-instructions")]
    (table,) = pivot(result_points(results), metrics=["acc_p"])
    assert [column.head.split("\n")[0] for column in table.columns[1:]] == [
        "no-cot",
        "no-instructions",
        "plain",
    ]
    assert [table.rows[1][0], *numbers(table)[1]] == ["GPT-4V, Table 13 *", 22.0, 34.0, 25.0]


def test_files_that_are_named_after_their_settings_are_one_row() -> None:
    results = [iibench(one, f"file:yi_test_{one}.jsonl.gz") for one in ("none", "cot")]
    (table,) = tables_of(results)
    assert [row[0] for row in table.rows if "Human" not in str(row[0])] == ["file:yi_test_*.jsonl.gz"]
    assert not any("--model" in note for note in table.all_notes)
    (table,) = tables_of([iibench("none", "file:a.jsonl"), iibench("cot", "file:b.jsonl")])
    assert [row[0] for row in table.rows][:2] == ["file:a.jsonl", "file:b.jsonl"]
    assert any("`score --model NAME`" in note for note in table.all_notes)


def test_settings_with_varied_options_and_those_of_several_columns_each_stay_apart() -> None:
    varied = [iibench(one, "mine", seed=seed) for one in ("none", "cot") for seed in (0, 1)]
    assert len(tables_of(varied)) == 2
    tasks = [replace(result("m", [1, 2, 3, 4], {}), setting=one) for one in ("rephrasing", "restyling")]
    assert len(pivot(result_points(tasks))) == 2
    assert settings_tables(result_points(tasks)) == []


def test_every_form_holds_the_same_numbers(table_8: dict[str, dict[str, list[float]]]) -> None:
    tables = pivot(sizes(table_8))
    (row, *_) = csv.DictReader(io.StringIO(csv_text(tables[0])))
    plain = json.loads(json_text(tables))[0]["rows"][0]
    for size, values in next(iter(table_8.values())).items():
        for name, value in zip(METRICS, values, strict=True):
            key = f"size={size} {name}"
            assert float(row[key]) == plain[key] == value
            assert float(row[f"{key} low"]) == plain[f"{key} low"] == value - 2
            assert f"{value:.1f} [{value - 2:.1f}, {value + 2:.1f}]" in markdown(tables)


def test_names_are_short_only_if_they_stay_distinct() -> None:
    assert short_names(["http://a/v1#m", "http://b/v1#m", "openai/gpt-4o", "/x/last/"]) == {
        "http://a/v1#m": "http://a/v1#m",
        "http://b/v1#m": "http://b/v1#m",
        "openai/gpt-4o": "gpt-4o",
        "/x/last/": "last",
    }


def test_the_table_by_category_is_that_of_the_paper(codis: Make) -> None:
    result = add_published(
        codis(options={"instructions": True, "cot": True, "image": "shown", "context": True}),
        "GPT-4V",
        "Gemini",
    )
    (table,) = pivot([ResultPoint(result, {})], "category")
    categories = ["Location and Orientation", "Temporal Information", "Cultural Background"]
    categories += ["Attributes", "Relationships"]
    heads = [column.head.split("\n") for column in table.columns[1:]]
    assert heads == [[block, metric] for block in ["Overall", *categories] for metric in ("acc_p", "acc_q")]
    rows = {str(row[0]): [cell.value for cell in row[1:] if isinstance(cell, Value)] for row in table.rows}
    # CODIS, Table 3
    printed = [32.3, 56.9, 33.3, 54.2, 28.4, 52.1, 25.5, 60.6, 26.7, 54.7, 51.9, 70.2]
    assert next(values for name, values in rows.items() if name.startswith("GPT-4V, Table 3")) == printed
    assert [name.partition(",")[0] for name in rows] == ["gpt-4o", "GPT-4V", "Gemini", "Human"]
