"""Full-text search over question, prompt, context and responses: FTS5 in SQLite, a GIN index in PostgreSQL.

Texts are divided into words here, so that both databases find the same groups: runs of letters and digits,
without case and accents; each Chinese or Japanese character is a word of its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection

from sightline.engine.database import Database
from sightline.engine.index_tables import WORDS, existing
from sightline.types import Outcome

MOST_CHARACTERS = 200_000
"""Of longer texts of a group, the beginning can be found; PostgreSQL accepts less than a megabyte."""

MOST_LETTERS = 200
"""The most characters of a word; what follows is ignored."""

_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+")


def words_of(text: str) -> set[str]:
    """Divide a text into words.

    >>> sorted(words_of("The café's CAFE, 図書館-2"))
    ['2', 'cafe', 's', 'the', '図', '書', '館']
    """
    if not text.isascii():
        plain = unicodedata.normalize("NFKD", text.casefold())
        text = "".join(letter for letter in plain if not unicodedata.combining(letter))
        text = unicodedata.normalize("NFC", text)
    return {word[:MOST_LETTERS] for word in _WORD.findall(text.casefold())}


def searched_text(outcomes: Iterable[Outcome]) -> str:
    """The text of a group that can be found."""
    texts = dict.fromkeys(
        text
        for one in outcomes
        for text in (one.sample, one.question, one.context, one.response, one.prompt, *one.options)
    )
    return "\n".join(texts)[:MOST_CHARACTERS]


class TextIndex:
    """The words of the groups of one index. The number of a group is its position in the run, from 0."""

    def __init__(self, database: Database, index_id: int) -> None:
        self._database = database
        self._id = index_id
        self._sqlite_table = f"{WORDS}_{index_id}"

    def added(self) -> int:
        """Count the groups whose words were added; they are added in the order of their numbers."""
        with self._database.core_read() as connection:
            table = self._sqlite_table if connection.dialect.name == "sqlite" else WORDS
            return self._added(connection) if table in existing(connection) else 0

    def add(self, first: int, texts: Sequence[str]) -> None:
        """Add groups, unless another process added them meanwhile."""
        numbered = [(number, sorted(words_of(text))) for number, text in enumerate(texts, start=first)]
        with self._database.core_write() as connection:
            self._create(connection)
            there = self._added(connection)
            self._insert(connection, [row for row in numbered if row[0] >= there])

    def find(self, search: str) -> list[int]:
        """Find the groups that contain all words of a search.

        Returns:
            The numbers of the groups in their order; none for a search without a word.
        """
        words = sorted(words_of(search))
        if not words:
            return []
        with self._database.core_read() as connection:
            if connection.dialect.name == "sqlite":
                table = self._sqlite_table
                query = f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rowid"
                values: tuple[object, ...] = (" ".join(f'"{word}"' for word in words),)
            else:
                query = (
                    f"SELECT number FROM {WORDS} WHERE words @@ %s::tsquery AND index_id = %s ORDER BY number"
                )
                values = (" & ".join(f"'{word}'" for word in words), self._id)
            rows = connection.exec_driver_sql(
                query, values
            ).cursor.fetchall()  # `scalars` takes twice as long.
            return [number for (number,) in rows]

    def _create(self, connection: Connection) -> None:
        """Create the table, unless it exists."""
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(
                f"CREATE VIRTUAL TABLE IF NOT EXISTS {self._sqlite_table} USING "
                "fts5(words, content='', detail=none, tokenize='ascii')"
            )
            return
        # One process at a time, also while the table does not exist yet.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext(%s))", (WORDS,))
        connection.exec_driver_sql(
            f"CREATE TABLE IF NOT EXISTS {WORDS} (index_id bigint NOT NULL, number bigint NOT NULL, "
            "words tsvector NOT NULL, PRIMARY KEY (index_id, number))"
        )
        connection.exec_driver_sql(f"CREATE INDEX IF NOT EXISTS {WORDS}_by_word ON {WORDS} USING gin (words)")

    def _added(self, connection: Connection) -> int:
        if connection.dialect.name == "sqlite":
            # FTS5 keeps a row here for each row of the virtual table.
            query = f"SELECT max(id) FROM {self._sqlite_table}_docsize"
            last = connection.exec_driver_sql(query).scalar()
        else:
            query = f"SELECT max(number) FROM {WORDS} WHERE index_id = %s"
            last = connection.exec_driver_sql(query, (self._id,)).scalar()
        return 0 if last is None else int(last) + 1

    def _insert(self, connection: Connection, numbered: Sequence[tuple[int, list[str]]]) -> None:
        if not numbered:
            return
        if connection.dialect.name == "sqlite":
            statement = f"INSERT INTO {self._sqlite_table} (rowid, words) VALUES (?, ?)"
            rows: list[tuple[object, ...]] = [(number, " ".join(words)) for number, words in numbered]
        else:
            values = "(%s, %s, array_to_tsvector(%s::text[]))"
            statement = f"INSERT INTO {WORDS} (index_id, number, words) VALUES {values}"
            rows = [(self._id, number, words) for number, words in numbered]
        connection.exec_driver_sql(statement, rows)
