"""The store: what was answered is remembered, by whichever process, and nothing committed is lost."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sightline.errors import EnvironmentFailedError, UserError
from sightline.store import database
from sightline.store.answers import Attempt, EndpointRecord, State, key_of
from sightline.store.database import Connection, TransactionLostError
from sightline.store.store import Store, inspect_images
from sightline.types import Answer, Failure, ImageFile, ImageRef, Usage, Verdict

ANSWER = Answer("(B)", "because", "stop", Usage(10, 2, 1), 0.25, "m-2024 fp_1")
PASSING = Failure("transient", "HTTP 500", 2.5, 500)
FINAL = Failure("blocked", "content filter", status=400)


A, B, C, K, UNKNOWN = (key_of(name) for name in (b"a", b"b", b"c", b"k", b"unknown"))


def _add(store: Store, *results: Answer | Failure, key: str = K) -> None:
    for result in results:
        store.answers.add([Attempt(key, b'{"v":1}', result)])


@pytest.mark.parametrize("result", [ANSWER, PASSING, FINAL])
def test_what_came_of_a_request_is_found_again_as_it_was(store: Store, result: Answer | Failure) -> None:
    _add(store, result)
    assert store.answers.look_up([K, UNKNOWN]) == {K: result}
    assert store.answers.request(K) == b'{"v":1}'
    assert store.answers.request(UNKNOWN) is None


@given(st.text(), st.text(), st.floats(0, 1e6))
def test_any_words_survive_the_store(
    tmp_path_factory: pytest.TempPathFactory, text: str, why: str, s: float
) -> None:
    store = Store.open(str(tmp_path_factory.mktemp("store") / "s.db"))
    answer = Answer(text, why, latency=s)
    _add(store, answer)
    assert store.answers.look_up([K])[K] == answer
    store.close()


def test_the_first_answer_of_a_key_counts(store: Store) -> None:
    _add(store, Answer("first"), Answer("second"), PASSING)
    assert store.answers.look_up([K])[K] == Answer("first")


def test_a_failure_gives_way_to_a_later_one_and_to_any_answer(store: Store) -> None:
    _add(store, PASSING, FINAL)
    assert store.answers.look_up([K])[K] == FINAL
    _add(store, Answer("at last"), PASSING)
    assert store.answers.look_up([K])[K] == Answer("at last")


def test_many_keys_are_looked_up_at_once(store: Store) -> None:
    keys = [f"{number:064}" for number in range(1200)]
    store.answers.add([Attempt(key, b"{}", Answer(key)) for key in keys])
    assert store.answers.look_up(keys) == {key: Answer(key) for key in keys}


def test_attempts_are_added_and_never_replaced(store: Store) -> None:
    _add(store, PASSING, ANSWER, FINAL)
    with store.database.read() as connection:
        rows = connection.core.exec_driver_sql("SELECT state FROM answers ORDER BY id").scalars().all()
    assert rows == [State.TRANSIENT, State.ANSWERED, State.BLOCKED]


def test_everything_is_there_when_the_store_is_opened_again(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    first = Store.open(path)
    _add(first, ANSWER)
    run = first.runs.start({"a": 1})
    first.runs.add_probes(run, [(1, b"one"), (0, b"zero")])
    first.runs.add_verdicts(
        run,
        [Verdict(targets=(K,), question="correct", scorer="s", judge="rules", kind="rules", verdict="right")],
    )
    first.runs.finish(run, {"a": 2})
    first.close()
    again = Store.open(path, create=False)
    assert again.answers.look_up([K]) == {K: ANSWER}
    assert again.runs.get(run) == ({"a": 2}, True)
    assert list(again.runs.probes(run)) == [b"zero", b"one"]
    assert [verdict.verdict for verdict in again.runs.verdicts(run)] == ["right"]
    again.close()


def test_probes_come_in_their_order_however_many_they_are(store: Store) -> None:
    run = store.runs.start({})
    store.runs.add_probes(run, [(place, b"%d" % place) for place in reversed(range(5001))])
    assert list(store.runs.probes(run)) == [b"%d" % place for place in range(5001)]


def test_a_run_that_is_not_there_is_the_callers_mistake(store: Store) -> None:
    with pytest.raises(UserError, match="no run 7"):
        store.runs.get(7)


def test_a_run_that_is_dropped_leaves_the_others_and_all_answers(store: Store) -> None:
    _add(store, ANSWER)
    dropped, kept = store.runs.start({"n": 1}), store.runs.start({"n": 2})
    for run in (dropped, kept):
        store.runs.add_probes(run, [(0, b"probe")])
        store.runs.add_verdicts(
            run,
            [
                Verdict(
                    targets=(K,),
                    question="correct",
                    scorer="s",
                    judge="rules",
                    kind="rules",
                    verdict="right",
                )
            ],
        )
    store.runs.drop(dropped)
    assert [run.number for run in store.runs.all()] == [kept]
    assert (list(store.runs.probes(dropped)), list(store.runs.verdicts(dropped))) == ([], [])
    assert (len(list(store.runs.probes(kept))), len(list(store.runs.verdicts(kept)))) == (1, 1)
    assert store.answers.look_up([K]) == {K: ANSWER}
    assert store.runs.get(kept) == ({"n": 2}, False)


def test_the_latest_metadata_of_an_image_are_found(store: Store) -> None:
    path = "a.jpg"
    old = ImageFile(path, "d1", "JPEG", 1, 2, (3, 4))
    new = ImageFile(path, "d2", "PNG", 1, 2, (3, 5))
    keys = {path: b"key of a.jpg"}
    store.caches.add_image_files(keys, [old])
    store.caches.add_image_files(keys, [new])
    assert store.caches.image_files({**keys, "b.jpg": b"key of b.jpg"}) == {path: new}


@pytest.mark.parametrize("other", ["in another folder", "in its place"])
def test_another_file_under_the_same_name_is_another_image(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """Archives and copies give files of several folders the same size and time."""
    digests = []
    for colour, folder in (("red", "a"), ("blue", "b" if other == "in another folder" else "a")):
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        Image.new("RGB", (8, 8), colour).save("x.bmp")
        os.utime("x.bmp", (1, 1))
        found = inspect_images({"x.bmp": ImageRef("x.bmp")}, store, records=True)["x.bmp"]
        assert isinstance(found, ImageFile)
        assert found.digest == hashlib.sha256(Path("x.bmp").read_bytes()).hexdigest()
        digests.append((found.digest, found.stamp))
    (red, red_stamp), (blue, blue_stamp) = digests
    assert red != blue
    assert red_stamp == blue_stamp


def test_look_ups_of_any_number_of_keys_need_few_statements(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection keeps its statements; those of 1 to 500 keys took 70 MB in a run of 1,000,000 probes."""
    keys = [key_of(b"%d" % number) for number in range(1100)]
    store.answers.add([Attempt(key, b'{"v":1}', ANSWER) for key in keys[::2]])
    statements: set[str] = set()
    rows = Connection.rows

    def note(connection: Connection, sql: str, values: Sequence[Any] = ()) -> Any:
        statements.add(sql)
        return rows(connection, sql, values)

    monkeypatch.setattr(Connection, "rows", note)
    for count in (*range(40), *range(40, 1100, 37), 500, 501, 1000, 1001):
        expected = set(keys[:count:2])
        assert store.answers.settled(keys[:count], retry_errors=False) == expected
    assert 0 < len({statement for statement in statements if "IN (" in statement}) <= 10


