"""`score --explain`: each response has the rule that gave its verdict, and the words that it read."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from sightline.cli.main import main
from sightline.formats.groups import GroupLine, write_groups
from sightline.types import VerdictName

OPTIONS = ("a kite", "a drum", "a boat")

RESPONSES: list[tuple[str, VerdictName, str, str]] = [
    ("Answer: B", "right", "statement", "Answer: B"),
    ("\\boxed{A}", "wrong", "container", "A"),
    ("A or C", "miss", "several", "A, C"),
    ("It is not B.", "miss", "none", "It is not B."),
    ("a drum", "right", "text", "a drum"),
    ("", "wrong", "empty", ""),
]


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [
        GroupLine(
            str(n), "v", prompt="Which?", options=OPTIONS, references=("a drum",), response=said or None
        )
        for n, (said, *_) in enumerate(RESPONSES)
    ]
    free = GroupLine("free", "v", prompt="What?", references=("tuba", "drum"), response="A big drum.")
    other = GroupLine("other", "v", prompt="What?", references=("tuba",), response="A big drum.")
    write_groups([*lines, free, other], tmp_path / "g.jsonl")
    return tmp_path


def explained(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["score", "groups:g.jsonl", "--set", "embedder=none", "--quiet", "--explain", *words]) == 0
    return capsys.readouterr().out


def test_every_response_has_the_rule_of_its_verdict(groups: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(explained(capsys, "--format", "json"))
    found = {one["sample"]: one for one in result["explanations"]}
    for n, (_, verdict, rule, words) in enumerate(RESPONSES):
        one = found[str(n)]
        assert (one["verdict"], one["rule"], one["words"]) == (verdict, rule, words)
    assert (found["free"]["rule"], found["free"]["words"]) == ("holds the reference", "drum")
    assert (found["other"]["rule"], found["other"]["words"]) == ("holds no reference", "A big drum.")
    assert result["metrics"], "the fields of metrics.json are there, too"


def test_the_worst_come_first_and_csv_is_one_table(groups: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(explained(capsys, "--format", "csv"))))
    assert [row["verdict"] for row in rows] == ["miss"] * 2 + ["wrong"] * 3 + ["right"] * 3
    table = explained(capsys)
    assert table.index("acc ") < table.index("Verdicts explained") < table.index("statement")


def test_without_the_option_nothing_is_explained(groups: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "groups:g.jsonl", "--set", "embedder=none", "--quiet", "--format", "json"]) == 0
    assert "explanations" not in json.loads(capsys.readouterr().out)
