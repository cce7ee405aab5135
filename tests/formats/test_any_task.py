"""Runs of tasks that are no benchmark here, against the aggregates that their tools printed.

The files are in `written_by_tools`. lmms-eval 0.7.3 scored eight questions about four images, with MME's
functions (mme_perception_score 125, mme_cognition_score 125) and with scores between 0 and 1 (0.6).
VLMEvalKit (nvidia-vlmeval 26.3) evaluated a CustomMCQDataset by exact matching: Overall 0.625, category a
0.75, b 0.5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import sightline
from sightline.cli.main import main
from sightline.errors import UserError
from sightline.formats.jsonl import read_outcomes
from sightline.types import MetricValue

WRITTEN = Path(__file__).with_name("written_by_tools")
MME = WRITTEN / "lmms-eval-0.7.3-mme.jsonl"
FRACTIONS = WRITTEN / "lmms-eval-0.7.3-fractions.jsonl"
TABLE = WRITTEN / "vlmevalkit-26.3-mcq.xlsx"
REVIEWS = WRITTEN / "evalscope-1.14.1-reviews.jsonl"

Values = dict[tuple[str, str], MetricValue]


def values(folder: Path, file: Path, judge: str = "rules", **columns: str) -> Values:
    evaluation = sightline.score(
        "groups",
        file,
        judge=[judge],
        columns=columns,
        set={"embedder": "none"},
        out=folder / "out",
        store=folder / "s.db",
        force=True,
    )
    return {(one.metric, one.subset): one for one in evaluation.result.metrics}


def test_scores_of_lmms_eval_make_its_aggregate_with_images_as_clusters(tmp_path: Path) -> None:
    found = values(tmp_path, FRACTIONS, "lmms-eval")
    assert found["score", "all"].value == pytest.approx(60)
    assert (found["score", "all"].n, found["score", "all"].clusters) == (8, 4)
    assert found["acc", "all"].value == 37.5  # the full score of 1, of eight: 3


def test_groups_by_image_are_the_pairs_of_mme(tmp_path: Path) -> None:
    """MME's score of a category is 100 (accuracy + accuracy of images whose answers are both right)."""
    found = values(tmp_path, MME, "lmms-eval", group="input_media")
    for category in ("existence", "code_reasoning"):
        subset = f"category={category}"
        acc, failures = found["acc", subset].value, found["failures", subset].value
        assert acc is not None
        assert failures is not None
        assert acc + 100 - failures == 125
    assert found["acc", "all"].clusters == 4


def test_scores_of_vlmevalkit_make_its_accuracies(tmp_path: Path) -> None:
    found = values(tmp_path, TABLE, "VLMEvalKit")
    subsets = ("all", "category=a", "category=b", "split=test")
    assert [found["acc", subset].value for subset in subsets] == [62.5, 75, 50, 62.5]


def test_scores_of_evalscope_make_its_accuracy_over_repeats(tmp_path: Path) -> None:
    found = values(tmp_path, REVIEWS, "evalscope")
    assert (found["acc", "all"].value, found["acc", "all"].n) == (50, 8)
    assert found["acc", "all"].clusters == 2


def test_scores_of_lm_eval_make_its_mean_and_belong_to_no_repeat(tmp_path: Path) -> None:
    """Its log has three repeats, of which a filter took the first."""
    log = WRITTEN / "lm-eval-0.4.9.1.jsonl"
    with pytest.raises(UserError, match="holds no score of each answer"):
        values(tmp_path, log, "lm-eval")
    lines = [json.loads(line) for line in log.open()]
    first = [{**line, "resps": [line["resps"][0][:1]]} for line in lines]
    taken = [line for line in first if line["filter"] == "flexible-extract"]
    file = tmp_path / "samples.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in taken))
    own = sum(line["exact_match"] for line in taken) / len(taken)
    assert 0 < own < 1
    assert values(tmp_path, file, "lm-eval")["acc", "all"].value == pytest.approx(100 * own)


@pytest.mark.parametrize("name", ["shuffled.eval", "shuffled-by-solver.eval"])
def test_scores_of_inspect_make_its_accuracy(tmp_path: Path, name: str) -> None:
    pytest.importorskip("inspect_ai")
    from inspect_ai.log import read_eval_log

    file = WRITTEN / f"inspect-0.3.285-{name}"
    log = read_eval_log(str(file), header_only=True)
    assert log.results is not None
    own = log.results.scores[0].metrics["accuracy"].value
    assert values(tmp_path, file, "inspect_ai")["acc", "all"].value == 100 * own
    assert values(tmp_path, file)["acc", "all"].value == 100 * own


def test_a_tool_scores_filtered_replies_as_it_did(tmp_path: Path) -> None:
    """inspect_ai counts a reply that a filter stopped; here it is a failure, unless inspect_ai judges."""
    pytest.importorskip("inspect_ai")
    file = WRITTEN / "inspect-0.3.285-failures.json"
    assert values(tmp_path, file, "inspect_ai")["acc", "all"].value == 100
    assert values(tmp_path, file)["acc", "all"].value == 50