# Claims: who is asking what


def test_what_one_process_asks_no_other_may(store: Store) -> None:
    other = Store.open(store.name)
    assert store.claims.take([A, B]) == {A, B}
    assert other.claims.take([B, C]) == {C}
    assert store.claims.take([A, C]) == {A}
    other.close()


def test_an_answer_or_a_failure_ends_the_claim(store: Store) -> None:
    other = Store.open(store.name)
    store.claims.take([A, B, C])
    store.answers.add([Attempt(A, b"{}", ANSWER), Attempt(B, b"{}", PASSING)])
    assert other.claims.take([A, B, C]) == {A, B}
    other.close()


# Surroundings


def test_a_full_disk_loses_nothing_that_was_committed(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "s.db"))
    # It holds for the one connection that the store has.
    with store.database.read() as connection:
        connection.change("PRAGMA max_page_count = 64")
    kept = 0

    def fill() -> None:
        nonlocal kept
        while True:
            store.answers.add([Attempt(key_of(b"%d" % kept), b'{"v":"%s"}' % (b"x" * 2000), ANSWER)])
            kept += 1

    with pytest.raises(EnvironmentFailedError, match=r"full.*Everything committed before is kept"):
        fill()
    assert kept > 10
    store.close()
    again = Store.open(str(tmp_path / "s.db"))
    assert len(again.answers.look_up([key_of(b"%d" % number) for number in range(1000)])) == kept
    again.close()


