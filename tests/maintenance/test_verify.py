"""Verification finds what is damaged, in the file, in rows and in caches."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from tests.maintenance.stores import add_run, content, make_store

import sightline
from sightline.maintenance.merge import merge
from sightline.maintenance.store_maintenance import CleaningOptions, clean, export_records, take_inventory
from sightline.maintenance.verify import verify
from sightline.store.database import StoreFailedError
from sightline.store.store import Store
from sightline.types import ImageFile
from training.scenes.build import generate_codis


@pytest.mark.parametrize("body", ["body", "x''", "substr(body, 3)", "substr(body, 1, length(body) - 1)"])
def test_damaged_metadata_of_images_is_found(tmp_path: Path, body: str) -> None:
    path = make_store(tmp_path / "s.db", [range(3)])
    store = Store.open(str(path))
    image = ImageFile("a.png", "ab" * 32, "PNG", 3, 4, (5, 6), "")
    store.caches.add_image_files({"a.png": b"i" * 16}, [image])
    with store.database.write() as connection:
        connection.core.exec_driver_sql(f"UPDATE images SET body = CAST({body} AS BLOB)")
    store.close()
    found = [one.table for one in verify(str(path), show_progress=False)]
    assert found == ([] if body == "body" else ["images"])


def test_a_finished_run_that_lost_answers_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    data = generate_codis(tmp_path / "codis", pairs=3)
    sightline.run("codis", model="baseline/chance", data=data, store=str(path))
    assert list(verify(str(path), show_progress=False)) == []
    store = Store.open(str(path))
    with store.database.write() as connection:
        connection.core.exec_driver_sql("DELETE FROM answers WHERE id = 1")
    store.close()
    [fault] = verify(str(path), show_progress=False)
    assert (fault.table, fault.run) == ("runs", 1)
    assert "have no attempt" in fault.problem


def test_rows_before_an_unreadable_page_are_checked_and_the_table_is_named(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", [range(800)])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("UPDATE answers SET result = x'7b' WHERE id = 1")
        query = "SELECT pageno FROM dbstat WHERE name = 'answers' AND pagetype = 'leaf' ORDER BY path DESC"
        (page,) = connection.execute(query).fetchone()
    content = bytearray(path.read_bytes())
    content[(page - 1) * 4096 : page * 4096] = bytes(4096)
    path.write_bytes(content)
    faults = list(verify(str(path), show_progress=False))
    of_answers = [(one.row, one.problem) for one in faults if one.table == "answers"]
    assert ("id 1", "its result is of type bytes, expected str") in of_answers
    assert any("some rows cannot be read" in problem for _, problem in of_answers)
    assert any(one.table == "" for one in faults)  # of SQLite's integrity_check
    # Remedies are told apart from problems: once, not in each line.
    assert not any("run the same" in one.problem or "store verify" in one.problem for one in faults)


def _killed(tmp_path: Path) -> Path:
    """A store as a killed process leaves it: nearly everything is in the write-ahead log."""
    held = Store.open(str(tmp_path / "held.db"))
    add_run(held, range(60, 140))
    folder = tmp_path / "killed"
    folder.mkdir()
    for end in ("", "-wal"):
        shutil.copy(tmp_path / f"held.db{end}", folder / f"s.db{end}")
    held.close()
    return folder / "s.db"


@pytest.mark.parametrize("wrong", ["magic number", "checksum", "another file"])
def test_a_file_that_is_no_write_ahead_log_is_reported_and_nothing_is_changed(
    tmp_path: Path, wrong: str
) -> None:
    """SQLite would drop it without a word, and with it the latest answers."""
    path = _killed(tmp_path)
    log = path.with_name("s.db-wal")
    content = bytearray(log.read_bytes())
    if wrong == "another file":
        content = bytearray(b"some words of the user\n" * 1000)
    else:
        content[3 if wrong == "magic number" else 20] ^= 0xFE
    log.write_bytes(content)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    (fault,) = verify(str(path), show_progress=False)
    assert "s.db-wal is no write-ahead log" in fault.problem
    commands: tuple[Callable[[str], object], ...] = (
        take_inventory,
        Store.open,
        lambda url: clean(url, CleaningOptions()),
        lambda url: list(merge([url], str(tmp_path / "target.db"), show_progress=False)),
        lambda url: list(merge([str(tmp_path / "held.db")], url, show_progress=False)),
        lambda url: export_records(url, "runs", tmp_path / "runs.jsonl", None, show_progress=False),
    )
    for command in commands:
        with pytest.raises(StoreFailedError, match=r"write-ahead log.*docs/store\.md \(Damaged files\)"):
            command(str(path))
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_an_empty_file_with_a_write_ahead_log_is_kept(tmp_path: Path) -> None:
    path = _killed(tmp_path)
    path.write_bytes(b"")
    before = path.with_name("s.db-wal").read_bytes()
    (fault,) = verify(str(path), show_progress=False)
    assert "the file is empty" in fault.problem
    assert path.with_name("s.db-wal").read_bytes() == before


@pytest.mark.parametrize("part", [0.3, 0.7])
def test_a_cut_log_loses_the_latest_answers_and_nothing_else(tmp_path: Path, part: float) -> None:
    make_store(tmp_path / "held.db", [range(100)])
    path = _killed(tmp_path)
    whole, _ = content(tmp_path / "held.db")
    log = path.with_name("s.db-wal")
    log.write_bytes(log.read_bytes()[: int(log.stat().st_size * part)])
    found, _ = content(path)
    assert found.items() <= whole.items()
    assert len(found) >= 60
    assert list(verify(str(path), show_progress=False)) == []


@pytest.mark.parametrize("lost", [1, 5000])
def test_the_incomplete_end_of_a_write_ahead_log_is_no_damage(tmp_path: Path, lost: int) -> None:
    """A process that is killed while it writes leaves one; SQLite takes the transactions before it."""
    path = _killed(tmp_path)
    log = path.with_name("s.db-wal")
    log.write_bytes(log.read_bytes()[:-lost])
    Store.open(str(path)).close()


@pytest.mark.slow
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


def test_a_truncated_file_is_reported_with_a_remedy(tmp_path: Path) -> None:
    path = make_store(tmp_path / "my store.db", [range(40)])
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 7 * 4096)
    (fault,) = verify(str(path), show_progress=False)
    assert "malformed" in fault.problem
    assert fault.remedy == (
        f"`sightline store merge '{path}' --into NEW` copies what is sound; "
        "docs/store.md (Damaged files) says more"
    )
