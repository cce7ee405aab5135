"""The links of `annotate invite` begin with the given URL, or a note says on what they rely."""

from __future__ import annotations

import pytest
from tests.viewer.annotation.conftest import Site, responses

from sightline.annotation.task import task
from sightline.cli.main import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def store(site: Site) -> str:
    site.add(task("rate"), responses(site.folder, 2))
    return site.store.name


def _invite(capsys: Capture, store: str, *words: str) -> tuple[str, str]:
    """The link of Anna, and the notes."""
    capsys.readouterr()
    assert main(["annotate", "invite", "1", "Anna", "--store", store, *words]) == 0
    out, err = capsys.readouterr()
    return out.removeprefix("Anna: ").partition("/annotate/")[0], " ".join(err.split())


def test_the_default_url_is_said(store: str, capsys: Capture) -> None:
    base, notes = _invite(capsys, store)
    assert base == "http://127.0.0.1:8765"
    assert "the default of `sightline serve`" in notes
    assert "--url BASE" in notes


def test_a_given_url_needs_no_note(store: str, capsys: Capture) -> None:
    base, notes = _invite(capsys, store, "--url", "https://annotate.example.org/")
    assert base == "https://annotate.example.org"
    assert "begin with" not in notes
    assert main(["annotate", "invite", "1", "Anna", "--store", store, "--url", "annotate.example.org"]) == 2
    assert "--url is no URL" in capsys.readouterr().err
