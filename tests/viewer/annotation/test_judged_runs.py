"""What annotators judged reaches the judges of the run, and every command that reads human verdicts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.annotation.working import command, work
from tests.viewer.conftest import ACCESS, HOST, TOKEN
from tests.viewer.test_pages import shown

from sightline.annotation.types import Annotator, Item
from sightline.cli.main import main
from sightline.store.store import Store
from sightline.viewer.access import AccessControl
from sightline.viewer.app import create_app

Capture = pytest.CaptureFixture[str]

RATED = 12


@pytest.fixture
def rated(codis: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with run 1, which three humans judged in part: Ben calls all wrong, Chloe accepts many."""
    monkeypatch.chdir(tmp_path)
    model = ("--model", "baseline/chance", "--data", codis, "--quiet")
    command("run", "codis", *model, "--out", "results", "--name", "base")
    new = ("annotate", "new", "rate", "base", "--name", "blind", "--data", codis)
    command(*new, "--images", str(RATED), "--seed", "3")
    command("annotate", "invite", "blind", "Anna", "Ben", "Chloe")
    work("blind", _verdict)
    return tmp_path / "sightline.db"


def _verdict(annotator: Annotator, item: Item, field: str) -> str:
    accepts = annotator.name == "Chloe" and item.number % 3 == 0
    return "wrong" if annotator.name == "Ben" else "right" if accepts else str(item.hidden["verdict"])


def _page(store: Path, path: str) -> str:
    opened = Store.open(str(store), create=False)
    client = TestClient(AccessControl(create_app(opened), ACCESS), base_url=HOST)
    client.get("/", params={"token": TOKEN})
    page = shown(client, path)
    opened.close()
    return page


def _metrics(capsys: Capture, *words: str | Path) -> dict[tuple[str, str], Any]:
    capsys.readouterr()
    command(*words)
    found = json.loads(Path("judged/metrics.json").read_text())["metrics"]
    return {(one["metric"], one["subset"]): one["value"] for one in found}


def _tables(capsys: Capture, *words: str) -> Sequence[dict[str, Any]]:
    capsys.readouterr()
    command("judge-report", *words, "--json")
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.slow
def test_the_page_of_judges_shows_what_annotators_of_the_run_said(rated: Path) -> None:
    page = _page(rated, "/judges?run=1")
    assert "majority of the humans" in page
    assert "Agreement among the humans" in page
    assert 'The annotation project <a href="/projects/1">blind</a>' in page
    assert "This run has one judge and no human" not in page
    assert "Answers to adjudicate first" not in page
    assert "items, fewer than 100: too few to order for adjudication" in page
    differing = page.partition('id="differing"')[2]
    assert "Ben" in differing, "Ben differs from the rules and from the others"
    assert 'href="/judges?run=1"' in _page(rated, "/judges")


@pytest.mark.slow
def test_a_project_of_the_store_is_a_judge_without_an_export(
    rated: Path, codis: Path, capsys: Capture
) -> None:
    score = ("score", "codis", "results/answers.jsonl", "--data", codis, "--out", "judged", "--quiet")
    direct = _metrics(capsys, *score, "--judge", "human:blind")
    command("annotate", "export", "blind", "--out", "export")
    by_file = _metrics(capsys, *score, "--judge", "human:export/verdicts.jsonl", "--force")
    assert direct == by_file
    assert direct["acc_q", "all"] is not None
    command("run", "codis", "--model", "baseline/chance", "--data", codis, "--quiet", "--judge", "human:1")


@pytest.mark.slow
def test_the_judge_report_takes_runs_and_projects_of_the_store(rated: Path, capsys: Capture) -> None:
    command("annotate", "export", "blind", "--out", "export")
    of_files = _tables(capsys, "results", "--human", "export/verdicts.jsonl")
    for run, human in (("1", "blind"), ("base", "1"), ("results", "blind"), ("1", "export/verdicts.jsonl")):
        assert _tables(capsys, run, "--human", human) == of_files


@pytest.mark.slow
def test_one_group_of_humans_is_no_two_judges(rated: Path, codis: Path, capsys: Capture) -> None:
    words = ["score", "codis", "results/answers.jsonl", "--data", str(codis), "--quiet"]
    assert main([*words, "--judge", "human:blind", "--judge", "human:1"]) == 2
    assert "are the same judge" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("judge", "message"),
    [
        ("human:blnd", "neither such a file of human verdicts nor such an annotation project"),
        ("human:answering", "produces answers, not verdicts"),
        ("human:idle", "has no verdict yet"),
    ],
)
def test_a_project_without_verdicts_is_refused(
    rated: Path, codis: Path, judge: str, message: str, capsys: Capture
) -> None:
    command("annotate", "new", "respond", "codis", "--name", "answering", "--data", codis)
    command("annotate", "new", "rate", "1", "--name", "idle", "--data", codis)
    words = ["score", "codis", "results/answers.jsonl", "--data", str(codis), "--quiet"]
    assert main([*words, "--judge", judge]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_what_holds_for_all_runs_is_said_once_below_the_corrected_metrics(rated: Path, codis: Path) -> None:
    command("run", "codis", "--model", "baseline/chance", "--data", codis, "--quiet", "--seed", "7")
    command("annotate", "new", "rate", "1", "2", "--name", "both", "--data", codis, "--images", str(RATED))
    command("annotate", "invite", "both", "Dora", "Emil", "Fay")
    work("both", _verdict)
    page = _page(rated, "/projects/2/corrected")
    assert len(re.findall(r"<h2>baseline/chance on codis:default, run \d", page)) == 2
    assert page.count("lambda of PPI++") == 1


@pytest.mark.slow
def test_a_new_project_says_how_much_work_it_is(rated: Path, codis: Path, capsys: Capture) -> None:
    capsys.readouterr()
    command("annotate", "new", "rate", "1", "--name", "more", "--data", codis, "--images", str(RATED))
    out, err = capsys.readouterr()
    found = re.search(r"(\d+) items about (\d+) images, 3 annotators per item: (\d+) judgements", out)
    assert found is not None, out
    items, clusters, judgements = map(int, found.groups())
    assert (clusters, judgements) == (RATED, 3 * items)
    assert items >= 2 * clusters, "a cluster has two contexts"
    assert "does not show" not in err, "parts of a task of our own are optional"
