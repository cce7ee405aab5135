"""`sightline store ...` as a user meets it: exit statuses, JSON, messages, hostile names, interruptions."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.maintenance.stores import add_run, content, make_store, question

from sightline.cli.main import main
from sightline.store.answers import with_key
from sightline.store.schema import SCHEMA_VERSION
from sightline.store.store import Store
from sightline.text import counted
from sightline.types import Answer, Request, Verdict, user

Capture = pytest.CaptureFixture[str]

HOSTILE = "evil\x1b[31m\u202egnp.\u2066"
"""A name with an escape sequence and with characters that turn the direction of writing."""

SUBCOMMANDS = ("info", "verify", "merge", "gc", "export")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two runs of 30 probes, of which 20 are the same, a verdict, a name, a tag and a note."""
    path = make_store(tmp_path_factory.mktemp("store") / "sightline.db", [range(30), range(10, 40)])
    store = Store.open(str(path))
    verdict = Verdict(
        targets=(question(3).key,),
        question="correct",
        scorer="h",
        judge="anna",
        kind="human",
        verdict="right",
    )
    store.runs.add_verdicts(1, [verdict])
    store.labels.give_name(1, "first")
    store.labels.add_tags(1, ["july"])
    store.labels.set_note(1, "a note")
    store.close()
    return path


