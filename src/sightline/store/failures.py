"""Errors of the store's database, one message each with the remedy, and operations that are repeated."""

from __future__ import annotations

import shlex
import sqlite3
import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from sightline.errors import EnvironmentFailedError, UserError

P = ParamSpec("P")
T = TypeVar("T")

ATTEMPT_SECONDS = 0.25
"""The time between two attempts to reach a server."""
REPEATS = 3
"""How often an operation is repeated that the server ended."""

_REPEATABLE = {"40001", "40P01"}
"""SQLSTATE of a serialization failure and of a deadlock."""

_REMEDIES = {
    None: "when the server runs again,",
    "25006": "name the primary server instead of a replica, then",
    "3F000": "name a schema that exists (search_path), then",
    "42501": "grant the role SELECT on the tables if it only reads, let it own the database if it writes "
    "(docs/postgresql.md), then",
    "53100": "make room on the disk of the server, then",
    "55P03": "when the command ends that works with the whole store (`store gc` or `store merge`; "
    "pg_stat_activity lists the sessions),",
}
"""SQLSTATE (PostgreSQL, appendix A) -> what the user can do."""


class NoStoreError(UserError):
    """There is no store, and none was to be created."""


def not_writable(name: object) -> UserError:
    return UserError(
        "the store cannot be written",
        file=name,
        expected="a --store in a writable folder; `sightline store merge OLD --into NEW` copies one",
    )


class StoreFailedError(EnvironmentFailedError):
    """The store cannot be read or written. `reason` says why, without the store's name and the remedy."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


class TransactionLostError(StoreFailedError):
    """The server ended a transaction that succeeds if it is repeated: it restarted, or found a deadlock."""


def repeat_if_lost(operation: Callable[P, T]) -> Callable[P, T]:
    """Decorate an operation with one transaction, which may take place twice without harm."""

    @wraps(operation)
    def repeated(*args: P.args, **kwargs: P.kwargs) -> T:
        return until_kept(lambda _: operation(*args, **kwargs))

    return repeated


def until_kept(operation: Callable[[bool], T]) -> T:
    """Run an operation with one transaction, again if the server restarts or ends it for another one."""
    for repeats in range(REPEATS):
        try:
            return operation(repeats > 0)
        except TransactionLostError:
            time.sleep(ATTEMPT_SECONDS)
    return operation(True)


def failed_store(
    name: str, error: BaseException | None, *, is_disconnected: bool = False
) -> StoreFailedError:
    reason = reason_of(error)
    if _is_damage(error):
        return damaged_store(name, reason)
    state = None if is_disconnected else getattr(error, "sqlstate", None)
    if "://" in name:
        remedy = _REMEDIES.get(state, "correct this, then")
    else:
        remedy = _busy_remedy(error) or "make room or repair the disk, then"
    lost = is_disconnected or state in _REPEATABLE
    return (TransactionLostError if lost else StoreFailedError)(
        f"the store {name} failed: {reason}. Everything committed before is kept; "
        f"{remedy} run the same command again",
        reason,
    )


def reason_of(error: BaseException | None) -> str:
    """The message of a database in one line, without the part of the statement that PostgreSQL adds."""
    diagnosis = getattr(error, "diag", None)
    message = getattr(diagnosis, "message_primary", None) or str(error)
    return " ".join(message.split()).rstrip(".")


def damage(name: str, table: str, row: int, reason: str) -> StoreFailedError:
    return damaged_store(name, f"row {row} of the table {table} cannot be read ({reason})")


def damaged_store(name: str, reason: str) -> StoreFailedError:
    message = (
        f"the store {name} is damaged: {reason}. `sightline store verify --store {shlex.quote(name)}` lists "
        f"everything that is damaged, {damage_remedy(name)}"
    )
    return StoreFailedError(message, reason)


def damage_remedy(name: str) -> str:
    """Say what keeps the sound part of a damaged store."""
    copy = f"`sightline store merge {shlex.quote(name)} --into NEW` copies what is sound"
    return f"{copy}; docs/store.md (Damaged files) says more"


def no_store(name: object, hint: str = "") -> NoStoreError:
    return NoStoreError(
        "there is no store here", file=name, expected=f"the store of an earlier run (--store){hint}"
    )


def _is_damage(error: BaseException | None) -> bool:
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _busy_remedy(error: BaseException | None) -> str:
    """The remedy if another process holds the lock of a SQLite file; '' for other errors."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code & 0xFF != sqlite3.SQLITE_BUSY:
        return ""
    return "another process has been writing to it for more than a minute; when that ends,"


def not_a_store(name: object) -> UserError:
    return UserError("this database is not a Sightline store", file=name, expected="a Sightline store")
