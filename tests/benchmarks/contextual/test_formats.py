"""ConTextual's released files are read whole, its leaderboards' files written."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sightline.benchmarks.contextual.formats import add_judgements, write_judgements, write_predictions
from sightline.benchmarks.registry import benchmark_class
from sightline.errors import UserError
from sightline.formats.jsonl import PARTLY, apply_partly, contradictions
from sightline.formats.other_tools import of_model, only_of_model, read_predictions
from sightline.formats.prediction import Prediction
from sightline.types import Outcome, Usage, Verdict, VerdictName

CLOCK = "https://textvision-data-quality.s3.us-west-1.amazonaws.com/time-images/thb_8411.jpg"


def outcome(sample: str, verdict: VerdictName, response: str = "It is ten.", draw: int = 0) -> Outcome:
    failed = verdict == "error"
    return Outcome(
        sample=sample,
        variant="0-shot",
        draw=draw,
        key=sample,
        labels={},
        response="" if failed else response,
        status="error" if failed else "ok",
        finish_reason="stop",
        usage=Usage(),
        verdict=verdict,
        references=() if verdict == "unscored" else ("ten",),
    )


def read(path: Path, content: object = None) -> list[Prediction]:
    if content is not None:
        path.write_text(json.dumps(content))
    return read_predictions(path, benchmark_class("contextual").answer_files, setting="0-shot")


def verdicts(predictions: list[Prediction]) -> list[Verdict]:
    return [verdict for prediction in predictions for verdict in prediction.verdicts]


def _said(one: Prediction) -> tuple[object, ...]:
    return one.model, one.sample, one.response, one.verdicts


def test_the_released_answers_and_judgements_are_read_whole(shared: Path) -> None:
    folder = shared / "data/contextual"
    predictions = add_judgements(read(folder / "master.json"), folder / "gpt4_judgments.json")
    assert Counter(one.model for one in predictions) == {"gemini-pro-vision": 42, "gpt-4-vision-preview": 6}
    assert Counter(one.verdict for one in verdicts(predictions)) == {"right": 5, "wrong": 8}
    assert {(one.judge, one.kind) for one in verdicts(predictions)} == {("gpt-4", "model")}
    assert predictions[1].response.startswith(' The clock reads: "IT IS HALF TEN')

    joined = read(folder / "repo_predictions.jsonl")
    assert [_said(one) for one in joined] == [_said(one) for one in predictions]


def test_twelve_of_the_released_answers_have_a_reference(shared: Path) -> None:
    with (shared / "data/contextual/contextual_val.csv").open(newline="") as stream:
        solved = {row["image_url"] for row in csv.DictReader(stream)}
    answers = read(shared / "data/contextual/master.json")
    assert sum(one.sample in solved for one in answers) == 12


def test_the_appendix_states_161_verdicts_of_which_its_own_marks_contradict_five(shared: Path) -> None:
    predictions = read(shared / "data/contextual/appendix_cases.jsonl")
    assert set(Counter(one.model for one in predictions).values()) == {30}
    assert len({one.model for one in predictions}) == 7
    said = verdicts(predictions)
    assert Counter(one.verdict for one in said) == {"right": 26, "wrong": 135}
    assert len(apply_partly(said, "wrong")) == 161
    assert Counter(one.verdict for one in apply_partly(said, "left-out")) == {"right": 26, "wrong": 121}
    assert contradictions(said) == [
        "Figure 42, LLaVA-Next-34B: partially correct (the mark beside it: wrong)",
        "Figure 42, GPT-4 w/ Layout-aware OCR + Caption: partially correct (the mark beside it: wrong)",
        "Figure 45, GPT-4 w/ Layout-aware OCR + Caption: wrong "
        "(the mark beside it: correct with hallucination)",
        "Figure 47, Gemini-Pro-Vision: wrong (the mark beside it: partially correct)",
        "Figure 47, ShareGPT-4V-7B: wrong (the mark beside it: correct with hallucination)",
    ]


def test_of_a_file_of_several_models_one_must_be_named(tmp_path: Path) -> None:
    file = tmp_path / "master.json"
    predictions = read(file, {"a": {CLOCK: "Ten."}, "b": {CLOCK: "Two."}})
    assert [one.response for one in of_model(predictions, "b", file)] == ["Two."]
    with pytest.raises(UserError, match="2 models; expected --model with one of a, b"):
        of_model(predictions, "", file)
    with pytest.raises(UserError, match="none of them 'A', did you mean 'a'"):
        of_model(predictions, "A", file)
    alone = read(tmp_path / "one.json", {"a": {CLOCK: "Ten."}})
    assert of_model(alone, "whatever it is called here", tmp_path / "one.json") == alone
    assert only_of_model(alone, "a", tmp_path / "one.json") == alone
    with pytest.raises(UserError, match="1 model, none of them 'gemini'; expected --model with one of a"):
        only_of_model(alone, "gemini", tmp_path / "one.json")


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ({"a": {CLOCK: [[7]]}}, f"field a.{CLOCK}"),
        ([{"image_url": CLOCK, "response": "x"}] * 2, "answered twice"),
        ([{"image_url": CLOCK, "response": "x", "judgment": 2}], "is not a judgement"),
        ([{"image_url": CLOCK}], "has no answer"),
        ([{"image_url": [], "responses": []}], "does not name one image"),
        (
            [{"image_url": [CLOCK], "responses": [{"model": "a", "response": "x", "verdict": "good"}]}],
            "is not a verdict",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_place(tmp_path: Path, content: object, where: str) -> None:
    with pytest.raises(UserError, match=where) as error:
        read(tmp_path / "f.json", content)
    assert str(tmp_path / "f.json") in str(error.value)


@pytest.mark.parametrize("content", ["[]", '{"a": {}}\n{"b": {}}', '[{"a": {}}, {"b": {}}]'])
def test_judgements_are_one_object(tmp_path: Path, content: str) -> None:
    answers = read(tmp_path / "master.json", {"a": {CLOCK: "Ten."}})
    (tmp_path / "j.json").write_text(content)
    with pytest.raises(UserError, match="is not one object"):
        add_judgements(answers, tmp_path / "j.json")


def test_a_number_beside_a_verdict_does_not_make_it_partly_right(shared: Path) -> None:
    """Of people's verdicts only those of the appendix say 'partially correct'; a 0.5 may mean anything."""
    half = Verdict(
        targets=(), question="correct", scorer="s", judge="anna", kind="human", verdict="right", value=0.5
    )
    assert apply_partly([half], "left-out") == [half]
    said = verdicts(read(shared / "data/contextual/appendix_cases.jsonl"))
    assert sum(PARTLY in one.scores for one in said) == 14