@pytest.fixture(autouse=True)
def folder(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a copy of the store."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(written, tmp_path / "sightline.db")
    return tmp_path


def run(capsys: Capture, *words: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error."""
    capsys.readouterr()
    status = main(["store", *words])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def as_json(capsys: Capture, *words: str, status: int = 0) -> Any:
    found, out, err = run(capsys, *words, "--json")
    assert found == status, err
    return json.loads(out)


def damage(path: Path) -> None:
    """Change a byte of one request."""
    store = Store.open(str(path))
    with store.database.write() as connection:
        connection.core.exec_driver_sql(
            "UPDATE answers SET request = replace(request, 'shortly', 'snortly') WHERE id = 5"
        )
    store.close()


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_info_lists_tables_models_dates_and_runs(capsys: Capture, folder: Path) -> None:
    before = (folder / "sightline.db").read_bytes()
    found = as_json(capsys, "info")
    rows = {table["table"]: table["rows"] for table in found["tables"]}
    assert (rows["answers"], rows["runs"], rows["verdicts"]) == (40, 2, 1)
    assert (found["schema_version"], found["models"]) == (SCHEMA_VERSION, ["m"])
    assert [(one["run"], one["task"], one["state"]) for one in found["runs"]] == [
        (1, "groups:default", "complete"),
        (2, "groups:default", "complete"),
    ]
    assert found["first_answer"] <= found["last_answer"]
    assert found["sizes"]["bytes"] == len(before)
    assert sum(one["bytes"] or 0 for one in found["tables"]) <= len(before)
    status, out, _ = run(capsys, "info")
    assert status == 0
    assert "every attempt: the request, and its answer" in out
    assert (folder / "sightline.db").read_bytes() == before


def test_info_of_a_store_without_runs(capsys: Capture) -> None:
    Store.open("empty.db").close()
    found = as_json(capsys, "info", "--store", "empty.db")
    assert (found["runs"], found["models"], found["first_answer"]) == ([], [], None)
    assert "no answers" in run(capsys, "info", "--store", "empty.db")[1]


def test_a_sound_store_verifies_with_status_0(capsys: Capture) -> None:
    assert run(capsys, "verify", "--quiet") == (0, "sightline.db: nothing is wrong\n", "")
    assert as_json(capsys, "verify", "--quiet") == {"faults": 0, "listed": []}


def test_a_damaged_store_verifies_with_status_1_and_names_the_row(capsys: Capture, folder: Path) -> None:
    damage(folder / "sightline.db")
    found = as_json(capsys, "verify", "--quiet", status=1)
    assert ("answers", "id 5") in [(one["table"], one["row"]) for one in found["listed"]]
    assert all("sightline" in one["remedy"] for one in found["listed"])
    status, out, _ = run(capsys, "verify", "--quiet")
    assert status == 1
    assert "2 faults in sightline.db" in out or "1 fault in sightline.db" in out
    assert out.count("store merge sightline.db --into NEW") == 1


def test_the_faults_of_a_table_stand_together(capsys: Capture) -> None:
    """Rows that are damaged, and rows without their run, are found with other tables between."""
    damage(Path("sightline.db"))
    store = Store.open("sightline.db")
    with store.database.write() as connection:
        connection.core.exec_driver_sql("UPDATE runs SET body = x'00' WHERE id = 1")
        connection.core.exec_driver_sql("UPDATE probes SET run = 7 WHERE run = 2")
        connection.core.exec_driver_sql("INSERT INTO probes VALUES (1, 5, x'00')")
    store.close()
    _, out, _ = run(capsys, "verify", "--quiet")
    of_probes = out[out.index("\nprobes") : out.index("\nruns")]
    assert "run 1, place 5" in of_probes
    assert "does not exist in runs" in " ".join(of_probes.split())


def test_a_merge_lists_the_runs_and_their_new_numbers(capsys: Capture, folder: Path) -> None:
    make_store(folder / "other.db", [range(3)])
    [merged] = as_json(capsys, "merge", "sightline.db", "--into", "other.db", "--quiet")
    assert [(one["run"], one["into"], one["state"]) for one in merged["runs"]] == [
        (1, 2, "added"),
        (2, 3, "added"),
    ]
    assert (merged["attempts"], merged["new_attempts"]) == (40, 40)
    status, out, _ = run(capsys, "merge", "sightline.db", "--into", "other.db", "--quiet")
    assert status == 0
    assert "40 answers and failed attempts, of which 0 are new" in out
    assert "there already" in out


def test_a_merge_says_how_many_answers_differ(capsys: Capture, folder: Path) -> None:
    make_store(folder / "other.db", [range(5, 12)], said="That is")
    status, out, _ = run(capsys, "merge", "other.db", "--into", "sightline.db", "--quiet")
    assert status == 0
    assert "7 requests of the new ones had an answer in the target" in " ".join(out.split())
    assert "7 requests of these had an answer with another text" in " ".join(out.split())
    assert "another text" not in run(capsys, "merge", "other.db", "--into", "sightline.db", "--quiet")[1]


def test_a_merge_prints_what_it_copied_before_a_source_fails(capsys: Capture, folder: Path) -> None:
    store = Store.open(str(make_store(folder / "other.db", [range(30)])))
    with store.database.write() as connection:
        connection.core.exec_driver_sql("ALTER TABLE readings RENAME COLUMN body TO other")
    store.close()
    words = ["merge", "sightline.db", "other.db", "--into", "t.db", "--quiet"]
    status, out, err = run(capsys, *words)
    assert (status, "40 are new" in out, "other.db failed" in err) == (3, True, True)
    [merged] = as_json(capsys, *words, status=3)
    assert (merged["source"], merged["new_attempts"]) == ("sightline.db", 0)


def test_a_merge_that_leaves_damaged_rows_out_says_so_with_status_1(capsys: Capture, folder: Path) -> None:
    damage(folder / "sightline.db")
    status, out, _ = run(capsys, "merge", "sightline.db", "--into", "t.db", "--quiet")
    text = " ".join(out.split())
    assert status == 1
    assert "1 row of answers is damaged and not copied; the first: id 5:" in text
    assert "run 1 is not finished any more: 1 of its probes have no attempt" in text
    assert "`sightline store verify --store sightline.db` lists" in text
    [merged] = as_json(capsys, "merge", "sightline.db", "--into", "t.db", "--quiet", status=1)
    assert [(one["table"], one["rows"]) for one in merged["lost"]] == [("answers", 1)]


def test_gc_says_what_goes_and_a_dry_run_changes_nothing(capsys: Capture, folder: Path) -> None:
    store = Store.open("sightline.db")
    store.caches.vectors.add({b"k" * 32: b"abcd"})
    store.close()
    assert as_json(capsys, "gc")["dropped"] == []
    assert run(capsys, "gc")[1].startswith("nothing to drop\n")
    assert "caches hold 36 bytes, which --caches drops" in run(capsys, "gc")[1]
    would = as_json(capsys, "gc", "--caches", "--dry-run")
    assert would["dropped"] == [{"table": "vectors", "rows": 1, "reason": "cache, filled again when needed"}]
    assert would["bytes_after"] is None
    assert "nothing was changed" in run(capsys, "gc", "--dry-run")[1]
    status, out, _ = run(capsys, "gc", "--caches")
    assert status == 0
    assert "filled again when needed" in out
    assert "caches hold" not in run(capsys, "gc")[1]


def test_records_are_exported_as_they_are_in_the_store(capsys: Capture, folder: Path) -> None:
    answers, _ = content("sightline.db")
    for kind, count in (("runs", 2), ("probes", 60), ("answers", 40), ("verdicts", 1), ("endpoints", 0)):
        status, out, err = run(capsys, "export", kind, "--out", f"{kind}.jsonl", "--quiet")
        assert (status, out, err) == (0, f"written: {kind}.jsonl, {counted(count, 'record')}\n", "")
        assert len(lines_of(folder / f"{kind}.jsonl")) == count
    runs = lines_of(folder / "runs.jsonl")
    assert [one["run"] for one in runs] == [1, 2]
    assert runs[0]["description"]["benchmark"] == "groups"
    probes = lines_of(folder / "probes.jsonl")
    assert [(one["run"], one["sample"]) for one in probes[29:31]] == [(1, "s29"), (2, "s10")]
    exported = lines_of(folder / "answers.jsonl")
    assert {one["key"]: one["result"]["text"] for one in exported} == {
        key: answer.text for key, answer in answers.items()
    }
    asked = question(7)
    of_seven = next(one for one in exported if one["key"] == asked.key)
    assert of_seven["request"] == json.loads(asked.request)
    assert lines_of(folder / "verdicts.jsonl")[0]["targets"] == [question(3).key]


def test_the_records_of_one_run_are_in_the_order_of_its_probes(capsys: Capture, folder: Path) -> None:
    for kind in ("probes", "answers", "runs", "verdicts"):
        assert run(capsys, "export", kind, "--run", "2", "--out", f"{kind}.jsonl", "--quiet")[0] == 0
    keys = [question(number).key for number in range(10, 40)]
    assert [one["key"] for one in lines_of(folder / "probes.jsonl")] == keys
    assert [one["key"] for one in lines_of(folder / "answers.jsonl")] == keys
    assert [one["run"] for one in lines_of(folder / "runs.jsonl")] == [2]
    assert lines_of(folder / "verdicts.jsonl") == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["export", "anwsers", "--out", "x"], "did you mean 'answers'"),
        (["export", "runs", "--out", "x", "--run", "99"], "there is no run 99 in this store"),
        (["export", "runs", "--out", "x", "--run", "nosuch"], "no run is called 'nosuch'"),
        (["export", "runs", "--out", "sightline.db"], "sightline.db"),
        (["export", "runs", "--out", "there.txt"], "exists already"),
        (["export", "runs"], "--out"),
        (["info", "--store", "missing.db"], "there is no store"),
        (["info", "--store", "there.txt"], "there.txt"),
        (["verify", "--store", "missing.db"], "there is no store"),
        (["gc", "--store", "missing.db"], "there is no store"),
        (["merge", "missing.db", "--into", "t.db"], "there is no store"),
        (["merge", "sightline.db", "--into", "sightline.db"], "is a source and the target"),
        (["merge", "sightline.db"], "--into"),
        (["infp"], "did you mean 'info'"),
        (["gc", "--dryrun"], "--dry-run"),
    ],
)
def test_a_wrong_call_has_status_2_and_writes_nothing(
    capsys: Capture, folder: Path, words: list[str], message: str
) -> None:
    (folder / "there.txt").write_text("mine, and no store; long enough to have a header\n" * 40)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    try:
        status, out, err = run(capsys, *words)
    except SystemExit as refused:  # by argparse
        status, (out, err) = int(refused.code or 0), capsys.readouterr()
    assert (status, out) == (2, "")
    assert message in err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_an_export_overwrites_only_with_force(capsys: Capture, folder: Path) -> None:
    (folder / "runs.jsonl").write_text("mine")
    assert run(capsys, "export", "runs", "--out", "runs.jsonl", "--quiet")[0] == 2
    assert (folder / "runs.jsonl").read_text() == "mine"
    assert run(capsys, "export", "runs", "--out", "runs.jsonl", "--quiet", "--force")[0] == 0
    assert len(lines_of(folder / "runs.jsonl")) == 2


def test_an_export_of_a_damaged_store_leaves_no_file(capsys: Capture, folder: Path) -> None:
    damage(folder / "sightline.db")
    status, out, err = run(capsys, "export", "answers", "--out", "a.jsonl", "--quiet")
    assert (status, out) == (3, "")
    assert "row 5 of the table answers" in err
    assert [path.name for path in folder.iterdir()] == ["sightline.db"]


def test_hostile_names_are_shown_as_text(capsys: Capture, folder: Path) -> None:
    """Names of models, runs and files may come from others; a terminal must not obey them."""
    store = Store.open(f"{HOSTILE}.db")
    run_number = add_run(store, range(3))
    hostile = with_key(Request("", (user("?"),), {}, {}), HOSTILE)
    store.answers.add([type(question(0))(hostile.request.key, hostile.canonical, Answer("x"))])
    store.labels.give_name(run_number, "name")
    body, _ = store.runs.get(run_number)
    store.runs.finish(run_number, {**body, "description": {**body["description"], "model": HOSTILE}})
    store.close()
    for words, status in (
        (["info", "--store", f"{HOSTILE}.db"], 0),
        (["verify", "--quiet", "--store", f"{HOSTILE}.db"], 0),
        (["merge", f"{HOSTILE}.db", "--into", f"{HOSTILE}2.db", "--quiet"], 0),
        (["merge", f"{HOSTILE}.db", "--into", f"{HOSTILE}.db", "--quiet"], 2),
        (["gc", "--store", f"{HOSTILE}.db"], 0),
        (["gc", "--store", f"{HOSTILE}9.db"], 2),
        (["export", "runs", "--store", f"{HOSTILE}.db", "--out", f"{HOSTILE}.jsonl", "--quiet"], 0),
        (["export", HOSTILE, "--store", f"{HOSTILE}.db", "--out", "x"], 2),
    ):
        found, out, err = run(capsys, *words)
        assert found == status, (words, err)
        assert not {"\x1b", "\u202e", "\u2066"} & set(out + err), words
    assert as_json(capsys, "info", "--store", f"{HOSTILE}.db")["models"] == [HOSTILE, "m"]


def _interrupted(words: list[str], folder: Path) -> int:
    """Start a command, press Ctrl-C once it has written something, and return its exit status."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sightline", "store", *words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    deadline = time.monotonic() + 60
    while process.poll() is None and _written_bytes(folder) < 300_000 and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert b"Traceback" not in err
    return process.returncode


def _written_bytes(folder: Path) -> int:
    before = {"big.db", "big.db-wal", "big.db-shm", "sightline.db"}
    # The command removes its drafts meanwhile: os.walk passes over a folder that has gone, rglob raises.
    files = [Path(where, name) for where, _, names in os.walk(folder) for name in names if name not in before]
    return sum(_size(file) for file in files)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that takes a second to copy."""
    return make_store(tmp_path_factory.mktemp("big") / "big.db", [range(6000), range(3000, 9000)])


@pytest.mark.slow
def test_ctrl_c_leaves_no_half_written_export(folder: Path, big: Path) -> None:
    shutil.copy(big, folder / "big.db")
    assert _interrupted(["export", "answers", "--store", "big.db", "--out", "out.jsonl"], folder) == 130
    assert {path.name for path in folder.iterdir()} - {"big.db-wal", "big.db-shm"} == {
        "big.db",
        "sightline.db",
    }
    assert (folder / "big.db").read_bytes() == big.read_bytes()


@pytest.mark.slow
def test_a_merge_after_ctrl_c_is_completed_by_the_same_command(
    capsys: Capture, folder: Path, big: Path
) -> None:
    shutil.copy(big, folder / "big.db")
    assert _interrupted(["merge", "big.db", "--into", "t.db"], folder) == 130
    # What is there is sound, and no run looks finished that is not whole.
    assert run(capsys, "verify", "--quiet", "--store", "t.db")[0] == 0
    assert run(capsys, "merge", "big.db", "--into", "t.db", "--quiet")[0] == 0
    assert content("t.db") == content("big.db")


@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
def test_each_subcommand_has_help_with_an_example(capsys: Capture, subcommand: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["store", subcommand, "--help"])
    assert ended.value.code == 0
    assert f"sightline store {subcommand}" in capsys.readouterr().out.partition("examples:")[2]
