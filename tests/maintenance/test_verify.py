"""Verification finds what is damaged, also after a place that cannot be read, and in the caches."""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from tests.maintenance.stores import add_run, content, make_store

import sightline
from sightline.builders.synthetic import generate_codis
from sightline.engine import schema
from sightline.engine.database_errors import StoreFailedError
from sightline.engine.store import Store
from sightline.maintenance.clean import CleaningOptions, clean
from sightline.maintenance.damaged_tables import Unreadable, read_around_damage
from sightline.maintenance.inventory import take_inventory
from sightline.maintenance.merge import merge
from sightline.maintenance.records import export_records
from sightline.maintenance.repair import repair
from sightline.maintenance.verify import verify
from sightline.types import ImageFile


@pytest.mark.parametrize("body", ["body", "x''", "substr(body, 3)", "substr(body, 1, length(body) - 1)"])
def test_damaged_metadata_of_images_is_found(tmp_path: Path, body: str) -> None:
    path = make_store(tmp_path / "s.db", [range(3)])
    store = Store.open(str(path))
    image = ImageFile("a.png", "ab" * 32, "PNG", 3, 4, (5, 6), "")
    store.caches.add_image_files({"a.png": b"i" * 16}, [image])
    with store.database.core_write() as connection:
        connection.exec_driver_sql(f"UPDATE images SET body = CAST({body} AS BLOB)")
    store.close()
    found = [one.table for one in verify(str(path), show_progress=False)]
    assert found == ([] if body == "body" else ["images"])


def test_a_finished_run_that_lost_answers_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    data = generate_codis(tmp_path / "codis", pairs=3)
    sightline.run("codis", model="baseline/chance", data=data, store=str(path))
    assert list(verify(str(path), show_progress=False)) == []
    store = Store.open(str(path))
    with store.database.core_write() as connection:
        connection.exec_driver_sql("DELETE FROM answers WHERE id = 1")
    store.close()
    [fault] = verify(str(path), show_progress=False)
    assert (fault.table, fault.run) == ("runs", 1)
    assert "have no attempt" in fault.problem


