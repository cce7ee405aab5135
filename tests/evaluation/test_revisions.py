"""report --corrections and --exclude, against counts by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.main import main

ANSWERS = {"g1": ("bus", "car"), "g2": ("tram", "bus"), "g3": ("bus", "bus"), "g4": ("B", "A")}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Four groups of two answers; the right one is bus, in the last group option A."""
    monkeypatch.chdir(tmp_path)
    lines = [
        {
            "group": group,
            "variant": variant,
            "prompt": f"Which vehicle is in {group}, {variant}?",
            "references": ["A" if group == "g4" else "bus"],
            "options": ["bus", "tram"] if group == "g4" else [],
            "response": response,
        }
        for group, responses in ANSWERS.items()
        for variant, response in zip("ab", responses, strict=True)
    ]
    write("groups.jsonl", *lines)
    assert (
        main(["score", "groups:groups.jsonl", "--set", "embedder=none", "--quiet", "--name", "scored"]) == 0
    )
    return "scored"


def write(name: str, *lines: dict[str, Any]) -> str:
    Path(name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return name


def correction(sample: str, *value: str, **more: str) -> dict[str, Any]:
    return {"id": sample, "value": value, "reason": "the key is wrong", "source": "a remark", **more}


def revised(capsys: pytest.CaptureFixture[str], run: str, *words: str) -> tuple[Any, list[str]]:
    capsys.readouterr()
    assert main(["report", run, *words, "--metric", "acc", "--json"]) == 0
    table = json.loads(capsys.readouterr().out)
    (table,) = table if isinstance(table, list) else [table]
    (row,) = table["rows"]
    return row, table["notes"]


def test_a_corrected_reference_changes_the_verdicts_and_not_the_released_value(
    run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By hand: 5 of 8 answers are right; g2 a becomes right, g2 b stays; g4 a becomes right, g4 b wrong."""
    file = write("c.jsonl", correction("g2", "tram", variant="a"), correction("g4", "B"))
    row, notes = revised(capsys, run, "--corrections", file)
    assert (row["released value"], row["n"]) == (100 * 5 / 8, 8)
    assert (row["revised value"], row["revised n"]) == (100 * 6 / 8, 8)
    assert notes[0].startswith("3 answers have corrected references; 3 of them")
    assert any(note.startswith("c.jsonl: sha256 ") for note in notes)


def test_an_excluded_sample_does_not_count(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    row, _ = revised(
        capsys, run, "--exclude", write("e.jsonl", {"id": "g3", "reason": "twice", "source": "a remark"})
    )
    assert (row["released value"], row["n"]) == (100 * 5 / 8, 8)
    assert (row["revised value"], row["revised n"]) == (100 * 3 / 6, 6)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (correction("g9", "bus"), "c.jsonl, record line 1 (g9): no sample 'g9' in scored"),
        (correction("g1", "bus", variant="c"), "unknown variant of g1 'c'"),
        ({"id": "g1", "value": ["bus"], "reason": "?"}, "missing required field `source`"),
        (correction("g1", "bus", field="question"), "field"),
        (correction("g4", "plane"), "none of the options"),
        (correction("g4", "bus", "plane"), "none of the options"),
        (correction("g1"), "length >= 1"),
    ],
)
def test_a_line_that_fits_nothing_is_refused(
    run: str, line: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", run, "--corrections", write("c.jsonl", line)]) == 2
    assert said in capsys.readouterr().err


def test_corrections_of_another_benchmark_are_refused(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", run, "--corrections", "mmvp"]) == 2
    assert "scored is a run of groups; expected a run of mmvp, or a file" in capsys.readouterr().err


def test_two_corrections_of_one_answer_are_refused(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = write("c.jsonl", correction("g1", "bus"), correction("g1", "car"))
    assert main(["report", run, "--corrections", file]) == 2
    assert "two corrections" in capsys.readouterr().err
