"""`sightline runs ...` as a user meets it, and names of runs in `report` and `compare`."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.main import main
from sightline.store.store import Store
from training.scenes.build import generate_codis

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def codis(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(generate_codis(tmp_path_factory.mktemp("drawn") / "codis", pairs=6))


@pytest.fixture(scope="module")
def written(codis: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with run 1, named base, and run 2, named other."""
    file = tmp_path_factory.mktemp("store") / "sightline.db"
    words = ["run", "--model", "baseline/chance", "--data", codis, "--quiet", "--store", str(file)]
    assert main([*words, "codis", "--name", "base", "--tag", "july", "--tag", "v2"]) == 0
    assert main([*words, "codis:no-context", "--name", "other", "--tag", "july"]) == 0
    return file


@pytest.fixture(autouse=True)
def store(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the store in the working directory."""
    monkeypatch.chdir(tmp_path)
    for file in written.parent.glob("sightline.db*"):
        shutil.copy(file, tmp_path)


def listed(capsys: Capture, *words: str) -> list[Any]:
    capsys.readouterr()
    assert main(["runs", "list", "--json", *words]) == 0
    found: list[Any] = json.loads(capsys.readouterr().out)
    return found


def error(capsys: Capture, *words: str) -> str:
    capsys.readouterr()
    assert main([*words]) == 2
    return capsys.readouterr().err


def test_the_list_has_names_tags_and_notes(capsys: Capture) -> None:
    assert main(["runs", "note", "base", "before the\nrestart"]) == 0
    first, second = listed(capsys)
    assert (first["run"], first["name"], first["tags"], first["task"]) == (
        1,
        "base",
        ["july", "v2"],
        "codis:default",
    )
    assert (first["note"], second["note"]) == ("before the\nrestart", "")
    assert main(["runs", "list"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "codis:default" in line)
    assert line.split()[:3] == ["1", "base", "july,"]
    assert main(["runs", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [first, second]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["--tag", "july"], [1, 2]),
        (["--tag", "july", "--tag", "v2"], [1]),
        (["--benchmark", "codis"], [1, 2]),
        (["--benchmark", "codis:no-context"], [2]),
        (["--benchmark", "iibench"], []),
        (["--model", "CHANCE"], [1, 2]),
        (["--model", "llava"], []),
    ],
)
def test_filters_of_the_list(capsys: Capture, filters: list[str], expected: list[int]) -> None:
    assert [run["run"] for run in listed(capsys, *filters)] == expected


def test_a_run_is_shown_with_all_its_options(capsys: Capture) -> None:
    capsys.readouterr()
    assert main(["runs", "show", "base", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["run"], shown["name"], shown["samples"]) == (1, "base", 6)
    assert shown["options"]["cot"] is True
    assert main(["runs", "show", "1"]) == 0
    assert re.search(r"model identity +baseline/chance", capsys.readouterr().out)


def test_a_run_is_shown_with_its_state_counts_tokens_and_cost(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text('[prices."baseline/chance"]\nprompt = 1.0\ncompletion = 2.0\n')
    capsys.readouterr()
    assert main(["runs", "show", "base", "--json", "--config", "prices.toml"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["state"] == "complete"
    assert shown["answers"]["probes"] == {"ok": 12, "empty": 0, "error": 0, "not_sent": 0}
    used = shown["answers"]
    assert used["cost"] == (used["prompt_tokens"] + 2 * used["completion_tokens"]) / 1e6
    assert main(["runs", "show", "base"]) == 0
    text = capsys.readouterr().out
    assert "state              complete" in text
    assert "probes             ok=12, empty=0, error=0, not_sent=0" in text


def test_the_list_of_runs_has_a_header_also_in_a_pipe(capsys: Capture) -> None:
    capsys.readouterr()
    assert main(["runs", "list"]) == 0
    _, header, _, first, *_ = capsys.readouterr().out.splitlines()
    assert header.split()[:4] == ["run", "name", "tags", "task"]
    assert header.index("name") == first.index("base")
    assert header.index("task") == first.index("codis:default")
    assert header.index("model") == first.index("baseline/chance")


def test_every_command_reads_the_options_of_a_run_alike(capsys: Capture, codis: str) -> None:
    """`run`, `report` and `runs show` print one text, with switches as --set takes them."""
    run = ["run", "codis", "--model", "baseline/chance", "--data", codis, "--quiet", "--seed", "3"]
    lines = []
    for words in ([*run, "--all"], ["report", "3", "--all"], ["runs", "show", "3"]):
        capsys.readouterr()
        assert main(words) == 0
        found = re.search("options:? (bias=.* seed=3)", " ".join(capsys.readouterr().out.split()))
        assert found, words
        lines.append(found[1])
    assert lines[0] == lines[1] == lines[2]
    assert "cot=on" in lines[0]


def test_report_and_compare_take_names_and_numbers_alike(capsys: Capture) -> None:
    outputs = []
    for words in (["report", "base", "--json"], ["report", "1", "--json"]):
        capsys.readouterr()
        assert main(words) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    tables = []
    for words in (["compare", "base", "other", "--json"], ["compare", "1", "2", "--json"]):
        assert main(words) == 0
        tables.append(capsys.readouterr().out)
    assert tables[0] == tables[1]
    assert main(["compare", "1", "other"]) == 0
    heading = capsys.readouterr().out.partition("─")[0]
    assert "base" in heading
    assert "other" in heading


def test_an_unknown_name_suggests_a_similar_one(capsys: Capture) -> None:
    for words in (["report", "bsae"], ["compare", "bsae", "other"], ["runs", "show", "bsae"]):
        assert "no run is called 'bsae', did you mean 'base'?" in error(capsys, *words)


def test_a_results_folder_comes_before_a_run_of_the_same_name_and_the_command_says_so(
    capsys: Capture, codis: str
) -> None:
    words = ["run", "codis:no-context", "--model", "baseline/chance", "--data", codis, "--quiet"]
    assert main([*words, "--out", "base"]) == 0
    for command in (["report", "base", "--json"], ["compare", "base", "2"]):
        capsys.readouterr()
        assert main(command) == 0
        said = capsys.readouterr()
        assert "base: the results folder is used, not run 1 of the same name" in said.err
        assert command[0] == "compare" or json.loads(said.out)["setting"] == "no-context"


def test_a_folder_without_results_does_not_hide_a_run(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    assert main(["report", "base", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["setting"] == "default"


def test_a_report_of_several_runs_names_them_as_compare_does(capsys: Capture) -> None:
    assert main(["runs", "rename", "other", "--remove"]) == 0
    for form in ("table", "csv", "markdown", "latex", "html"):
        capsys.readouterr()
        assert main(["report", "base", "2", "--format", form]) == 0
        out = capsys.readouterr().out
        assert "base" in out, form
        assert "run 2" in out, form


def test_a_word_without_a_store_is_a_folder(capsys: Capture, tmp_path: Path) -> None:
    message = error(capsys, "compare", "nothing", "here", "--store", str(tmp_path / "none.db"))
    assert "neither the number or name of a run nor a results folder" in message


def test_rename(capsys: Capture) -> None:
    assert main(["runs", "rename", "base", "first"]) == 0
    assert main(["runs", "rename", "2", "base"]) == 0
    assert main(["runs", "rename", "first", "--remove"]) == 0
    assert [run["name"] for run in listed(capsys)] == [None, "base"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["1", "other"], "run 2 is called 'other'"),
        (["1", "7"], "looks like a number"),
        (["1", ""], "--remove removes the name"),
        (["1", "results/a"], "a character that names cannot have"),
        (["1"], "expected one of the two"),
        (["1", "x", "--remove"], "expected one of the two"),
        (["9", "x"], "there is no run 9"),
    ],
)
def test_a_wrong_name_changes_nothing(capsys: Capture, words: list[str], message: str) -> None:
    assert message in error(capsys, "runs", "rename", *words)
    assert [run["name"] for run in listed(capsys)] == ["base", "other"]


def test_tags_are_added_and_removed(capsys: Capture) -> None:
    assert main(["runs", "tag", "other", "paper", "v2"]) == 0
    assert main(["runs", "tag", "2", "july", "--remove"]) == 0
    assert [run["tags"] for run in listed(capsys)] == [["july", "v2"], ["paper", "v2"]]
    assert "a tag" in error(capsys, "runs", "tag", "2", "a,b")


def test_what_matches_nothing_is_said(capsys: Capture) -> None:
    assert main(["runs", "list", "--tag", "nosuch"]) == 0
    assert capsys.readouterr() == ("", "no run matches, of 2 in the store\n")
    assert main(["runs", "tag", "2", "nosuch", "july", "--remove"]) == 0
    assert capsys.readouterr() == ("tags of run 2: none\n", "run 2 had no tag nosuch\n")


def test_the_records_of_a_run_are_exported_by_its_name(tmp_path: Path) -> None:
    for word in ("other", "2"):
        assert main(["store", "export", "probes", "--run", word, "--out", f"{word}.jsonl", "--quiet"]) == 0
    assert (tmp_path / "other.jsonl").read_text() == (tmp_path / "2.jsonl").read_text() != ""


def test_an_empty_note_removes_the_note(capsys: Capture) -> None:
    assert main(["runs", "note", "base", "text"]) == 0
    assert main(["runs", "note", "base", ""]) == 0
    assert capsys.readouterr().out == "note of run 1: text\nrun 1 has no note\n"
    assert listed(capsys)[0]["note"] == ""
    assert main(["runs", "show", "base"]) == 0
    assert re.search("note  +none", capsys.readouterr().out)


def test_a_deleted_run_is_gone_and_its_answers_stay(capsys: Capture, codis: str) -> None:
    assert main(["runs", "delete", "2", "other", "--yes"]) == 0
    assert "run 2; all answers are kept" in capsys.readouterr().out
    assert "no run is called 'other'" in error(capsys, "report", "other")
    words = ["run", "codis:no-context", "--model", "baseline/chance", "--data", codis, "--name", "other"]
    assert main([*words, "--quiet"]) == 0
    assert "run 3: sent 0, cached 6" in capsys.readouterr().err
    assert [run["run"] for run in listed(capsys)] == [1, 3]


def test_without_a_terminal_nothing_is_deleted_without_yes(capsys: Capture) -> None:
    assert "expected --yes" in error(capsys, "runs", "delete", "base")
    assert [run["run"] for run in listed(capsys)] == [1, 2]


@pytest.mark.parametrize(("reply", "left"), [("y", [2]), ("yes", [2]), ("", [1, 2]), ("n", [1, 2])])
def test_deleting_asks_and_says_what_goes_and_what_stays(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, reply: str, left: list[int]
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: reply)
    capsys.readouterr()
    assert main(["runs", "delete", "base"]) == 0
    asked = capsys.readouterr().out
    assert "run 1 (base): codis:default, baseline/chance" in asked
    assert "kept: all answers" in asked
    assert [run["run"] for run in listed(capsys)] == left


def test_a_run_in_progress_is_listed_as_such_and_not_deleted(capsys: Capture, tmp_path: Path) -> None:
    opened = Store.open(str(tmp_path / "sightline.db"))
    body, _ = opened.runs.get(1)
    run = opened.runs.start(body)
    assert listed(capsys)[-1]["state"] == "not finished"
    opened.runs.hold(run)
    assert listed(capsys)[-1]["state"] == "in progress"
    assert f"run {run} is in progress" in error(capsys, "runs", "delete", "base", str(run), "--yes")
    assert [one["run"] for one in listed(capsys)] == [1, 2, run]
    opened.runs.release(run)
    assert main(["runs", "delete", str(run), "--yes"]) == 0
    opened.close()
