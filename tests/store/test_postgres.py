"""A store on PostgreSQL: what can go wrong with a server, and what users are told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.postgres_server import PASSWORD, ROLE, PostgresServer

from sightline.errors import EnvironmentFailedError, UserError
from sightline.store import database
from sightline.store.answers import Attempt, key_of, with_key
from sightline.store.database import NoStoreError
from sightline.store.store import Store, existing_or_empty_store
from sightline.types import Answer, Request, user

pytestmark = pytest.mark.postgres


def _attempt(name: str, answer: str = "a") -> Attempt:
    keyed = with_key(Request("", (user(name),), {}), "model")
    return Attempt(keyed.request.key, keyed.canonical, Answer(answer))


def _database(url: str) -> str:
    return url.rpartition("/")[2]


@pytest.fixture
def opened(postgres_url: str) -> Iterator[Callable[[], Store]]:
    """Opens the store of this test, as another process would."""
    stores: list[Store] = []

    def open_store() -> Store:
        stores.append(Store.open(postgres_url))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


# Opening


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda url: url.rpartition("/")[0] + "/nowhere", 'database "nowhere" does not exist'),
        (lambda url: url.replace("p%40ss", "wrong"), "password authentication failed"),
        (lambda url: url.replace(f"{ROLE}:", "nobody:"), "password authentication failed for user .nobody."),
        (lambda url: url + "?sslmode=require", "server does not support SSL"),
        (lambda url: url + "?service=nowhere", 'definition of service "nowhere" not found'),
        (lambda url: url + "?sslmod=require", 'invalid connection option "sslmod"'),
    ],
)
def test_a_server_that_cannot_be_used_is_one_message_without_the_password(
    postgres_url: str, change: Callable[[str], str], message: str
) -> None:
    with pytest.raises(EnvironmentFailedError, match=message) as failed:
        Store.open(change(postgres_url))
    text = str(failed.value)
    assert "cannot be opened" in text
    assert "expected a server that runs at this host and port" in text
    assert "p%40ss" not in text
    assert PASSWORD not in text
    assert "wrong" not in text.replace("password authentication", "")
    assert "\n" not in text


@pytest.mark.slow
def test_a_server_that_is_down_is_reported_at_once(postgres: PostgresServer, postgres_url: str) -> None:
    began = time.monotonic()
    with postgres.stopped(), pytest.raises(EnvironmentFailedError, match="Connection refused"):
        Store.open(postgres_url)
    assert time.monotonic() - began < database.RECONNECT_SECONDS / 2


@pytest.mark.slow
def test_a_server_without_a_free_connection_is_reported(postgres: PostgresServer, postgres_url: str) -> None:
    held: list[psycopg.Connection[Any]] = []
    with suppress(psycopg.OperationalError):
        while True:
            held.append(psycopg.connect(postgres_url))
    with pytest.raises(EnvironmentFailedError, match=r"connection slots|too many clients"):
        Store.open(postgres_url)
    for connection in held:
        connection.close()


@pytest.mark.slow
def test_a_process_uses_few_connections_however_many_threads_it_has(
    postgres: PostgresServer, opened: Callable[[], Store], postgres_url: str
) -> None:
    store = opened()
    threads = [
        threading.Thread(target=lambda: [store.answers.look_up([key_of(b"k")]) for _ in range(20)])
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    query = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{_database(postgres_url)}'"
    assert 1 <= postgres.admin(query)[0][0] <= 4


def test_a_role_without_the_right_to_create_tables_is_told_so(postgres: PostgresServer) -> None:
    name = postgres.create_database(owner="postgres")
    with pytest.raises(
        EnvironmentFailedError, match=r"permission denied.*let it own the database if it writes"
    ) as failed:
        Store.open(postgres.url(name))
    assert "CREATE TABLE" not in str(failed.value)
    postgres.admin(f"ALTER DATABASE {name} OWNER TO {ROLE}")
    Store.open(postgres.url(name)).close()
    postgres.drop_database(name)


def test_a_role_that_may_only_read_can_read_a_store(
    postgres: PostgresServer, opened: Callable[[], Store], postgres_url: str
) -> None:
    store = opened()
    store.answers.add([_attempt("k")])
    postgres.admin(
        "CREATE ROLE reader LOGIN PASSWORD 'r'",
        "GRANT USAGE ON SCHEMA public TO reader",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
        database=_database(postgres_url),
    )
    try:
        url = f"postgresql://reader:r@127.0.0.1:{postgres.port}/{_database(postgres_url)}"
        reader = Store.open(url, create=False)
        assert list(reader.answers.look_up([_attempt("k").key]).values()) == [Answer("a")]
        with pytest.raises(EnvironmentFailedError, match="permission denied"):
            reader.answers.add([_attempt("l")])
        reader.close()
    finally:
        postgres.admin("DROP OWNED BY reader", "DROP ROLE reader", database=_database(postgres_url))


def test_an_empty_database_stays_empty_where_nothing_is_to_be_written(
    postgres: PostgresServer, postgres_url: str
) -> None:
    with pytest.raises(NoStoreError, match="there is no store here"):
        Store.open(postgres_url, create=False)
    with existing_or_empty_store(postgres_url) as store:
        assert store.runs.all() == []
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    assert postgres.admin(tables, database=_database(postgres_url)) == [(0,)]


def test_a_database_that_cannot_hold_all_characters_is_refused(postgres: PostgresServer) -> None:
    postgres.admin(f"CREATE DATABASE latin OWNER {ROLE} ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(UserError, match=r"encoding.*found 'LATIN1'.*expected UTF8"):
        Store.open(postgres.url("latin"))
    postgres.drop_database("latin")


def test_a_database_of_another_application_is_refused(postgres: PostgresServer, postgres_url: str) -> None:
    postgres.admin("CREATE TABLE songs (name text)", database=_database(postgres_url))
    with pytest.raises(UserError, match="not a Sightline store"):
        Store.open(postgres_url)


def test_a_store_may_lie_in_a_schema_of_its_own(postgres: PostgresServer, postgres_url: str) -> None:
    postgres.admin(
        f"CREATE SCHEMA team AUTHORIZATION {ROLE}",
        "CREATE TABLE songs (name text)",
        database=_database(postgres_url),
    )
    url = f"{postgres_url}?options=-csearch_path%3Dteam"
    store = Store.open(url)
    store.answers.add([_attempt("k")])
    store.close()
    again = Store.open(url, create=False)
    assert again.answers.look_up([_attempt("k").key])
    again.close()


def test_the_password_can_be_in_the_environment_or_in_a_file(
    postgres: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = _database(postgres_url)
    bare = f"postgresql://{ROLE}@127.0.0.1:{postgres.port}/{name}"
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    with pytest.raises(EnvironmentFailedError, match="no password supplied"):
        Store.open(bare)
    with monkeypatch.context() as environment:
        environment.setenv("PGPASSWORD", PASSWORD)
        Store.open(bare).close()
    passwords = tmp_path / "pgpass"
    escaped = PASSWORD.replace(":", "\\:")
    passwords.write_text(f"127.0.0.1:{postgres.port}:{name}:{ROLE}:{escaped}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    Store.open(bare).close()
    services = tmp_path / "services"
    services.write_text(f"[team]\nhost=127.0.0.1\nport={postgres.port}\nuser={ROLE}\ndbname={name}\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    Store.open("postgresql:///?service=team").close()


@pytest.mark.slow
def test_the_settings_of_a_database_do_not_weaken_claims(
    postgres: PostgresServer, opened: Callable[[], Store], postgres_url: str
) -> None:
    postgres.admin(
        f"ALTER DATABASE {_database(postgres_url)} SET default_transaction_isolation = 'serializable'"
    )
    first, second = opened(), opened()
    a, b, c = (key_of(name) for name in (b"a", b"b", b"c"))
    assert first.claims.take([a, b]) == {a, b}
    assert second.claims.take([b, c]) == {c}
