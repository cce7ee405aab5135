"""A real PostgreSQL server for tests: in a temporary folder, on loopback, with a database for each test."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROLE, PASSWORD = "sightline", "p@ss/w:rd?"
"""The role of the tests, which owns their databases and has no other rights."""

SETTINGS = {
    # Tests kill the server, but never the machine.
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "60",
    "max_wal_size": "256MB",
    "min_wal_size": "32MB",
    "shared_buffers": "32MB",
}

# Waits until the tests have ended, in whatever way, which closes its standard input.
_GUARD = """
import subprocess, sys, shutil
sys.stdin.read()
subprocess.run([sys.argv[1], "stop", "-D", sys.argv[2], "-m", "immediate", "-s"], **eval(sys.argv[4]))
shutil.rmtree(sys.argv[3], ignore_errors=True)
"""


def find_programs() -> Path | None:
    """The folder of the newest PostgreSQL that is installed; Debian does not put it into PATH."""
    named = shutil.which("pg_ctl")
    if named is not None and (Path(named).resolve().parent / "initdb").exists():
        return Path(named).resolve().parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda file: int(file.parts[-3]))
    return found[-1].parent if found else None


class PostgresServer:
    """A running server. `admin` connects as its superuser, `url` as the role of the tests."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        # The path of a socket has at most 107 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="sightline-postgres-", dir="/tmp"))
        self._data = self.folder / "data"
        self._as_user = _other_user_than_root(self.folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._guard = subprocess.Popen(
            [
                sys.executable,
                "-c",
                _GUARD,
                programs / "pg_ctl",
                self._data,
                self.folder,
                repr({**self._as_user, "cwd": "/"}),
            ],
            stdin=subprocess.PIPE,
            start_new_session=True,
            cwd="/",
        )
        self._number = 0
        self._create()

    def _create(self) -> None:
        self._run(
            "initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"
        )
        (self._data / "pg_hba.conf").write_text(
            "local all postgres trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
        )
        lines = {**SETTINGS, "listen_addresses": "127.0.0.1", "port": self.port}
        lines["unix_socket_directories"] = self.folder
        with (self._data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in lines.items())
        self.start()
        self.admin(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")

    def start(self) -> None:
        self._run("pg_ctl", "start", "-w", "-s", "-D", self._data, "-l", self.folder / "log")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server: `fast` ends the transactions, `immediate` is a crash."""
        self._run("pg_ctl", "stop", "-s", "-D", self._data, "-m", mode)

    @contextmanager
    def stopped(self, mode: str = "fast") -> Iterator[None]:
        """Stop the server inside the block."""
        self.stop(mode)
        try:
            yield
        finally:
            self.start()

    def admin(self, *statements: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Execute statements as the superuser; returns the rows of the last one."""
        import psycopg

        with psycopg.connect(
            host=str(self.folder), port=self.port, user="postgres", dbname=database, autocommit=True
        ) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def create_database(self, owner: str = ROLE) -> str:
        """Create an empty database; returns its name."""
        self._number += 1
        self.admin(f"CREATE DATABASE test_{self._number} OWNER {owner}")
        return f"test_{self._number}"

    def drop_database(self, database: str) -> None:
        self.admin(f"DROP DATABASE {database} WITH (FORCE)")

    def url(self, database: str, *, password: str = PASSWORD) -> str:
        return f"postgresql://{ROLE}:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    def close(self) -> None:
        """Stop the server and delete its folder."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait()

    def _run(self, program: str, *words: object) -> None:
        # A server that inherits a pipe would keep its reader waiting.
        with (self.folder / "output").open("w+") as output:
            ended = subprocess.run(
                [self._programs / program, *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                start_new_session=True,
                **self._as_user,
            )
            output.seek(0)
            assert ended.returncode == 0, output.read()


def _other_user_than_root(folder: Path) -> dict[str, Any]:
    """How subprocess starts PostgreSQL, which refuses to run as root; gives the folder to that user."""
    if os.geteuid() != 0:
        return {}
    user = None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            user = user or pwd.getpwnam(name)
    assert user is not None, "expected a user postgres or nobody"
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
