"""Commands on whole stores know annotation projects."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from sightline.annotation.live import Form, LiveProject
from sightline.annotation.store import AnnotationStore
from sightline.annotation.task import task
from sightline.annotation.types import Annotator, Item, Project
from sightline.cli.main import main
from sightline.maintenance.merge import merge
from sightline.maintenance.verify import verify
from sightline.store.store import Store


def made(path: Path, *judges: str) -> AnnotationStore:
    """A store with the project p, in which these annotators judged everything."""
    store = AnnotationStore(Store.open(str(path)), time.time)
    items = [Item(number, texts={"response": ("x",)}) for number in (1, 2)]
    store.create(Project("p", task("rate")), items)
    judge(store, *judges)
    return store


def judge(store: AnnotationStore, *names: str) -> None:
    live = LiveProject(store, store.project("p"), time.time)
    for name in names:
        annotator = store.invite(live.row.number, Annotator(0, name, expires=time.time() + 99))
        while (item := live.next_item(annotator)) is not None:
            live.submit(
                annotator, Form(f"{name} {item.number}", item.number, "judge", {"verdict": ["right"]})
            )


def merged(*sources: Path, into: Path) -> AnnotationStore:
    list(merge([str(source) for source in sources], str(into), show_progress=False))
    return AnnotationStore(Store.open(str(into)), time.time)


def by_name(store: AnnotationStore, project: str = "p") -> dict[str, list[int]]:
    row = store.project(project)
    names = {one.number: one.name for one in store.annotators(row.number)}
    found: dict[str, list[int]] = {name: [] for name in names.values()}
    for entry in store.entries(row.number):
        found[names[entry.annotator]].append(entry.item)
    return found


def test_two_copies_of_a_project_become_one_with_all_judgements(tmp_path: Path) -> None:
    made(tmp_path / "a.db", "anna")
    merged(tmp_path / "a.db", into=tmp_path / "b.db")
    judge(AnnotationStore(Store.open(str(tmp_path / "a.db")), time.time), "ben")
    judge(AnnotationStore(Store.open(str(tmp_path / "b.db")), time.time), "chloe")
    for _ in range(2):
        both = merged(tmp_path / "a.db", tmp_path / "b.db", into=tmp_path / "c.db")
        assert by_name(both) == {"anna": [1, 2], "ben": [1, 2], "chloe": [1, 2]}
        assert len(both.items(both.project("p").number)) == 2


def test_another_project_of_the_same_name_gets_another_name(tmp_path: Path) -> None:
    made(tmp_path / "a.db", "anna")
    made(tmp_path / "b.db", "ben")
    both = merged(tmp_path / "a.db", tmp_path / "b.db", into=tmp_path / "c.db")
    assert by_name(both) == {"anna": [1, 2]}
    assert by_name(both, "p-2") == {"ben": [1, 2]}


def test_verify_finds_a_damaged_judgement(tmp_path: Path) -> None:
    made(tmp_path / "a.db", "anna")
    store = Store.open(str(tmp_path / "a.db"))
    assert list(verify(str(tmp_path / "a.db"), show_progress=False)) == []
    with store.database.write() as connection:
        connection.core.exec_driver_sql("UPDATE annotation_log SET body = x'00' WHERE id = 1")
    faults = list(verify(str(tmp_path / "a.db"), show_progress=False))
    assert [(fault.table, fault.row) for fault in faults] == [("annotation_log", "id 1")]


def test_the_log_is_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path / "a.db", "anna")
    out = tmp_path / "log.jsonl"
    words = ["store", "export", "annotations", "--store", str(tmp_path / "a.db"), "--out", str(out)]
    assert main(words) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["entry"]["item"] for line in lines] == [1, 2]
