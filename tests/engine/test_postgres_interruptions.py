"""A PostgreSQL server that restarts, ends sessions or is locked, while a store is open."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from tests.postgres_server import ROLE, PostgresServer

from sightline.errors import EnvironmentFailedError
from sightline.store import connect, database
from sightline.store.answers import Attempt, key_of, with_key
from sightline.store.database import TransactionLostError, repeat_if_lost
from sightline.store.store import Store
from sightline.types import Answer, Request, user

pytestmark = pytest.mark.postgres

END_SESSIONS = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{ROLE}'"


K = key_of(b"k")


def _attempt(name: str, answer: str = "a") -> Attempt:
    keyed = with_key(Request("", (user(name),), {}), "model")
    return Attempt(keyed.request.key, keyed.canonical, Answer(answer))


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    store = Store.open(postgres_url)
    yield store
    store.close()


@pytest.mark.slow
def test_a_connection_that_was_lost_while_idle_is_replaced(postgres: PostgresServer, store: Store) -> None:
    store.answers.add([_attempt("k")])
    postgres.admin(END_SESSIONS)
    assert store.answers.look_up([_attempt("k").key])
    postgres.admin(END_SESSIONS)
    store.answers.add([_attempt("l")])


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_an_open_store_waits_while_the_server_restarts_and_keeps_everything(
    postgres: PostgresServer, store: Store, mode: str
) -> None:
    added: list[Attempt] = []
    done = threading.Event()

    def add() -> None:
        while not done.is_set():
            attempt = _attempt(str(len(added)))
            store.answers.add([attempt])
            added.append(attempt)

    writer = threading.Thread(target=add)
    writer.start()
    for _ in range(3):
        before = len(added)
        with postgres.stopped(mode):
            time.sleep(0.1)
        while len(added) < before + 20:
            assert writer.is_alive()
            time.sleep(0.01)
    done.set()
    writer.join()
    assert store.answers.look_up([attempt.key for attempt in added]).keys() == {a.key for a in added}


@pytest.mark.slow
def test_a_server_that_stays_away_is_reported_after_a_while(
    postgres: PostgresServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "RECONNECT_SECONDS", 0.5)
    store.answers.add([_attempt("kept")])
    with postgres.stopped(), pytest.raises(EnvironmentFailedError) as failed:
        store.answers.add([_attempt("lost")])
    assert "Everything committed before is kept" in str(failed.value)
    assert "when the server runs again, run the same command again" in str(failed.value)
    assert store.answers.look_up([_attempt("kept").key])


def test_nobody_takes_the_claims_that_could_not_be_renewed_during_a_restart(
    postgres: PostgresServer, store: Store, postgres_url: str
) -> None:
    other = Store.open(postgres_url)
    store.claims.take([K])
    with store.database.write() as connection:
        connection.core.exec_driver_sql("UPDATE workers SET until = until - 100")
    with postgres.stopped():
        pass
    assert other.claims.take([K]) == set()
    store.claims.renew()
    other.close()


def test_claims_are_compared_with_the_clock_of_the_server(store: Store, postgres_url: str) -> None:
    uptime = 0.0
    ahead = Store.open(postgres_url, uptime=lambda: uptime)
    assert store.claims.take([K]) == {K}
    for _ in range(70):
        ahead.claims.renew()
        uptime += 1
    assert ahead.claims.take([K]) == set()
    ahead.close()


def test_a_transaction_that_the_server_ends_leaves_nothing_and_may_be_repeated(
    postgres: PostgresServer, store: Store
) -> None:
    def write() -> None:
        with store.database.write() as connection:
            connection.core.exec_driver_sql("INSERT INTO models VALUES ('half')")
            postgres.admin(END_SESSIONS)
            connection.core.exec_driver_sql("INSERT INTO models VALUES ('whole')")

    with pytest.raises(TransactionLostError):
        write()
    assert not store.endpoints.has_requests("half")


@pytest.mark.slow
def test_a_table_that_another_session_locks_is_reported_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    monkeypatch.setattr(connect, "LOCK_SECONDS", 1)
    store = Store.open(postgres_url)
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE answers")
        with pytest.raises(EnvironmentFailedError, match=r"lock timeout.*gc.*merge.*pg_stat_activity"):
            store.answers.add([_attempt("k")])
        threading.Timer(0.3, other.rollback).start()
        store.answers.add([_attempt("k")])
    store.close()


@pytest.mark.slow
def test_two_writers_that_block_each_other_both_succeed(postgres_url: str) -> None:
    """PostgreSQL ends one of the two transactions; it is repeated."""
    stores = [Store.open(postgres_url) for _ in range(2)]
    barrier = threading.Barrier(2)
    first_attempt = [True, True]

    def cross(number: int) -> None:
        @repeat_if_lost
        def write() -> None:
            with stores[number].database.write() as connection:
                names = ["one", "two"][:: 1 if number else -1]
                connection.core.exec_driver_sql(
                    f"INSERT INTO models VALUES ('{names[0]}') ON CONFLICT DO NOTHING"
                )
                if first_attempt[number]:
                    first_attempt[number] = False
                    barrier.wait()
                connection.core.exec_driver_sql(
                    f"INSERT INTO models VALUES ('{names[1]}') ON CONFLICT DO NOTHING"
                )

        write()

    threads = [threading.Thread(target=cross, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].endpoints.has_requests("one")
    assert stores[0].endpoints.has_requests("two")
    for store in stores:
        store.close()
