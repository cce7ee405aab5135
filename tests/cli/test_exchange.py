"""Answers leave in other tools' formats and come back with the same metrics; what is lost is said."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.main import main
from sightline.formats.jsonl import read_outcomes
from training.scenes.build import generate_codis, generate_contextual

Capture = pytest.CaptureFixture[str]
Lines = list[dict[str, Any]]

REPLIES = ("(A)", "B, clearly.", "Answer: C", "(D)", "E", "(F) rather than (F) or (A)", "none of them", "")
CODIS_REPLIES = ("Yes.", "No.", "It is the left one.\nLeft.", "", "I cannot tell.")


@pytest.fixture(autouse=True)
def _no_data_folder_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIGHTLINE_DATA", raising=False)


@pytest.fixture(scope="module")
def data(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of both benchmarks; of CODIS the first 24 pairs."""
    folder = tmp_path_factory.mktemp("exchange") / "data"
    (folder / "codis/images").mkdir(parents=True)
    (folder / "iibench").symlink_to(shared / "data/iibench")
    records = json.loads((shared / "data/codis/data.json").read_text())[:24]
    (folder / "codis/data.json").write_text(json.dumps(records))
    for record in records:
        shutil.copy(shared / "data/codis/images" / record["image_id"], folder / "codis/images")
    return folder


def write(path: Path, lines: Lines) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


OF_THE_FOLDER = ("model", "model_identity", "options", "files")


def score(task: str, file: str, data: Path, out: Path, *more: str) -> dict[str, Any]:
    """The metrics.json of a file of answers, without the digests of the other files."""
    arguments = ["score", task, file, "--data", str(data), "--out", str(out), "--quiet", *more]
    assert main(arguments) in (0, 1)
    result: dict[str, Any] = json.loads((out / "metrics.json").read_text())
    return {name: result[name] for name in result if name not in OF_THE_FOLDER}


@pytest.fixture(scope="module")
def dev_scored(data: Path) -> tuple[Path, dict[str, Any]]:
    """A results folder of II-Bench's 35 dev questions, one of them failed, and its metrics.json."""
    lines: Lines = [{"id": f"dev-{n}", "response": REPLIES[n % len(REPLIES)]} for n in range(1, 35)]
    lines.append({"id": "dev-35", "error": "time-out"})
    file, out = write(data.parent / "dev.jsonl", lines), data.parent / "dev"
    return out, score("iibench:none", file, data, out, "--split", "dev")


@pytest.fixture
def dev(dev_scored: tuple[Path, dict[str, Any]], tmp_path: Path) -> dict[str, Any]:
    """A copy of that folder, `dev`: its metrics.json."""
    folder, result = dev_scored
    shutil.copytree(folder, tmp_path / "dev")
    return result


@pytest.fixture(scope="module")
def pairs_scored(data: Path) -> tuple[Path, dict[str, Any]]:
    """A results folder of 24 pairs of CODIS, and its metrics.json."""
    lines: Lines = [
        {"id": f"{n:03}", "variant": f"context_{half}", "response": CODIS_REPLIES[(n + half) % 5]}
        for n in range(24)
        for half in (1, 2)
    ]
    file, out = write(data.parent / "pairs.jsonl", lines), data.parent / "pairs"
    return out, score("codis", file, data, out)


@pytest.fixture
def pairs(pairs_scored: tuple[Path, dict[str, Any]], tmp_path: Path) -> dict[str, Any]:
    """A copy of that folder, `pairs`: its metrics.json."""
    folder, result = pairs_scored
    shutil.copytree(folder, tmp_path / "pairs")
    return result


