"""`compare --why` finds the differences that were planted, and those of the readers of two real tools.

lmms-eval 0.7.3 (extract_mcq_answer) and VLMEvalKit (nvidia-vlmeval 26.3, exact matching) scored their files
in `formats/written_by_tools`: 33.3 % of six replies are right and 62.5 % of eight.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.cli.main import main

WRITTEN = Path(__file__).parents[1] / "formats/written_by_tools"
CAUSES = ("prompts", "images", "responses", "reading", "references")
Capture = pytest.CaptureFixture[str]


def score(folder: Path, task: str, file: Path, name: str, judge: str = "rules") -> None:
    sightline.score(task, file, judge=[judge], set={"embedder": "none"}, store=folder / "s.db", name=name)


def why(folder: Path, capsys: Capture, *runs: str) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    """The counts by what differs, the examples, and all notes."""
    capsys.readouterr()
    assert main(["compare", *runs, "--why", "--json", "--store", str(folder / "s.db")]) == 0
    counts, examples = json.loads(capsys.readouterr().out)
    said = " ".join([counts.get("lead", ""), *counts["notes"]])
    return {row["what"]: row for row in counts["rows"]}, examples["rows"], said


def differing(counts: Mapping[str, Any]) -> dict[str, int]:
    return {what: row["differ"] for what, row in counts.items() if row["differ"]}


@pytest.mark.parametrize(
    ("name", "tool", "own", "others"),
    [
        ("lmms-eval-0.7.3-mcq.jsonl", "lmms-eval", "33.3 %", 3),
        ("vlmevalkit-26.3-mcq.xlsx", "VLMEvalKit", "62.5 %", 1),
    ],
)
def test_the_same_replies_in_another_number_differ_by_the_reading(
    tmp_path: Path, capsys: Capture, name: str, tool: str, own: str, others: int
) -> None:
    score(tmp_path, "groups", WRITTEN / name, "theirs", tool)
    score(tmp_path, "groups", WRITTEN / name, "ours")
    counts, examples, said = why(tmp_path, capsys, "theirs", "ours")
    assert differing(counts) == {"reading": others}
    assert counts["reading"]["changed"] == others
    assert f"{own} in theirs" in said
    assert len(examples) == min(others, 3)
    assert all(one["first"].endswith(f"({tool})") and one["second"].endswith("(rules)") for one in examples)


def test_an_imported_run_of_other_data_is_explained_though_compare_refuses_it(
    tmp_path: Path, capsys: Capture
) -> None:
    """The groups file has other prompts than the table, which holds none."""
    table = tmp_path / "groups.jsonl"
    lines = [
        {
            "group": str(number),
            "variant": "1",
            "prompt": f"Look! Question {number}: which one?",
            "options": [f"{one} {number}" for one in ("bus", "car", "train", "ship")],
            "references": [letter],
        }
        for number, letter in enumerate("ABCBABAC")
    ]
    table.write_text("".join(json.dumps(line) + "\n" for line in lines))
    store = ["--store", str(tmp_path / "s.db")]
    score(tmp_path, "groups", WRITTEN / "vlmevalkit-26.3-mcq.xlsx", "theirs", "VLMEvalKit")
    words = [
        "run",
        f"groups:{table}",
        "--model",
        "baseline/chance",
        "--set",
        "embedder=none",
        "--name",
        "run",
    ]
    assert main([*words, "--quiet", *store]) == 0
    capsys.readouterr()
    assert main(["compare", "theirs", "run", *store]) == 2
    assert "`sightline compare theirs run --why` says what differs" in capsys.readouterr().err
    counts, _, said = why(tmp_path, capsys, "theirs", "run")
    assert counts["responses"]["known"] == 8
    assert "compare leaves out 8 samples, whose data differ: labels of 8" in said


def line(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"q{number}",
        "variant": "v",
        "response": "A",
        "question": f"Question {number}?",
        "options": ["left", "right"],
        "references": ["A"],
        "prompt": f"Question {number}? (A) left (B) right",
        "images": ["one.png"],
        "image_sizes": [[640, 480]],
        **changes,
    }


def test_each_planted_difference_is_counted_and_a_verdict_is_explained_once(
    tmp_path: Path, capsys: Capture
) -> None:
    planted: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        ({}, {"prompt": "Other? (A) left (B) right", "response": "B"}),
        ({}, {"options": ["right", "left"], "references": ["B"], "response": "B", "prompt": ""}),
        ({}, {"image_sizes": [[320, 240]], "response": "B"}),
        ({"image_sizes": []}, {"response": "B"}),
        ({}, {"response": "(A)"}),
        ({}, {"response": "", "error": "HTTP 500"}),
        ({}, {"references": ["B"], "prompt": "Other? (A) left (B) right"}),
    ]
    files = []
    for side, extra in enumerate((20, 30)):
        file = tmp_path / f"{side}.jsonl"
        rows = [line(number, **both[side]) for number, both in enumerate(planted)]
        file.write_text("".join(json.dumps(row) + "\n" for row in [*rows, line(extra)]))
        files.append(file)
        score(tmp_path, "groups", file, f"run{side}")
    counts, examples, _ = why(tmp_path, capsys, "run0", "run1")
    assert differing(counts) == {
        "prompts": 3,
        "images": 1,
        "responses": 6,
        "references": 1,
        "only in run0": 1,
        "only in run1": 1,
    }
    # q1 by its prompt, q3 by its image, q4 and q6 by their responses, q7 by its reference; q2 is right.
    assert {what: counts[what]["changed"] for what in CAUSES} == {
        "prompts": 1,
        "images": 1,
        "responses": 2,
        "reading": 0,
        "references": 1,
    }
    assert counts["images"]["known"] == 7
    assert [one["sample"] for one in examples if one["what"] == "responses"] == ["q1", "q2", "q3"]
    images = next(one for one in examples if one["what"] == "images")
    assert (images["first"], images["second"]) == ("640 x 480", "320 x 240")


def test_an_answer_without_a_reference_in_one_run_has_no_other_verdict(
    tmp_path: Path, capsys: Capture
) -> None:
    for name, references in (("one", ["A"]), ("two", [])):
        file = tmp_path / f"{name}.jsonl"
        file.write_text(json.dumps(line(1, references=references)))
        score(tmp_path, "groups", file, name)
    counts, _, said = why(tmp_path, capsys, "one", "two")
    assert not differing(counts)
    assert "100.0 % in one, none scored in two. No verdict differs" in said
    assert "two: 1 answer without a reference" in said


def test_a_difference_in_spaces_is_seen(tmp_path: Path, capsys: Capture) -> None:
    for name, space in (("one", ""), ("two", " \n")):
        file = tmp_path / f"{name}.jsonl"
        file.write_text(json.dumps(line(1, prompt=f"Left or right?{space}")))
        score(tmp_path, "groups", file, name)
    assert main(["compare", "one", "two", "--why", "--store", str(tmp_path / "s.db")]) == 0
    assert "right?\u2423\\n" in capsys.readouterr().out.replace("\n", "")


def test_equal_runs_differ_in_nothing(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(line(1)))
    for name in ("one", "two"):
        score(tmp_path, "groups", file, name)
    counts, examples, said = why(tmp_path, capsys, "one", "two")
    assert not differing(counts)
    assert not examples
    assert "No verdict differs" in said


def test_why_is_about_two_runs_and_no_metric(tmp_path: Path, capsys: Capture) -> None:
    assert main(["compare", "1", "2", "3", "--why"]) == 2
    assert "--why compares two runs" in capsys.readouterr().err
    assert main(["compare", "1", "2", "--why", "--tests"]) == 2
    assert "--tests is about metrics" in capsys.readouterr().err


def logged(number: int, target: str) -> dict[str, Any]:
    return {
        "doc_id": number,
        "target": target,
        "filtered_resps": "Yes",
        "input": f"Is there a cat in {number}?",
        "input_media": ["one.jpg"],
        "acc": 1.0 if target.lower() == "yes" else 0.0,
    }


def test_a_log_scored_with_the_questions_of_a_run_is_compared_with_it(
    tmp_path: Path, capsys: Capture
) -> None:
    table, log, store = tmp_path / "groups.jsonl", tmp_path / "log.jsonl", ["--store", str(tmp_path / "s.db")]
    targets = ["Yes", "No"] * 3
    table.write_text(
        "".join(
            json.dumps({"group": str(number), "variant": "asked", "prompt": "Cat?", "references": [target]})
            + "\n"
            for number, target in enumerate(targets)
        )
    )
    log.write_text("".join(json.dumps(logged(*one)) + "\n" for one in enumerate(targets)))
    asked = ["--model", "baseline/chance", "--set", "embedder=none", "--quiet", *store]
    assert main(["run", f"groups:{table}", *asked, "--name", "run"]) == 0
    words = [
        "--judge",
        "lmms-eval",
        "--columns",
        "id=doc_id",
        "--set",
        "embedder=none",
        "--name",
        "log",
        *store,
    ]
    assert main(["score", f"groups:{table}", str(log), *words]) == 0
    assert main(["compare", "log", "run", *store]) == 0


def test_right_answers_in_another_case_are_equal(tmp_path: Path, capsys: Capture) -> None:
    for name, target in (("one", "Yes"), ("two", "yes")):
        file = tmp_path / f"{name}.jsonl"
        file.write_text(json.dumps(logged(0, target)))
        score(tmp_path, "groups", file, name)
    assert not differing(why(tmp_path, capsys, "one", "two")[0])


def test_the_same_letter_for_other_options_is_another_answer_because_of_the_prompt(
    tmp_path: Path, capsys: Capture
) -> None:
    swapped = {"options": ["right", "left"], "references": ["B"], "prompt": ""}
    for name, changes in (("one", {}), ("two", swapped)):
        file = tmp_path / f"{name}.jsonl"
        file.write_text(json.dumps(line(1, **changes)))
        score(tmp_path, "groups", file, name)
    counts, examples, _ = why(tmp_path, capsys, "one", "two")
    assert differing(counts) == {"prompts": 1}
    assert counts["prompts"]["changed"] == 1
    assert (examples[0]["first"], examples[0]["second"]) == ("left | right", "right | left")


def test_two_failed_calls_are_equal_whatever_their_message(tmp_path: Path, capsys: Capture) -> None:
    for name in ("one", "two"):
        file = tmp_path / f"{name}.jsonl"
        file.write_text(
            json.dumps(line(1, response="", error=f"HTTP 500 {name}")) + "\n" + json.dumps(line(2))
        )
        score(tmp_path, "groups", file, name)
    assert not differing(why(tmp_path, capsys, "one", "two")[0])
