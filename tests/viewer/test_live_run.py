"""The page of a run that another process works on."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from starlette.testclient import TestClient
from tests.viewer.conftest import ACCESS, HOST, TOKEN

from sightline.evaluation.plan import read_stored_probes
from sightline.store.answers import Attempt
from sightline.store.store import Store
from sightline.types import Answer, Failure
from sightline.viewer.access import AccessControl
from sightline.viewer.app import create_app
from sightline.viewer.live_run import RunProgress


@pytest.fixture
def file(store_file: Path, tmp_path: Path) -> Path:
    """A copy of the store in which run 3 began: its probes are planned, none is answered."""
    for part in store_file.parent.glob("sightline.db*"):
        if part.is_file():
            shutil.copy(part, tmp_path)
    store = Store.open(str(tmp_path / "sightline.db"))
    body, _ = store.runs.get(1)
    run = store.runs.start({**body, "probes": 60})
    probes = enumerate(read_stored_probes(store, 1))
    store.runs.add_probes(
        run,
        [(place, msgspec.json.encode(replace(probe, key=probe.key[::-1]))) for place, probe in probes],
    )
    store.runs.hold(run)
    store.close()
    return tmp_path / "sightline.db"


def keys(store: Store) -> list[str]:
    return [probe.key for probe in read_stored_probes(store, 3)]


def answer(store: Store, key: str, text: str) -> None:
    request = msgspec.json.encode({"model": "m", "messages": [], "key": key})
    store.answers.add([Attempt(key, request, Answer(text, latency=1.25))])


def test_progress_counts_answers_of_other_processes_as_they_arrive(file: Path) -> None:
    other, store = Store.open(str(file)), Store.open(str(file))
    now = next(row.created for row in store.runs.all() if row.number == 3)
    progress = RunProgress(store, 3, now)
    wanted = keys(store)
    assert (progress.update(now).requests, progress.update(now).answered) == (len(set(wanted)), 0)
    answer(other, wanted[0], "one")
    answer(other, wanted[1], "two")
    other.answers.add([Attempt(wanted[2], b'{"model":"m","messages":[]}', Failure("permanent", "no"))])
    counts = progress.update(now + 10)
    assert (counts.answered, counts.failed, counts.cached) == (2, 1, 0)
    assert [one.key for one in counts.latest] == [wanted[2], wanted[1], wanted[0]]
    assert counts.rate > 0
    assert progress.update(now + 1000).rate == 0
    other.close()
    store.close()


def test_answers_of_other_runs_do_not_count(file: Path) -> None:
    store = Store.open(str(file))
    progress = RunProgress(store, 3, 0.0)
    before = progress.update(0.0)
    answer(store, "ab" * 32, "other")
    after = progress.update(0.0)
    assert (after.answered, after.latest) == (before.answered, before.latest)
    store.close()


def test_a_first_look_and_a_later_one_count_the_same(file: Path) -> None:
    store = Store.open(str(file))
    early = RunProgress(store, 3, 0.0)
    early.update(1.0)
    for number, key in enumerate(dict.fromkeys(keys(store))):
        if number % 3:
            answer(store, key, str(number))
    late = RunProgress(store, 3, 0.0)
    first, second = early.update(2.0), late.update(2.0)
    assert (first.requests, first.answered, first.failed) == (second.requests, second.answered, second.failed)
    store.close()


def test_the_page_shows_progress_and_the_last_responses(file: Path) -> None:
    store = Store.open(str(file))
    client = TestClient(AccessControl(create_app(store), ACCESS), base_url=HOST)
    client.get("/", params={"token": TOKEN})
    assert ">0 of 60</span> requests answered" in client.get("/runs/3").text
    answer(store, keys(store)[0], "<i>east</i>")
    page = client.get("/runs/3").text
    assert "<b>Running</b>" in page
    assert ">1 of 60</span> requests answered" in page
    assert "&lt;i&gt;east&lt;/i&gt;" in page
    assert "1.2 s" in page
    assert 'hx-trigger="every 2s"' in page
    store.close()
