"""The judgements that are missing or undecided stand beside the metrics of a result in every view."""

from __future__ import annotations

import io
from typing import Any

import pytest
from tests.viewer.counted_runs import run

from sightline.reporting.notes import run_notes
from sightline.reporting.table import ReportTable, csv_text, show
from sightline.reporting.tables import summary
from sightline.types import MetricValue, Result
from sightline.viewer.leaderboard import Choice, build_leaderboard, csv_table, paper_table
from sightline.viewer.plots import NamedResult
from sightline.viewer.sections import result_table

VALUE = MetricValue("acc_p", "all", 20.0, 353, 216, 1.0, 99.0, "wilson", judge="m")
CHOICE = Choice(settings={})


def judged(**counts: Any) -> Result:
    result = run(1, "a", 20.0, judge="m", metrics=[VALUE], **counts).result
    assert result is not None
    return result


def run_row(result: Result) -> str:
    rows = result_table([NamedResult("a", result)]).rows
    return next(row.source for row in rows if row.is_run)


def terminal(table: ReportTable) -> str:
    text = io.StringIO()
    show([table], text, 100)
    return " ".join(text.getvalue().split())


@pytest.mark.parametrize(
    ("missing", "undecided", "words"),
    [(3, 2, "3 missing, 2 undecided"), (3, 0, "3 missing"), (0, 1200, "1,200 undecided")],
)
def test_every_view_shows_them_beside_the_metric(missing: int, undecided: int, words: str) -> None:
    counts: dict[str, Any] = {"judge_errors": missing, "unparsed": undecided}
    result = judged(**counts)
    (table, *_) = summary([result])
    assert words.split(", ")[0] in terminal(table)
    assert words in csv_text(table)
    assert any(words.split(" ", maxsplit=1)[0] in note for note in run_notes(result))
    assert f"judge errors: {words}" in run_row(result)
    board = build_leaderboard([run(1, "a", 20.0, judge="m", metrics=[VALUE], **counts)], CHOICE)
    (cell,) = next(row.cells for row in board.rows if row.kind == "measured")
    assert f"judge errors: {words}" in cell.facts
    assert words in csv_text(csv_table(board))
    assert any(f"judge errors: {words}" in note for note in paper_table(board).notes)


def test_without_any_no_view_speaks_of_them() -> None:
    (table, *_) = summary([judged()])
    assert "judge_errors" not in csv_text(table)
    assert "judge errors" not in run_row(judged())


def test_values_of_another_judge_have_none() -> None:
    rules = MetricValue("acc_q", "all", 20.0, 353, 216, 1.0, 99.0, "wilson", judge="rules")
    result = run(1, "a", 20.0, judge="m", metrics=[VALUE, rules], judge_errors=3).result
    assert result is not None
    (table, *_) = summary([result])
    assert csv_text(table).count("3 missing") == 1
