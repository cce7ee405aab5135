"""The cases of ConTextual's appendix, judged by rules and by a served model: both beside the captions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sightline.cli.main import main

Servers = Callable[..., Any]
Capture = pytest.CaptureFixture[str]

REPLIES = "It says what the reference says. Judgement: Yes|It does not. Judgement: No|I cannot tell"


class Judged(NamedTuple):
    """The appendix' cases as results folders, one a responder, judged by the rules and by a served model."""

    cases: Path
    humans: Path
    results: list[str]
    store: str
    judge: str
    asked: int

    def report(self, capsys: Capture, *more: str) -> list[dict[str, Any]]:
        """The tables of `sightline judge-report` over the folders and the captions' verdicts."""
        capsys.readouterr()
        human = ["--human", str(self.humans), "--store", self.store, "--quiet", "--json"]
        assert main(["judge-report", *self.results, *human, *more]) == 0
        tables: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        return tables


@pytest.fixture(scope="module")
def judged(module_mock: Servers, shared: Path, module_folder: Path) -> Judged:
    """Imported, scored responder by responder, as a user would."""
    data, server = shared / "data/contextual", module_mock("--words", REPLIES)
    cases, humans = data / "appendix_cases.jsonl", module_folder / "human.jsonl"
    named = ["--data", str(data), "--split", "val", "--allow-missing"]
    answers = ["--out", str(module_folder / "answers.jsonl"), "--verdicts", str(humans)]
    assert main(["import", str(cases), "--task", "contextual", *named, *answers]) == 0
    store, results = str(module_folder / "s.db"), []
    first = json.loads(cases.read_text().splitlines()[0])
    for model in (one["model"] for one in first["responses"]):
        out = str(module_folder / re.sub(r"\W+", "-", model))
        words = ["score", "contextual", str(cases), "--model", model, *named, "--store", store, "--quiet"]
        words += ["--fingerprint", "off"]
        # 1: of val's 100 instances the file answers 30.
        assert main([*words, "--judge", "rules", "--judge", server.model, "--out", out]) == 1
        results.append(out)
    return Judged(cases, humans, results, store, server.model, server.stats()["requests"])


@pytest.fixture
def said(judged: Judged) -> list[tuple[bool, str]]:
    """Of each answer on which a caption decides: whether it calls it right, and what the model replied."""
    captions = {
        (one["model"], case["image_url"][0]): one["verdict"]
        for case in map(json.loads, judged.cases.read_text().splitlines())
        for one in case["responses"]
        if one["verdict"] is not None
    }
    found = []
    for folder in map(Path, judged.results):
        model = json.loads((folder / "metrics.json").read_text())["model"]
        answers = map(json.loads, (folder / "answers.jsonl").read_text().splitlines())
        by_key = {line["key"]: line["sample"] for line in answers}
        for line in map(json.loads, (folder / "verdicts.jsonl").read_text().splitlines()):
            caption = captions.get((model, by_key[line["targets"][0]]))
            if line["kind"] == "model" and caption is not None:
                found.append((caption == "correct", line["raw"]))
    assert len(found) == len(captions) == 161
    return found


def rows(table: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["judge"]: row for row in table["rows"]}


@pytest.mark.slow
def test_every_case_was_put_to_the_model_once_and_what_it_left_open_once_more(judged: Judged) -> None:
    put, again, verdicts = set(), set(), 0
    for folder in map(Path, judged.results):
        answers = map(json.loads, (folder / "answers.jsonl").read_text().splitlines())
        by_key = {line["key"]: (line["sample"], line["response"]) for line in answers}
        for line in map(json.loads, (folder / "verdicts.jsonl").read_text().splitlines()):
            if line["kind"] == "model":
                verdicts += 1
                put.add(by_key[line["targets"][0]])
                again.update([by_key[line["targets"][0]]] if line.get("draw") else [])
    assert verdicts == 7 * 30
    assert again, "one of the three replies holds no judgement"
    assert judged.asked == len(put) + len(again)


