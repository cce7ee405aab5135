"""A results folder appears complete or not at all, and is read back as it was written."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.evaluation.conftest import Collect, MakeResult, OneWord

from sightline.errors import EnvironmentFailedError, UserError
from sightline.evaluation.folder import FILES, ResultsFolder, is_sweep, read_result, read_sweep
from sightline.evaluation.judges import JudgePanel, RulesJudge
from sightline.formats.files import file_digest
from sightline.formats.jsonl import read_outcomes, read_run_metadata


def write(
    folder: Path, collect: Collect, make_result: MakeResult, *, error: Exception | None = None, **more: str
) -> None:
    collected = collect(a="yes", b="no", **more)
    panel = JudgePanel(benchmark=OneWord(), judges=[RulesJudge(OneWord(), {})])
    with ResultsFolder(str(folder)) as results:
        for judged in panel.judge(collected.groups(), collected.answers):
            results.write(judged)
        if error:
            raise error
        results.finish(make_result(samples=2 + len(more)), OneWord(), report="# Report\n", data=None)


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


def test_a_full_disk_is_reported_with_the_file_of_the_user_and_the_remedy(
    tmp_path: Path, collect: Collect, make_result: MakeResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(EnvironmentFailedError) as error:
        write(tmp_path / "out", collect, make_result)
    file = re.escape(str(tmp_path / "out"))
    assert re.match(
        rf"{file}/\w+\.jsonl: cannot be written: No space left on device; make room", str(error.value)
    )
    assert not (tmp_path / "out").exists()


def test_a_file_of_another_run_is_refused_and_an_edited_report_is_not(
    tmp_path: Path, collect: Collect, make_result: MakeResult
) -> None:
    write(tmp_path, collect, make_result)
    (tmp_path / "report.md").write_text("my remarks")
    (tmp_path / "verdicts.jsonl").unlink()
    read_result(tmp_path)
    (tmp_path / "answers.jsonl").write_text("{}")
    for read in (read_result, read_run_metadata):
        with pytest.raises(UserError, match=r"answers\.jsonl: is not the file of the run .* same command"):
            read(tmp_path)


def test_only_the_files_of_the_earlier_run_are_replaced(
    tmp_path: Path, collect: Collect, make_result: MakeResult
) -> None:
    write(tmp_path, collect, make_result)
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    (tmp_path / "earlier.json").write_text("a released format")
    metrics["files"]["earlier.json"] = file_digest(tmp_path / "earlier.json")
    (tmp_path / "metrics.json").write_text(json.dumps(metrics))
    (tmp_path / "prediction.json").write_text("of somebody")
    (tmp_path / "notes").mkdir()
    write(tmp_path, collect, make_result)
    assert {path.name for path in tmp_path.iterdir()} == {*FILES, "prediction.json", "notes"}


class Killed(BaseException):
    """The process ends here."""


def test_a_folder_killed_at_any_step_is_the_old_one_or_refused_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collect: Collect, make_result: MakeResult
) -> None:
    def outcome(folder: Path) -> str:
        """The content of the folder as a reader sees it."""
        try:
            read_run_metadata(folder)
            result = read_result(folder)
        except UserError:
            return "refused"
        kept = [*read_outcomes(folder / "answers.jsonl")]
        assert len(kept) == result.samples
        return f"{result.samples}"

    seen = []
    for steps in range(20):
        folder = tmp_path / str(steps)
        write(folder, collect, make_result)
        left = iter(range(steps))
        with monkeypatch.context() as patch:
            for name in ("replace", "unlink"):
                patch.setattr(Path, name, until(left, getattr(Path, name)))
            with suppress(Killed):
                write(folder, collect, make_result, more="maybe")
        seen.append(outcome(folder))
        write(folder, collect, make_result, more="maybe")
        assert outcome(folder) == "3"
        if next(left, None) is not None:
            break
    assert list(dict.fromkeys(seen)) == ["2", "refused", "3"]


def until(left: Iterator[int], change: Callable[..., Any]) -> Callable[..., Any]:
    """A change of the disk, which a process makes as long as it lives."""

    def changed(*arguments: Any, **options: Any) -> Any:
        if next(left, None) is None:
            raise Killed
        return change(*arguments, **options)

    return changed


def test_without_a_path_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collect: Collect, make_result: MakeResult
) -> None:
    monkeypatch.chdir(tmp_path)
    collected = collect(a="yes")
    panel = JudgePanel(benchmark=OneWord(), judges=[RulesJudge(OneWord(), {})])
    with ResultsFolder(None) as results:
        for judged in panel.judge(collected.groups(), collected.answers):
            results.write(judged)
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
