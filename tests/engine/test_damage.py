"""Damaged rows are reported with table, row and remedy; they are never read as something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline.errors import EnvironmentFailedError
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


CHANGES = {
    "cut": "UPDATE {table} SET body = substr(body, 1, length(body) - 3)",
    "empty": "UPDATE {table} SET body = x''",
    "another dictionary": "UPDATE {table} SET body = CAST(x'07' || substr(body, 2) AS BLOB)",
    "last byte": "UPDATE {table} SET body = CAST(substr(body, 1, length(body) - 1) || x'55' AS BLOB)",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_damaged_answer_is_named(store: Store, change: str) -> None:
    _change(_filled(store), CHANGES[change].format(table="answers"))
    with pytest.raises(EnvironmentFailedError, match=r"row 1 of the table answers.*sightline store verify"):
        store.answers.look_up([_KEYED.request.key])
    assert store.answers.settled([_KEYED.request.key], retry_errors=False) == {_KEYED.request.key}


@pytest.mark.parametrize("change", CHANGES)
def test_a_damaged_text_of_a_request_is_named(store: Store, change: str) -> None:
    _change(_filled(store), CHANGES[change].format(table="texts"))
    with pytest.raises(EnvironmentFailedError, match=r"row 1 of the table texts.*sightline store verify"):
        store.answers.request(_KEYED.request.key)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM texts WHERE id = 2",
        "UPDATE requests SET body = x'93'",
        "UPDATE requests SET body = x'91c401aa'",
    ],
)
def test_a_damaged_request_is_named(store: Store, statement: str) -> None:
    _change(_filled(store), statement)
    with pytest.raises(EnvironmentFailedError, match=r"row 1 of the table requests"):
        store.answers.request(_KEYED.request.key)


@pytest.mark.parametrize("change", CHANGES)
def test_damaged_probes_are_named(store: Store, change: str) -> None:
    _change(_filled(store), CHANGES[change].format(table="definitions"))
    with pytest.raises(EnvironmentFailedError, match=r"row 1 of the table definitions"):
        list(store.runs.probes(1))


@pytest.mark.parametrize("body", [b"", b"\x07", b"\x00\xff"])
def test_a_damaged_dictionary_is_named(store_url: str, body: bytes) -> None:
    literal = f"decode('{body.hex()}', 'hex')" if "://" in store_url else f"x'{body.hex()}'"
    _check_dictionary(store_url, literal)


@pytest.mark.parametrize("body", ["'text'", "7"])
def test_a_dictionary_of_another_type_is_named_on_sqlite_which_keeps_it(tmp_path: Path, body: str) -> None:
    _check_dictionary(str(tmp_path / "s.db"), body)


def _check_dictionary(url: str, body: str) -> None:
    first = _filled(Store.open(url))
    _change(first, f"UPDATE dictionaries SET body = {body}")
    first.close()
    again = Store.open(url)
    with pytest.raises(EnvironmentFailedError, match=r"row 1 of the table dictionaries.*store verify"):
        again.answers.look_up([_KEYED.request.key])
    again.close()


def test_keys_that_are_not_those_of_the_probes_are_named(store: Store) -> None:
    _change(_filled(store), "UPDATE probes SET answer_keys = substr(answer_keys, 2)")
    with pytest.raises(EnvironmentFailedError, match=r"row 0 of the table probes.*run 1"):
        list(store.runs.probes(1))


def test_probes_without_their_definitions_are_named(store: Store) -> None:
    _change(_filled(store), "DELETE FROM definitions")
    with pytest.raises(EnvironmentFailedError, match=r"row 0 of the table probes.*definitions"):
        list(store.runs.probes(1))


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