def test_both_judges_stand_beside_the_captions(
    judged: Judged, said: list[tuple[bool, str]], capsys: Capture
) -> None:
    """The served judge's numbers are those that scikit-learn and scipy make of its replies."""
    metrics = pytest.importorskip("sklearn.metrics", reason="needs the extra 'dev'")
    stats = pytest.importorskip("scipy.stats", reason="needs the extra 'dev'")
    whole = judged.report(capsys)[0]
    found = rows(whole)
    assert list(found) == ["rules", "mock"]
    levels = [1.0 if "Yes" in raw else 0.0 if "No" in raw else 0.5 for _, raw in said]
    truth = [right for right, _ in said]
    decided = [(level == 1, right) for level, right in zip(levels, truth, strict=True) if level != 0.5]
    served = found["mock"]
    assert (served["n"], served["clusters"], served["decided"]) == (161, 27, len(decided))
    assert served["roc_auc value"] == pytest.approx(100 * metrics.roc_auc_score(truth, levels))
    assert served["spearman value"] == pytest.approx(stats.spearmanr(truth, levels).statistic)
    first, second = zip(*decided, strict=True)
    assert served["agreement value"] == pytest.approx(100 * metrics.accuracy_score(second, first))
    assert served["kappa value"] == pytest.approx(metrics.cohen_kappa_score(first, second))
    assert any(note.startswith("human annotators: 1, who decided 161 answers") for note in whole["notes"])
    assert any(judged.judge in note for note in whole["notes"])


def test_the_rules_say_of_the_folders_what_they_say_of_the_file(judged: Judged, capsys: Capture) -> None:
    direct = ["--task", "contextual", "--data", str(judged.cases.parent), "--split", "val", "--json"]
    assert main(["judge-report", str(judged.cases), *direct]) == 0
    of_file = json.loads(capsys.readouterr().out)[0]
    assert rows(judged.report(capsys)[0])["rules"] == rows(of_file)["rules"]


def test_both_judges_are_held_against_each_other_and_by_responder(judged: Judged, capsys: Capture) -> None:
    tables = {table["title"]: table for table in judged.report(capsys)}
    (contrast,) = [table for title, table in tables.items() if title.startswith("ROC-AUC minus that of")]
    assert [row["n"] for row in contrast["rows"]] == [161]
    by_responder = tables["Compared with the human majority, by responder"]["rows"]
    counted = [(row["judge"], row["n"]) for row in by_responder]
    for judge in ("rules", "mock"):
        assert sum(n for name, n in counted if name == judge) == 161


def test_partly_right_answers_leave_both_judges_147(judged: Judged, capsys: Capture) -> None:
    whole = judged.report(capsys, "--partly", "left-out")[0]
    assert [row["n"] for row in whole["rows"]] == [147, 147]
    assert any(note.startswith("14 human verdicts are 'partially correct'") for note in whole["notes"])


def test_of_some_responders_the_verdicts_on_the_others_are_told(judged: Judged, capsys: Capture) -> None:
    part = judged._replace(results=judged.results[1:3])
    whole = part.report(capsys)[0]
    (stray,) = [note for note in whole["notes"] if "none of these answers" in note]
    assert (
        stray == f"{161 - whole['rows'][0]['n']} of 161 verdicts by captions belong to none of these answers"
    )


def test_the_answers_imported_beside_the_folders_count_once(judged: Judged, capsys: Capture) -> None:
    """The same answers, as a folder that was imported and as folders that were scored."""
    imported = judged.humans.parent / "imported"
    imported.mkdir()
    (imported / "answers.jsonl").write_text((judged.humans.parent / "answers.jsonl").read_text())
    (imported / "verdicts.jsonl").write_text(judged.humans.read_text())
    both = judged._replace(results=[*judged.results, str(imported)])
    assert both.report(capsys)[0]["rows"] == judged.report(capsys)[0]["rows"]
