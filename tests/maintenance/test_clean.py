"""Cleaning a store: what no run needs goes, and nothing else."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.maintenance.stores import add_run, content, make_store, question

from sightline.errors import EnvironmentFailedError, UserError
from sightline.maintenance.merge import merge
from sightline.maintenance.store_maintenance import CleaningOptions, clean
from sightline.maintenance.verify import verify
from sightline.store import schema
from sightline.store.store import Store
from sightline.types import ImageFile


def _rows(url: str, **options: Any) -> dict[str, int]:
    rows: dict[str, int] = {}
    for one in clean(url, CleaningOptions(**options)).dropped:
        rows[one.table] = rows.get(one.table, 0) + one.rows
    return rows


def _store(tmp_path: Path, url: str) -> dict[str, Any]:
    """A store with two runs, an answer that no run refers to, and a cache; returns the first one's body."""
    list(
        merge([str(make_store(tmp_path / "source.db", [range(20), range(10, 30)]))], url, show_progress=False)
    )
    store = Store.open(url)
    store.answers.add([question(1000)])
    store.caches.vectors.add({b"k" * 32: b"abcd"})
    body, _ = store.runs.get(1)
    store.close()
    return body


def test_answers_and_runs_stay(tmp_path: Path, store_url: str) -> None:
    _store(tmp_path, store_url)
    before = content(store_url)
    assert _rows(store_url) == {}
    assert content(store_url) == before
    assert list(verify(store_url, show_progress=False)) == []
    store = Store.open(store_url)
    assert question(1000).key in store.answers.look_up([question(1000).key])
    store.close()


def test_caches_go_only_on_request_and_otherwise_their_bytes_are_told(tmp_path: Path, store_url: str) -> None:
    _store(tmp_path, store_url)
    store = Store.open(store_url)
    image = ImageFile("a.png", "ab" * 32, "PNG", 3, 4, (5, 6), "")
    store.caches.add_image_files({"a.png": b"i" * 16}, [image])
    store.caches.readings.add({b"r" * 32: b"[]"})
    store.close()
    found = clean(store_url, CleaningOptions())
    assert found.dropped == []
    # Keys and bodies: a vector, a reading; the metadata of an image takes less than 100.
    least = 2 * 32 + 4 + 2 + 16
    assert found.cache_bytes in range(least, least + 100)
    dropped = {"images": 1, "vectors": 1, "readings": 1}
    assert _rows(store_url, caches=True) == dropped
    assert clean(store_url, CleaningOptions()).cache_bytes == 0


def test_what_a_deleted_run_alone_had_goes(tmp_path: Path, store_url: str) -> None:
    _store(tmp_path, store_url)
    store = Store.open(store_url)
    store.runs.drop(1)
    store.close()
    assert _rows(store_url) == {}
    assert _rows(store_url, unreferenced_answers=True) == {"answers": 11}
    assert list(verify(store_url, show_progress=False)) == []


def test_replies_of_the_judges_of_runs_stay(tmp_path: Path, store_url: str) -> None:
    body = _store(tmp_path, store_url)
    store = Store.open(store_url)
    store.runs.finish(1, {**body, "judges": {"m": {"identity": "m", "sampling": {}}}})
    store.close()
    assert _rows(store_url, unreferenced_answers=True) == {}


def test_a_dry_run_says_the_same_and_changes_nothing(tmp_path: Path, store_url: str) -> None:
    _store(tmp_path, store_url)
    options = {"unreferenced_answers": True, "caches": True}
    would = _rows(store_url, **options, dry_run=True)
    assert {"answers", "vectors"} <= would.keys()
    assert _rows(store_url, **options, dry_run=True) == would
    assert _rows(store_url, **options) == would
    assert _rows(store_url, **options) == {}


def test_runs_that_did_not_finish_go_on_request(tmp_path: Path, store_url: str) -> None:
    _store(tmp_path, store_url)
    store = Store.open(store_url)
    add_run(store, range(5), finish=False)
    store.close()
    assert _rows(store_url) == {}
    assert _rows(store_url, unfinished_runs=True)["runs"] == 1
    assert len(content(store_url)[1]) == 2


