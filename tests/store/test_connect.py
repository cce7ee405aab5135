"""Opening a store: where it may lie, whose schema it may have, and that many may open it at once."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from sightline.errors import EnvironmentFailedError, UserError
from sightline.store import connect, database, schema
from sightline.store.answers import Attempt, key_of
from sightline.store.connect import sqlite_path
from sightline.store.database import NoStoreError
from sightline.store.store import Store
from sightline.types import Answer

K = key_of(b"k")


def _sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)


def _new(path: Path) -> Path:
    Store.open(str(path)).close()
    return path


def test_a_new_store_is_made_with_the_schema_version_of_this_sightline(tmp_path: Path) -> None:
    path = _new(tmp_path / "s.db")
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT name, value FROM meta").fetchall()
    assert rows == [("schema_version", str(schema.SCHEMA_VERSION))]


def test_names_with_signs_that_mean_something_in_urls_are_only_names(tmp_path: Path) -> None:
    for name in ("a?b=c.db", "a#b.db", "a%20b.db", "ä b.db", ":memory:"):
        _new(tmp_path / name)
        assert (tmp_path / name).is_file()


@pytest.mark.parametrize("table", ["vectors", "images"])
def test_tables_of_what_can_be_made_anew_may_be_dropped(tmp_path: Path, table: str) -> None:
    path = _new(tmp_path / "s.db")
    _sql(path, f"DROP TABLE {table}")
    store = Store.open(str(path))
    assert (store.caches.vectors.look_up([b"k"]), store.caches.image_files({"p": b"k"})) == ({}, {})


@pytest.mark.parametrize("version", [schema.SCHEMA_VERSION + 1, 5])
def test_a_store_of_another_version_is_refused_and_stays(tmp_path: Path, version: int) -> None:
    path = _new(tmp_path / "s.db")
    _sql(path, f"UPDATE meta SET value = '{version}'", "DROP TABLE vectors")
    before = path.read_bytes()
    with pytest.raises(UserError, match=f"s.db.*another version.*found {version}.*store export"):
        Store.open(str(path))
    assert path.read_bytes() == before


def test_files_and_folders_that_are_no_store_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("these are words, and more than sixteen of them")
    (tmp_path / "short").write_text("x")
    _sql(tmp_path / "other.db", "CREATE TABLE songs (name TEXT)")
    _sql(
        tmp_path / "meta.db",
        "CREATE TABLE meta (name TEXT, value TEXT)",
        "INSERT INTO meta VALUES ('a', 'b')",
    )
    for name, message in (
        ("text", "not a SQLite database"),
        ("short", "not a SQLite database"),
        (".", "this is a folder"),
        ("nowhere/s.db", "folder for the store does not exist.*mkdir -p"),
        ("other.db", "not a Sightline store"),
        ("meta.db", "not a Sightline store"),
    ):
        with pytest.raises(UserError, match=message) as error:
            Store.open(str(tmp_path / name))
        assert str(tmp_path) in str(error.value)
    with pytest.raises(UserError, match="there is no store here"):
        Store.open(str(tmp_path / "new.db"), create=False)
    assert not (tmp_path / "new.db").exists()


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match=r"pipe: this is a pipe or a device"):
        Store.open(str(tmp_path / "pipe"))


@pytest.mark.parametrize("url", ["", " "])
def test_an_empty_name_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="--store is empty"):
        Store.open(url)


@pytest.mark.parametrize("url", ["sqlite:///:memory:", "sqlite://"])
def test_memory_is_one_store_for_the_process_and_leaves_no_file(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        UserError, match=r"^sqlite:///:memory:: there is no store here.*lasts for one process"
    ):
        Store.open(url, create=False)
    first = Store.open(url)
    run = first.runs.start({"a": 1})
    second = Store.open(url, create=False)
    assert second.runs.get(run)[0] == {"a": 1}
    place = connect.memory_file().parent
    first.close()
    second.close()
    connect.forget()
    assert not place.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://me:PW@host/name",
        "sqlite://host/name",
        "sqlite://me@host/name",
        "sqlite:///me:PW@host/name",
        "sqlite:///name?password=PW",
        "sqlite:///name?mode=ro",
        "sqlite+pysqlite://host/name",
        "sqlite://host:PW/name",
        "sqlite:name",
        "sqlite:/me:PW@host/name",
        "sqlite:me:PW@host/name",
        "Postgresql:name",
    ],
)
def test_a_url_of_a_file_with_more_than_a_file_is_refused(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for open_it in (Store.open, sqlite_path):
        with pytest.raises(UserError, match=r"sqlite:///FILE|postgresql://") as error:
            open_it(url)
        assert "PW" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["sqlite:///a@b:c.db", "sqlite:///./x:y@z.db", "./sqlite:name"])
def test_a_file_may_have_any_name(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Store.open(url).close()
    assert [file.name for file in tmp_path.iterdir()] == [Path(url.removeprefix("sqlite:///")).name]


@pytest.mark.parametrize("version", ["''", "'0'", "'x'", "x'34'", f"'{'9' * 5000}'", "'٤'"])
def test_a_version_of_another_kind_is_not_that_of_a_store(tmp_path: Path, version: str) -> None:
    path = _new(tmp_path / "s.db")
    _sql(path, f"UPDATE meta SET value = {version} WHERE name = 'schema_version'")
    with pytest.raises(UserError, match=r"s\.db: this database is not a Sightline store"):
        Store.open(str(path))


def test_a_store_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _new(tmp_path / "s.db")
    monkeypatch.setattr(os, "access", lambda place, mode: not mode & os.W_OK)
    with pytest.raises(UserError, match="cannot be written"):
        Store.open(str(path))


def test_a_damaged_store_is_a_failure_of_the_surroundings(tmp_path: Path) -> None:
    path = _new(tmp_path / "s.db")
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    with pytest.raises(EnvironmentFailedError, match=r"s\.db is damaged.*merge .*s\.db --into NEW"):
        Store.open(str(path))


@pytest.mark.parametrize("create", [True, False])
def test_a_file_with_a_damaged_header_may_have_been_a_store(tmp_path: Path, create: bool) -> None:
    path = _new(tmp_path / "s.db")
    path.write_bytes(b"\xff" * 100 + path.read_bytes()[100:])
    with pytest.raises(UserError, match=r"if it was a store, docs/store\.md") as error:
        Store.open(str(path), create=create)
    assert ("or a new name" in str(error.value)) == create


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize("create", [True, False])
def test_the_database_of_another_program_is_not_changed(tmp_path: Path, mode: str, create: bool) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as database:
        database.execute(f"PRAGMA journal_mode={mode}")
        database.execute("CREATE TABLE songs (name TEXT)")
        for file in tmp_path.glob("s.db*"):
            if not file.name.endswith("-shm"):
                shutil.copy(file, folder)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(UserError, match="not a Sightline store"):
        Store.open(str(folder / "s.db"), create=create)
    after = {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")}
    assert after == before


def test_an_empty_file_becomes_a_store_only_where_one_is_created(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.touch()
    with pytest.raises(NoStoreError):
        Store.open(str(path), create=False)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("s.db", b"")]
    Store.open(str(path)).close()
    assert path.stat().st_size


def test_a_store_without_its_write_ahead_log_is_missed_with_the_name_of_the_log(tmp_path: Path) -> None:
    held = Store.open(str(tmp_path / "s.db"))
    shutil.copy(tmp_path / "s.db", tmp_path / "copy.db")
    held.close()
    with pytest.raises(NoStoreError, match=r"copy\.db-wal of the original is missing"):
        Store.open(str(tmp_path / "copy.db"), create=False)


@pytest.mark.parametrize("kind", sorted(connect.NETWORK_FILESYSTEMS))
def test_sqlite_on_a_network_file_system_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(connect, "filesystem", lambda folder: kind)
    with pytest.raises(UserError, match=f"network file system \\({kind}\\) loses data.*PostgreSQL"):
        Store.open(str(tmp_path / "s.db"))
    assert not list(tmp_path.iterdir())


def test_the_innermost_mount_says_what_the_file_system_is(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "overlay / overlay rw 0 0\nserver:/x /home nfs4 rw 0 0\n/dev/sda1 /home/me/local\\040disk ext4 rw\n"
    )
    for folder, kind in (
        ("/home/me", "nfs4"),
        ("/home", "nfs4"),
        ("/homes", "overlay"),
        ("/home/me/local disk/a", "ext4"),
    ):
        assert connect.filesystem(Path(folder), str(mounts)) == kind
    assert connect.filesystem(tmp_path, str(tmp_path / "no such file")) == ""


def test_an_address_that_cannot_be_read_is_refused_without_its_password() -> None:
    for url in ("postgresql://me:secret@host:port/name", "nosuchdb://me:secret@host/name"):
        with pytest.raises(UserError) as error:
            Store.open(url)
        assert "secret" not in str(error.value)
    assert connect.display("postgresql://me:secret@host/name") == "postgresql://me:***@host/name"


@pytest.mark.parametrize("password", ["sec@ret", "@sec", "sec@", "s@c@ret", "sec/@ret", "sec?r@et"])
def test_a_sign_that_is_not_encoded_shows_no_part_of_a_password(password: str) -> None:
    assert connect.display(f"postgresql://me:{password}@host/name") == "postgresql://me:***@host/name"


def test_an_at_sign_that_is_not_encoded_is_refused_with_its_encoding() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(UserError, match=r"an @ in its user name or password: .*me:\*\*\*@host.*%40") as error:
        Store.open("postgresql://me:sec@ret@host/name")
    assert not {"sec", "ret"} & set(re.split(r"\W", str(error.value)))


def test_a_database_server_that_is_down_is_one_message_with_host_and_remedy() -> None:
    pytest.importorskip("psycopg")
    for url in (
        "postgresql://me:secret@127.0.0.1:1/name",
        "postgresql://me@127.0.0.1:1/name?password=secret",
    ):
        with pytest.raises(EnvironmentFailedError) as failed:
            Store.open(url)
        message = str(failed.value)
        assert "127.0.0.1:1/name" in message
        assert "expected a server that runs at this host" in message
        assert "secret" not in message
        assert "\n" not in message


def test_a_log_that_its_last_user_removes_meanwhile_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    Store.open(str(path)).close()
    log = tmp_path / "s.db-wal"
    log.touch()

    def removed(size: int, file: Path) -> str:
        file.unlink()
        return ""

    monkeypatch.setattr(database, "_log_problem", removed)
    Store.open(str(path)).close()
    assert not log.exists()


def _key(*numbers: int) -> str:
    return key_of(repr(numbers).encode())


def _open_and_add(path: str, number: int, times: int) -> None:
    store = Store.open(path)
    for time in range(times):
        store.answers.add([Attempt(_key(number, time), b"{}", Answer(str(number)))])
        store.claims.take([_key(time)])
    store.claims.release()
    store.close()


@pytest.mark.slow
def test_many_processes_may_make_and_fill_one_store_at_the_same_instant(tmp_path: Path) -> None:
    many = multiprocessing.get_context("fork")
    for attempt in range(2):
        path = str(tmp_path / f"{attempt}.db")
        processes = [many.Process(target=_open_and_add, args=(path, number, 20)) for number in range(8)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert [process.exitcode for process in processes] == [0] * 8
        store = Store.open(path)
        keys = [_key(number, time) for number in range(8) for time in range(20)]
        assert len(store.answers.look_up(keys)) == len(keys)
        assert store.claims.take([_key(time) for time in range(20)]) == {_key(time) for time in range(20)}
        store.close()


def test_a_store_opens_while_another_process_writes(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading waits for no writer, and neither does opening a store."""
    monkeypatch.setattr(database, "LOCK_SECONDS", 0)
    monkeypatch.setattr(connect, "LOCK_SECONDS", 1)
    writer = Store.open(store_url)
    with writer.database.write() as connection:
        if not connection.is_file:
            connection.change(f"LOCK TABLE {', '.join(schema.TABLES)} IN EXCLUSIVE MODE")
            connect.wait_for_turn(connection, "")
        reader = Store.open(store_url)
        assert reader.runs.all() == []
        reader.close()
    writer.close()


