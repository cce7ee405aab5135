"""The check that a run exists, before something refers to it."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.engine import Connection

from sightline.engine.schema import runs
from sightline.errors import UserError


def require_run(connection: Connection, run: int, name: str) -> None:
    """Refuse a run that does not exist. One that exists stays until the end of the transaction.

    Args:
        connection: A connection that writes.
        run: The number of the run.
        name: The store's name in messages.

    Raises:
        UserError: There is no such run.
    """
    query = select(runs.c.id).where(runs.c.id == run)
    if connection.execute(query.with_for_update(read=True, key_share=True)).first() is None:
        raise no_run(run, name)


def no_run(run: int, name: str) -> UserError:
    """Make the error of a run that does not exist.

    Args:
        run: The number of the run.
        name: The store's name in messages.

    Returns:
        The error.
    """
    return UserError(
        f"there is no run {run} in this store", file=name, expected="a run of `sightline runs list`"
    )