@pytest.mark.parametrize("layout", ["iibench", "jsonl"])
@pytest.mark.parametrize("knows_data", [True, False])
def test_iibench_comes_back_with_the_same_metrics(
    data: Path, tmp_path: Path, dev: dict[str, Any], layout: str, knows_data: bool
) -> None:
    out, back = str(tmp_path / "out"), str(tmp_path / "back.jsonl")
    named = ["--data", str(data), "--split", "dev"] if knows_data else []
    assert main(["export", str(tmp_path / "dev"), "--as", layout, "--data", str(data), "--out", out]) == 0
    assert main(["import", out, "--task", "iibench:none", *named, "--out", back]) == 0
    assert {outcome.verdict for outcome in read_outcomes(Path(back))} == {"unscored", "error"}
    again = score("iibench:none", back, data, tmp_path / "again", "--split", "dev")
    # Only the first file lacks the options.
    assert again == {**dev, "notes": [note for note in dev["notes"] if "extraction=strict" in note]}
    assert dev["errors"] == 1
    assert 0 < dev["metrics"][0]["value"] < 100


@pytest.mark.parametrize("layout", ["codis", "jsonl"])
def test_codis_comes_back_with_the_same_metrics(
    data: Path, tmp_path: Path, pairs: dict[str, Any], layout: str
) -> None:
    out, back = str(tmp_path / "out"), str(tmp_path / "back.jsonl")
    assert main(["export", str(tmp_path / "pairs/answers.jsonl"), "--as", layout, "--out", out]) == 0
    assert main(["import", out, "--task", "codis", "--data", str(data), "--out", back]) == 0
    assert score("codis", back, data, tmp_path / "again") == pairs
    assert pairs["empty"] > 0


def test_the_released_outputs_of_codis_come_back_byte_for_byte(shared: Path, tmp_path: Path) -> None:
    released = shared / "data/codis/output_example.json"
    middle, out = str(tmp_path / "answers.jsonl"), tmp_path / "outputs.json"
    codis = ["--data", str(shared / "data/codis")]
    assert main(["import", str(released), "--task", "codis", *codis, "--out", middle]) == 0
    assert main(["export", middle, "--as", "codis", "--out", str(out)]) == 0
    assert out.read_bytes() == released.read_bytes()


@pytest.mark.slow
def test_the_released_answers_of_iibench_keep_the_order_in_which_options_were_shown(
    shared: Path, tmp_path: Path
) -> None:
    released = shared / "data/iibench/released/yi-vl-6b-chat_test_none.jsonl.gz"
    results, out = tmp_path / "results", tmp_path / "out.jsonl"
    data = shared / "data/iibench"
    first = score("iibench:none", str(released), data, results)
    assert main(["export", str(results), "--as", "iibench", "--data", str(data), "--out", str(out)]) == 0
    assert out.read_bytes() == (results / "predictions.jsonl").read_bytes()
    back = tmp_path / "back.jsonl"
    named = ["--task", "iibench:none", "--data", str(data)]
    assert main(["import", str(out), *named, "--out", str(back)]) == 0
    assert score("iibench:none", str(back), data, tmp_path / "again") == first


def test_a_right_letter_follows_its_option_to_the_order_shown(data: Path, tmp_path: Path) -> None:
    record = json.loads((data / "iibench/dev.json").read_text())[0]
    question = record["questions"][0]
    shown = question["options"][::-1]
    file = write(tmp_path / "lines", [{"id": question["id"], "response": "(B)", "options": shown}])
    back = tmp_path / "back.jsonl"
    named = ["--task", "iibench", "--data", str(data), "--split", "dev"]
    assert main(["import", file, *named, "--allow-missing", "--out", str(back)]) == 0
    (outcome,) = read_outcomes(back)
    assert outcome.options == tuple(shown)
    assert shown["ABCDEF".index(outcome.references[0])] == question["correct_option"]


def test_an_import_with_data_has_labels_references_and_clusters(data: Path, tmp_path: Path) -> None:
    lines: Lines = [
        {"id": f"{n:03}", "variant": f"context_{half}", "response": "Yes.", "draw": draw}
        for n in range(24)
        for half in (2, 1)
        for draw in (1, 0)
    ]
    back = tmp_path / "back.jsonl"
    named = ["--task", "codis", "--data", str(data), "--out", str(back)]
    assert main(["import", write(tmp_path / "lines", lines), *named]) == 0
    outcomes = list(read_outcomes(back))
    assert [(o.sample, o.draw, o.variant) for o in outcomes[:5]] == [
        ("000", 0, "context_1"),
        ("000", 0, "context_2"),
        ("000", 1, "context_1"),
        ("000", 1, "context_2"),
        ("001", 0, "context_1"),
    ]
    first = outcomes[0]
    assert first.references == ("Putting on my clothes.",)
    assert first.labels == {"category": "Location and Orientation"}
    assert first.question == "Am I taking off or putting on my clothes?"
    assert len({o.cluster for o in outcomes if o.sample in ("007", "008", "009")}) == 1


