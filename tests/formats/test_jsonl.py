"""answers.jsonl has the contract's fields and gives its outcomes back; plain lines are read as meant."""

from __future__ import annotations

import json
from pathlib import Path, PureWindowsPath
from string import ascii_letters
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sightline.benchmarks.registry import benchmark_class
from sightline.errors import UserError
from sightline.formats.jsonl import answer_line, read_outcomes, write_answers
from sightline.formats.other_tools import read_predictions
from sightline.formats.prediction import AnswerFiles, Prediction
from sightline.types import Outcome, Usage

CONTRACT = [
    *("sample", "variant", "draw", "group", "key", "labels", "response", "status", "finish_reason", "usage"),
    *("verdict", "extracted", "references", "judge", "scores"),
]

NUMBERS = st.integers(0, 2**40)
SCORES = st.floats(allow_nan=False, allow_infinity=False)
OUTCOMES = st.builds(
    Outcome,
    labels=st.dictionaries(st.text(), st.text() | st.lists(st.text()).map(tuple)),
    draw=NUMBERS,
    usage=st.builds(Usage, *[st.none() | NUMBERS] * 3),
    references=st.lists(st.text()).map(tuple),
    options=st.lists(st.text()).map(tuple),
    scores=st.dictionaries(st.text(), SCORES),
    extracted=st.none() | st.text(),
    error=st.none() | st.text(),
    question=st.text(),
    cluster=st.text(),
    version=st.text(),
    judge=st.text(),
)


def outcome(**changes: Any) -> Outcome:
    fields: dict[str, Any] = {
        "sample": "test-1",
        "variant": "none",
        "draw": 0,
        "key": "f" * 64,
        "labels": {"domain": "Life", "rhetoric": ("Metaphor", "Contrast")},
        "response": "(C)",
        "status": "ok",
        "finish_reason": "stop",
        "usage": Usage(prompt_tokens=812, completion_tokens=3),
        "verdict": "right",
    }
    return Outcome(**{**fields, **changes})


def read_outcome(written: Outcome) -> Outcome:
    with TemporaryDirectory() as folder:
        file = Path(folder, "a.jsonl")
        write_answers([written], file)
        (found,) = read_outcomes(file)
    return found


def read(path: Path, *records: object, benchmark: str = "iibench", setting: str = "none") -> list[Prediction]:
    path.write_text("\n".join(json.dumps(record) for record in records))
    return read_predictions(path, benchmark_class(benchmark).answer_files, setting=setting)


@pytest.mark.slow
@given(st.lists(OUTCOMES, min_size=1))
def test_outcomes_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, outcomes: list[Outcome]
) -> None:
    path = tmp_path_factory.mktemp("answers") / "answers.jsonl"
    write_answers(outcomes, path)
    assert list(read_outcomes(path)) == outcomes


def test_a_line_has_the_fields_of_the_contract_in_order(tmp_path: Path) -> None:
    write_answers([outcome()], tmp_path / "a.jsonl")
    line = json.loads((tmp_path / "a.jsonl").read_text())
    assert list(line) == CONTRACT
    assert (line["extracted"], line["references"], line["scores"]) == (None, [], {})
    assert line["usage"] == {"prompt_tokens": 812, "completion_tokens": 3}


def test_the_bytes_of_a_line_are_fixed(tmp_path: Path) -> None:
    quoted = outcome(sample='a,"key":', usage=Usage())
    write_answers([quoted], tmp_path / "a.jsonl")
    assert (tmp_path / "a.jsonl").read_text() == (
        '{"sample":"a,\\"key\\":","variant":"none","draw":0,"group":"a,\\"key\\":","key":"' + "f" * 64 + '",'
        '"labels":{"domain":"Life","rhetoric":["Metaphor","Contrast"]},"response":"(C)","status":"ok",'
        '"finish_reason":"stop","usage":{},"verdict":"right","extracted":null,"references":[],"judge":"",'
        '"scores":{}}\n'
    )


def test_a_line_without_its_group_is_read(tmp_path: Path) -> None:
    line = json.loads(answer_line(outcome()))
    assert line.pop("group") == "test-1"
    (tmp_path / "a.jsonl").write_text(json.dumps(line))
    assert list(read_outcomes(tmp_path / "a.jsonl")) == [outcome()]


def test_other_fields_follow_only_if_they_are_set(
    tmp_path: Path,
) -> None:
    write_answers([outcome(options=("a", "b"), error="429", status="error")], tmp_path / "a.jsonl")
    assert list(json.loads((tmp_path / "a.jsonl").read_text())) == [*CONTRACT, "options", "error"]