def _without_leaves(path: Path, table: str, seed: int, count: int) -> tuple[set[int], set[int]]:
    """Overwrite some pages of a table; returns the numbers of the rows on them, and of the others."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        query = "SELECT pageno, ncell FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path"
        leaves = connection.execute(query, (table,)).fetchall()
        numbers = [number for (number,) in connection.execute(f"SELECT id FROM {table} ORDER BY id")]
    chosen = set(random.Random(seed).sample(range(len(leaves)), count))
    lost, start, content = set(), 0, bytearray(path.read_bytes())
    for place, (page, rows) in enumerate(leaves):
        if place in chosen:
            lost.update(numbers[start : start + rows])
            content[(page - 1) * 4096 : page * 4096] = bytes(4096)
        start += rows
    path.write_bytes(content)
    return lost, set(numbers) - lost


@pytest.mark.parametrize(("seed", "count"), [(1, 1), (2, 3), (3, 6)])
def test_every_row_outside_of_damaged_pages_is_read_and_the_places_of_the_others_are_named(
    tmp_path: Path, seed: int, count: int
) -> None:
    path = make_store(tmp_path / "s.db", [range(800)])
    lost, kept = _without_leaves(path, "answers", seed, count)
    store = Store.open(str(path))
    found: set[int] = set()
    places: list[str] = []
    for page in read_around_damage(store.database, schema.answers):
        if isinstance(page, Unreadable):
            places.append(page.where)
        else:
            found.update(row["id"] for row in page)
    store.close()
    assert found == kept
    limits = [(int(number), int(before or 1 << 60)) for number, before in _limits(places)]
    assert all(any(low < number < high for low, high in limits) for number in lost)
    assert not any(low < number < high for low, high in limits for number in kept)


def _limits(places: list[str]) -> Iterator[tuple[str, str]]:
    for place in places:
        after = re.search(r"after number (\d+)", place)
        before = re.search(r"before number (\d+)", place)
        yield after[1] if after else "-1", before[1] if before else ""


def test_a_row_after_an_unreadable_place_is_checked_too(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", [range(800)])
    store = Store.open(str(path))
    with store.database.core_write() as connection:
        connection.exec_driver_sql("UPDATE answers SET body = 'text' WHERE id = 800")
    store.close()
    lost, _ = _without_leaves(path, "answers", 1, 1)
    assert 800 not in lost
    faults = [one for one in verify(str(path), show_progress=False) if one.table == "answers"]
    assert ("id 800", "its body is of type str, expected bytes") in [(one.row, one.problem) for one in faults]
    assert any("cannot be read" in one.problem for one in faults)
    # Remedies are told apart from problems: once, not in each line.
    assert not any("run the same" in one.problem or "store verify" in one.problem for one in faults)


def _killed(tmp_path: Path) -> Path:
    """A store as a killed process leaves it: nearly everything is in the write-ahead log."""
    held = Store.open(str(tmp_path / "held.db"))
    add_run(held, range(40))
    folder = tmp_path / "killed"
    folder.mkdir()
    for end in ("", "-wal"):
        shutil.copy(tmp_path / f"held.db{end}", folder / f"s.db{end}")
    held.close()
    return folder / "s.db"


@pytest.mark.parametrize("place", [4, 20, 10_000, 200_000])
def test_a_damaged_write_ahead_log_is_reported_and_kept_for_repair(tmp_path: Path, place: int) -> None:
    path = _killed(tmp_path)
    log = path.with_name("s.db-wal")
    content = bytearray(log.read_bytes())
    content[place] ^= 0xFF
    log.write_bytes(content)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    (fault,) = verify(str(path), show_progress=False)
    assert "write-ahead log s.db-wal" in fault.problem
    commands: tuple[Callable[[str], object], ...] = (
        take_inventory,
        Store.open,
        lambda url: clean(url, CleaningOptions()),
        lambda url: list(merge([url], str(tmp_path / "target.db"), show_progress=False)),
        lambda url: list(merge([str(tmp_path / "held.db")], url, show_progress=False)),
        lambda url: export_records(url, "runs", tmp_path / "runs.jsonl", None, show_progress=False),
    )
    for command in commands:
        with pytest.raises(StoreFailedError, match=r"write-ahead log.*store repair .*s\.db --out NEW"):
            command(str(path))
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_an_empty_file_with_a_write_ahead_log_is_kept_for_repair(tmp_path: Path) -> None:
    path = _killed(tmp_path)
    path.write_bytes(b"")
    (fault,) = verify(str(path), show_progress=False)
    assert "the file is empty" in fault.problem
    repair(str(path), tmp_path / "out.db", show_progress=False)
    assert len(content(tmp_path / "out.db")[0]) == 40


@pytest.mark.parametrize("lost", [1, 5000])
def test_the_incomplete_end_of_a_write_ahead_log_is_no_damage(tmp_path: Path, lost: int) -> None:
    """A process that is killed while it writes leaves one; SQLite takes the transactions before it."""
    path = _killed(tmp_path)
    log = path.with_name("s.db-wal")
    log.write_bytes(log.read_bytes()[:-lost])
    Store.open(str(path)).close()


def test_the_write_ahead_log_of_a_writer_is_never_taken_for_damaged(tmp_path: Path) -> None:
    url = str(tmp_path / "s.db")
    writer = Store.open(url)
    add_run(writer, range(5))
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(lambda: [add_run(writer, range(part, part + 30)) for part in range(0, 900, 30)])
        while not writing.done():
            Store.open(url, create=False).close()
        writing.result()
    writer.close()
    assert not list(verify(url, show_progress=False))


def test_a_truncated_file_is_reported_with_its_pages_and_the_command_that_repairs_it(tmp_path: Path) -> None:
    path = make_store(tmp_path / "my store.db", [range(40)])
    pages = path.stat().st_size // 4096
    with path.open("r+b") as file:
        file.truncate((pages - 7) * 4096)
    found = list(verify(str(path), show_progress=False))
    assert f"counts {pages:,} pages, the file has {pages - 7:,}" in found[0].problem
    assert {fault.remedy for fault in found} == {
        f"`sightline store repair '{path}' --out NEW` keeps what is sound"
    }
