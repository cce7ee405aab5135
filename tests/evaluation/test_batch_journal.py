"""The journal of batches, on a file and on a PostgreSQL server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.cli.main import main
from sightline.evaluation.batches import BatchJournal
from sightline.maintenance.merge import merge
from sightline.maintenance.store_maintenance import CleaningOptions, clean
from sightline.maintenance.verify import find_faults, verify
from sightline.store.answers import Attempt, KeyedRequest, with_key
from sightline.store.store import Store
from sightline.types import Answer, Failure, Request, user

ADDRESS = "http://host/v1"


@pytest.fixture
def opened(store_url: str) -> Iterator[Store]:
    store = Store.open(store_url)
    yield store
    store.close()


@pytest.fixture
def other(opened: Store, store_url: str) -> Iterator[Store]:
    """The same store, for another process."""
    store = Store.open(store_url)
    yield store
    store.close()


def keyed(number: int) -> KeyedRequest:
    return with_key(Request("", (user(f"question {number}"),), {}), "m")


def keys(*numbers: int) -> list[str]:
    return [keyed(number).request.key for number in numbers]


def answer(store: Store, *numbers: int) -> None:
    store.answers.add([Attempt(one.request.key, one.canonical, Answer("A")) for one in map(keyed, numbers)])


def test_a_request_is_in_one_batch_at_most(opened: Store) -> None:
    async def work() -> None:
        first = await BatchJournal(opened).add(ADDRESS, "file-1", keys(1, 2, 3))
        assert first is not None
        assert (first.keys, first.batch, first.requests) == (frozenset(keys(1, 2, 3)), None, 3)
        assert await BatchJournal(opened).add(ADDRESS, "file-2", keys(3, 4)) is None
        assert await BatchJournal(opened).find(keys(4)) == []
        await BatchJournal(opened).record_id(first.number, "batch-1")
        await BatchJournal(opened).record_state(first.number, "in_progress")
        (found,) = await BatchJournal(opened).find(keys(2, 3, 4))
        assert (found.keys, found.batch, found.state) == (frozenset(keys(2, 3)), "batch-1", "in_progress")
        await BatchJournal(opened).remove(first.number, keys(3))
        second = await BatchJournal(opened).add(ADDRESS, "file-2", keys(3, 4))
        assert second is not None
        await BatchJournal(opened).remove(second.number, keys(3, 4))
        assert [one.file for one in BatchJournal(opened).all()] == ["file-1"]

    asyncio.run(work())


def test_a_batch_is_closed_when_all_its_requests_are_answered(opened: Store) -> None:
    assert asyncio.run(BatchJournal(opened).add(ADDRESS, "file-1", keys(1, 2))) is not None
    answer(opened, 1)
    failure = Failure("transient", "no result")
    opened.answers.add([Attempt(keyed(2).request.key, keyed(2).canonical, failure)])
    BatchJournal(opened).close_answered()
    (batch,) = BatchJournal(opened).holding(keys(1, 2))
    assert batch.keys == frozenset(keys(2))
    answer(opened, 2)
    BatchJournal(opened).close_answered()
    assert BatchJournal(opened).all() == []


def test_a_request_that_is_answered_meanwhile_is_in_no_new_batch(opened: Store) -> None:
    answer(opened, 1)
    assert asyncio.run(BatchJournal(opened).add(ADDRESS, "file-1", keys(1, 2))) is None
    assert BatchJournal(opened).all() == []


def test_one_process_at_a_time_follows_a_batch(opened: Store, other: Store) -> None:
    async def work() -> None:
        own, others = BatchJournal(opened), BatchJournal(other)
        batch = await own.add(ADDRESS, "file-1", keys(1, 2, 3))
        assert batch is not None
        (found,) = await others.find(keys(3))
        assert await own.reserve(batch) == batch
        assert await others.reserve(found) is None
        await own.record_id(batch.number, "batch-1")
        await own.release(batch)
        reserved = await others.reserve(found)
        assert reserved is not None
        assert (reserved.batch, reserved.keys) == ("batch-1", frozenset(keys(3)))
        assert await own.reserve(batch) is None
        other.claims.release()  # it has ended
        assert await own.reserve(batch) is not None

    asyncio.run(work())


def test_a_merge_copies_what_is_not_fetched(tmp_path: Path, store_url: str) -> None:
    source, target = Store.open(str(tmp_path / "source.db")), Store.open(store_url)
    asyncio.run(BatchJournal(source).add(ADDRESS, "file-1", keys(1, 2, 3)))
    asyncio.run(BatchJournal(source).record_id(1, "batch-1"))
    asyncio.run(BatchJournal(source).add(ADDRESS, "file-2", keys(4)))
    asyncio.run(BatchJournal(target).add(ADDRESS, "file-9", keys(3)))
    answer(target, 1, 4)
    source.close()
    for _ in range(2):
        list(merge([str(tmp_path / "source.db")], store_url, show_progress=False))
        found = {one.file: (one.batch, one.keys) for one in BatchJournal(target).holding(keys(1, 2, 3, 4))}
        assert found == {"file-9": (None, frozenset(keys(3))), "file-1": ("batch-1", frozenset(keys(2)))}
    target.close()


def test_a_store_with_batches_is_sound_cleaned_and_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store.open("s.db")
    asyncio.run(BatchJournal(store).add(ADDRESS, "file-1", keys(1, 2)))
    answer(store, 1)
    store.claims.release()
    assert list(find_faults(store, show_progress=False)) == []
    store.close()
    assert [(one.table, one.rows) for one in clean("s.db", CleaningOptions()).dropped][:1] == [
        ("batch_requests", 1)
    ]
    assert list(verify("s.db", show_progress=False)) == []
    assert main(["store", "export", "batches", "--out", "out.jsonl", "--store", "s.db"]) == 0
    (line,) = map(json.loads, Path("out.jsonl").read_text().splitlines())
    assert (line["address"], line["file"], line["keys"]) == (ADDRESS, "file-1", keys(2))
    assert main(["store", "info", "--store", "s.db"]) == 0
    assert "batches at providers that are not fetched yet" in capsys.readouterr().out


def test_a_request_of_no_batch_is_found(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "s.db"))
    asyncio.run(BatchJournal(store).add(ADDRESS, "file-1", keys(1)))
    with store.database.write() as connection:
        connection.core.exec_driver_sql("DELETE FROM batches")
    (fault,) = find_faults(store, show_progress=False)
    assert "batch 1 does not exist in batches" in fault.problem
    store.close()
