"""What a reader sees first: leading metrics, the worst notes, and ranges where verdicts are undecided."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from sightline.errors import UserError
from sightline.reporting.notes import result_points
from sightline.reporting.pivot import pivot
from sightline.reporting.table import MOST_NOTES, Column, ReportTable, Value, estimate, show
from sightline.reporting.tables import first_view, summary, warnings_of
from sightline.types import MetricValue, Result

Make = Callable[..., Result]


def printed(result: Result) -> tuple[str, int]:
    file = io.StringIO()
    left_out = show(first_view([result]), file, 80, is_brief=True)
    return file.getvalue(), left_out


def test_the_leading_metrics_alone_are_shown_and_the_named_ones_if_some_are_named(codis: Make) -> None:
    (table,) = first_view([codis()])
    assert [row[0] for row in table.rows] == ["acc_p", "acc_q"]
    (named,) = first_view([codis()], metrics=["context_awareness"])
    assert [row[0] for row in named.rows] == ["context_awareness"]


def test_a_metric_that_is_none_is_refused(codis: Make) -> None:
    with pytest.raises(UserError, match="unknown metric 'acc_b', did you mean"):
        first_view([codis()], metrics=["acc_b"])
    with pytest.raises(UserError, match="unknown metric 'nothing'"):
        pivot(result_points([codis()]), metrics=["nothing"])


def test_a_pivot_shows_the_named_metrics(codis: Make) -> None:
    (table,) = pivot(result_points([codis()]), metrics=["acc_p", "context_awareness"])
    assert [column.head.split("\n")[-1] for column in table.columns[1:]] == ["acc_p", "context_awareness"]


def test_undecided_verdicts_that_leave_more_open_than_sampling_make_a_range_and_a_warning(
    codis: Make,
) -> None:
    plain = codis()
    metrics = [replace(one, value_if_right=93.8) if one.metric == "acc_p" else one for one in plain.metrics]
    unsure = replace(plain, metrics=metrics, undecided=660)
    (table,) = first_view([unsure])
    cell = table.rows[0][1]
    assert isinstance(cell, Value)
    value = plain.metrics[0].value
    assert (cell.value, cell.other_end) == (value, 93.8)
    assert table.lead == warnings_of(unsure)[0]
    assert f"acc_p lies between {value:.1f} and 93.8" in table.lead
    text, _ = printed(unsure)
    assert f"{value:.1f} to 93.8" in text
    assert text.index("lies between") < text.index("acc_q  ")
    # All metrics are in the other formats as they were counted.
    assert summary([unsure])[0].rows[0][1] == replace(cell, other_end=None)


def test_few_undecided_verdicts_within_the_interval_are_no_range(codis: Make) -> None:
    plain = codis()
    first = plain.metrics[0]
    assert first.value is not None
    assert first.high is not None
    metrics = [replace(first, value_if_right=(first.value + first.high) / 2), *plain.metrics[1:]]
    assert warnings_of(replace(plain, metrics=metrics, undecided=3)) == []
    assert warnings_of(replace(plain, metrics=metrics, undecided=300)) != []


def test_the_worst_notes_come_first_and_the_others_are_counted(codis: Make) -> None:
    noted = replace(codis(), notes=[f"caveat {nth}" for nth in range(9)], errors=7)
    text, left_out = printed(noted)
    notes = [line.strip() for line in text.splitlines() if line.startswith("  ")]
    assert [note for note in notes if "caveat" in note] == [f"caveat {nth}" for nth in range(MOST_NOTES - 2)]
    assert any(note.startswith("7 of 706 probes have no answer") for note in notes)
    (table,) = first_view([noted])
    assert left_out == len(table.all_notes) - MOST_NOTES
    whole = io.StringIO()
    assert show(first_view([noted]), whole, 200) == 0
    assert "caveat 8" in whole.getvalue()
    assert "options: " in whole.getvalue()


def test_leading_metrics_without_a_value_give_their_reason_and_no_row(codis: Make) -> None:
    plain = codis()
    none = MetricValue("acc_q", "all", None, 0, 0, reason="no query was sent")
    metrics = [none if one.metric == "acc_q" else one for one in plain.metrics]
    (table,) = first_view([replace(plain, metrics=metrics)])
    assert [row[0] for row in table.rows] == ["acc_p"]
    assert "acc_q: no value, no query was sent" in table.notes


def test_a_run_and_its_notes_fit_80_columns(codis: Make) -> None:
    text, _ = printed(replace(codis(), notes=["word " * 60]))
    assert max(map(len, text.splitlines())) <= 80


def test_rows_without_any_value_are_left_out_unless_all_are(codis: Make) -> None:
    first, none = codis().metrics[0], MetricValue("other", "all", None, 0, 0, reason="none")
    columns = (Column("text", "metric", "metric"), Column("value", "a", "a"), Column("value", "b", "b"))
    rows = ((first.metric, estimate(first), Value(None)), (none.metric, estimate(none), Value(None)))
    for shown, names in ((rows, [first.metric]), (rows[1:], [none.metric])):
        file = io.StringIO()
        show([ReportTable("t", columns, shown)], file, 80, is_brief=True)
        assert [one.metric for one in (first, none) if one.metric in file.getvalue()] == names