def test_an_imported_answer_has_the_key_that_scoring_its_file_gives_it(data: Path, tmp_path: Path) -> None:
    lines: Lines = [{"id": f"dev-{n}", "response": "(A)"} for n in range(1, 36)]
    file, back = write(tmp_path / "lines", lines), tmp_path / "back.jsonl"
    named = ["--data", str(data), "--split", "dev"]
    assert main(["import", file, "--task", "iibench:none", *named, "--out", str(back)]) == 0
    score("iibench:none", file, data, tmp_path / "results", "--split", "dev")
    scored = read_outcomes(tmp_path / "results/answers.jsonl")
    assert [outcome.key for outcome in read_outcomes(back)] == [outcome.key for outcome in scored]


def test_sample_logs_of_lmms_eval_are_imported(data: Path, tmp_path: Path) -> None:
    logs = [
        {"doc_id": n, "filtered_resps": ["(B)"], "submission": {"id": f"dev-{n + 1}"}, "target": "?"}
        for n in range(35)
    ]
    back = tmp_path / "back.jsonl"
    named = ["--task", "iibench:none", "--data", str(data), "--split", "dev", "--out", str(back)]
    assert main(["import", write(tmp_path / "samples_ii_bench.jsonl", logs), *named]) == 0
    outcomes = list(read_outcomes(back))
    assert [outcome.sample for outcome in outcomes] == [f"dev-{n}" for n in range(1, 36)]
    assert {(o.response, o.variant, o.verdict) for o in outcomes} == {("(B)", "none", "unscored")}


def test_tables_of_vlmevalkit_are_imported_with_their_failed_calls(data: Path, tmp_path: Path) -> None:
    table = tmp_path / "model_IIBench.tsv"
    lines = [f"{n}\tdev-{n}\t{'Failed to obtain answer via API.' if n == 3 else '(A)'}" for n in range(1, 36)]
    table.write_text("\n".join(["index\tid\tprediction", *lines]))
    back = tmp_path / "back.jsonl"
    named = ["--task", "iibench:none", "--data", str(data), "--split", "dev", "--out", str(back)]
    assert main(["import", str(table), *named]) == 0
    third = list(read_outcomes(back))[2]
    assert (third.sample, third.status, third.verdict) == ("dev-3", "error", "error")
    assert third.error == "Failed to obtain answer via API."


def test_a_submission_gives_a_letter_to_every_answer_that_has_one(
    data: Path, tmp_path: Path, dev: dict[str, Any]
) -> None:
    out = tmp_path / "submission.jsonl"
    named = ["--data", str(data), "--out", str(out)]
    assert main(["export", str(tmp_path / "dev"), "--as", "submission", *named]) == 0
    letters = {line["id"]: line["answer"] for line in map(json.loads, out.read_text().splitlines())}
    assert len(letters) == 35
    assert [letters[f"dev-{n}"] for n in (1, 2, 3, 5, 8)] == ["B", "C", "D", "F", "A"]
    assert letters["dev-35"] == ""


