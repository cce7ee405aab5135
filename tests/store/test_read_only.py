"""A store that cannot be written: it is read whole, nothing beside it changes, and what writes says so."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sightline.cli.main import main
from sightline.errors import UserError
from sightline.store import connect
from sightline.store.database import StoreFailedError
from sightline.store.store import Store
from sightline.viewer.opened import indexable
from training.scenes.build import generate_iibench

READS = (
    "report",
    "report 1 --html report.html",
    "compare 1 2",
    "runs list",
    "runs show 1",
    "show 1",
    "store info",
    "store verify",
    "store export runs --out runs.jsonl",
    "store merge sub/s.db --into new.db",
)
WRITES = (
    "runs tag 1 x",
    "runs delete 1 --yes",
    "store gc",
    "run iibench --model baseline/chance --data data --split dev --quiet --out out",
    "store merge other.db --into sub/s.db",
)
AS_A_USER = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner")
"""What makes root a user whom permissions bind."""


def words(command: str) -> list[str]:
    own = [] if "sub/s.db" in command else ["--store", "sub/s.db"]
    return [*command.split(), *own]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with two runs, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    generate_iibench(tmp_path / "data", questions=1, dev=3)
    (tmp_path / "sub").mkdir()
    for fresh in ("a", "b"):
        run = "run iibench --model baseline/chance --data data --split dev --quiet"
        assert main(words(f"{run} --fresh {fresh} --out {fresh}")) == 0
    shutil.copy("sub/s.db", "other.db")
    return tmp_path / "sub" / "s.db"


@pytest.fixture
def read_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store, as if permissions kept this process from writing."""
    real = connect._is_writable
    monkeypatch.setattr(connect, "_is_writable", lambda one: one.absolute() != path and real(one))
    return path


@pytest.fixture
def with_log(path: Path) -> Iterator[Path]:
    """The store of another process, which has written a note and not ended."""
    writer = Store.open(str(path))
    writer.labels.set_note(1, "in the log")
    yield path
    writer.close()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="permissions as on Linux")
@pytest.mark.parametrize("part", ["folder", "file"])
def test_commands_read_what_permissions_keep_from_being_written(path: Path, part: str) -> None:
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:
        prefix = AS_A_USER
        if shutil.which("setpriv") is None:
            pytest.skip("root needs setpriv to be bound by permissions")
    before = path.read_bytes()
    if part == "folder":
        path.parent.chmod(0o555)
    else:
        path.chmod(0o444)
    try:
        for command in (*READS, *WRITES):
            call = [*prefix, sys.executable, "-m", "sightline", *words(command)]
            done = subprocess.run(call, capture_output=True, text=True)
            expected = 2 if command in WRITES else 0
            assert (done.returncode, "cannot be written; " in done.stderr) == (expected, expected == 2), (
                command
            )
    finally:
        path.parent.chmod(0o755)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["s.db"]


@pytest.mark.parametrize("command", WRITES)
def test_what_writes_says_so(read_only: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    before = read_only.read_bytes()
    capsys.readouterr()
    assert main(words(command)) == 2
    error = capsys.readouterr().err
    assert error.startswith("sightline: sub/s.db: the store cannot be written; expected")
    assert error.count("\n") == 1
    assert read_only.read_bytes() == before


def test_what_another_process_has_only_in_its_log_is_read(with_log: Path, read_only: Path) -> None:
    with closing(sqlite3.connect(f"{with_log.as_uri()}?immutable=1", uri=True)) as alone:
        assert alone.execute("SELECT count(*) FROM run_labels WHERE note != ''").fetchone() == (0,)
    with closing(Store.open(str(read_only), create=False)) as store:
        assert [(run, label.note) for run, label in store.labels.all().items() if label.note] == [
            (1, "in the log")
        ]


def test_a_log_that_cannot_be_read_is_no_store_without_it(
    with_log: Path, read_only: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    monkeypatch.setattr("sightline.store.database.sqlite3.connect", refuse)
    with pytest.raises(StoreFailedError, match=r"s\.db-wal holds its latest answers"):
        Store.open(str(read_only), create=False)


def change_in_place(path: Path) -> None:
    with closing(Store.open(f"{path.parent}/../sub/s.db")) as writer:
        writer.labels.set_note(1, "meanwhile")


def touch(path: Path) -> None:
    os.utime(path, ns=(7, 7 + path.stat().st_mtime_ns))


@pytest.mark.parametrize("change", [change_in_place, touch])
def test_a_file_that_changes_while_it_is_read_is_said(
    read_only: Path, change: Callable[[Path], None]
) -> None:
    with (
        closing(Store.open(str(read_only), create=False)) as store,
        pytest.raises(StoreFailedError, match="changed by another process while"),
        store.database.read(),
    ):
        change(read_only)


def test_the_next_transaction_sees_what_was_written_since(read_only: Path) -> None:
    with closing(Store.open(str(read_only), create=False)) as store:
        assert not any(label.note for label in store.labels.all().values())
        change_in_place(read_only)
        assert [label.note for label in store.labels.all().values() if label.note] == ["meanwhile"]


def test_a_copy_that_is_shown_refuses_judgements_and_takes_indexes(read_only: Path) -> None:
    with closing(Store.open(str(read_only), create=False)) as store, indexable(store) as shown:
        assert shown.name == store.name
        with pytest.raises(StoreFailedError, match="it cannot be written here"):
            shown.labels.set_note(1, "lost")
        with shown.database.write() as connection:
            connection.change("CREATE TABLE index_of_mine (number INTEGER)")


def test_a_new_store_in_such_a_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "_is_writable", lambda _: False)
    with pytest.raises(UserError, match="the store cannot be written"):
        Store.open(str(tmp_path / "new.db"))
    assert os.listdir(tmp_path) == []
