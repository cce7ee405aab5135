"""report.md says what was run and every number with what belongs beside it."""

from __future__ import annotations

from collections.abc import Callable

from sightline.benchmarks.released import add_published
from sightline.reporting.tables import markdown, report_markdown, summary
from sightline.types import Result

Make = Callable[..., Result]


def test_a_table_is_markdown_with_its_notes_as_a_list(codis: Make) -> None:
    lines = markdown(summary([add_published(codis(samples=40))])).splitlines()
    assert lines[:5] == [
        "## codis:default, openai/gpt-4o",
        "",
        "| metric | value<br>95 % | n | clusters | Human<br>Tables 3, 4 |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| acc_p | 32.5 [28.5, 36.5] | 353 | 216 | 86.2* (-53.8) |",
    ]
    assert "- \\* Table 3: judged by humans; 40 pairs here, 353 in the paper" in lines


def test_every_row_of_a_table_has_as_many_cells_as_its_head(codis: Make) -> None:
    for table in summary([add_published(codis(model="a|b"), "Gemini")]):
        rows = [line for line in markdown([table]).splitlines() if line.startswith("|")]
        assert len(rows) == len(table.rows) + 2
        assert {row.replace("\\|", "").count("|") for row in rows} == {len(table.columns) + 1}


def test_a_run_with_a_name_is_called_by_it(codis: Make) -> None:
    report = report_markdown(codis(), "base")
    assert report.startswith("# codis:default, base\n")
    assert "\n- base is openai/gpt-4o\n" in report
    assert "\n| model | openai/gpt-4o |\n" in report


def test_the_report_holds_all_tables_and_all_effective_options(codis: Make) -> None:
    options = {"limit": None, "cot": True, "max_tokens": 1024, "stop": "a|b"}
    report = report_markdown(add_published(codis(options=options), "GPT-4V"))
    assert report.startswith("# codis:default, openai/gpt-4o\n\n## Overall\n\n| metric |")
    assert report.endswith("|\n")
    for line in (
        "## By category",
        "## By words",
        "## Run",
        "| model identity | api.openai.com gpt-4o |",
        "| judge | rules |",
        "| data digest | d1 |",
        '| version of reported | ["gpt-4o-2024-08-06"] |',
        "| option limit | null |",
        "| option cot | true |",
        "| option max_tokens | 1024 |",
        "| option stop | a\\|b |",
        "- 353 samples, 706 probes: 0 errors, 3 undecided, 1 truncated; judged by rules",
    ):
        assert f"\n{line}\n" in report
