"""The file of a store that is removed, moved or replaced under a process, and logs of other files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from sightline.errors import EnvironmentFailedError
from sightline.store.answers import Attempt, key_of
from sightline.store.database import StoreFailedError
from sightline.store.store import Store
from sightline.types import Answer

WAYS: dict[str, Callable[[Path], object]] = {
    "removed": lambda path: path.unlink(),
    "moved": lambda path: path.rename(path.with_name("moved.db")),
    "replaced": lambda path: _new(path.with_name("other.db"), "other").rename(path),
}


def _attempts(name: str, count: int = 5) -> list[Attempt]:
    bodies = [f'{{"draw":{number},"model":"{name}","v":1}}'.encode() for number in range(count)]
    return [Attempt(key_of(body), body, Answer(f"{name} {body!r}")) for body in bodies]


def _new(path: Path, name: str, count: int = 5) -> Path:
    store = Store.open(str(path))
    for attempt in _attempts(name, count):
        store.answers.add([attempt])
    store.close()
    return path


def _texts(attempts: Iterable[Attempt]) -> set[str]:
    return {one.result.text for one in attempts if isinstance(one.result, Answer)}


def _read(path: Path) -> set[str]:
    store = Store.open(str(path), create=False)
    with store.database.read() as connection:
        keys = [key.hex() for (key,) in connection.rows("SELECT key FROM answers")]
    found = {result.text for result in store.answers.look_up(keys).values() if isinstance(result, Answer)}
    store.close()
    return found


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_confirmed_once_the_file_is_gone(tmp_path: Path, way: str) -> None:
    path = _new(tmp_path / "s.db", "first")
    store = Store.open(str(path))
    first, *others = _attempts("late")
    store.answers.add([first])
    WAYS[way](path)
    for _ in range(2):
        with pytest.raises(StoreFailedError, match=r"s\.db failed: the file .* not saved"):
            store.answers.add(others)
        with pytest.raises(StoreFailedError, match="not saved"):
            store.runs.start({"a": 1})
    store.close()
    assert path.exists() == (way == "replaced"), "no file is made in its place"
    log = Path(f"{path}-wal")
    assert log.exists(), "SQLite leaves the log of a file that is not in its place"
    if way != "moved":
        with pytest.raises(StoreFailedError, match=r"s\.db-wal"):
            Store.open(str(path))
    log.rename(tmp_path / "moved.db-wal")
    if way == "moved":
        assert _read(tmp_path / "moved.db") == _texts([*_attempts("first"), first])
    if way == "replaced":
        assert _read(path) == _texts(_attempts("other"))


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_goes_during_a_transaction_is_noticed_before_it_is_confirmed(
    tmp_path: Path, way: str
) -> None:
    path = _new(tmp_path / "s.db", "first")
    store = Store.open(str(path))

    def write() -> None:
        with store.database.write() as connection:
            connection.change("INSERT INTO models (identity) VALUES ('late')")
            WAYS[way](path)

    with pytest.raises(StoreFailedError, match="not saved"):
        write()
    with pytest.raises(StoreFailedError, match="not saved"), store.database.write():
        pass
    store.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_new_connection_reads_no_other_file(tmp_path: Path, way: str) -> None:
    path = _new(tmp_path / "s.db", "first")
    store = Store.open(str(path))
    with store.database.read() as kept:
        WAYS[way](path)
        with pytest.raises(EnvironmentFailedError, match="the file"), store.database.read():
            pass
        with pytest.raises(EnvironmentFailedError, match="the file"), store.database.read():
            pass
        assert kept.rows("SELECT count(*) FROM answers") == [(5,)]
    store.close()
    assert path.exists() == (way == "replaced")


def _with_log(path: Path, name: str, count: int = 5) -> Path:
    """A store as a killed process leaves it, with its log."""
    held = _new(path.with_name(f"held-{path.name}"), name)
    store = Store.open(str(held))
    store.answers.add(_attempts(f"{name} late", count))
    for end in ("", "-wal"):
        shutil.copy(f"{held}{end}", f"{path}{end}")
    store.close()
    return path


def test_the_log_of_a_file_continues_it(tmp_path: Path) -> None:
    path = _with_log(tmp_path / "s.db", "a")
    late = _texts([*_attempts("a"), *_attempts("a late")])
    backup = shutil.copytree(tmp_path, tmp_path / "backup")
    assert _read(path) == late
    assert _read(backup / "s.db") == late


@pytest.mark.parametrize("state", ["another store", "an earlier state", "a later state", "missing"])
def test_a_log_that_does_not_belong_to_the_file_is_refused_and_nothing_is_changed(
    tmp_path: Path, state: str
) -> None:
    path = tmp_path / "s.db"
    early = Path(shutil.copy(_new(tmp_path / "early.db", "a", 2), tmp_path / "copy.db"))
    _with_log(path, "b")
    if state == "an earlier state":  # of the same store
        shutil.copy(early, tmp_path / "held-s.db")
        _with_log(path, "a")
        shutil.copy(early, path)
    elif state == "a later state":
        held = tmp_path / "held-s.db"
        _new(held, "c")
        shutil.copy(held, path)
    elif state == "another store":
        shutil.copy(early, path)
    else:
        path.unlink()
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for _ in range(2):
        with pytest.raises(StoreFailedError, match=r"s\.db-wal.* move s\.db-wal away"):
            Store.open(str(path))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    Path(f"{path}-wal").unlink()
    Store.open(str(path)).close()
