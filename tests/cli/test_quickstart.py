"""The quickstart writes nothing before it knows that it can, and prints commands that can be pasted."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sightline.cli.main import main
from sightline.cli.quickstart import _check, _program, _write_report
from sightline.errors import UserError
from training.scenes.build import generate_codis


def test_an_unknown_model_is_refused_before_data_are_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["quickstart", "--model", "nonsense", "--out", str(tmp_path / "q")]) == 2
    assert "nonsense" in capsys.readouterr().err
    assert not (tmp_path / "q").exists()


def test_only_an_empty_folder_or_that_of_a_quickstart_is_accepted(tmp_path: Path) -> None:
    _check(tmp_path / "new", [])
    _check(tmp_path, [])
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UserError, match="a new folder for --out"):
        _check(tmp_path, [])
    generate_codis(tmp_path / "data" / "codis", pairs=1)
    _check(tmp_path, [])


def test_a_printed_command_begins_as_sightline_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "sightline"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert _program() == str(program)
    monkeypatch.setenv("PATH", str(program.parent))
    assert _program() == "sightline"
    monkeypatch.setattr(sys, "argv", ["-c"])
    assert _program() == "sightline"


def test_the_report_of_all_runs_is_written_and_the_viewer_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(generate_codis(tmp_path / "data" / "codis", pairs=2))
    words = ["run", "codis", "--model", "baseline/chance", "--data", data, "--quiet"]
    assert main([*words, "--store", str(tmp_path / "sightline.db")]) == 0
    _write_report(tmp_path, [1])
    printed = capsys.readouterr().err
    assert f"report: {tmp_path / 'report.html'}" in printed
    assert f"serve --store {tmp_path / 'sightline.db'}" in printed
    assert "chance on CODIS" in (tmp_path / "report.html").read_text()


def test_without_the_extra_the_quickstart_says_how_to_get_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sightline.cli.quickstart._WEB", ("no_such_module",))
    _write_report(tmp_path, [1])
    assert "pip install 'sightline[web]'" in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()
