"""The journal of batches, on a file and on a PostgreSQL server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.cli.main import main
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
        first = await opened.batches.add(ADDRESS, "file-1", keys(1, 2, 3))
        assert first is not None
        assert (first.keys, first.batch, first.requests) == (frozenset(keys(1, 2, 3)), None, 3)
        assert await opened.batches.add(ADDRESS, "file-2", keys(3, 4)) is None
        assert await opened.batches.find(keys(4)) == []
        await opened.batches.record_id(first.number, "batch-1")
        await opened.batches.record_state(first.number, "in_progress")
        (found,) = await opened.batches.find(keys(2, 3, 4))
        assert (found.keys, found.batch, found.state) == (frozenset(keys(2, 3)), "batch-1", "in_progress")
        await opened.batches.remove(first.number, keys(3))
        second = await opened.batches.add(ADDRESS, "file-2", keys(3, 4))
        assert second is not None
        await opened.batches.remove(second.number, keys(3, 4))
        assert [one.file for one in opened.batches.all()] == ["file-1"]

    asyncio.run(work())


def test_a_batch_is_closed_when_all_its_requests_are_answered(opened: Store) -> None:
    assert asyncio.run(opened.batches.add(ADDRESS, "file-1", keys(1, 2))) is not None
    answer(opened, 1)
    failure = Failure("transient", "no result")
    opened.answers.add([Attempt(keyed(2).request.key, keyed(2).canonical, failure)])
    opened.batches.close_answered()
    (batch,) = opened.batches.holding(keys(1, 2))
    assert batch.keys == frozenset(keys(2))
    answer(opened, 2)
    opened.batches.close_answered()
    assert opened.batches.all() == []


def test_a_request_that_is_answered_meanwhile_is_in_no_new_batch(opened: Store) -> None:
    answer(opened, 1)
    assert asyncio.run(opened.batches.add(ADDRESS, "file-1", keys(1, 2))) is None
    assert opened.batches.all() == []


def test_one_claim_holds_all_requests_of_a_batch_while_it_is_followed(opened: Store, other: Store) -> None:
    opened.claims.take(keys(1, 2, 3))
    batch = asyncio.run(opened.batches.add(ADDRESS, "file-1", keys(1, 2, 3)))
    assert batch is not None
    assert len(opened.claims.held()) == 1
    assert sorted(key.hex() for key in other.batches.followed()) == sorted(keys(1, 2, 3))
    assert opened.batches.take(keys(1, 2, 3, 4)) == (set(keys(1, 2, 3)), set())
    assert other.batches.take(keys(1, 2, 3, 4)) == (set(), set(keys(1, 2, 3)))
    opened.claims.release()
    assert other.batches.followed() == []
    assert other.batches.take(keys(2, 3, 4)) == (set(keys(2, 3)), set())
    assert opened.batches.take(keys(1)) == (set(), set(keys(1)))


def test_a_batch_that_is_not_added_has_no_claim(opened: Store, other: Store) -> None:
    asyncio.run(opened.batches.add(ADDRESS, "file-1", keys(1, 2)))
    other.claims.take(keys(3))
    assert asyncio.run(other.batches.add(ADDRESS, "file-2", keys(2, 3))) is None
    assert len(opened.claims.held()) == 2, "a batch, and the request that is in none"
    assert opened.claims.take(keys(3)) == set()


def test_until_the_results_of_a_batch_are_stored_each_request_has_a_claim(
    opened: Store, other: Store
) -> None:
    async def work() -> None:
        batch = await opened.batches.add(ADDRESS, "file-1", keys(1, 2, 3))
        assert batch is not None
        generation = opened.claims.generation
        await opened.batches.leave(batch, keys(1, 2, 3))
        assert opened.claims.generation == generation
        assert len(opened.claims.held()) == 3
        assert other.batches.take(keys(1, 2, 3)) == (set(), set(keys(1, 2, 3)))
        await opened.batches.remove(batch.number, keys(3))
        assert other.batches.take(keys(3)) == (set(), set())
        assert other.claims.take(keys(3)) == set(), "it failed, and is sent again"
        answer(opened, 1)
        assert len(opened.claims.held()) == 3, "requests 2 and 3, and the batch for the other process"

    asyncio.run(work())


def test_requests_that_wait_are_claimed_again_after_the_claim_on_their_batch_has_ended(
    opened: Store, other: Store
) -> None:
    asyncio.run(other.batches.add(ADDRESS, "file-1", keys(1, 2)))
    other.claims.release()
    assert opened.batches.take(keys(1, 2)).own == set(keys(1, 2))
    (batch,) = opened.batches.holding(keys(1))
    generation = opened.claims.generation
    asyncio.run(opened.batches.leave(batch, keys(1)))
    assert opened.claims.generation > generation
    assert other.batches.take(keys(1, 2)) == (set(keys(2)), set(keys(1)))


def test_a_process_that_lost_its_batch_claims_again_before_it_sends(opened: Store, other: Store) -> None:
    batch = asyncio.run(opened.batches.add(ADDRESS, "file-1", keys(1, 2)))
    assert batch is not None
    opened.claims.release()  # as if it had been stopped for longer than a lease
    assert other.batches.take(keys(1, 2)).own == set(keys(1, 2))
    asyncio.run(other.batches.leave(batch, keys(1, 2)))
    generation = opened.claims.generation
    asyncio.run(opened.batches.leave(batch, keys(1, 2)))
    assert opened.claims.generation > generation
    assert opened.claims.take(keys(1, 2)) == set()


def test_a_merge_copies_what_is_not_fetched(tmp_path: Path, store_url: str) -> None:
    source, target = Store.open(str(tmp_path / "source.db")), Store.open(store_url)
    asyncio.run(source.batches.add(ADDRESS, "file-1", keys(1, 2, 3)))
    asyncio.run(source.batches.record_id(1, "batch-1"))
    asyncio.run(source.batches.add(ADDRESS, "file-2", keys(4)))
    asyncio.run(target.batches.add(ADDRESS, "file-9", keys(3)))
    answer(target, 1, 4)
    source.close()
    for _ in range(2):
        list(merge([str(tmp_path / "source.db")], store_url, show_progress=False))
        found = {one.file: (one.batch, one.keys) for one in target.batches.holding(keys(1, 2, 3, 4))}
        assert found == {"file-9": (None, frozenset(keys(3))), "file-1": ("batch-1", frozenset(keys(2)))}
    target.close()


def test_a_store_with_batches_is_sound_cleaned_and_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store.open("s.db")
    asyncio.run(store.batches.add(ADDRESS, "file-1", keys(1, 2)))
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
    asyncio.run(store.batches.add(ADDRESS, "file-1", keys(1)))
    with store.database.core_write() as connection:
        connection.exec_driver_sql("DELETE FROM batches")
    (fault,) = find_faults(store, show_progress=False)
    assert "batch 1 does not exist in batches" in fault.problem
    store.close()
