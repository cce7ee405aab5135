"""Damaged rows are reported with table, row and remedy; they are never read as something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline.errors import EnvironmentFailedError
from sightline.maintenance.verify import find_faults
from sightline.store.answers import Attempt, with_key
from sightline.store.store import Store
from sightline.types import Answer, ImageFile, Request, user

_KEYED = with_key(Request("", (user("a question of some length, a question of some length"),), {}), "m")


def _change(store: Store, statement: str) -> None:
    with store.database.write() as connection:
        connection.change(statement)


def _filled(store: Store) -> Store:
    store.answers.add([Attempt(_KEYED.request.key, _KEYED.canonical, Answer("some words"))])
    store.runs.add_probes(store.runs.start({}), [(0, b'{"key":"%s"}' % _KEYED.request.key.encode())])
    return store


@pytest.mark.parametrize("change", ["substr(result, 1, length(result) - 3)", "''", "'[]'", "'{\"text\": 7}'"])
def test_a_damaged_answer_is_named(store: Store, change: str) -> None:
    _change(_filled(store), f"UPDATE answers SET result = {change}")
    with pytest.raises(EnvironmentFailedError, match=r"row 1 of the table answers.*sightline store verify"):
        store.answers.look_up([_KEYED.request.key])
    assert store.answers.settled([_KEYED.request.key], retry_errors=False) == {_KEYED.request.key}


@pytest.mark.parametrize("value", ["x'ff'", "7", "CAST(x'7b22ff227d' AS TEXT)"])
def test_an_answer_of_another_type_is_named_on_sqlite_which_keeps_it(tmp_path: Path, value: str) -> None:
    store = _filled(Store.open(str(tmp_path / "s.db")))
    _change(store, f"UPDATE answers SET result = {value}, request = {value}")
    for look_up in (store.answers.look_up, store.answers.images):
        with pytest.raises(EnvironmentFailedError, match=r"row 1 of the table answers"):
            look_up([_KEYED.request.key])
    assert [fault.table for fault in find_faults(store, show_progress=False)][:1] == ["answers"]
    store.close()


@pytest.mark.parametrize(
    "change",
    ["substr(body, 1, length(body) - 3)", "x''", "CAST(substr(body, 1, length(body) - 1) || x'55' AS BLOB)"],
)
def test_damaged_probes_are_named(tmp_path: Path, change: str) -> None:
    store = _filled(Store.open(str(tmp_path / "s.db")))
    _change(store, f"UPDATE probes SET body = {change}")
    with pytest.raises(EnvironmentFailedError, match=r"row 0 of the table probes.*run 1"):
        list(store.runs.probes(1))
    store.close()


@pytest.mark.parametrize("change", ["x''", "x'00ff'", "substr(body, 1, length(body) - 3)"])
def test_a_damaged_row_of_the_cache_of_images_is_a_missing_row(
    store: Store, change: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.png"
    keys = {str(path): b"key of a.png"}
    file = ImageFile(str(path), "0" * 64, "PNG", 1, 1, (10, 20))
    store.caches.add_image_files(keys, [file])
    assert store.caches.image_files(keys) == {str(path): file}
    _change(store, f"UPDATE images SET body = {change}")
    assert store.caches.image_files(keys) == {}
    store.caches.add_image_files(keys, [file])
    assert store.caches.image_files(keys) == {str(path): file}