def test_what_a_layout_cannot_hold_is_reported(data: Path, tmp_path: Path, capsys: Capture) -> None:
    lines: Lines = [
        {"id": f"{n:03}", "variant": f"context_{half}", "draw": draw, "response": "Yes."}
        for n in range(24)
        for half in (1, 2)
        for draw in (0, 1)
    ]
    lines[0] = {**lines[0], "response": {"error": "timeout"}}
    score("codis", write(tmp_path / "lines", lines), data, tmp_path / "results")
    capsys.readouterr()
    out = tmp_path / "outputs.json"
    assert main(["export", str(tmp_path / "results"), "--as", "codis", "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert said.out == f"written: {out}\n"
    assert said.err.splitlines() == [
        "48 answers of repeats are left out",
        "1 failed or missing halves are written as '', which reads as an empty answer",
    ]


def test_questions_without_an_answer_are_reported(data: Path, tmp_path: Path, capsys: Capture) -> None:
    back, out = tmp_path / "back.jsonl", tmp_path / "out.jsonl"
    file = write(tmp_path / "lines", [{"id": "dev-1", "response": "(A)"}])
    named = ["--task", "iibench", "--data", str(data), "--split", "dev", "--allow-missing"]
    assert main(["import", file, *named, "--out", str(back)]) == 0
    assert main(["export", str(back), "--as", "iibench", "--data", str(data), "--out", str(out)]) == 0
    assert "34 of 35 questions have no answer and are left out" in capsys.readouterr().err


@pytest.fixture(scope="module")
def imported(shared: Path, data: Path) -> dict[str, Path]:
    """Imported answers of CODIS, and one answer of II-Bench that nothing scores."""
    codis, unscored = data.parent / "codis.jsonl", data.parent / "unscored.jsonl"
    released = str(shared / "data/codis/output_example.json")
    assert main(["import", released, "--task", "codis", "--out", str(codis)]) == 0
    file = write(data.parent / "one.jsonl", [{"id": "dev-1", "response": "(A)"}])
    assert main(["import", file, "--task", "iibench", "--out", str(unscored)]) == 0
    return {"codis": codis, "unscored": unscored}


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "export {dev} --as codis --out {out}",
            "record dev-1, field variant: is not an answer to a pair of CODIS",
        ),
        ("export {dev} --as iibench --out {out}", "expected --data DIR or SIGHTLINE_DATA"),
        ("export {dev} --as iibench --data {shared}/data/codis --out {out}", "test.json: cannot be read"),
        ("export {dev} --as iibnch --out {out}", "unknown layout 'iibnch', did you mean 'iibench'?"),
        ("export {codis} --as iibench --data {data} --out {out}", "record 000: is not a question of"),
        ("export {dev}/nothing --as jsonl --out {out}", "nothing: cannot be read: No such file"),
        ("export {released} --as jsonl --out {out}", "`sightline import` converts other formats"),
        ("export {dev} --as jsonl --out {dev}/gone/x", "gone: there is no such folder"),
        ("export {dev} --as jsonl --out {dev}", "is a folder"),
        ("export {codis} --as submission --data {data} --out {out}", "record 000: is not a question of"),
        ("export {unscored} --as submission --data {data} --out {out}", "no answer has an extracted letter"),
        ("import {released} --task codsi --out {out}", "unknown benchmark 'codsi', did you mean 'codis'?"),
        ("import {released} --task codis:nocot --out {out}", "did you mean 'no-cot'?"),
        (
            "import {released} --task codis --data {data} --out {out}",
            "658 of 706 answers are for samples that the benchmark does not have",
        ),
        ("import {unscored} --task iibench --data {data} --split dv --out {out}", "did you mean 'dev'?"),
        ("import {shared}/data/README.md --task codis --out {out}", "the format is unknown"),
    ],
)
def test_an_impossible_export_or_import_fails_with_one_line_and_writes_nothing(
    shared: Path,
    data: Path,
    tmp_path: Path,
    dev: object,
    imported: dict[str, Path],
    capsys: Capture,
    command: str,
    message: str,
) -> None:
    released, out = shared / "data/codis/output_example.json", tmp_path / "out"
    named = {"dev": tmp_path / "dev", "out": out, "data": data, **imported}
    capsys.readouterr()
    assert main(command.format(shared=shared, released=released, **named).split()) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize("command", ["export {file} --as jsonl", "import {file} --task iibench"])
