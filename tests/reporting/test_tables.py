"""Tables carry every number with what belongs beside it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sightline.benchmarks.released import add_published
from sightline.errors import UserError
from sightline.reporting.table import (
    Column,
    PublishedCell,
    ReportTable,
    Value,
    cell_text,
    csv_text,
    flat,
    json_text,
    parts,
)
from sightline.reporting.tables import labels, run_names, summary
from sightline.types import MetricValue, PublishedValue, Result

Make = Callable[..., Result]


def cells(table: ReportTable, *key: str) -> dict[str, object]:
    """The flat cells of the row whose first texts are these."""
    (found,) = [row for row in flat(table) if tuple(row.values())[: len(key)] == key]
    return found


def test_the_first_table_has_every_metric_over_all(codis: Make) -> None:
    whole = summary([codis()])[0]
    assert [row["metric"] for row in flat(whole)] == [
        "acc_p",
        "acc_q",
        "context_awareness",
        "output_variability",
    ]
    assert cells(whole, "acc_q") == {
        "metric": "acc_q",
        "value": 56.25,
        "low": 52.25,
        "high": 60.25,
        "interval": "wilson",
        "n": 706,
        "clusters": 216,
    }


def test_a_published_figure_stands_beside_with_the_difference(codis: Make) -> None:
    whole = summary([add_published(codis(), "GPT-4V")])[0]
    row = cells(whole, "acc_p")
    assert row["GPT-4V (Tables 3, 4)"] == 32.3
    assert row["GPT-4V (Tables 3, 4) difference"] == pytest.approx(0.15)
    assert row["GPT-4V (Table 10)"] == 31.2
    assert row["Human (Tables 3, 4)"] == 86.2
    assert row["Human (Tables 3, 4) comparable"] is True
    assert cells(whole, "context_awareness")["GPT-4V (Table 10)"] is None


def test_one_result_has_a_compact_table_for_each_label(codis: Make) -> None:
    _, by_category, by_words = summary([codis()])
    assert [row["category"] for row in flat(by_category)][:2] == [
        "Location and Orientation",
        "Temporal Information",
    ]
    assert [column.key for column in by_category.columns] == ["category", "n", "clusters", "acc_p", "acc_q"]
    assert [column.key for column in by_words.columns][3:] == ["bias_first", "bias_second", "bias_neither"]


def test_a_compact_table_says_where_a_metric_averages_over_other_numbers(codis: Make) -> None:
    _, by_category, by_words = summary([codis()])
    assert by_category.notes == ("n is that of acc_p; of acc_q: 168, 190, 94, 150, 104",)
    assert by_words.notes == ()


def test_a_compact_table_shows_the_first_figure_of_each_row_of_the_paper(codis: Make) -> None:
    by_category = summary([add_published(codis(), "GPT-4V")])[1]
    row = cells(by_category, "Relationships")
    assert (row["acc_p GPT-4V"], row["acc_p Human"]) == (51.9, 89.6)


def test_a_compact_table_shows_all_figures_that_no_other_table_holds(codis: Make) -> None:
    by_words = summary([add_published(codis(), "GPT-4V")])[2]
    row = cells(by_words, "up:down")
    shown = [row[f"bias_{side} GPT-4V"] for side in ("first", "second", "neither")]
    assert shown == pytest.approx([100 * 14 / 30, 100 * 12 / 30, 100 * 4 / 30], abs=0.05)


def test_no_compact_table_is_made_of_metrics_without_a_value(iibench: Make) -> None:
    plain = iibench()
    unanswered = [
        replace(m, value=None, low=None, high=None, n=0, reason="no answer key")
        if m.metric == "accuracy"
        else m
        for m in plain.metrics
    ]
    assert [table.title for table in summary([plain])] == ["iibench:none, openai/gpt-4o", "By domain"]
    (whole,) = summary([replace(plain, metrics=unanswered)])
    assert "accuracy: no value, no answer key" in whole.all_notes


def test_a_compact_table_says_why_one_of_its_values_is_missing(iibench: Make) -> None:
    plain = iibench()
    metrics = [
        replace(m, value=None, low=None, high=None, n=0, reason="no question left")
        if m.subset == "domain=Art"
        else m
        for m in plain.metrics
    ]
    by_domain = summary([replace(plain, metrics=metrics)])[1]
    assert cells(by_domain, "Art")["accuracy value"] is None
    assert by_domain.notes == ("accuracy domain=Art: no value, no question left",)


def test_by_a_label_only_its_subsets_are_shown_for_every_metric(codis: Make) -> None:
    (table,) = summary([codis()], "category")
    rows = flat(table)
    assert len(rows) == 15
    assert {row["metric"] for row in rows} == {"acc_p", "acc_q", "context_awareness"}
    assert cells(table, "acc_q", "Attributes")["n"] == 150


def test_an_unknown_label_names_the_nearest(codis: Make) -> None:
    assert labels(codis()) == ["category", "words"]
    with pytest.raises(UserError, match="did you mean 'category'"):
        summary([codis()], "categories")


def test_several_results_stand_under_each_other_metric_by_metric(codis: Make) -> None:
    (table,) = summary([codis(), codis(model="mini")])
    assert [(row["metric"], row["run"]) for row in flat(table)][:3] == [
        ("acc_p", "openai/gpt-4o"),
        ("acc_p", "mini"),
        ("acc_q", "openai/gpt-4o"),
    ]


def test_a_metric_that_only_one_of_several_results_has_keeps_its_row(codis: Make, iibench: Make) -> None:
    (table,) = summary([codis(), iibench()])
    assert [(row["metric"], row["run"]) for row in flat(table) if row["metric"] in ("acc_p", "miss")] == [
        ("acc_p", "codis:default"),
        ("miss", "iibench:none"),
    ]


def test_runs_are_named_by_what_differs_between_them(codis: Make) -> None:
    assert run_names([codis(), codis(setting="plain")]) == ["codis:default", "codis:plain"]
    assert run_names([codis(), codis(judge="gpt-4")]) == ["judge rules", "judge gpt-4"]
    assert run_names([codis(), codis()]) == ["openai/gpt-4o (1)", "openai/gpt-4o (2)"]
    assert run_names([codis(), codis()], ["base", "run 3"]) == ["base", "run 3"]
    assert run_names([codis(), codis(judge="gpt-4")], ["run 1", "run 2"]) == [
        "run 1, judge rules",
        "run 2, judge gpt-4",
    ]


URL = "http://127.0.0.1:18701/v1#llava"


def test_a_run_with_a_name_is_called_by_it_alone_and_its_model_stands_in_a_note_once(codis: Make) -> None:
    results = [codis(model=URL, judge="rules"), codis(model="openai/gpt-4o", judge="gpt-4")]
    (table,) = summary(results, runs=["alpha", "beta"])
    assert [row["run"] for row in flat(table)][:2] == ["alpha", "beta"]
    assert [note for note in table.all_notes if URL in note] == [f"alpha is {URL}; beta is openai/gpt-4o"]
    (whole, *_) = summary([codis(model=URL)], runs=["alpha"])
    assert whole.title == "codis:default, alpha"
    assert [note for note in whole.all_notes if URL in note] == [f"alpha is {URL}"]
    (whole, *_) = summary([codis(model=URL)], runs=["run 3"])
    assert whole.title == f"codis:default, {URL}"


def test_notes_that_all_runs_share_stand_once(codis: Make) -> None:
    (table,) = summary([codis(), codis(model="mini", errors=7)])
    assert sum("judged by rules" in note for note in table.all_notes) == 2, "a line of counts for each run"
    assert (
        "mini: 353 samples, 706 probes: 7 errors, 3 undecided, 1 truncated; judged by rules"
        in table.all_notes
    )


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({}, "353 samples, 706 probes: 0 errors, 3 undecided, 1 truncated"),
        (
            {"refused": 2, "empty": 1, "unparsed": 4},
            ": 0 errors, 3 undecided, 1 truncated, 1 empty, 2 ref",
        ),
        ({}, "judged by rules"),
        ({}, "chance on questions with two options: acc_q 50.0, acc_p 25.0"),
        ({}, "a model that ignores the context gets acc_p 0.0"),
        ({}, "95 % CI: Wilson score interval with the effective number of units"),
        ({}, "output_variability: no value, no answers of setting no-context"),
        (
            {"mixed_versions": True, "versions": {"reported": ["m m", "m fp_1", "n", *"abcd", "x" * 200]}},
            "mixed versions: the server reported 8 versions: m, m fp_1, n and 5 more",
        ),
        (
            {"mixed_versions": True, "versions": {"reported": ["x" * 200, "y"]}},
            f"the server reported 2 versions: {'x' * 80}..., y",
        ),
        ({"options": {"cot": True, "limit": None, "stop": ["."]}}, 'options: cot=on, stop=["."]'),
        ({"notes": ["3 answers are missing"]}, "3 answers are missing"),
    ],
)
def test_notes_that_qualify_the_numbers_are_printed(
    codis: Make, changes: dict[str, object], note: str
) -> None:
    assert any(note in told for told in summary([codis(**changes)])[0].all_notes)


def test_a_metric_with_a_judge_of_its_own_says_which(codis: Make) -> None:
    plain = codis()
    metrics = [replace(m, judge="human") if m.metric == "context_awareness" else m for m in plain.metrics]
    assert "context_awareness judged by human" in summary([replace(plain, metrics=metrics)])[0].all_notes


def test_the_effect_of_undecided_verdicts_is_printed(codis: Make) -> None:
    plain = codis()
    acc_p = replace(plain.metrics[0], value_if_right=33.3, value_decided=32.84)
    (whole, *_) = summary([replace(plain, metrics=[acc_p, *plain.metrics[1:]])])
    assert (
        "acc_p: 33.3 if all undecided verdicts were right, 32.8 without undecided verdicts" in whole.all_notes
    )


def test_the_chance_value_for_six_options_is_printed(iibench: Make) -> None:
    assert "chance: accuracy 16.7 (one of six options)" in summary([iibench()])[0].all_notes


def test_what_is_not_comparable_is_starred_with_the_reason_below(codis: Make) -> None:
    whole = summary([add_published(codis(samples=40))])[0]
    column = whole.columns[-1]
    assert parts(whole.rows[0][-1], column)[0] == "86.2*"
    assert "* Table 3: judged by humans; 40 pairs here, 353 in the paper" in whole.all_notes


def test_a_note_on_some_of_the_figures_names_them(iibench: Make) -> None:
    plain = iibench()
    doubt = PublishedValue("Human_avg", 90.0, "Table 3", comparable=False, note="may be misread")
    sure = PublishedValue("Human_avg", 88.2, "Table 3")
    metrics = [
        replace(m, published=[doubt if m.subset == "domain=Life" else sure]) if m.metric == "accuracy" else m
        for m in plain.metrics
    ]
    by_domain = summary([replace(plain, metrics=metrics)])[1]
    assert by_domain.notes == ("* Table 3, Human_avg, Life: may be misread",)


def test_a_note_on_all_values_of_a_metric_names_the_metric_alone(mmr3: Make) -> None:
    (by_colour,) = summary([add_published(mmr3("context"), "BLIP-3")], "colour")
    note = "the paper takes one pair a response and does not say which"
    assert f"* Table 11, BLIP-3, con_by_response, s_c_by_response: {note}" in by_colour.notes


def test_a_note_on_some_values_of_a_metric_names_these(mmr3: Make) -> None:
    result = add_published(mmr3("context"), "LLaVa 1.5M")
    kept = [
        m
        for m in result.metrics
        if not (m.metric == "con_by_response" and m.subset in ("colour=red", "colour=blue"))
    ]
    plain = [
        replace(m, published=[replace(m.published[0], comparable=True, note=None)])
        for m in result.metrics
        if m not in kept and m.published
    ]
    (by_colour,) = summary([replace(result, metrics=[*kept, *plain])], "colour")
    assert any(
        note.startswith("* Table 11, LLaVa 1.5M, con_by_response colour=green, con_by_response colour=yellow")
        for note in by_colour.notes
    )


def test_the_tables_by_label_of_mmr3_show_its_four_metrics_and_the_row_asked_for(mmr3: Make) -> None:
    whole, *by_label = summary([add_published(mmr3("context"), "Qwen-VL-Chat")])
    assert [table.columns[0].key for table in by_label] == ["colour", "lines", "shape"]
    for compact in by_label:
        assert [column.key for column in compact.columns][3:] == [
            "acc",
            "s_gt",
            "con_by_response",
            "s_c_by_response",
            "acc Qwen-VL-Chat",
            "con_by_response Qwen-VL-Chat",
            "s_c_by_response Qwen-VL-Chat",
        ]
    assert [column.key for column in whole.columns if column.kind == "published"] == [
        "Qwen-VL-Chat (Tables 4, 7)"
    ]
    assert all(column.kind != "published" for column in summary([add_published(mmr3("context"))])[0].columns)


def test_a_difference_that_rounds_to_zero_has_no_minus() -> None:
    column = Column("value", "value", "")
    for nothing in (-0.0, 0.0, -0.04, 0.04):
        assert parts(Value(nothing, nothing, 0.2), column)[0] == "0.0"
        assert "-0.0" not in cell_text(Value(nothing, nothing, nothing), column)
        figure = PublishedValue("Human", 86.2, "Table 3", comparable=False)
        assert parts(PublishedCell(figure, nothing), column) == ("86.2*", "(+0.0)")
    assert parts(Value(-0.05000001), column) == ("-0.1",)


def test_readers_see_one_decimal_of_a_percentage_and_three_of_a_number() -> None:
    column = Column("value", "value", "")
    assert parts(Value(32.25, 27.55, 37.18), column) == ("32.2", "[27.6, 37.2]")
    assert parts(Value(0.88123, unit="number"), column) == ("0.881",)
    assert parts(Value(None), column) == ("-",)
    assert parts(
        PublishedCell(PublishedValue("Human", 86.2, "Table 3", comparable=False), -53.9499), column
    ) == ("86.2*", "(-53.9)")
    assert parts(1399, column) == ("1,399",)


@given(
    value=st.floats(0, 100, allow_subnormal=False),
    low=st.floats(0, 100, allow_subnormal=False),
    figure=st.floats(0, 100, allow_subnormal=False),
)
def test_csv_and_json_keep_every_digit(value: float, low: float, figure: float) -> None:
    table = ReportTable(
        "t",
        (
            Column("text", "metric", "metric"),
            Column("value", "value", ""),
            Column("published", "a\nb", "a (b)"),
        ),
        (
            (
                "acc_p",
                Value(value, low, 100.0),
                PublishedCell(PublishedValue("GPT-4V", figure, "Table 3"), value - figure),
            ),
        ),
        ("a note",),
    )
    (from_csv,) = csv.DictReader(io.StringIO(csv_text(table)))
    (from_json,) = json.loads(json_text([table]))
    assert [float(from_csv[name]) for name in ("value", "low", "a (b)", "a (b) difference")] == [
        value,
        low,
        figure,
        value - figure,
    ]
    (row,) = from_json["rows"]
    assert (row["value"], row["low"], row["a (b)"]) == (value, low, figure)
    assert (from_json["title"], from_json["notes"]) == ("t", ["a note"])


def test_an_undefined_value_is_null_in_json_and_empty_in_csv(codis: Make) -> None:
    whole = summary([add_published(codis())])[0]
    (plain,) = json.loads(json_text([whole]))
    row = next(row for row in plain["rows"] if row["metric"] == "output_variability")
    assert (row["value"], row["n"], row["Human (Tables 3, 4)"]) == (None, 0, 81.9)
    assert "output_variability,,,,,0,0,81.9,,True" in csv_text(whole)


def test_a_metric_without_figures_has_an_empty_cell() -> None:
    assert parts(None, Column("published", "a", "a")) == ()
    assert MetricValue("acc_p", "all", 1.0, 1, 1).published is None