@pytest.mark.slow
def test_a_file_becomes_smaller(tmp_path: Path) -> None:
    make_store(tmp_path / "s.db", [range(2000)])
    store = Store.open(str(tmp_path / "s.db"))
    store.runs.drop(1)
    store.close()
    found = clean(str(tmp_path / "s.db"), CleaningOptions(unreferenced_answers=True))
    assert found.bytes_after is not None
    assert found.bytes_after < found.bytes_before / 2
    assert found.bytes_after == (tmp_path / "s.db").stat().st_size


@pytest.mark.slow
def test_a_store_is_not_cleaned_while_requests_are_sent(tmp_path: Path, store_url: str) -> None:
    _store(tmp_path, store_url)
    other = Store.open(store_url)
    other.claims.take([question(2000).key])
    with pytest.raises(UserError, match="another process"):
        clean(store_url, CleaningOptions())
    other.close()


@pytest.mark.parametrize("options", [CleaningOptions(), CleaningOptions(dry_run=True)])
def test_a_store_is_not_cleaned_while_a_run_is_judged(
    tmp_path: Path, store_url: str, options: CleaningOptions
) -> None:
    """A run that judges sends no requests; its lease shows that it goes on."""
    _store(tmp_path, store_url)
    other = Store.open(store_url)
    run = add_run(other, range(5), finish=False)
    other.runs.hold(run)
    other.close()
    before = content(store_url)
    with pytest.raises(UserError, match=f"another process.*found 'run {run}'"):
        clean(store_url, options)
    assert content(store_url) == before
    other = Store.open(store_url)
    other.runs.release(run)
    other.close()
    assert _rows(store_url, unfinished_runs=True)["runs"] == 1


@pytest.mark.postgres
def test_leases_hold_by_the_clock_of_the_server(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine whose clock is an hour ahead does not take a lease for one of a killed process."""
    _store(tmp_path, postgres_url)
    other = Store.open(postgres_url)
    other.runs.hold(1)
    other.claims.take([question(2000).key])
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    with pytest.raises(UserError, match="found 'run 1'"):
        clean(postgres_url, CleaningOptions())
    other.runs.release(1)
    with pytest.raises(UserError, match="found 'a process that sends requests"):
        clean(postgres_url, CleaningOptions())
    other.close()


def test_leases_and_claims_of_killed_processes_go(tmp_path: Path) -> None:
    path = str(make_store(tmp_path / "s.db", [range(5)]))
    other = Store.open(path, clock=lambda: 1.0, uptime=lambda: -100.0)
    other.runs.hold(1)
    other.claims.take([question(2000).key])
    other.close()
    assert _rows(path) == {"claims": 1, "workers": 1}


@pytest.mark.slow
def test_a_file_is_not_cleaned_while_another_process_has_it_open(tmp_path: Path) -> None:
    make_store(tmp_path / "s.db", [range(5)])
    other = Store.open(str(tmp_path / "s.db"))
    other.runs.all()
    with pytest.raises(UserError, match="another process"):
        clean(str(tmp_path / "s.db"), CleaningOptions())
    other.close()
    clean(str(tmp_path / "s.db"), CleaningOptions())


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE answers SET request = '{{' WHERE id = 3",
        "UPDATE probes SET body = {broken} WHERE run = 2",
        "UPDATE runs SET body = {broken} WHERE id = 2",
    ],
)
def test_a_damaged_store_is_not_cleaned_and_the_remedy_is_named(
    tmp_path: Path, store_url: str, damage: str
) -> None:
    """What is damaged could need any row: nothing goes."""
    _store(tmp_path, store_url)
    store = Store.open(store_url)
    store.runs.drop(1)
    broken = "decode('c1', 'hex')" if "://" in store_url else "x'c1'"
    with store.database.write() as connection:
        connection.core.exec_driver_sql(damage.format(broken=broken))
    store.close()
    before = _counts(store_url)
    with pytest.raises(EnvironmentFailedError, match=r"is damaged: row .*store verify.*store merge"):
        clean(store_url, CleaningOptions(unreferenced_answers=True))
    assert _counts(store_url) == before


def _counts(url: str) -> list[int]:
    store = Store.open(url)
    with store.database.read() as connection:
        counts = [
            connection.core.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar_one()
            for name in schema.metadata.tables
        ]
    store.close()
    return counts
