"""Logs of inspect_ai 0.3.285, lm-eval 0.4.9.1, lmms-eval 0.7.3 and evalscope 1.14.1, with their scores.

They are in `written_by_tools`, with mock models. The question is "Question N: which one?" with the options
bus N, car N, train N (and ship N). The first option is right in inspect's logs, `answer` in lm-eval's.
evalscope ran its General-VMCQ, twice for the reviews; every two questions show one image.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest

import sightline
from sightline.errors import UserError
from sightline.formats.jsonl import as_asked, read_outcomes
from sightline.formats.other_tools import read_predictions
from sightline.formats.prediction import AnswerFiles, Prediction
from sightline.types import Outcome, Probe

WRITTEN = Path(__file__).with_name("written_by_tools")
LM_EVAL = WRITTEN / "lm-eval-0.4.9.1.jsonl"
REVIEWS = WRITTEN / "evalscope-1.14.1-reviews.jsonl"
PREDICTIONS = WRITTEN / "evalscope-1.14.1-predictions.jsonl"


def inspect_log(name: str) -> Path:
    pytest.importorskip("inspect_ai")
    return WRITTEN / f"inspect-0.3.285-{name}"


def groups(folder: Path, right: list[str], options: int) -> Path:
    """The questions as a groups file, in the order in which they were before anything shuffled them."""
    file = folder / "groups.jsonl"
    lines = [
        {
            "group": f"q{number}",
            "variant": "v",
            "images": [],
            "prompt": f"Question {number}: which one?",
            "references": [letter],
            "options": [f"{name} {number}" for name in ("bus", "car", "train", "ship")[:options]],
        }
        for number, letter in enumerate(right)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def scored(file: Path, groups_file: Path, folder: Path) -> list[Outcome]:
    sightline.score(
        f"groups:{groups_file}",
        file,
        set={"embedder": "none"},
        out=folder / "out",
        store=folder / "s.db",
    )
    return list(read_outcomes(folder / "out/answers.jsonl"))


@pytest.mark.parametrize("name", ["shuffled.eval", "shuffled-by-solver.eval"])
def test_shuffled_choices_have_the_scores_of_inspect(tmp_path: Path, name: str) -> None:
    from inspect_ai.log import read_eval_log

    file = inspect_log(name)
    own = {str(one.id): (one.scores or {})["choice"].value for one in read_eval_log(str(file)).samples or ()}
    ours = scored(file, groups(tmp_path, ["A"] * 8, 4), tmp_path)
    assert {one.sample: "C" if one.verdict == "right" else "I" for one in ours} == own
    assert len(set(own.values())) == 2


def test_a_target_counts_where_the_data_hold_no_reference_and_a_different_one_is_said(tmp_path: Path) -> None:
    file = inspect_log("shuffled.eval")
    [first, *_] = read_predictions(file, AnswerFiles(), setting="v")
    right = first.options["ABCD".index(first.references[0])]
    assert right == "bus 0"
    probe = Probe("q0", "v", (), "which?", options=("bus 0", "car 0", "train 0", "ship 0"))
    assert as_asked(probe, first).references == first.references
    task = f"groups:{groups(tmp_path, ['B'] + ['A'] * 7, 4)}"
    notes = sightline.score(task, file, set={"embedder": "none"}, store=tmp_path / "s.db").result.notes
    assert any("1 of 8 answers have a right option in the file that is not" in note for note in notes)


def test_a_filtered_answer_and_one_without_context_left_are_failures_as_in_a_run() -> None:
    found = read_predictions(inspect_log("failures.json"), AnswerFiles(), setting="v")
    assert [(one.sample, bool(one.error), one.finish_reason) for one in found] == [
        ("q0", False, "stop"),
        ("q1", True, "content_filter"),
        ("q2", True, "model_length"),
        ("q3", False, "length"),
    ]
    assert not any(one.response for one in found if one.error)


def test_a_sample_or_an_output_with_an_error_beside_its_text_is_a_failure(tmp_path: Path) -> None:
    log = json.loads(inspect_log("failures.json").read_text())
    one = log["samples"][0]
    failed = {"message": "boom", "traceback": "", "traceback_ansi": ""}
    log["samples"] = [
        one,
        {**one, "id": "s", "error": failed},
        {**one, "id": "e", "error": {**failed, "message": ""}},
        {**one, "id": "o", "output": {**one["output"], "error": "upstream died"}},
    ]
    file = tmp_path / "log.json"
    file.write_text(json.dumps(log))
    found = read_predictions(file, AnswerFiles(), setting="v")
    assert [one.error for one in found] == [None, "boom", "the sample failed", "upstream died"]
    assert [bool(one.response) for one in found] == [True, False, False, False]


def test_a_log_without_samples_is_named() -> None:
    with pytest.raises(UserError, match="is a log without samples"):
        read_predictions(inspect_log("no-samples.json"), AnswerFiles(), setting="v")


def test_lm_eval_answers_are_what_the_model_said_once_for_all_filters() -> None:
    lines = [json.loads(line) for line in LM_EVAL.open()]
    assert {line["filter"] for line in lines} == {"strict-match", "flexible-extract"}
    found = read_predictions(LM_EVAL, AnswerFiles(), setting="v")
    assert [(one.sample, one.draw, one.response) for one in found] == [
        (line["doc"]["id"], draw, text)
        for line in lines
        if line["filter"] == "strict-match"
        for draw, text in enumerate(line["resps"][0])
    ]


def test_lm_eval_answers_have_the_scores_of_lm_eval(tmp_path: Path) -> None:
    """Its filter `flexible-extract` takes the last letter in parentheses of the first repeat."""
    own = {
        line["doc"]["id"]: line["exact_match"]
        for line in map(json.loads, LM_EVAL.open())
        if line["filter"] == "flexible-extract"
    }
    ours = scored(LM_EVAL, groups(tmp_path, list("ABCABC"), 3), tmp_path)
    assert len(ours) == 18
    assert {one.sample: float(one.verdict == "right") for one in ours if one.draw == 0} == own


def test_log_likelihoods_of_lm_eval_are_no_answers(tmp_path: Path) -> None:
    line = json.loads(LM_EVAL.read_text().splitlines()[0])
    file = tmp_path / "samples.jsonl"
    for resps in ([[["-1.5", "False"]], [["-0.2", "True"]]], [[["-1.5", "False"]]]):
        file.write_text(json.dumps({**line, "resps": resps}))
        with pytest.raises(UserError, match="log-likelihoods of options are no responses"):
            read_predictions(file, AnswerFiles(), setting="v")


def test_failed_calls_of_lmms_eval_are_failures() -> None:
    """It wrote: an answer; two calls it did not make; a failed call; a cached answer; an empty answer."""
    found = read_predictions(WRITTEN / "lmms-eval-0.7.3.jsonl", AnswerFiles(), setting="v")
    assert [bool(one.error) for one in found] == [False, True, True, True, False, False]
    assert [one.response for one in found] == ["(A)", "", "", "", "(A)", ""]


def test_an_empty_response_is_an_answer_where_the_file_counts_no_tokens(tmp_path: Path) -> None:
    line = {"doc_id": 0, "submission": {"id": "q0"}, "filtered_resps": "", "token_counts": [None]}
    file = tmp_path / "samples.jsonl"
    file.write_text(json.dumps(line))
    assert read_predictions(file, AnswerFiles(), setting="v") == [Prediction("q0", "v", "")]


def renamed(folder: Path, field: str) -> Path:
    """The log of lm-eval where the documents of a task have their ids in another field; '' for none."""
    file = folder / "log.jsonl"
    lines = [json.loads(line) for line in LM_EVAL.open()]
    for line in lines:
        found = line["doc"].pop("id")
        line["doc"] |= {field: found} if field else {}
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


@pytest.mark.parametrize("field", ["question_id", "ind", "sample", ""])
def test_documents_of_lm_eval_without_an_id_are_refused_with_the_remedy(tmp_path: Path, field: str) -> None:
    with pytest.raises(UserError, match=r"which sample it answers; .*--columns id=doc\.FIELD"):
        read_predictions(renamed(tmp_path, field), AnswerFiles(), setting="v")


@pytest.mark.parametrize("field", ["question_id", "ind", "sample"])
def test_columns_name_a_field_of_the_documents_of_lm_eval(tmp_path: Path, field: str) -> None:
    columns = {"id": f"doc.{field}"}
    found = read_predictions(renamed(tmp_path, field), AnswerFiles(), setting="v", columns=columns)
    assert found == read_predictions(LM_EVAL, AnswerFiles(), setting="v")


def test_columns_can_name_the_row_of_lm_eval(tmp_path: Path) -> None:
    rows = {str(json.loads(line)["doc_id"]) for line in LM_EVAL.open()}
    found = read_predictions(renamed(tmp_path, ""), AnswerFiles(), setting="v", columns={"id": "doc_id"})
    assert {one.sample for one in found} == rows


def test_columns_that_a_document_does_not_have_are_named_with_those_that_it_has(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"no column or field 'doc\.qid', did you mean 'doc\.id'.*doc\.answer"
    ):
        read_predictions(LM_EVAL, AnswerFiles(), setting="v", columns={"id": "doc.qid"})


def test_columns_can_name_what_a_filter_extracted(tmp_path: Path) -> None:
    columns = {"response": "filtered_resps"}
    first = json.loads(LM_EVAL.read_text().splitlines()[0])
    found = read_predictions(LM_EVAL, AnswerFiles(), setting="v", columns=columns)
    assert found[0].response == first["filtered_resps"][0] != first["resps"][0][0]


# -- The options of a document of lm-eval are those that the model saw

SHUFFLED = ["train", "car", "bus"]


def documents(folder: Path, form: str, target: object, response: object = "Answer: (C)") -> Path:
    """A log of lm-eval with documents whose options a task has shuffled: 'bus N' is the third one."""
    first = json.loads(LM_EVAL.read_text().splitlines()[0])
    lines = []
    for number in range(6):
        names = [f"{name} {number}" for name in SHUFFLED]
        forms: dict[str, dict[str, object]] = {
            "options": {"options": names},
            "choices": {"choices": names},
            "arc": {"choices": {"text": names, "label": ["A", "B", "C"]}},
            "arc, unordered": {"choices": {"text": names[::-1], "label": ["C", "B", "A"]}},
            "arc, numbers": {"choices": {"text": names, "label": ["1", "2", "3"]}},
            "other": {"listed": names},
        }
        doc = {"id": f"q{number}", "variant": "v", **forms[form]}
        lines.append({**first, "doc_id": number, "doc": doc, "target": target, "resps": [[response]]})
    file = folder / "samples_task.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


FORMS = [
    ("options", "C"),
    ("options", " (C)"),
    ("options", 2),
    ("choices", "2"),
    ("arc", "C"),
    ("arc, unordered", "C"),
    ("arc, numbers", "3"),
]


@pytest.mark.parametrize(("form", "target"), FORMS)
def test_shuffled_options_of_lm_eval_are_those_that_the_model_saw(
    tmp_path: Path, form: str, target: object
) -> None:
    file = documents(tmp_path, form, target)
    found = read_predictions(file, AnswerFiles(), setting="v")
    assert {one.references for one in found} == {("C",)}
    assert found[1].options == ("train 1", "car 1", "bus 1")
    assert [one.verdict for one in scored(file, groups(tmp_path, ["A"] * 6, 3), tmp_path)] == ["right"] * 6


def test_columns_name_the_options_of_a_document(tmp_path: Path) -> None:
    file = documents(tmp_path, "other", "C")
    assert not read_predictions(file, AnswerFiles(), setting="v")[0].options
    columns = {"options": "doc.listed"}
    found = read_predictions(file, AnswerFiles(), setting="v", columns=columns)
    assert found[0].options == ("train 0", "car 0", "bus 0")
    with pytest.raises(UserError, match="field options: is not a list of texts"):
        read_predictions(file, AnswerFiles(), setting="v", columns={"options": "doc.id"})


@pytest.mark.parametrize(("target", "is_said"), [("A", True), (0, True), ("C", False), ("bus", False)])
def test_targets_of_lm_eval_that_contradict_the_data_are_counted(
    tmp_path: Path, target: object, is_said: bool
) -> None:
    task = f"groups:{groups(tmp_path, ['A'] * 6, 3)}"
    file = documents(tmp_path, "options", target)
    notes = sightline.score(task, file, set={"embedder": "none"}, store=tmp_path / "s.db").result.notes
    said = "6 of 6 answers have a right option in the file that is not the one of the data"
    assert any(said in note for note in notes) == is_said


@pytest.mark.parametrize(
    ("options", "target", "letters"),
    [
        (["3", "4", "0"], "4", ("B",)),
        (["2", "1", "0"], "1", ("B",)),
        (["1", "2", "3"], "1", ()),
        (["x", "y"], "C", ()),
        (["x", "y"], 7, ()),
        (["x", "y"], "AB", ()),
        (["x", "y"], None, ()),
    ],
)
def test_a_target_of_lm_eval_that_may_be_two_options_or_none_is_not_read(
    tmp_path: Path, options: list[str], target: object, letters: tuple[str, ...]
) -> None:
    first = json.loads(LM_EVAL.read_text().splitlines()[0])
    file = tmp_path / "samples.jsonl"
    file.write_text(json.dumps({**first, "doc": {"id": "q0", "options": options}, "target": target}))
    assert read_predictions(file, AnswerFiles(), setting="v")[0].references == letters


def test_a_response_that_lm_eval_lacks_is_a_failure_and_an_empty_one_is_an_answer(tmp_path: Path) -> None:
    found = read_predictions(documents(tmp_path, "options", "C", None), AnswerFiles(), setting="v")
    assert {(one.response, one.error) for one in found} == {("", "no answer was recorded")}
    found = read_predictions(documents(tmp_path, "options", "C", ""), AnswerFiles(), setting="v")
    assert {(one.response, one.error) for one in found} == {("", None)}


# -- evalscope


def test_reviews_of_evalscope_have_its_scores(tmp_path: Path) -> None:
    own = {
        (str(review["group_id"]), review["generation_index"]): review["score"]["value"]["accuracy"]
        for review in (json.loads(line)["sample_score"] for line in REVIEWS.open())
    }
    file = groups(tmp_path, list("ABCA"), 3)
    file.write_text(file.read_text().replace('"group": "q', '"group": "'))
    ours = scored(REVIEWS, file, tmp_path)
    assert {(one.sample, one.draw): float(one.verdict == "right") for one in ours} == own
    assert set(own.values()) == {0.0, 1.0}


def test_an_answer_without_a_variant_is_that_of_the_only_one(tmp_path: Path) -> None:
    file = groups(tmp_path, list("ABCA"), 3)
    line = json.loads(file.read_text().splitlines()[0])
    more = {**line, "variant": "w"}
    file.write_text(
        file.read_text().replace('"group": "q', '"group": "') + json.dumps({**more, "group": "0"})
    )
    with pytest.raises(UserError, match=r"record 0, field variant: does not say which .*'v' or 'w'"):
        scored(REVIEWS, file, tmp_path)


def test_what_evalscope_sent_is_read_from_reviews_and_predictions_alike() -> None:
    reviews, predictions = (
        read_predictions(file, AnswerFiles(), setting="v") for file in (REVIEWS, PREDICTIONS)
    )
    assert len(reviews) == 2 * len(predictions)
    for one, other in zip([one for one in reviews if one.draw == 0], predictions, strict=True):
        assert (one.sample, one.response, one.prompt) == (other.sample, other.response, other.prompt)
        assert (
            one.options == other.options == tuple(f"{name} {one.sample}" for name in ("bus", "car", "train"))
        )
        assert one.image == other.image == f"data/images/{int(one.sample) // 2}.png"
    assert [one.references for one in reviews[::2]] == [("A",), ("B",), ("C",), ("A",)]
    assert predictions[0].finish_reason == "stop"


def test_predictions_of_evalscope_with_repeats_are_refused(tmp_path: Path) -> None:
    """Of two repeats, index 1 is the second answer to the first question, and not the second question."""
    file = tmp_path / "task_subset.jsonl"
    lines = [json.loads(line) for line in PREDICTIONS.open() for _ in range(2)]
    file.write_text("".join(json.dumps({**line, "index": nth}) + "\n" for nth, line in enumerate(lines)))
    with pytest.raises(UserError, match=r"holds repeats of questions.*in the folder reviews"):
        read_predictions(file, AnswerFiles(), setting="v")


def test_an_image_that_evalscope_embeds_is_named_by_its_digest(tmp_path: Path) -> None:
    content = b"not decoded here"
    embedded = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    file = tmp_path / "task_subset.jsonl"
    file.write_text(REVIEWS.read_text().replace("data/images/0.png", embedded))
    first, *_, last = read_predictions(file, AnswerFiles(), setting="v")
    assert (first.image, last.image) == (hashlib.sha256(content).hexdigest(), "data/images/1.png")


def test_a_failed_call_of_evalscope_is_a_failure(tmp_path: Path) -> None:
    first, second, *_ = map(json.loads, PREDICTIONS.open())
    file = tmp_path / "task_subset.jsonl"
    failed = {**first, "model_output": {**first["model_output"], "error": "HTTP 500"}}
    unanswered = {**second, "messages": second["messages"][:1]}
    file.write_text("".join(json.dumps(one) + "\n" for one in (failed, unanswered)))
    found = read_predictions(file, AnswerFiles(), setting="v")
    assert [(one.response, one.error) for one in found] == [("", "HTTP 500"), ("", "no answer was recorded")]
