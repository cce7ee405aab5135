"""Fixtures shared by all tests: the folder of real data, a PostgreSQL server, a store of either kind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.postgres_server import PostgresServer, find_programs

from sightline import plugins

# Tests run side by side, and threads of torch that wait for each other's core turn a second into minutes.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# How long an example takes says how busy the machine is. `--hypothesis-profile=deep` looks longer.
settings.register_profile("sightline", deadline=None, max_examples=40)
settings.register_profile("deep", deadline=None, max_examples=1000)
settings.load_profile("sightline")


def pytest_configure() -> None:
    """The processes that tests interrupt are not deaf to it, as jobs in the background or of nohup are."""
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The last lines say what the default command leaves out."""
    if config.option.markexpr.startswith("not slow and"):
        terminalreporter.write_line(
            "Not run: tests marked slow, browser, postgres or cluster. `pytest -n auto -m ''` runs them, too."
        )


def shared_folder() -> Path:
    """The folder of real data: SIGHTLINE_SHARED, else ../shared beside the checkout."""
    named = os.environ.get("SIGHTLINE_SHARED")
    return Path(named) if named else Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data; the test is skipped where it is absent."""
    folder = shared_folder()
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data at {folder}: set SIGHTLINE_SHARED to the folder that holds data/")
    return folder


@pytest.fixture(scope="session", autouse=True)
def own_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Commands without --store write into the folder in which they run, which is not that of the code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("working"))
        yield


@pytest.fixture(scope="session", autouse=True)
def one_core() -> Iterator[None]:
    """Builders start a process for each core, which costs a second each: in tests they start none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "cpu_count", lambda: 1)
        yield


@pytest.fixture(autouse=True)
def plugged(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test plugs in goes when it ends: the next test of this process finds the package alone."""
    monkeypatch.setattr(plugins, "plugged_in", {kind: {} for kind in plugins.plugged_in})
    monkeypatch.setattr(plugins, "_modules", {})


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for all tests of this process; it ends with the process, even if that is killed."""
    programs = find_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed here: apt-get install postgresql")
    pytest.importorskip("psycopg", reason="PostgreSQL stores need psycopg: pip install 'sightline[postgres]'")
    server = PostgresServer(programs)
    yield server
    server.close()


@pytest.fixture
def postgres_url(postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an empty database for this test; indexes of its runs are in a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    database = postgres.create_database()
    yield postgres.url(database)
    postgres.drop_database(database)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """Where a store can be created, for tests of what does not depend on the kind of store."""
    return str(tmp_path / "s.db")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store can be created: the test runs once with a file, and once with a PostgreSQL database."""
    if request.param == "sqlite":
        return str(tmp_path / "s.db")
    url: str = request.getfixturevalue("postgres_url")
    return url