def test_answers_are_predictions_too(tmp_path: Path) -> None:
    failed = outcome(sample="test-2", response="", status="error", verdict="error")
    told = outcome(sample="test-3", response="", status="error", verdict="error", error="429")
    write_answers([outcome(draw=1, options=("u", "v"), question="Why?"), failed, told], tmp_path / "a.jsonl")
    first, second, third = read_predictions(
        tmp_path / "a.jsonl", benchmark_class("iibench").answer_files, setting="none"
    )
    assert first == Prediction(
        sample="test-1",
        variant="none",
        response="(C)",
        draw=1,
        question="Why?",
        options=("u", "v"),
        labels={"domain": "Life", "rhetoric": ("Metaphor", "Contrast")},
        key="f" * 64,
        finish_reason="stop",
        usage=Usage(812, 3),
    )
    assert (second.error, third.error) == ("the file records a failed call", "429")


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../x.png", "images/../../x.png", "C:\\x.png", "..\\x.png", "https://h/x.png", "data:,x"],
)
def test_images_outside_the_data_folder_are_not_read(tmp_path: Path, path: str) -> None:
    file = tmp_path / "a.jsonl"
    write_answers([outcome(images=("images/1.png", path)), outcome(draw=1, images=("images/..1.png",))], file)
    predictions = read_predictions(file, benchmark_class("iibench").answer_files, setting="none")
    for found in (read_outcomes(file), predictions):
        assert [one.images for one in found] == [(), ("images/..1.png",)]


@given(st.text(st.sampled_from("aC./\\:"), max_size=8) | st.text())
def test_a_path_is_outside_the_data_folder_as_pathlib_divides_it(path: str) -> None:
    divided = PureWindowsPath(path)
    outside = (
        path.startswith(("/", "\\", "data:"))
        or "://" in path
        or (divided.drive != "" and path[0] in ascii_letters)
        or ".." in divided.parts
    )
    assert read_outcome(outcome(images=(path,))).images == (() if outside else (path,))


