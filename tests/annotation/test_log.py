"""The log: what is confirmed is kept, once, whatever processes do at the same time."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from msgspec.structs import replace

from sightline.annotation.live import Form, LiveProject, NotYourItemError
from sightline.annotation.state import State
from sightline.annotation.store import AnnotationStore
from sightline.annotation.task import Phase, task
from sightline.annotation.types import Annotator, Item, Project
from sightline.errors import UserError
from sightline.store.store import Store

RIGHT = {"verdict": ["right"]}


def project_in(url: str, items: int = 6, annotators: int = 3, per_item: int = 2) -> AnnotationStore:
    store = AnnotationStore(Store.open(url), time.time)
    made = [Item(number, texts={"response": (str(number),)}) for number in range(1, items + 1)]
    number = store.create(Project("p", task("rate"), annotators=per_item), made)
    for one in range(annotators):
        store.invite(number, Annotator(0, f"annotator {one}", expires=time.time() + 3600))
    return store


def live_in(store: AnnotationStore) -> LiveProject:
    return LiveProject(store, store.project("p"), time.time)


@pytest.mark.slow
def test_a_form_that_is_sent_twice_adds_one_entry(store_url: str) -> None:
    live = live_in(project_in(store_url))
    annotator = live.annotators()[0]
    item = live.next_item(annotator)
    assert item is not None
    form = Form("form", item.number, "judge", RIGHT)
    first = live.submit(annotator, form)
    assert live.submit(annotator, form) == first
    assert len(live.refresh().of_annotator(annotator.number)) == 1


def test_the_answers_of_a_test_stay_when_it_is_over(store_url: str) -> None:
    store = AnnotationStore(Store.open(store_url), time.time)
    declared = replace(task("rate"), phases=(Phase("test", kind="qualification"), Phase("work")))
    items = [Item(number, phase="test", expected={"verdict": "right"}) for number in (1, 2)]
    store.create(Project("p", declared, annotators=1), [*items, Item(3, phase="work")])
    store.invite(1, Annotator(0, "anna", expires=time.time() + 3600))
    live = live_in(store)
    (anna,) = live.annotators()
    for form, number, value in (("a", 1, "wrong"), ("b", 1, "right"), ("c", 2, "wrong")):
        assert live.next_item(anna) is not None
        live.submit(anna, Form(form, number, "judge", {"verdict": [value]}))
    for action in ("judge", "undo"):
        with pytest.raises(NotYourItemError, match="the test is over"):
            live.submit(anna, Form(f"d {action}", 2, action, RIGHT))
    assert live.next_item(anna) is None


def test_a_form_of_another_annotator_is_refused(store_url: str) -> None:
    live = live_in(project_in(store_url, items=1, per_item=1))
    first, second, _ = live.annotators()
    item = live.next_item(first)
    assert item is not None
    with pytest.raises(NotYourItemError):
        live.submit(second, Form("a", item.number, "judge", RIGHT))
    live.submit(first, Form("b", item.number, "judge", RIGHT))
    with pytest.raises(NotYourItemError):
        live.submit(second, Form("b", item.number, "judge", RIGHT))
    with pytest.raises(NotYourItemError):
        live.submit(first, Form("c", 99, "judge", RIGHT))
    assert len(live.refresh().of_item(item.number)) == 1


def test_an_undo_adds_an_entry_and_gives_the_item_back(store_url: str) -> None:
    store = project_in(store_url)
    live = live_in(store)
    annotator = live.annotators()[0]
    item = live.next_item(annotator)
    assert item is not None
    live.submit(annotator, Form("a", item.number, "judge", RIGHT))
    live.next_item(annotator)
    live.submit(annotator, Form("b", item.number, "undo", {}))
    assert live.next_item(annotator) == item
    assert [entry.action for entry in store.entries(live.row.number)] == ["judge", "undo"]


def test_a_closed_project_takes_nothing_more(store_url: str) -> None:
    store = project_in(store_url)
    live = live_in(store)
    annotator = live.annotators()[0]
    item = live.next_item(annotator)
    assert item is not None
    store.close(live.row.number)
    with pytest.raises(UserError, match="closed"):
        live.submit(annotator, Form("a", item.number, "judge", RIGHT))


def test_a_wrong_value_is_refused_and_nothing_is_added(store_url: str) -> None:
    store = project_in(store_url)
    live = live_in(store)
    annotator = live.annotators()[0]
    item = live.next_item(annotator)
    assert item is not None
    for given in ({}, {"verdict": ["error"]}, {"verdict": ["right", "wrong"]}):
        with pytest.raises(UserError):
            live.submit(annotator, Form("a", item.number, "judge", given))
    assert store.entries(live.row.number) == []


def _work(url: str, number: int, stop_after: int) -> None:
    store = AnnotationStore(Store.open(url), time.time)
    live = live_in(store)
    annotator = live.annotators()[number]
    draw = random.Random(number)
    for step in range(stop_after):
        item = live.next_item(annotator)
        if item is None:
            return
        form = Form(f"{number} {step}", item.number, "judge", {"verdict": [draw.choice(["right", "wrong"])]})
        live.submit(annotator, form)


@pytest.mark.slow
def test_annotators_in_several_processes_lose_nothing_and_judge_nothing_too_often(store_url: str) -> None:
    annotators, items = 4, 30
    store = project_in(store_url, items=items, annotators=annotators, per_item=2)
    processes = [
        multiprocessing.get_context("spawn").Process(target=_work, args=(store_url, number, 1000))
        for number in range(annotators)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    entries = store.entries(1)
    judged: dict[int, Counter[int]] = defaultdict(Counter)
    for entry in entries:
        judged[entry.item][entry.annotator] += 1
    assert len(judged) == items
    assert all(sum(by.values()) == 2 and max(by.values()) == 1 for by in judged.values())
    assert [entry.number for entry in entries] == sorted(entry.number for entry in entries)


def _work_and_confirm(url: str, confirmed: str) -> None:
    live = live_in(AnnotationStore(Store.open(url), time.time))
    annotator = live.annotators()[0]
    with open(confirmed, "ab", buffering=0) as file:
        while (item := live.next_item(annotator)) is not None:
            entry = live.submit(annotator, Form(f"form {item.number}", item.number, "judge", RIGHT))
            file.write(b"%d\n" % entry.item)


@pytest.mark.slow
def test_a_killed_server_loses_nothing_that_it_confirmed(store_url: str, tmp_path: Path) -> None:
    store = project_in(store_url, items=2000, per_item=1)
    confirmed = tmp_path / "confirmed"
    process = multiprocessing.get_context("spawn").Process(
        target=_work_and_confirm, args=(store_url, str(confirmed))
    )
    process.start()
    while not confirmed.exists() or confirmed.stat().st_size < 100:
        time.sleep(0.01)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    said = {int(line) for line in confirmed.read_bytes().split(b"\n")[:-1]}
    state = State(store.project("p").project, store.items(1)).advance(store.entries(1))
    kept = {number for number in state.items if state.of_item(number)}
    assert said <= kept
    assert len(kept - said) <= 1, "at most the judgement that was on its way"
    live = live_in(AnnotationStore(Store.open(store_url), time.time))
    item = live.next_item(live.annotators()[0])
    assert item is not None
    assert item.number not in kept
