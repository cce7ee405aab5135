"""Requests and their answers in the store. Attempts are only added, never changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from sqlalchemy import insert, select

from sightline.engine import schema
from sightline.engine.claims import Claims
from sightline.engine.database import Database, insert_new, parts
from sightline.engine.database_errors import repeat_if_lost
from sightline.engine.retry import is_settled
from sightline.types import Answer, Failure


class Attempt(msgspec.Struct, frozen=True):
    """One call to be stored: the request's key and canonical JSON, and its result."""

    key: str
    request: bytes
    result: Answer | Failure


class Answers:
    """All requests that were sent, with their results. Use it as `store.answers`."""

    def __init__(self, database: Database, claims: Claims, clock: Callable[[], float]) -> None:
        """Prepare it; nothing is read yet.

        Args:
            database: The database of the store.
            claims: The claims of this process, which end when a request has its result.
            clock: Returns the seconds since 1970.
        """
        self._database = database
        self._claims = claims
        self._clock = clock

    def settled(self, keys: Sequence[str], *, retry_errors: bool) -> set[str]:
        """Find the requests that need no new call.

        Args:
            keys: Request keys.
            retry_errors: Whether `--retry-errors` asks for permanent and blocked failures again.

        Returns:
            The keys with an answer, and without `retry_errors` those whose latest failure is not transient.
        """
        stored = self.look_up(keys)
        return {key for key, result in stored.items() if is_settled(result, retry_errors)}

    @repeat_if_lost
    def look_up(self, keys: Sequence[str]) -> dict[str, Answer | Failure]:
        """Look up requests.

        Args:
            keys: Request keys.

        Returns:
            Key -> its first answer, or its latest failure if it has no answer; keys without an attempt are
            missing.
        """
        results: dict[str, Answer | Failure] = {}
        table = schema.answers
        with self._database.read() as connection:
            for part in parts(keys):
                query = (
                    select(table.c.key, table.c.ok, table.c.body)
                    .where(table.c.key.in_(part))
                    .order_by(table.c.id)
                )
                for key, ok, body in connection.execute(query):
                    if not ok:
                        if not isinstance(results.get(key), Answer):
                            results[key] = msgspec.json.decode(body, type=Failure)
                    elif not isinstance(results.get(key), Answer):
                        results[key] = msgspec.json.decode(body, type=Answer)
        return results

    @repeat_if_lost
    def add(self, attempts: Sequence[Attempt]) -> None:
        """Add attempts in one transaction, which also ends the claims on their keys.

        Args:
            attempts: The attempts.
        """
        now = self._clock()
        with self._database.write() as connection:
            insert_new(
                connection,
                schema.requests,
                [{"key": attempt.key, "body": attempt.request} for attempt in attempts],
            )
            identities = {schema.model_of(attempt.request) for attempt in attempts}
            insert_new(connection, schema.models, [{"identity": identity} for identity in identities])
            connection.execute(
                insert(schema.answers),
                [
                    {
                        "key": attempt.key,
                        "ok": isinstance(attempt.result, Answer),
                        "body": msgspec.json.encode(attempt.result),
                        "created": now,
                    }
                    for attempt in attempts
                ],
            )
            self._claims.end(connection, [attempt.key for attempt in attempts])

    @repeat_if_lost
    def request(self, key: str) -> bytes | None:
        """Look up a request.

        Args:
            key: Its key.

        Returns:
            Its canonical JSON; None if the store has no attempt of it.
        """
        with self._database.read() as connection:
            query = select(schema.requests.c.body).where(schema.requests.c.key == key)
            return connection.execute(query).scalar_one_or_none()