class _Interruption:
    """A value of a statement at which Ctrl-C is pressed."""

    def __conform__(self, _protocol: object) -> str:
        raise KeyboardInterrupt


def _interrupted_transaction(store: Store, *, plain: bool) -> None:
    with store.database.write() as connection:
        change = connection.change if plain else connection.core.exec_driver_sql
        change("INSERT INTO meta (name, value) VALUES ('a', 'b')")
        change("SELECT ?", (_Interruption(),))


@pytest.mark.parametrize("plain", [True, False])
def test_an_interrupted_transaction_holds_no_lock_while_the_interruption_is_handled(
    tmp_path: Path, plain: bool
) -> None:
    store = Store.open(str(tmp_path / "s.db"))
    # `interrupted` holds the traceback, and so the cursor, as `finally` does.
    with pytest.raises(KeyboardInterrupt) as interrupted:
        _interrupted_transaction(store, plain=plain)
    with closing(sqlite3.connect(tmp_path / "s.db", timeout=0)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert other.execute("SELECT count(*) FROM meta WHERE name = 'a'").fetchone() == (0,)
    assert interrupted.traceback
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///",
        "sqlite:///a b#c",
        "sqlite:////a/b",
        "sqlite:///%41",
        "sqlite:///a@b",
        "sqlite:///ä\nb",
    ],
)
def test_the_url_of_a_file_is_read_as_sqlalchemy_reads_it(url: str) -> None:
    name = make_url(url).database
    assert sqlite_path(url) == (Path(name) if name else connect.memory_file())
