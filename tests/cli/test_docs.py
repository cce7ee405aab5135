"""`sightline docs` lists all pages, and prints one as it stands in docs/."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sightline.cli.main import main

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_page_is_listed_with_its_title(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs"]) == 0
    listed = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert sorted(name for name, _ in listed) == sorted(
        page.stem for page in DOCS.glob("*.md") if page.stem != "README"
    )


@pytest.mark.parametrize("word", ["models", "models.md", "docs/models.md#budgets"])
def test_a_pipe_gets_the_markdown_of_the_page(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", word]) == 0
    assert capsys.readouterr().out == (DOCS / "models.md").read_text()


def test_a_terminal_gets_the_page_laid_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["docs", "models"]) == 0
    shown = capsys.readouterr().out
    assert "baseline/chance" in shown
    assert "`baseline/chance`" not in shown
    assert "| --- |" not in shown


def test_an_unknown_page_gets_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "modles"]) == 2
    assert "did you mean 'models'?" in capsys.readouterr().err