def test_several_versions_of_one_answer_are_models(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    one, two = outcome(sample="a", version="0613"), outcome(sample="b", version="1106")
    write_answers([one, two], path)
    assert [
        found.model
        for found in read_predictions(path, benchmark_class("iibench").answer_files, setting="none")
    ] == ["", ""]
    write_answers([one, replace(one, version="1106"), two], path)
    several = read_predictions(path, benchmark_class("iibench").answer_files, setting="none")
    assert [found.model for found in several] == ["0613", "1106", "1106"]
    write_answers([one, two, two], path)
    with pytest.raises(UserError, match="answered twice"):
        read_predictions(path, benchmark_class("iibench").answer_files, setting="none")


def test_all_of_ii_bench_is_read_back(tmp_path: Path) -> None:
    options = tuple(f"The comic implies that {word} is what people fear most. " * 4 for word in "uvwxyz")
    outcomes = [outcome(sample=f"test-{n}", options=options, question="Why?") for n in range(1399)]
    write_answers(outcomes, tmp_path / "a.jsonl")
    assert list(read_outcomes(tmp_path / "a.jsonl")) == outcomes


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"sample": 7}', "line 2, field sample: Expected `str`, got `int`"),
        ('{"sample": "test-2"}', "line 2: Object missing required field `variant`"),
        ('{"sample": "test-2', "line 2: is not valid JSON"),
    ],
)
def test_a_broken_answer_is_named_by_line_and_field(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "a.jsonl"
    write_answers([outcome()], path)
    path.write_text(path.read_text() + line)
    with pytest.raises(UserError) as caught:
        list(read_outcomes(path))
    assert f"{path}, record {said}" in str(caught.value)


@pytest.mark.parametrize("named", ["response", "output", "prediction", "text"])
@pytest.mark.parametrize("identified", ["sample", "id"])
def test_the_fields_of_plain_lines_have_several_names(tmp_path: Path, identified: str, named: str) -> None:
    [prediction] = read(tmp_path / "f.jsonl", {identified: "test-1", named: "(C)"})
    assert prediction == Prediction("test-1", "none", "(C)")


def test_a_plain_table_is_read_like_plain_lines(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text('id,draw,response\ntest-1,,"(C), I think"\ntest-1,1,(D)\n')
    predictions = read_predictions(tmp_path / "f.csv", benchmark_class("iibench").answer_files, setting="cot")
    assert predictions == [
        Prediction("test-1", "cot", "(C), I think"),
        Prediction("test-1", "cot", "(D)", draw=1),
    ]


def test_a_variant_may_be_missing_only_if_a_sample_has_one_probe(tmp_path: Path) -> None:
    line = {"id": "000", "response": "Yes."}
    assert read(tmp_path / "f.jsonl", line, benchmark="contextual", setting="0-shot")[0].variant == "0-shot"
    with pytest.raises(UserError, match=r"record 000, field variant.*context_1"):
        read(tmp_path / "f.jsonl", line, benchmark="codis")
    halves = [{**line, "variant": f"context_{half}"} for half in (1, 2)]
    assert [p.variant for p in read(tmp_path / "f.jsonl", *halves, benchmark="codis")] == [
        "context_1",
        "context_2",
    ]


@pytest.mark.parametrize(
    "failed",
    [
        {"response": {"error": "429"}},
        {"error": "429"},
        {"response": "", "error": "429"},
        {"response": "", "status": "error"},
    ],
)
def test_a_recorded_failure_is_not_an_answer(tmp_path: Path, failed: dict[str, object]) -> None:
    [prediction] = read(tmp_path / "f.jsonl", {"id": "test-1", **failed})
    assert prediction.response == ""
    assert prediction.error


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"id": "test-2", "response": [["A"]]}, "record line 2, field response: is not an answer"),
        ({"id": "test-2", "response": ["A", "B"]}, "record line 2, field response: is not an answer"),
        ({"id": "test-2"}, "record line 2, field response: has no answer"),
        ({"response": "A"}, "record line 2, field id: has no id"),
        ({"id": ["test-2"], "response": "A"}, "record line 2, field id: is not an id"),
        ({"id": "test-2", "response": "A", "draw": -1}, "record test-2, field draw"),
        ({"id": "test-2", "response": "A", "draw": True}, "record test-2, field draw"),
        ({"id": "test-2", "response": "A", "labels": {"domain": 1}}, "record test-2, field labels.domain"),
        ({"id": "test-2", "response": "A", "variant": [1]}, "record test-2, field variant"),
        ({"id": "test-1", "response": "B"}, "record test-1, field id: 1 of 1 probes are answered twice"),
    ],
)
def test_a_broken_plain_line_is_named(tmp_path: Path, broken: dict[str, object], said: str) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path / "f.jsonl", {"id": "test-1", "response": "A"}, broken)
    assert f"{tmp_path / 'f.jsonl'}, {said}" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (
            '{"id": "1", "response": "A"}\n{"id": "2", "response": "A", "response": "B"}',
            "line 2, field response",
        ),
        ('{"id": "1", "response": "A"}\n{"id": "2", "response": "A", "\\u0069d": "3"}', "line 2, field id"),
        ('{"id": "1", "response": {"text": "A", "text": "B"}}', "line 1, field text"),
        ('{"id": "1", "response": "A",\n"response": "B"}', "entry 1, field response"),
        (
            '[{"id": "1", "response": "A"},\n{"id": "2", "response": "A", "response": "B"}]',
            "entry 2, field response",
        ),
        ('{"id": "1", "response": "A", "response": "B", "loss": NaN}', "line 1, field response"),
        ('[{"id": "1", "response": "A", "response": "B", "loss": NaN}]', "field response"),
    ],
)
def test_an_answer_with_one_key_twice_is_refused_as_in_a_groups_file(
    tmp_path: Path, content: str, where: str
) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text(content)
    with pytest.raises(UserError, match=f"{where}: occurs twice; .*each key once"):
        read_predictions(file, AnswerFiles(), setting="v")


@pytest.mark.parametrize("form", ["{0}\n{1}", "[{0}, {1}]"])
def test_one_key_in_several_objects_or_in_a_text_is_no_doubled_key(tmp_path: Path, form: str) -> None:
    digits = "9" * 5000
    first = json.dumps(
        {"id": "1", "response": '{"a": 1, "a": 2}', "x": {"id": 3}, "y": [{"id": 4}, {"id": 5}]}
    )
    second = f'{{"id": "2", "response": "A", "x": {{"id": {digits}}}, "loss": NaN}}'
    file = tmp_path / "answers.jsonl"
    file.write_text(form.format(first, second))
    found = read_predictions(file, AnswerFiles(), setting="v")
    assert [one.response for one in found] == ['{"a": 1, "a": 2}', "A"]
