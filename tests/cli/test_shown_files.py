"""`sightline show` opens results folders and files of other tools as it opens runs of the store."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.main import main
from sightline.evaluation.runs import list_runs
from sightline.viewer.opened import AnswerTask, opened_store
from training.scenes.build import generate_contextual, generate_iibench

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder, and a run on it in a store and in a results folder."""
    folder = tmp_path_factory.mktemp("files")
    data = generate_iibench(folder / "data", questions=6, dev=12)
    words = ["run", "iibench:none", "--split", "dev", "--data", str(data), "--model", "baseline/chance"]
    store = ["--store", str(folder / "sightline.db"), "--out", str(folder / "results"), "--quiet"]
    assert main([*words, *store]) == 0
    return folder


@pytest.fixture(autouse=True)
def working_directory(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(folder)
    capsys.readouterr()


def questions(folder: Path) -> list[dict[str, Any]]:
    records = json.loads((folder / "data" / "dev.json").read_text())
    return [{**question, "image": one["local_path"]} for one in records for question in one["questions"]]


def groups(capsys: Capture, *words: str) -> list[dict[str, Any]]:
    """The groups that are shown, with what does not depend on where they were read."""
    assert main(["show", *words, "--json", "--data", "data", "-n", "100"]) == 0
    found = json.loads(capsys.readouterr().out)["groups"]
    return [
        {
            "sample": one["row"]["sample"],
            "marks": one["row"]["marks"],
            "responses": [outcome["response"] for outcome in one["outcomes"]],
            "references": [outcome["references"] for outcome in one["outcomes"]],
            "images": [[image["path"] for image in images] for images in one["images"]],
        }
        for one in found
    ]


def lmms_eval(file: Path, questions: list[dict[str, Any]], **more: Any) -> Path:
    """A sample log of lmms-eval in which every answer but the last one is right."""
    with file.open("w") as out:
        for question in questions:
            response = f"({question['answer'] if question is not questions[-1] else 'Z'})"
            line = {
                "doc_id": 1,
                "target": "answers",
                "filtered_resps": [response],
                "submission": {"id": question["id"], "predict_answer": "B", "response": response},
                **more,
            }
            out.write(json.dumps(line) + "\n")
    return file


def vlmevalkit(file: Path, questions: list[dict[str, Any]]) -> Path:
    """A table of VLMEvalKit with the same answers."""
    workbook = pytest.importorskip("openpyxl").Workbook()
    workbook.active.append(["index", "id", "question", *"ABCDEF", "image_path", "prediction"])
    for nth, one in enumerate(questions):
        letter = one["answer"] if one is not questions[-1] else "Z"
        cells = [nth, one["id"], one["question"], *one["options"], one["image"], f"({letter})"]
        workbook.active.append(cells)
    workbook.save(file)
    return file


def test_a_results_folder_shows_the_groups_of_its_run(capsys: Capture) -> None:
    assert groups(capsys, "results") == groups(capsys, "1") != []


def test_files_of_other_tools_show_their_answers_with_the_verdicts_of_the_rules(
    capsys: Capture, folder: Path, tmp_path: Path
) -> None:
    asked = questions(folder)
    task = ["--task", "iibench:none", "--split", "dev"]
    first = groups(capsys, str(lmms_eval(tmp_path / "samples.jsonl", asked)), *task)
    assert groups(capsys, str(vlmevalkit(tmp_path / "m.xlsx", asked)), *task) == first
    verdicts = {one["sample"]: one["marks"][0]["verdict"] for one in first}
    expected = {question["id"]: "right" for question in asked} | {asked[-1]["id"]: "miss"}
    assert verdicts == expected


def test_a_probe_that_the_file_does_not_answer_is_shown_as_missing(
    capsys: Capture, folder: Path, tmp_path: Path
) -> None:
    asked = questions(folder)
    file = lmms_eval(tmp_path / "samples.jsonl", asked[:3])
    task = ["--task", "iibench:none", "--split", "dev"]
    assert len(groups(capsys, str(file), *task)) == len(asked)
    assert main(["show", str(file), *task, "--data", "data", "-n", "100"]) == 0
    assert "the file contains no answer to this probe" in " ".join(capsys.readouterr().out.split())


def test_flips_compare_two_paths(capsys: Capture, folder: Path, tmp_path: Path) -> None:
    file = lmms_eval(tmp_path / "samples.jsonl", questions(folder))
    words = ["show", "results", "--flips", str(file), "--task", "iibench:none", "--split", "dev", "--json"]
    assert main([*words, "--data", "data"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["total"] > 0
    assert {one["other"]["row"]["marks"][0]["verdict"] for one in found["groups"]} <= {"right", "miss"}


def test_each_model_of_a_file_is_a_run_whose_note_names_the_file(tmp_path: Path) -> None:
    data = generate_contextual(tmp_path / "contextual", questions=9, val=9)
    urls = [line["image_url"] for line in csv.DictReader((data / "contextual_val.csv").open())]
    file = tmp_path / "predictions.json"
    file.write_text(json.dumps({model: dict.fromkeys(urls, "a clock") for model in ("one", "two")}))
    with opened_store("none.db", [file], [data], AnswerTask("contextual", "val")) as store:
        runs = list_runs(store)
    assert [run.model for run in runs] == ["one", "two"]
    assert {run.note for run in runs} == {str(file)}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["samples.jsonl"], "it does not say which questions it answers; expected --task"),
        (["results", "--flips", "1"], "cannot be shown together"),
        (["results", "--split", "dev"], "--split needs --task"),
        (["absent.jsonl", "--task", "iibench:none"], "absent.jsonl"),
        (["./data"], "nor a results folder"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    words: list[str], message: str, capsys: Capture, folder: Path
) -> None:
    lmms_eval(folder / "samples.jsonl", questions(folder))
    assert main(["show", *words]) == 2
    assert message in capsys.readouterr().err


def test_answers_to_a_groups_file_are_shown(capsys: Capture, tmp_path: Path) -> None:
    """The embedder of groups keeps its vectors in a store, which needs a folder."""
    lines = [
        {"group": "g", "variant": variant, "prompt": "Which?", "references": ["B"], "options": ["cat", "dog"]}
        for variant in ("v0", "v1")
    ]
    questions, answers = tmp_path / "groups.jsonl", tmp_path / "answers.jsonl"
    questions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    answers.write_text(
        "".join(json.dumps({"id": "g", "variant": v, "response": "a dog"}) + "\n" for v in ("v0", "v1"))
    )
    assert main(["show", str(answers), "--task", f"groups:{questions}", "--json"]) == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert [one["verdict"] for one in group["row"]["marks"]] == ["right", "right"]
