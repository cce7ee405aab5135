"""Progress goes to standard error: a line every 30 seconds if it is no terminal, nothing if switched off."""

from __future__ import annotations

import pytest

from sightline import progress as module
from sightline.progress import progress


def test_a_log_gets_a_line_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress("archive", 5000, "bytes", done=1000, show_progress=True) as advance:
        advance(500)
        monkeypatch.setattr(module, "LINE_SECONDS", 0)
        advance(500)
    assert capsys.readouterr().err == "archive: 2,000 of 5,000 bytes\n"


def test_an_unknown_total_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "LINE_SECONDS", 0)
    with progress("archive", None, "bytes", show_progress=True) as advance:
        advance(7)
    assert capsys.readouterr().err == "archive: 7 bytes\n"


def test_nothing_is_printed_if_progress_is_off(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("images", 2, "images", show_progress=False) as advance:
        advance(2)
    assert capsys.readouterr() == ("", "")
