"""CODIS' released output list comes in and goes out unchanged, and its faults are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.benchmarks.codis.data import write_codis
from sightline.benchmarks.registry import benchmark_class
from sightline.errors import UserError
from sightline.formats.other_tools import read_predictions
from sightline.formats.prediction import Prediction
from sightline.types import Outcome, Usage


def outcome(prediction: Prediction) -> Outcome:
    return Outcome(
        sample=prediction.sample,
        variant=prediction.variant,
        draw=prediction.draw,
        key="k",
        labels={},
        response=prediction.response,
        status="error" if prediction.error else "ok",
        finish_reason="stop",
        usage=Usage(),
        verdict="unscored",
        error=prediction.error,
    )


def read(path: Path, entries: object, *, allow_missing: bool = False) -> list[Prediction]:
    path.write_text(json.dumps(entries))
    return read_predictions(
        path, benchmark_class("codis").answer_files, setting="default", allow_missing=allow_missing
    )


def entry(sample: object = "000", **output: object) -> dict[str, Any]:
    return {"id": sample, "output": output or {"output_1": "Yes.", "output_2": "No."}}


def test_the_released_file_gives_both_halves_of_every_pair(shared: Path) -> None:
    file = shared / "data/codis/output_example.json"
    predictions = read_predictions(file, benchmark_class("codis").answer_files, setting="default")
    assert len(predictions) == 706
    assert [(p.sample, p.variant) for p in predictions[:3]] == [
        ("000", "context_1"),
        ("000", "context_2"),
        ("001", "context_1"),
    ]
    # The released example holds the ground truths themselves.
    truths = {
        (record["id"], f"context_{half}"): record["answer"][f"answer_{half}"]
        for record in json.loads((shared / "data/codis/data.json").read_text())
        for half in (1, 2)
    }
    assert {(p.sample, p.variant): p.response for p in predictions} == truths


def test_the_released_file_is_written_back_byte_for_byte(shared: Path, tmp_path: Path) -> None:
    file = shared / "data/codis/output_example.json"
    predictions = read_predictions(file, benchmark_class("codis").answer_files, setting="default")
    write_codis(map(outcome, predictions), tmp_path / "out.json")
    assert (tmp_path / "out.json").read_bytes() == file.read_bytes()


@pytest.mark.slow
@given(st.dictionaries(st.text(min_size=1), st.tuples(st.text(), st.text()), min_size=1))
def test_what_is_written_is_read_the_same(
    tmp_path_factory: pytest.TempPathFactory, answers: dict[str, tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("codis") / "out.json"
    predictions = [
        Prediction(sample, f"context_{half}", response)
        for sample, responses in answers.items()
        for half, response in enumerate(responses, 1)
    ]
    write_codis(map(outcome, predictions), path)
    assert read_predictions(path, benchmark_class("codis").answer_files, setting="default") == predictions


def test_a_failed_call_is_written_as_an_empty_answer(tmp_path: Path) -> None:
    failed = Prediction("000", "context_1", "half a reply", error="timed out")
    write_codis([outcome(failed), outcome(Prediction("000", "context_2", "No."))], tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == [entry("000", output_1="", output_2="No.")]


def test_repeats_do_not_overwrite_the_first_draw(tmp_path: Path) -> None:
    draws = [Prediction("000", "context_1", "first"), Prediction("000", "context_1", "second", draw=1)]
    write_codis(map(outcome, draws), tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text())[0]["output"]["output_1"] == "first"


def test_a_null_half_is_a_recorded_failed_call(tmp_path: Path) -> None:
    first, second = read(tmp_path / "f.json", [entry(output_1=None, output_2="No.")])
    assert (first.error, first.response) == ("no answer was recorded", "")
    assert second.error is None


def test_a_missing_half_names_the_pair_and_the_half(tmp_path: Path) -> None:
    entries = [entry("000"), entry("001", output_1="Yes.")]
    with pytest.raises(UserError, match=r"record 001, field output\.output_2.*context_2") as caught:
        read(tmp_path / "f.json", entries)
    assert caught.value.file == tmp_path / "f.json"
    allowed = read(tmp_path / "f.json", entries, allow_missing=True)
    assert [(p.sample, p.variant) for p in allowed[2:]] == [("001", "context_1")]


@pytest.mark.parametrize(
    ("broken", "where", "said"),
    [
        ({"id": "001", "output": "Yes."}, "record 001, field output", "object with output_1"),
        ({"id": "001", "output": ["Yes.", "No."]}, "record 001, field output", "object with output_1"),
        (entry("001", output_1=[["a"]], output_2="No."), "field output.output_1", "is not an answer"),
        (entry("001", output_1="a", output_2="b", output_3="c"), "output.output_3", "not a half"),
        ({"output": {"output_1": "a", "output_2": "b"}}, "record entry 2, field id", "has no id"),
        (entry(True), "record entry 2, field id", "found True"),
        (entry("000"), "record 000, field id", "answered twice"),
    ],
)
def test_a_broken_entry_is_named(tmp_path: Path, broken: dict[str, Any], where: str, said: str) -> None:
    for entries in ([entry("000"), broken],):
        with pytest.raises(UserError) as caught:
            read(tmp_path / "f.json", entries)
        assert where in str(caught.value)
        assert said in str(caught.value)
        assert str(tmp_path / "f.json") in str(caught.value)


def test_a_file_cut_off_in_the_middle_names_the_line(shared: Path, tmp_path: Path) -> None:
    lines = (shared / "data/codis/output_example.json").read_text().splitlines()
    (tmp_path / "f.json").write_text("\n".join(lines[:100]))
    with pytest.raises(UserError, match="record line 100"):
        read_predictions(tmp_path / "f.json", benchmark_class("codis").answer_files, setting="default")


@given(
    st.permutations(
        [(sample, half, draw) for sample in "ab\n" for half in ("context_1", "context_2") for draw in (0, 1)]
    ),
    st.integers(0, 12),
)
def test_pairs_are_written_in_the_order_of_their_first_answer_whatever_the_order_of_lines(
    tmp_path_factory: pytest.TempPathFactory, probes: list[tuple[str, str, int]], number: int
) -> None:
    answered = [Prediction(sample, half, f"{sample} {half}", draw) for sample, half, draw in probes[:number]]
    expected: dict[str, dict[str, str]] = {}
    for one in answered:
        if one.draw == 0:
            pair = expected.setdefault(one.sample, {"output_1": "", "output_2": ""})
            pair[one.variant.replace("context", "output")] = one.response
    entries = [{"id": sample, "output": output} for sample, output in expected.items()]
    file = tmp_path_factory.mktemp("codis") / "out.json"
    write_codis(map(outcome, answered), file)
    assert file.read_bytes() == json.dumps(entries, indent=4).encode()
