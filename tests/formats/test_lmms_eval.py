"""lmms-eval's sample logs are read as its evaluation_tracker.py writes them, old and new."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sightline.benchmarks.registry import benchmark_class
from sightline.errors import UserError
from sightline.formats.other_tools import read_predictions
from sightline.formats.prediction import Prediction

PROMPT = (
    "Instruction: Please try to answer the single-answer multiple choice question below based on the image "
    "provided.\nQuestion: What does it mean?\nNow?\n(A) one\n(B) two\n(C) three\n(D) four (A)\n(E) five"
    "\n(F) six\nAnswer:"
)


def line(**changes: Any) -> dict[str, Any]:
    """A line of the task ii_bench as version 0.4 writes it."""
    response = changes.pop("response", "(B)")
    return {
        "doc_id": 16,
        "target": "answers",
        "filtered_resps": [response],
        "doc_hash": "e3b0",
        "prompt_hash": "98fc",
        "target_hash": "1c14",
        "submission": {"id": "test-17", "predict_answer": "B", "response": response},
        "input": PROMPT,
        **changes,
    }


def without(record: dict[str, Any], *fields: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in fields}


def read(path: Path, *lines: dict[str, Any], benchmark: str = "iibench") -> list[Prediction]:
    path.write_text("\n".join(json.dumps(entry) for entry in lines))
    return read_predictions(path, benchmark_class(benchmark).answer_files, setting="none")


def test_a_line_of_ii_bench_says_its_question_its_options_and_its_answer(tmp_path: Path) -> None:
    assert read(tmp_path / "20250101_samples_ii-bench.jsonl", line()) == [
        Prediction(
            sample="test-17",
            variant="none",
            response="(B)",
            question="What does it mean?\nNow?",
            options=("one", "two", "three", "four (A)", "five", "six"),
            prompt=PROMPT,
        )
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"filtered_resps": ["(B)"]},
        {"filtered_resps": "(B)"},
        {"filtered_resps": [["(B)"]]},
        {"filtered_resps": "(B)", "resps": ["<think>hm</think>(B)"], "token_counts": [None]},
        {"filtered_resps": ["(B)"], "resps": [["<think>hm</think>(B)"]]},
    ],
)
def test_every_versions_nesting_gives_the_text_that_was_scored(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    assert [p.response for p in read(tmp_path / "f.jsonl", line(**changes))] == ["(B)"]


@pytest.mark.parametrize("repeated", [["(B)", "(C)"], [["(B)", "(C)"]]])
def test_repeats_are_draws(tmp_path: Path, repeated: object) -> None:
    predictions = read(tmp_path / "f.jsonl", line(filtered_resps=repeated))
    assert [(p.draw, p.response) for p in predictions] == [(0, "(B)"), (1, "(C)")]


@pytest.mark.parametrize("doc", [{"id": "test-17"}, {"id": "17", "local_path": "images/test/test-17.jpg"}])
def test_a_line_that_keeps_its_doc_is_known_by_id_or_image(tmp_path: Path, doc: dict[str, str]) -> None:
    [prediction] = read(tmp_path / "f.jsonl", without(line(doc=doc), "submission"))
    assert prediction.sample == "test-17"
    assert prediction.image == doc.get("local_path", "")


def test_other_benchmarks_are_known_by_whatever_id_the_doc_carries(tmp_path: Path) -> None:
    entry = without(line(doc={"id": "007", "variant": "context_2"}), "submission")
    [prediction] = read(tmp_path / "f.jsonl", entry, benchmark="codis")
    assert (prediction.sample, prediction.variant) == ("007", "context_2")
    with pytest.raises(UserError, match=r"field doc\.id: does not say which sample"):
        read(tmp_path / "f.jsonl", without(line(), "submission"), benchmark="codis")


def test_a_row_number_alone_is_no_question(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path / "f.jsonl", line(), without(line(), "submission"))
    message = str(caught.value)
    assert "record line 2, field submission.id: does not say which question it answers" in message
    assert "doc_id 16" in message
    assert "doc.local_path" in message


@pytest.mark.parametrize("wrong", [[], {}, [[-0.3, False]], [["-1.2", "True"], ["-0.3", "False"]]])
def test_what_is_no_answer_text_is_named(tmp_path: Path, wrong: object) -> None:
    with pytest.raises(UserError, match="record test-17, field filtered_resps"):
        read(tmp_path / "f.jsonl", line(filtered_resps=wrong))


def test_its_submission_file_is_read_as_plain_records(tmp_path: Path) -> None:
    path = tmp_path / "ii_bench_test_for_submission.json"
    path.write_text(json.dumps([line()["submission"]], indent=4))
    [prediction] = read_predictions(path, benchmark_class("iibench").answer_files, setting="none")
    assert prediction == Prediction("test-17", "none", "(B)")