def test_samples_without_a_score_are_undecided_and_not_in_the_mean_of_the_tool(tmp_path: Path) -> None:
    """inspect_ai's accuracy leaves out what failed."""
    pytest.importorskip("inspect_ai")
    log = json.loads((WRITTEN / "inspect-0.3.285-failures.json").read_text())
    failed = {"message": "boom", "traceback": "", "traceback_ansi": ""}
    log["samples"][0] |= {"error": failed, "scores": None}
    file = tmp_path / "log.json"
    file.write_text(json.dumps(log))
    found = values(tmp_path, file, "inspect_ai")
    assert (found["score", "all"].value, found["score", "all"].n) == (100, 3)
    assert (found["acc", "all"].value, found["acc", "all"].n) == (75, 4)


def test_scorers_of_inspect_that_differ_need_a_name(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai")
    log = json.loads((WRITTEN / "inspect-0.3.285-failures.json").read_text())
    log["samples"][0]["scores"]["strict"] = {**log["samples"][0]["scores"]["choice"], "value": "I"}
    file = tmp_path / "log.json"
    file.write_text(json.dumps(log))
    with pytest.raises(UserError, match=r"which differ .*'scores\.choice, scores\.strict'"):
        values(tmp_path, file, "inspect_ai")
    assert values(tmp_path, file, "inspect_ai", score="scores.choice")["acc", "all"].value == 100


def test_a_tool_scores_empty_answers_too(tmp_path: Path) -> None:
    """Elsewhere they are wrong without a judge; lmms-eval's MMMU guesses an option."""
    lines = [{**json.loads(line), "filtered_resps": "", "fraction": 1.0} for line in FRACTIONS.open()]
    file = tmp_path / "samples.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert values(tmp_path, file, "lmms-eval")["acc", "all"].value == 100
    assert values(tmp_path, file)["acc", "all"].value == 0


def test_what_was_asked_and_the_score_stand_in_the_run_and_in_its_folder(tmp_path: Path) -> None:
    values(tmp_path, MME, "lmms-eval", group="input_media")
    first = next(read_outcomes(tmp_path / "out/answers.jsonl"))
    assert (first.sample, first.variant, first.references) == ("scene/0.png", "0", ("Yes",))
    assert first.prompt == "Is thing 0 in the image? Please answer yes or no."
    assert (first.judge, first.verdict, first.scores["score"]) == ("lmms-eval", "right", 1)
    first = next(read_outcomes(tmp_path / "out/answers.jsonl"))
    values(tmp_path, TABLE)
    first = next(read_outcomes(tmp_path / "out/answers.jsonl"))
    assert (first.options, first.references) == (("bus 0", "car 0", "train 0", "ship 0"), ("A",))
    assert first.question == "Question 0: which one?"


def test_a_later_report_has_the_scores_of_the_tool(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values(tmp_path, FRACTIONS, "lmms-eval")
    assert main(["report", "1", "--store", str(tmp_path / "s.db"), "--format", "csv"]) == 0
    assert "\nscore,60.0," in capsys.readouterr().out


def test_several_scores_need_a_name_and_equal_ones_do_not(tmp_path: Path) -> None:
    """POPE logs one score under five metrics."""
    file = tmp_path / "samples.jsonl"

    def write(other: float) -> None:
        lines = [json.loads(line) for line in FRACTIONS.open()]
        lines = [{**line, "fraction": 1.0, "pope_accuracy": {"score": other}} for line in lines]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    write(1.0)
    assert values(tmp_path, file, "lmms-eval")["acc", "all"].value == 100
    write(0.0)
    with pytest.raises(UserError, match=r"which differ .*'fraction, pope_accuracy\.score'.*--columns score="):
        values(tmp_path, file, "lmms-eval")
    assert values(tmp_path, file, "lmms-eval", score="pope_accuracy.score")["acc", "all"].value == 0
    with pytest.raises(UserError, match="field input: is no score"):
        values(tmp_path, file, "lmms-eval", score="input")


def test_a_group_that_a_record_does_not_name_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"field mme_perception_score\.question_id: has no id"):
        values(tmp_path, MME, "lmms-eval", group="mme_perception_score.question_id")


def test_scores_of_any_table_are_those_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    file.write_text("qid,scene,answer,points\n1,a,yes,1\n2,a,no,0.5\n3,b,no,0\n")
    columns = {"id": "qid", "response": "answer", "score": "points", "cluster": "scene"}
    found = values(tmp_path, file, "file", **columns)
    assert (found["score", "all"].value, found["score", "all"].clusters) == (50, 2)


def test_a_judge_that_is_a_tool_belongs_to_its_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is a file of lmms-eval; expected --judge lmms-eval"):
        values(tmp_path, MME, "VLMEvalKit")
    with pytest.raises(UserError, match=r"a model is asked here; expected sightline score"):
        sightline.run("codis", model="baseline/chance", judge=["lmms-eval"], store=tmp_path / "s.db")


def scored_records(file: Path, *records: Mapping[str, object]) -> Path:
    lines = [
        {"doc_id": number, "target": "cat", "input": f"Read {number}", "filtered_resps": "cat", **record}
        for number, record in enumerate(records)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_one_record_in_which_two_scores_differ_makes_the_whole_file_ambiguous(tmp_path: Path) -> None:
    """acc is 75 % and acc_norm 50 %; of the records in which they agree, 67 % are right."""
    pairs = [(1, 1), (1, 0), (1, 1), (0, 0)]
    records = [{"acc": acc, "acc_norm": norm} for acc, norm in pairs]
    file = scored_records(tmp_path / "samples.jsonl", *records)
    with pytest.raises(UserError, match=r"which differ .*'acc, acc_norm'"):
        values(tmp_path, file, "lmms-eval")
    with pytest.raises(UserError, match="which differ"):
        sightline.score("groups", file, judge=["lmms-eval"], limit=1, store=tmp_path / "s.db")
    assert values(tmp_path, file, "lmms-eval", score="acc")["acc", "all"].value == 75
    assert values(tmp_path, file, "lmms-eval", score="acc_norm")["acc", "all"].value == 50


@pytest.mark.parametrize(
    ("name", "scores", "said"),
    [
        ("gpt_eval_score", (0, 1, 5), "is a score on another scale .*5.0.*a score from 0 to 1"),
        ("perplexity", (0.5, float("inf")), "less is better; expected a table with a score from 0 to 1"),
        ("wer", (0, 0), "less is better"),
        ("ocr_edit_distance", (0, 1), "less is better"),
    ],
)
@pytest.mark.parametrize("is_named", [False, True])
def test_a_score_that_is_no_share_of_the_full_one_gives_no_verdict(
    tmp_path: Path, name: str, scores: tuple[float, ...], said: str, is_named: bool
) -> None:
    file = scored_records(tmp_path / "samples.jsonl", *({name: {"score": score}} for score in scores))
    with pytest.raises(UserError, match=said):
        values(tmp_path, file, "lmms-eval", **({"score": f"{name}.score"} if is_named else {}))
    assert values(tmp_path, file)["acc", "all"].value == 100


def test_an_answer_whose_score_is_nan_is_not_scored(tmp_path: Path) -> None:
    records = [{"acc": score} for score in (1.0, 0.0, float("nan"))]
    found = values(tmp_path, scored_records(tmp_path / "samples.jsonl", *records), "lmms-eval")
    assert (found["acc", "all"].value, found["acc", "all"].n) == (50, 2)


def test_a_grade_that_inspect_does_not_know_is_not_wrong(tmp_path: Path) -> None:
    """Its value_to_float makes 0 of any other text."""
    pytest.importorskip("inspect_ai")
    log = json.loads((WRITTEN / "inspect-0.3.285-failures.json").read_text())
    log["samples"][0]["scores"]["choice"]["value"] = "B"
    file = tmp_path / "log.json"
    file.write_text(json.dumps(log))
    with pytest.raises(UserError, match=r"field scores\.choice: is no score .*'B'"):
        values(tmp_path, file, "inspect_ai")


@pytest.mark.parametrize(
    ("written", "meant"),
    [("lmms_eval", "lmms-eval"), ("lmm-eval", "lm-eval|lmms-eval")],
)
def test_a_misspelled_tool_is_no_unknown_model(tmp_path: Path, written: str, meant: str) -> None:
    with pytest.raises(UserError, match=f"unknown judge '{written}', did you mean '({meant})'.*inspect_ai"):
        values(tmp_path, MME, written)


def test_log_likelihoods_have_the_scores_of_lm_eval_and_no_responses(tmp_path: Path) -> None:
    """The layout of a multiple-choice task of lm-eval 0.4.9.1; its acc is the mean of the records' acc."""
    scores = [1.0, 1.0, 0.0, 1.0]
    lines = [
        {
            "doc_id": number,
            "doc": {"question": f"Q{number}", "choices": ["x", "y"]},
            "target": "0",
            "arguments": {f"gen_args_{one}": {"arg_0": f"Q{number}", "arg_1": f" {one}"} for one in range(2)},
            "resps": [[[-1.2, False]], [[-2.3, False]]],
            "filtered_resps": [[-1.2, False], [-2.3, False]],
            "filter": "none",
            "metrics": ["acc"],
            "acc": acc,
        }
        for number, acc in enumerate(scores)
    ]
    file = tmp_path / "samples.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = values(tmp_path, file, "lm-eval")["acc", "all"]
    assert (found.value, found.n) == (75, 4)
    with pytest.raises(UserError, match=r"log-likelihoods of options are no responses.*--judge"):
        values(tmp_path, file)
