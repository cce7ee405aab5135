"""Cleaning a PostgreSQL store while another process writes: what the writer has found stays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from tests.maintenance.stores import DESCRIPTION, add_run, question
from tests.postgres_server import PostgresServer

from sightline.evaluation.plan import StoredProbe
from sightline.maintenance.store_maintenance import CleaningOptions, clean
from sightline.maintenance.verify import verify
from sightline.store import answers, runs
from sightline.store.store import Store

pytestmark = pytest.mark.postgres

WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    """A store whose texts and definitions no run needs any more."""
    opened = Store.open(postgres_url)
    opened.runs.drop(add_run(opened, range(5)))
    with opened.database.core_write() as connection:
        connection.exec_driver_sql("DELETE FROM answers")
        connection.exec_driver_sql("DELETE FROM requests")
    yield opened
    opened.close()


def _pause(monkeypatch: pytest.MonkeyPatch, module: Any, table: str, wait: Callable[[], None]) -> None:
    """Let a writer wait before it inserts rows of a table: it has looked up what they refer to."""
    original = module.insert_new

    def paused(connection: Any, into: Any, *arguments: Any) -> None:
        if into == table:
            wait()
        original(connection, into, *arguments)

    monkeypatch.setattr(module, "insert_new", paused)


def _write_a_run(store: Store) -> None:
    run = store.runs.start({"description": DESCRIPTION})
    probes = [
        StoredProbe(
            sample=f"s{number}",
            variant="v",
            draw=0,
            key=question(number).key,
            cluster="c",
            question=f"{number}?",
        )
        for number in range(5)
    ]
    store.runs.add_probes(run, [(place << 20, msgspec.json.encode(one)) for place, one in enumerate(probes)])
    assert len(list(store.runs.probes(run))) == 5


def _write_a_request(store: Store) -> None:
    """A request of which the store has all texts."""
    store.answers.add([question(3)])
    assert store.answers.request(question(3).key) == question(3).request


@pytest.mark.parametrize(
    ("write", "module", "table"), [(_write_a_run, runs, "probes"), (_write_a_request, answers, "requests")]
)
def test_what_a_writer_has_looked_up_stays_until_it_refers_to_it(
    postgres: PostgresServer,
    postgres_url: str,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[Store], None],
    module: Any,
    table: str,
) -> None:
    cleaning: list[Future[Any]] = []

    def clean_meanwhile() -> None:
        cleaning.append(threads.submit(clean, postgres_url, CleaningOptions()))
        while not cleaning[0].done() and not postgres.admin(WAITING)[0][0]:
            time.sleep(0.01)

    _pause(monkeypatch, module, table, clean_meanwhile)
    with ThreadPoolExecutor() as threads:
        write(store)
        cleaning[0].result()
    assert list(verify(postgres_url, show_progress=False)) == []