def test_a_database_that_fails_is_told_without_what_was_to_be_written(store: Store) -> None:
    with store.database.write() as connection:
        connection.core.exec_driver_sql("DROP TABLE answers")
    with pytest.raises(EnvironmentFailedError) as failure:
        store.answers.add([Attempt(K, b'{"v":"secret request"}', Answer("secret answer"))])
    assert "secret" not in str(failure.value)
    assert "no such table" in str(failure.value)


@pytest.mark.slow
def test_what_is_added_twice_after_a_lost_connection_is_kept_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost after the commit of each first attempt."""
    monkeypatch.setattr(database, "ATTEMPT_SECONDS", 0)
    run = store.runs.start({})
    verdict = Verdict(targets=(K,), question="correct", scorer="s", judge="me", kind="human", verdict="right")
    record = EndpointRecord(identity="m", host="h", result="same")
    write = store.database.write
    lost: list[int] = []
    started: list[int] = []
    attempts = [Attempt(key_of(body), body, ANSWER) for body in (b'{"v":1}', b'{"v":2}')]
    monkeypatch.setattr(store.answers, "_clock", lambda: 1.0)

    @contextmanager
    def lose_the_first() -> Iterator[Connection]:
        with write() as connection:
            yield connection
        lost.append(len(lost))
        if len(lost) % 2:
            raise TransactionLostError("the server restarted")

    monkeypatch.setattr(store.database, "write", lose_the_first)
    for _ in range(2):
        store.runs.add_probes(run, [(0, b'{"key":"%s"}' % K.encode())])
        store.runs.add_verdicts(run, [verdict, verdict])
        store.endpoints.add(record)
        started.append(store.runs.start({}, held=True))
        store.answers.add(attempts)
    assert len(lost) == 20
    assert [row.number for row in store.runs.all()] == [run, *started]
    assert store.claims.held_runs() == set(started)
    # Two calls at the same time are two attempts for each request.
    assert store.answers.last_attempt() == 4
    assert len(list(store.runs.probes(run))) == 1
    assert list(store.runs.verdicts(run)) == [verdict] * 4
    assert [one for _, one in store.endpoints.records()] == [record] * 2


def test_a_store_that_another_process_locks_is_not_said_to_be_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOCK_SECONDS", 0.1)
    path = tmp_path / "locked.db"
    store = Store.open(str(path))
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(EnvironmentFailedError, match="another process has been writing") as failed:
            store.runs.start({})
        assert "disk" not in str(failed.value)
    store.close()


def test_a_run_is_held_from_its_first_moment(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the transaction of its start and another one of its lease, somebody could delete it."""
    held: list[set[int]] = []
    write = store.database.write

    @contextmanager
    def observed() -> Iterator[Connection]:
        with write() as connection:
            yield connection
        held.append(store.claims.held_runs())

    monkeypatch.setattr(store.database, "write", observed)
    run, _ = store.runs.start({}, held=True), store.runs.start({})
    assert held == [{run}, {run}]