def test_a_judgement_of_an_answer_that_is_not_there_is_refused(tmp_path: Path) -> None:
    answers = read(tmp_path / "master.json", {"a": {CLOCK: "Ten."}})
    (tmp_path / "j.json").write_text(json.dumps({"b": {CLOCK: 1}}))
    with pytest.raises(UserError, match="a judgement of an answer by 'b' that is not there"):
        add_judgements(answers, tmp_path / "j.json")


def test_answers_are_written_as_the_test_leaderboard_takes_them_and_read_again(tmp_path: Path) -> None:
    given_ = [outcome("u1", "right", "Zehn Uhr, ø"), outcome("u2", "error"), outcome("u1", "wrong", draw=1)]
    write_predictions(given_, "llava", tmp_path / "p.json")
    assert json.loads((tmp_path / "p.json").read_text()) == {"llava": {"u1": "Zehn Uhr, ø", "u2": ""}}
    again = [(one.model, one.sample, one.response) for one in read(tmp_path / "p.json")]
    assert again == [("llava", "u1", "Zehn Uhr, ø"), ("llava", "u2", "")]


def test_judgements_are_written_as_the_val_leaderboard_takes_them(tmp_path: Path) -> None:
    """What is not accepted is 0, whatever the reason; what has no reference is left out."""
    names: dict[str, VerdictName] = {
        "u1": "right",
        "u2": "wrong",
        "u3": "undecided",
        "u4": "error",
        "u5": "unscored",
    }
    written = write_judgements(
        [outcome(name, verdict) for name, verdict in names.items()], "llava", tmp_path / "j.json"
    )
    held: dict[str, Any] = json.loads((tmp_path / "j.json").read_text())
    assert held == {"llava": {"u1": 1, "u2": 0, "u3": 0, "u4": 0}}
    assert written == 4
