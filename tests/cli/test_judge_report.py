"""`sightline judge-report` on the cases that the paper prints, and on results folders."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.main import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def cases(shared: Path) -> list[dict[str, Any]]:
    """The responses of the appendix on which a caption decides, each with the reference that val has.

    Of three of the 30 the appendix prints another one.
    """
    data = shared / "data/contextual"
    with (data / "contextual_val.csv").open(newline="") as file:
        known = {row["image_url"]: row["response"] for row in csv.DictReader(file)}
    read = [json.loads(line) for line in (data / "appendix_cases.jsonl").read_text().splitlines()]
    return [
        {**one, "reference": known[case["image_url"][0]]}
        for case in read
        for one in case["responses"]
        if one["verdict"] is not None
    ]


@pytest.fixture
def words(shared: Path, tmp_path: Path) -> list[str]:
    data = shared / "data/contextual"
    named = ["--task", "contextual", "--data", str(data), "--split", "val", "--store", str(tmp_path / "s.db")]
    return ["judge-report", str(data / "appendix_cases.jsonl"), *named]


def tables(capsys: Capture, *call: str) -> list[dict[str, Any]]:
    assert main([*call, "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_the_cases_are_161_verdicts_of_which_five_are_contradicted(words: list[str], capsys: Capture) -> None:
    whole = tables(capsys, *words)[0]
    (rules,) = whole["rows"]
    assert (rules["judge"], rules["n"], rules["clusters"]) == ("rules", 161, 27)
    (disputed,) = [note for note in whole["notes"] if "contradicted" in note]
    assert disputed.startswith("5 verdicts")
    assert [disputed.count(f"Figure {figure},") for figure in (42, 45, 47)] == [2, 1, 2]
    assert any(note.startswith("14 human verdicts are 'partially correct'") for note in whole["notes"])
    assert any("Table 4" in note and "GPT-4 85.9 and 0.71" in note for note in whole["notes"])


def test_the_errors_of_a_responder_are_those_that_the_marks_beside_its_responses_name(
    words: list[str], cases: list[dict[str, Any]], capsys: Capture
) -> None:
    errors = next(one for one in tables(capsys, *words) if one["title"].startswith("Errors that humans name"))
    heads = [name.removesuffix(" value") for name in errors["rows"][0] if name.endswith(" value")]
    found = {(name, row["error"]): row[f"{name} value"] for name in heads for row in errors["rows"]}
    told = [one for one in cases if one["annotation_verdict"] == one["verdict"]]
    for responder in {responder for responder, _ in found}:
        marks = [one["annotation"].casefold() for one in told if one["model"] == responder]
        marks = [mark for mark in marks if mark != "wrong response"]
        for part, error in (("hallucination", "hallucination"), ("fine-grained", "fine-grained perception")):
            share = 100 * sum(part in mark for mark in marks) / len(marks)
            assert found[responder, error] == pytest.approx(share)
    assert {error for _, error in found} == {
        "context-sensitive reasoning",
        "fine-grained perception",
        "hallucination",
        "not grounded",
        "incorrect reasoning",
        "partially correct",
    }


def test_partly_right_answers_may_be_left_out(words: list[str], capsys: Capture) -> None:
    whole = tables(capsys, *words, "--partly", "left-out")[0]
    (rules,) = whole["rows"]
    assert rules["n"] == 161 - 14
    assert any(note.startswith("5 verdicts are contradicted") for note in whole["notes"])


def test_the_rules_never_contradict_a_caption_where_they_decide(words: list[str], capsys: Capture) -> None:
    (rules,) = tables(capsys, *words)[0]["rows"]
    assert rules["decided"] > 10
    assert rules["agreement value"] == 100


def test_rouge_l_on_the_cases_is_what_the_packages_make_of_the_file(
    words: list[str], cases: list[dict[str, Any]], capsys: Capture
) -> None:
    rouge = pytest.importorskip("rouge_score.rouge_scorer", reason="needs the extra 'text'")
    metrics = pytest.importorskip("sklearn.metrics", reason="needs the extra 'dev'")
    stats = pytest.importorskip("scipy.stats", reason="needs the extra 'dev'")
    scorer = rouge.RougeScorer(["rougeL"], use_stemmer=False)
    found = [scorer.score(case["reference"], case["response"])["rougeL"].fmeasure for case in cases]
    scores = [round(100 * value, 9) for value in found]
    truth = [case["verdict"] == "correct" for case in cases]
    rows = tables(capsys, *words, "--set", "text_metrics=rouge_l")[0]["rows"]
    ours = next(row for row in rows if row["judge"] == "rouge_l")
    assert ours["n"] == len(cases) == 161
    assert ours["roc_auc value"] == pytest.approx(100 * metrics.roc_auc_score(truth, scores), abs=1e-9)
    assert ours["spearman value"] == pytest.approx(stats.spearmanr(truth, scores).statistic, abs=1e-9)
    assert ours["roc_auc low"] < ours["roc_auc value"] < ours["roc_auc high"]


def test_there_is_a_table_by_responder_and_one_by_category(words: list[str], capsys: Capture) -> None:
    found = tables(capsys, *words)
    titles = [table["title"] for table in found]
    assert titles == [
        "Judges and metrics compared with the human majority",
        "Compared with the human majority, by responder",
        "Compared with the human majority, by category",
        "Accepted answers and text metrics, by responder",
        "Accepted answers and text metrics, by responder and category",
        "Errors that humans name, by responder",
    ]
    assert len(found[1]["rows"]) == 6, "the captions decide on no answer of a person"
    assert sum(row["n"] for row in found[1]["rows"]) == 161
    scenes = tables(capsys, *words, "--by", "scene")[2]["rows"]
    assert {row["scene"] for row in scenes} == {"natural", "digital"}


@pytest.mark.parametrize("form", ["table", "markdown", "csv"])
def test_it_prints_as_its_neighbours_do(words: list[str], capsys: Capture, form: str) -> None:
    assert main([*words, "--format", form]) == 0
    printed = capsys.readouterr().out
    assert "rules" in printed
    assert ("responder" in printed) == (form == "markdown"), "the first view and CSV hold the first table"


@pytest.mark.parametrize(
    ("more", "hint"),
    [
        (["--by", "sceen"], "did you mean 'scene'?"),
        (["--set", "text_metric=rouge_l"], "did you mean 'text_metrics'?"),
        (["--set", "text_metrics=rouge"], "did you mean 'rouge_l'?"),
        (["--set", "bertscore_layer=0"], "a whole number from 1"),
        (["--human", "no-such-file.jsonl"], "no-such-file.jsonl"),
    ],
)
def test_a_wrong_call_is_refused_with_what_would_be_right(
    words: list[str], capsys: Capture, more: list[str], hint: str
) -> None:
    assert main([*words, *more]) == 2
    assert hint in capsys.readouterr().err


def test_what_was_imported_is_reported_like_the_file_itself(
    words: list[str], shared: Path, tmp_path: Path, capsys: Capture
) -> None:
    """By way of files: answers and people's verdicts imported, a judge's verdicts beside them."""
    data = shared / "data/contextual"
    cases = str(data / "appendix_cases.jsonl")
    named = ["--task", "contextual", "--data", str(data), "--split", "val", "--allow-missing"]
    out, humans = tmp_path / "answers.jsonl", tmp_path / "human.jsonl"
    assert main(["import", cases, *named, "--out", str(out), "--verdicts", str(humans)]) == 0
    lines = [json.loads(line) for line in humans.read_text().splitlines()]
    judged = [{**line, "judge": "copy", "kind": "model"} for line in lines]
    (tmp_path / "verdicts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in judged))
    capsys.readouterr()
    call = ["judge-report", str(tmp_path / "verdicts.jsonl"), "--human", str(humans)]
    whole, by_responder, by_category, accepted, _, errors = tables(capsys, *call)
    (copy,) = whole["rows"]
    assert (copy["n"], copy["roc_auc value"], copy["kappa value"]) == (161, 100, 1)
    direct = tables(capsys, *words)
    for ours, theirs in ((by_responder, direct[1]), (by_category, direct[2])):
        assert [row["n"] for row in ours["rows"]] == [row["n"] for row in theirs["rows"]]
    shares = [
        {row["responder"]: row["humans value"] for row in table["rows"] if row["n"]}
        for table in (accepted, direct[3])
    ]
    assert shares[0] == shares[1]
    assert errors["rows"] == direct[5]["rows"]


def test_humans_judges_and_metrics_stand_in_one_table_over_the_same_answers_as_in_table_3(
    words: list[str], cases: list[dict[str, Any]], capsys: Capture
) -> None:
    """The captions' verdicts, the metric of another package, and the rows that the paper prints."""
    rouge = pytest.importorskip("rouge_score.rouge_scorer", reason="needs the extra 'text'")
    scorer = rouge.RougeScorer(["rougeL"], use_stemmer=False)
    found = tables(capsys, *words, "--set", "text_metrics=rouge_l")
    table = next(one for one in found if one["title"].startswith("Accepted"))
    own = {row["responder"]: row for row in table["rows"] if row["n"]}
    for responder in {one["model"] for one in cases}:
        mine = [one for one in cases if one["model"] == responder]
        row = own[responder]
        accepted = sum(one["verdict"] == "correct" for one in mine)
        scores = [scorer.score(one["reference"], one["response"])["rougeL"].fmeasure for one in mine]
        assert (row["n"], row["humans value"]) == (len(mine), pytest.approx(100 * accepted / len(mine)))
        assert row["rouge_l value"] == pytest.approx(100 * sum(scores) / len(mine), abs=1e-6)
    printed = next(row for row in table["rows"] if row["responder"] == "GPT-4V, Table 3")
    columns = ("humans", "GPT-4", "GPT-4V", "bleurt", "rouge_l", "bertscore")
    assert [printed[f"{name} value"] for name in columns] == [49.3, 47.4, 45.0, 45.3, 17.3, 52.5]
