"""Copies requests and their attempts from one store to another: each attempt once, in the order of time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import RowMapping, select
from sqlalchemy.engine import Connection as CoreConnection

from sightline.engine import schema
from sightline.engine.answers import State
from sightline.engine.connection import Connection
from sightline.engine.core_connection import plain
from sightline.engine.database import change_rows_in, insert, rows_in
from sightline.engine.database_errors import damage
from sightline.engine.dictionaries import COMMON, Dictionaries
from sightline.engine.endpoint_log import list_models
from sightline.engine.requests import Requests, StoredRequest
from sightline.engine.store import Store
from sightline.maintenance.sound_rows import SoundRows
from sightline.progress import Advance
from sightline.types import Answer


class _Attempt(NamedTuple):
    """An attempt, independent of the store that holds it; attempts are ordered by time."""

    created: float
    content: bytes
    state: int


class MergedAnswers(NamedTuple):
    """The number of attempts that were new, and of requests to which the target had an answer.

    `answered` counts the requests of new attempts, `different` those among them with another text.
    """

    new: int
    answered: int
    different: int


class _Reader:
    """Reads attempts of a store."""

    def __init__(self, name: str) -> None:
        self.dictionaries = Dictionaries(name)
        self.requests = Requests(self.dictionaries)

    def attempt(self, connection: Connection, row: int, state: int, body: bytes, created: float) -> _Attempt:
        content = self.dictionaries.decompress(connection, bytes(body), "answers", row)
        return _Attempt(created, content, state)

    def text(self, content: bytes, row: int) -> str:
        try:
            return msgspec.json.decode(content, type=Answer).text
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise damage(self.dictionaries.name, "answers", row, str(error)) from None


def merge_answers(source: Store, sound: SoundRows, target: Store, advance: Advance) -> MergedAnswers:
    """Copy the attempts that a store lacks. The first answer by time counts, whichever store it comes from.

    A damaged request is copied without its text, because its key leads to its answers.

    Args:
        source: The store to read.
        sound: Reads its sound rows.
        target: The store to add to.
        advance: Reports how many more attempts are done.

    Returns:
        What was new, and what differed.

    Raises:
        EnvironmentFailedError: A store fails; what was copied stays.
    """
    reader, writer = _Reader(source.name), _Reader(target.name)
    new = answered = different = 0
    for page in sound.pages(schema.answers):
        requests, attempts = _read(source, sound, reader, page)
        with target.database.write() as connection:
            numbers = writer.requests.add(connection, requests)
            list_models(connection, filter(None, requests.values()))
            added = _add(connection, writer, {numbers[key]: found for key, found in attempts.items()})
        new, answered = new + added.new, answered + added.answered
        different += added.different
        if writer.requests.texts.training_due:
            with target.database.write() as connection:
                writer.requests.texts.train(connection)
        advance(len(page))
    return MergedAnswers(new, answered, different)


def _read(
    source: Store, sound: SoundRows, reader: _Reader, page: Sequence[RowMapping]
) -> tuple[dict[bytes, bytes], dict[bytes, list[_Attempt]]]:
    """The requests of attempts by key, and the attempts by key."""
    attempts: defaultdict[bytes, list[_Attempt]] = defaultdict(list)
    with source.database.core_read() as core:
        requests = _requests(core, sound, reader, sorted({row["request"] for row in page}))
        connection = plain(core)
        for row in page:
            found = reader.attempt(connection, row["id"], row["state"], row["body"], row["created"])
            if (request := requests.get(row["request"])) is None:
                sound.leave_out(schema.answers, row, f"request {row['request']} does not exist in requests")
                continue
            attempts[request.key].append(found)
    return dict(requests.values()), attempts


def _requests(
    core: CoreConnection, sound: SoundRows, reader: _Reader, numbers: Sequence[int]
) -> dict[int, StoredRequest]:
    """Requests by number; the canonical JSON of a damaged one is empty."""
    query = select(schema.requests).where(schema.requests.c.id.in_(numbers))
    rows = core.execute(query).mappings().all()
    whole = {row["id"] for row in sound.sound(core, schema.requests, rows)}
    keys = {row["id"]: StoredRequest(bytes(row["key"]), b"") for row in rows if isinstance(row["key"], bytes)}
    return keys | reader.requests.by_number(plain(core), whole)


def _add(
    connection: Connection, writer: _Reader, attempts: Mapping[int, Iterable[_Attempt]]
) -> MergedAnswers:
    """Add attempts by the number of their request.

    The answers of a request count in the order of their rows. If a new attempt is not the latest, the
    attempts of its request are written again in the order of time.
    """
    here: defaultdict[int, dict[_Attempt, int]] = defaultdict(dict)
    query = "SELECT request, id, state, body, created FROM answers WHERE request IN ({})"
    for request, row, state, body, created in rows_in(connection, query, sorted(attempts)):
        here[request][writer.attempt(connection, row, state, body, created)] = row
    rows: list[tuple[int, _Attempt]] = []
    moved: list[int] = []
    count = answered = different = 0
    for request, found in attempts.items():
        new = sorted(set(found) - here[request].keys())
        count += len(new)
        if new and (known := _texts(writer, here[request])):
            answered += 1
            different += not _texts(writer, dict.fromkeys(new, 0)) <= known
        if new and here[request] and new[0] < max(here[request]):
            moved += here[request].values()
            new = sorted({*new, *here[request]})
        rows += ((request, attempt) for attempt in new)
    change_rows_in(connection, "DELETE FROM answers WHERE id IN ({})", (), moved)
    insert(connection, "answers", ("request", "state", "body", "created"), _rows(connection, writer, rows))
    return MergedAnswers(count, answered, different)


def _texts(writer: _Reader, attempts: Mapping[_Attempt, int]) -> set[str]:
    """The texts of the answers among attempts, attempt -> its row in the target."""
    answers = ((one.content, row) for one, row in attempts.items() if one.state == State.ANSWERED)
    return {writer.text(content, row) for content, row in answers}


def _rows(
    connection: Connection, writer: _Reader, attempts: Iterable[tuple[int, _Attempt]]
) -> list[tuple[int, int, bytes, float]]:
    return [
        (request, one.state, writer.dictionaries.compress(connection, one.content, COMMON), one.created)
        for request, one in attempts
    ]