def test_an_existing_file_is_replaced_only_with_force(tmp_path: Path, capsys: Capture, command: str) -> None:
    made = tmp_path / "answers.jsonl"
    file = write(tmp_path / "lines", [{"id": "dev-1", "response": "(A)"}])
    assert main(["import", file, "--task", "iibench", "--out", str(made)]) == 0
    out = tmp_path / "mine"
    out.write_text("mine")
    words = [*command.format(file=made).split(), "--out", str(out)]
    assert main(words) == 2
    assert "mine: exists already; expected another --out, or --force" in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert main([*words, "--force"]) == 0
    assert json.loads(out.read_text())["response"] == "(A)"


def test_references_used_as_answers_are_reported(tmp_path: Path, capsys: Capture) -> None:
    drawn = generate_contextual(tmp_path / "drawn", questions=1, val=4)
    words = ["--task", "contextual", "--data", str(drawn), "--split", "val", "--out"]
    assert main(["import", str(drawn / "contextual_val.csv"), *words, str(tmp_path / "a.jsonl")]) == 0
    assert "each answer equals its reference" in capsys.readouterr().err


def test_an_import_of_several_models_is_scored_model_by_model(tmp_path: Path, capsys: Capture) -> None:
    drawn = generate_contextual(tmp_path / "drawn", questions=1, val=4)
    with (drawn / "contextual_val.csv").open(newline="") as file:
        known = {row["image_url"]: row["response"] for row in csv.DictReader(file)}
    both = {"good": known, "bad": dict.fromkeys(known, "I cannot read it.")}
    (tmp_path / "both.json").write_text(json.dumps(both))
    out, words = str(tmp_path / "a.jsonl"), ["--data", str(drawn), "--split", "val"]
    assert main(["import", str(tmp_path / "both.json"), "--task", "contextual", *words, "--out", out]) == 0
    assert "equals its reference" not in capsys.readouterr().err
    for model, said in both.items():
        place = tmp_path / model
        assert (
            main(["score", "contextual", out, *words, "--model", model, "--out", str(place), "--quiet"]) == 0
        )
        assert {one.sample: one.response for one in read_outcomes(place / "answers.jsonl")} == said
    assert main(["score", "contextual", out, *words]) == 2
    assert "--model with one of good, bad" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_run_is_exported_as_tables_that_hold_its_answers_groups_and_metrics(
    form: str, tmp_path: Path
) -> None:
    data, store, out = (
        generate_codis(tmp_path / "codis", pairs=12),
        str(tmp_path / "s.db"),
        tmp_path / "tables",
    )
    words = ["run", "codis", "--model", "baseline/chance", "--data", str(data), "--name", "base", "--quiet"]
    assert main([*words, "--store", store, "--out", str(tmp_path / "results")]) == 0
    if form == "parquet":
        pytest.importorskip("pyarrow")
    for source in ("base", str(tmp_path / "results")):
        assert main(["export", source, "--as", form, "--out", str(out), "--store", store, "--force"]) == 0
        tables = {name: table_of(out / f"{name}.{form}") for name in ("answers", "groups", "metrics")}
        answers = list(read_outcomes(tmp_path / "results" / "answers.jsonl"))
        assert [(one["sample"], one["response"], one["verdict"]) for one in tables["answers"]] == [
            (one.sample, one.response, one.verdict) for one in answers
        ]
        right = [sum(one.right for one in answers[n : n + 2]) for n in range(0, 24, 2)]
        assert [int(one["right"]) for one in tables["groups"]] == right
        assert [float(one["acc_p"]) for one in tables["groups"]] == [100.0 * (n == 2) for n in right]
        printed = json.loads((tmp_path / "results" / "metrics.json").read_text())["metrics"]
        assert [(one["metric"], one["subset"]) for one in tables["metrics"]] == [
            (one["metric"], one["subset"]) for one in printed
        ]
        assert float(tables["metrics"][0]["value"]) == printed[0]["value"]
    assert main(["export", "base", "--as", form, "--out", str(out), "--store", store]) == 2


def table_of(file: Path) -> list[dict[str, Any]]:
    if file.suffix == ".csv":
        with file.open(newline="", encoding="utf-8") as lines:
            return list(csv.DictReader(lines))
    from pyarrow import parquet

    rows: list[dict[str, Any]] = parquet.read_table(file).to_pylist()
    return rows
