"""`sightline show` prints the groups of the index, and says where their images are."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sightline.cli.main import main
from sightline.cli.shown_groups import ShownGroups, print_groups
from sightline.types import Outcome, Usage
from sightline.viewer.index_types import GroupDetail, GroupRow, SimilarityMatrix
from training.scenes.build import generate_codis

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two runs: baseline/chance, and one whose every answer is right."""
    folder = tmp_path_factory.mktemp("show")
    data = generate_codis(folder / "codis", pairs=6)
    records = json.loads((data / "data.json").read_text())
    lines = [
        {"sample": sample, "variant": f"context_{number}", "response": record["answer"][f"answer_{number}"]}
        for sample, record in _by_id(records)
        for number in (1, 2)
    ]
    (folder / "right.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ["run", "codis", "--data", str(data), "--quiet", "--store", str(folder / "sightline.db")]
    assert main([*words, "--model", "baseline/chance", "--name", "chance"]) == 0
    assert main([*words, "--model", f"replay/{folder / 'right.jsonl'}", "--name", "right"]) == 0
    return folder


def _by_id(records: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    return [(f"{number:03}", record) for number, record in enumerate(records)]


@pytest.fixture(autouse=True)
def working_directory(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "100")
    capsys.readouterr()


def shown(capsys: Capture, *words: str) -> dict[str, Any]:
    assert main(["show", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_it_prints_questions_images_answers_references_and_contexts(capsys: Capture, folder: Path) -> None:
    assert main(["show", "chance", "-n", "2"]) == 0
    text = capsys.readouterr().out
    first = shown(capsys, "chance", "-n", "1")["groups"][0]
    assert first["outcomes"][0]["question"] in text
    assert str(folder / "codis" / first["row"]["image"]["path"]) in text
    assert first["outcomes"][0]["context"].split()[0] in text
    assert "2 of 6 groups" in text


def test_the_option_that_was_read_from_a_response_stands_below_it(capsys: Capture, tmp_path: Path) -> None:
    line = {
        "group": "1",
        "variant": "v",
        "prompt": "Which?",
        "options": ["a cat", "a dog"],
        "references": ["B"],
    }
    (tmp_path / "groups.jsonl").write_text(json.dumps(line))
    (tmp_path / "answers.jsonl").write_text(
        json.dumps({"group": "1", "variant": "v", "response": "It barks, so the answer is B."})
    )
    out = str(tmp_path / "out")
    assert (
        main(
            [
                "score",
                f"groups:{tmp_path}/groups.jsonl",
                f"{tmp_path}/answers.jsonl",
                "--out",
                out,
                "--all",
                "--store",
                f"{tmp_path}/other.db",
            ]
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert "acc: answers that are right" in printed
    assert "same_meaning: decided pairs" not in printed, "a metric without a value has its reason only"
    assert "same_meaning: no value" in printed
    assert main(["show", out]) == 0
    lines = [one.strip() for one in capsys.readouterr().out.splitlines()]
    at = next(nth for nth, one in enumerate(lines) if "the answer is B." in one)
    assert lines[at + 1].startswith("extracted: B")


def test_inconsistent_groups_are_those_with_this_flag(capsys: Capture) -> None:
    everything = shown(capsys, "chance")["groups"]
    chosen = shown(capsys, "chance", "--inconsistent")
    flagged = [one for one in everything if one["row"]["consistency"] == "inconsistent"]
    assert chosen["groups"] == flagged
    assert chosen["total"] == len(flagged) > 0


def test_wrong_groups_have_a_wrong_answer(capsys: Capture) -> None:
    assert shown(capsys, "right", "--wrong")["total"] == 0
    for one in shown(capsys, "chance", "--wrong")["groups"]:
        assert "wrong" in [mark["verdict"] for mark in one["row"]["marks"]]


def test_flips_show_both_responses(capsys: Capture) -> None:
    found = shown(capsys, "chance", "--flips", "right")
    assert found["total"] > 0
    for one in found["groups"]:
        assert {mark["verdict"] for mark in one["other"]["row"]["marks"]} == {"right"}
        assert one["base"]["row"]["sample"] == one["other"]["row"]["sample"]
    assert main(["show", "chance", "--flips", "right", "-n", "1"]) == 0
    text = capsys.readouterr().out
    assert "response, chance" in text
    assert "response, right" in text
    assert "gained" in text


def test_without_a_run_the_latest_finished_one_is_shown(capsys: Capture) -> None:
    assert shown(capsys) == shown(capsys, "right")


@pytest.mark.parametrize("width", [60, 120])
def test_no_line_ends_in_spaces(width: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["show", "chance"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line != line.rstrip()] == []


def detail(values: tuple[tuple[float | None, ...], ...], questions: tuple[str, ...]) -> GroupDetail:
    """A group with a probe for each question, and these similarities of their responses."""
    variants = tuple(f"r{nth}" for nth in range(1, len(questions) + 1))
    least = min(value for row in values for value in row if value is not None)
    row = GroupRow(
        sample="place-022",
        draw=0,
        pooled="",
        question=questions[0],
        marks=(),
        right="some",
        consistency="inconsistent",
        flags=("inconsistent",),
        similarity=least,
        labels=(("wording", "rare"), ("wording", "common"), ("kind", "place")),
        number=1,
    )
    outcomes = tuple(
        Outcome(
            sample="place-022",
            variant=variant,
            draw=0,
            key=variant,
            labels={},
            response=variant,
            status="ok",
            finish_reason="stop",
            usage=Usage(),
            verdict="wrong",
            question=question,
        )
        for variant, question in zip(variants, questions, strict=True)
    )
    return GroupDetail(row, outcomes, (), ((),) * len(variants), SimilarityMatrix(variants, values, 0.7))


def test_a_group_names_its_least_similar_pair_and_its_wordings(capsys: Capture) -> None:
    values = ((None, 0.9, 0.59), (0.9, None, 0.8), (0.59, 0.8, None))
    one = detail(values, ("Which room?", "What room is it?", "Name the room."))
    index: Any = SimpleNamespace(images=lambda run: None)
    print_groups(ShownGroups(run=1, total=1, groups=[one]), index, ["alpha"])
    lines = capsys.readouterr().out.splitlines()
    head = " ".join(line.strip() for line in lines[:2])
    assert "least similarity 0.59 of r1 and r3 (consistent above 0.7)" in head
    assert "wording: rare, common; kind: place" in head
    assert [line.strip() for line in lines if "room" in line] == [
        "r1  Which room?",
        "r2  What room is it?",
        "r3  Name the room.",
    ]
    assert lines[-1] == "1 of 1 group"


def test_a_missing_image_is_one_note_and_not_an_error(capsys: Capture, folder: Path, tmp_path: Path) -> None:
    moved = (folder / "codis").rename(tmp_path / "moved")
    try:
        assert main(["show", "chance", "-n", "2"]) == 0
        assert "images are not found; the first one:" in capsys.readouterr().err
        assert main(["show", "chance", "-n", "2", "--data", str(moved)]) == 0
        assert capsys.readouterr().err == ""
    finally:
        moved.rename(folder / "codis")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["9"], "run 9"),
        (["nobody"], "no run is called 'nobody'"),
        (["--flips", "right"], "--flips needs two runs"),
        (["chance", "right"], "unrecognized arguments: right"),
        (["chance", "-n", "0"], "'0' is not a number from 1 to 1000"),
        (["chance", "--flips", "nobody"], "no run is called 'nobody'"),
        (["chance", "--wrong", "--inconsistent"], "not allowed with"),
    ],
)
def test_a_wrong_call_is_refused(words: list[str], message: str, capsys: Capture) -> None:
    assert main(["show", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("width", [60, 200])
def test_lines_fit_the_terminal(width: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["show", "chance"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if ".png" not in line]
    assert max(map(len, lines)) <= width
