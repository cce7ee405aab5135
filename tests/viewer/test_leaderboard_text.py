"""The leaderboard as CSV and LaTeX has the numbers of the page, and says which are not comparable."""

from __future__ import annotations

import csv
import io

from msgspec.structs import replace
from tests.viewer.counted_runs import run

from sightline.benchmarks.released import published
from sightline.reporting.table import csv_text
from sightline.reporting.tables import latex
from sightline.viewer.leaderboard import Choice, build_leaderboard, csv_table, paper_table, remarks

RUNS = [
    run(1, "http://localhost:8000/v1#llava", 20.0),
    run(2, "gpt", 30.123456, judge="qwen"),
    run(3, "other", 25.0),
]
BOARD = build_leaderboard(RUNS, Choice({}))


def test_the_csv_has_a_line_for_each_value_with_its_interval_judge_and_reason() -> None:
    lines = list(csv.DictReader(io.StringIO(csv_text(csv_table(BOARD)))))
    values = [cell.value for row in BOARD.rows for cell in row.cells if cell.value]
    assert [float(line["value"]) for line in lines] == [value.value for value in values]
    by_model = {line["model"]: line for line in lines}
    measured = by_model["http://localhost:8000/v1#llava"]
    assert [measured[name] for name in ("low", "high", "n", "judge", "run")] == [
        "1.0",
        "99.0",
        "353",
        "rules",
        "1",
    ]
    assert by_model["gpt"]["not comparable"] == "judged by qwen; the others by rules"
    assert by_model["GPT-4V"]["source"].endswith(
        published("codis", "default", "GPT-4V")["acc_p", "all"][0].table
    )


def test_the_latex_table_has_a_row_for_each_model_and_notes_what_is_not_comparable() -> None:
    text = latex([paper_table(BOARD)])
    assert r"llava & 20.0 [1.0, 99.0] & 353 \\" in text
    assert text.count(r" \\") == len(BOARD.rows) + 2  # two lines of headings
    assert "CODIS, not comparable: gpt: judged by qwen; the others by rules" in text


def test_a_file_names_the_runs_that_are_being_counted() -> None:
    waiting = [replace(run(9, "slow", 1.0), result=None)]
    lines = list(csv.DictReader(io.StringIO(csv_text(csv_table(BOARD, waiting)))))
    assert [(line["model"], line["value"], line["run"]) for line in lines[-1:]] == [("slow", "", "9")]
    assert lines[-1]["not comparable"] == "being counted; load the file again"
    assert "run 9, slow: being counted" in latex([paper_table(BOARD, waiting)])


def test_rows_with_one_reason_share_a_note() -> None:
    usual = [run(number, f"usual {number}", 1.0) for number in range(4, 12)]
    fewer = [run(number, f"few {number}", 1.0, samples=20) for number in range(12, 19)]
    board = build_leaderboard([*usual, *fewer], Choice({}, published="off", human=False))
    assert remarks(board) == [
        (
            "≠",
            "CODIS, not comparable",
            "few 12, few 13, few 14, few 15 and 3 other rows: 20 samples; the others have 353",
        )
    ]


def test_published_values_that_others_judged_are_marked() -> None:
    judged = published("codis", "default", "GPT-4V")["acc_p", "all"][0]
    (marked,) = [one for one in remarks(BOARD) if one.mark == "†"]
    assert marked.title == "CODIS"
    assert marked.words.endswith(f": {judged.note}")
    (by_csv,) = [
        line for line in csv.DictReader(io.StringIO(csv_text(csv_table(BOARD)))) if line["model"] == "GPT-4V"
    ]
    assert by_csv["remark"] == judged.note == "judged by humans"
    assert f"GPT-4V (published) & {judged.value}†" in latex([paper_table(BOARD)])
