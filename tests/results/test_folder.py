"""A results folder appears complete or not at all, and is read back as it was written."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.results.conftest import Collect, MakeResult, OneWord

from sightline.errors import UserError
from sightline.judging.judges import RulesJudge
from sightline.judging.panel import JudgePanel
from sightline.results.folder import ResultsFolder, lines_of
from sightline.results.read_results import is_sweep, read_result, read_sweep


def write(folder: Path, collect: Collect, make_result: MakeResult, *, error: Exception | None = None) -> None:
    collected = collect(a="yes", b="no")
    panel = JudgePanel(benchmark=OneWord(), judges=[RulesJudge(OneWord(), {})])
    with ResultsFolder(str(folder)) as results:
        for judged in panel.judge(collected.groups(), collected.answers):
            results.write(lines_of(judged))
        if error:
            raise error
        results.finish(make_result(samples=2), OneWord(), report="# Report\n", data=None)


def test_a_folder_holds_answers_verdicts_metrics_and_report(
    tmp_path: Path, collect: Collect, make_result: MakeResult
) -> None:
    write(tmp_path / "out", collect, make_result)
    lines = {path.name: len(path.read_text().splitlines()) for path in (tmp_path / "out").iterdir()}
    assert lines.keys() == {"answers.jsonl", "verdicts.jsonl", "metrics.json", "report.md"}
    assert (lines["answers.jsonl"], lines["verdicts.jsonl"]) == (2, 2)
    assert replace(read_result(tmp_path / "out"), options={}) == make_result(samples=2)


def test_an_error_leaves_the_earlier_folder_as_it_was(
    tmp_path: Path, collect: Collect, make_result: MakeResult
) -> None:
    write(tmp_path, collect, make_result)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ZeroDivisionError):
        write(tmp_path, collect, make_result, error=ZeroDivisionError())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_without_a_path_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collect: Collect, make_result: MakeResult
) -> None:
    monkeypatch.chdir(tmp_path)
    collected = collect(a="yes")
    panel = JudgePanel(benchmark=OneWord(), judges=[RulesJudge(OneWord(), {})])
    with ResultsFolder(None) as results:
        for judged in panel.judge(collected.groups(), collected.answers):
            results.write(lines_of(judged))
        results.finish(make_result(), OneWord(), report="", data=None)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no metrics\.json"):
        read_result(tmp_path)


def test_an_invalid_result_is_refused_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text("{}")
    with pytest.raises(UserError, match=r"is not a valid metrics\.json"):
        read_result(tmp_path)


def test_a_sweep_that_cannot_be_read_names_its_own_file(tmp_path: Path) -> None:
    assert not is_sweep(tmp_path)
    with pytest.raises(UserError, match=r"has no sweep\.json"):
        read_sweep(tmp_path)
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(UserError, match=r"is not a valid sweep\.json"):
        read_sweep(tmp_path)
