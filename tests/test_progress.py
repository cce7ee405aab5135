"""Progress goes to standard error: lines at times where it is no terminal, nothing where unwanted."""

from __future__ import annotations

import pytest

from sightline import progress as module
from sightline.progress import progress


def test_a_log_gets_a_line_at_times(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress("archive", 5000, "bytes", done=1000, shown=True) as advance:
        advance(500)
        monkeypatch.setattr(module, "LINE_SECONDS", 0)
        advance(500)
    assert capsys.readouterr().err == "archive: 2,000 of 5,000 bytes\n"


def test_a_total_that_nobody_knows_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "LINE_SECONDS", 0)
    with progress("archive", None, "bytes", shown=True) as advance:
        advance(7)
    assert capsys.readouterr().err == "archive: 7 bytes\n"


def test_nothing_is_said_where_nothing_shall_be(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("images", 2, "images", shown=False) as advance:
        advance(2)
    assert capsys.readouterr() == ("", "")
