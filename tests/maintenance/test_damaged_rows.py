"""A damaged row hides no other row, and what reads it says which one it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.maintenance.stores import add_run

from sightline.cli.main import main
from sightline.store.store import Store

Capture = pytest.CaptureFixture[str]


def _changed(url: str, *statements: str) -> None:
    """A store with two runs, and a change to it that no command makes."""
    store = Store.open(url)
    for first in (0, 5):
        add_run(store, range(first, first + 10))
    store.labels.give_name(1, "base")
    with store.database.write() as connection:
        for statement in statements:
            connection.core.exec_driver_sql(statement)
    store.close()


def _sightline(capsys: Capture, *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(list(words))
    found = capsys.readouterr()
    return status, found.out, found.err


def _bytes(url: str, content: str) -> str:
    return f"'\\x{content}'::bytea" if "://" in url else f"x'{content}'"


@pytest.mark.slow
@pytest.mark.parametrize("body", ["00ff", "7b7d"])
def test_a_damaged_run_is_listed_as_such_among_the_others_and_can_be_deleted(
    capsys: Capture, tmp_path: Path, store_url: str, body: str
) -> None:
    _changed(store_url, f"UPDATE runs SET body = {_bytes(store_url, body)} WHERE id = 1")
    at = ("--store", store_url)
    status, out, _ = _sightline(capsys, "runs", "list", *at)
    assert (status, "damaged: its description cannot be read;" in " ".join(out.split())) == (0, True)
    runs = json.loads(_sightline(capsys, "runs", "list", "--json", *at)[1])
    assert [(run["run"], run["state"], run["task"]) for run in runs] == [
        (1, "damaged", ""),
        (2, "complete", "groups:default"),
    ]
    found = json.loads(_sightline(capsys, "store", "info", "--json", *at)[1])
    assert [run["state"] for run in found["runs"]] == ["damaged", "complete"]
    status, out, _ = _sightline(capsys, "runs", "show", "2", *at)
    assert (status, "complete" in out) == (0, True)
    status, _, err = _sightline(capsys, "runs", "show", "1", *at)
    assert (status, "row 1 of the table runs" in err) == (3, True)
    file = tmp_path / "runs.jsonl"
    assert _sightline(capsys, "store", "export", "runs", "--out", str(file), *at)[0] == 0
    first, second = map(json.loads, file.read_text().splitlines())
    assert (first["run"], first["name"], "row 1 of the table runs" in first["damaged"]) == (1, "base", True)
    assert second["description"]["benchmark"] == "groups"
    status, out, _ = _sightline(capsys, "store", "verify", "--json", *at)
    assert (status, [one["remedy"] for one in json.loads(out)["listed"]]) == (
        1,
        ["`sightline runs delete 1` deletes the run, its answers stay"],
    )
    assert _sightline(capsys, "runs", "delete", "1", "--yes", *at)[0] == 0
    assert _sightline(capsys, "store", "verify", *at)[0] == 0
    assert [run["run"] for run in json.loads(_sightline(capsys, "runs", "list", "--json", *at)[1])] == [2]


@pytest.mark.parametrize(
    ("kind", "damage", "row"),
    [
        ("verdicts", "INSERT INTO verdicts (run, body) VALUES (1, {})", "row 1 of the table verdicts"),
        (
            "endpoints",
            "INSERT INTO endpoints (created, identity, body) VALUES (1, 'm', {})",
            "row 1 of the table endpoints",
        ),
        ("answers", "UPDATE answers SET result = '{{' WHERE id = 2", "row 2 of the table answers"),
        ("answers", "UPDATE answers SET request = '{{}}' WHERE id = 2", "row 2 of the table answers"),
    ],
)
def test_an_export_names_the_damaged_row(
    capsys: Capture, tmp_path: Path, store_url: str, kind: str, damage: str, row: str
) -> None:
    _changed(store_url, damage.format(_bytes(store_url, "00ff")))
    file = tmp_path / "out.jsonl"
    words = ("store", "export", kind, "--out", str(file), "--store", store_url)
    status, _, err = _sightline(capsys, *words)
    assert (status, row in err, "internal error" in err, file.exists()) == (3, True, False, False)


def test_the_answers_of_a_run_are_exported_once_each(capsys: Capture, tmp_path: Path) -> None:
    """Samples of several batches can have the same request."""
    store = Store.open(str(tmp_path / "s.db"))
    add_run(store, range(20))
    add_run(store, [*range(20)] * 60)
    store.close()
    file = tmp_path / "answers.jsonl"
    words = ("--run", "2", "--out", str(file), "--store", str(tmp_path / "s.db"))
    assert _sightline(capsys, "store", "export", "answers", *words)[0] == 0
    assert len(file.read_text().splitlines()) == 20


def test_exported_runs_have_their_labels(capsys: Capture, tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "s.db"))
    add_run(store, range(3))
    store.labels.give_name(1, "base")
    store.labels.add_tags(1, ["b", "a"])
    store.labels.set_note(1, "before the restart")
    store.close()
    file = tmp_path / "runs.jsonl"
    words = ("--out", str(file), "--store", str(tmp_path / "s.db"))
    assert _sightline(capsys, "store", "export", "runs", *words)[0] == 0
    run = json.loads(file.read_text())
    assert (run["name"], run["tags"], run["note"]) == ("base", ["a", "b"], "before the restart")


def test_verify_names_a_remedy_that_works_on_this_store(capsys: Capture, store_url: str) -> None:
    _changed(
        store_url,
        "UPDATE answers SET result = '{' WHERE id = 3",
        "INSERT INTO run_tags (run, tag) VALUES (99, 'a')",
    )
    _, out, _ = _sightline(capsys, "store", "verify", "--json", "--store", store_url)
    remedies = {one["table"]: one["remedy"] for one in json.loads(out)["listed"]}
    assert "store merge" in remedies["answers"]
    assert remedies["answers"].count("--into NEW") == 1
    assert "store gc" in remedies["run_tags"]
