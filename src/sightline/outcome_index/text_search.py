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

_COMPLETE = -1
"""The number of the row that marks the words as complete."""

_COMPLETE_WORD = "_complete_"
"""The word of that row: no text has a word with this character."""

_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+")


def words_of(text: str) -> set[str]:
    """Divide a text into words.

    Args:
        text: Any text.

    Returns:
        Its different words.

    >>> sorted(words_of("The café's CAFE, 図書館-2"))
    ['2', 'cafe', 's', 'the', '図', '書', '館']
    """
    if not text.isascii():
        plain = unicodedata.normalize("NFKD", text.casefold())
        text = "".join(letter for letter in plain if not unicodedata.combining(letter))
        text = unicodedata.normalize("NFC", text)
    return {word[:MOST_LETTERS] for word in _WORD.findall(text.casefold())}


def searched_text(outcomes: Iterable[Outcome]) -> str:
    """The text of a group that can be found.

    Args:
        outcomes: The outcomes of the group.

    Returns:
        Sample, questions, contexts, prompts, options and responses, each once.
    """
    texts = dict.fromkeys(
        text
        for one in outcomes
        for text in (one.sample, one.question, one.context, one.response, one.prompt, *one.options)
    )
    return "\n".join(texts)[:MOST_CHARACTERS]


class TextIndex:
    """The words of the groups of one index. The number of a group is its position in the run, from 0."""

    def __init__(self, database: Database, index_id: int) -> None:
        """Prepare it; nothing is read yet.

        Args:
            database: The database of the store.
            index_id: The number of the index.
        """
        self._database = database
        self._id = index_id
        self._sqlite_table = f"{WORDS}_{index_id}"

    def exists(self) -> bool:
        """Say whether the words of this index are complete.

        Returns:
            Whether `finish` was called.
        """
        with self._database.read() as connection:
            tables = existing(connection)
            if connection.dialect.name == "sqlite":
                return self._sqlite_table in tables and self._is_complete(connection)
            return WORDS in tables and self._is_complete(connection)

    def start(self) -> None:
        """Create the table, and drop the words of an attempt that was interrupted."""
        with self._database.write() as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql(f"DROP TABLE IF EXISTS {self._sqlite_table}")
                connection.exec_driver_sql(
                    f"CREATE VIRTUAL TABLE {self._sqlite_table} USING "
                    "fts5(words, content='', detail=none, tokenize=\"ascii tokenchars '_'\")"
                )
                return
            connection.exec_driver_sql(
                f"CREATE TABLE IF NOT EXISTS {WORDS} (index_id bigint NOT NULL, number bigint NOT NULL, "
                "words tsvector NOT NULL, PRIMARY KEY (index_id, number))"
            )
            connection.exec_driver_sql(
                f"CREATE INDEX IF NOT EXISTS {WORDS}_by_word ON {WORDS} USING gin (words)"
            )
            connection.exec_driver_sql(f"DELETE FROM {WORDS} WHERE index_id = %s", (self._id,))

    def add(self, first: int, texts: Sequence[str]) -> None:
        """Add groups.

        Args:
            first: The number of the first of them.
            texts: Their texts.
        """
        numbered = [(number, sorted(words_of(text))) for number, text in enumerate(texts, start=first)]
        with self._database.write() as connection:
            self._insert(connection, numbered)

    def finish(self) -> None:
        """Mark the words as complete."""
        with self._database.write() as connection:
            self._insert(connection, [(_COMPLETE, [])])

    def find(self, search: str) -> list[int]:
        """Find the groups that contain all words of a search.

        Args:
            search: What the user looks for.

        Returns:
            The numbers of the groups in their order; none for a search without a word.
        """
        words = sorted(words_of(search))
        if not words:
            return []
        with self._database.read() as connection:
            if connection.dialect.name == "sqlite":
                table = self._sqlite_table
                query = f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rowid"
                values: tuple[object, ...] = (" ".join(f'"{word}"' for word in words),)
            else:
                query = (
                    f"SELECT number FROM {WORDS} WHERE words @@ %s::tsquery AND index_id = %s ORDER BY number"
                )
                values = (" & ".join(f"'{word}'" for word in words), self._id)
            return [int(number) for (number,) in connection.exec_driver_sql(query, values)]

    def _is_complete(self, connection: Connection) -> bool:
        if connection.dialect.name == "sqlite":
            query = f"SELECT 1 FROM {self._sqlite_table} WHERE {self._sqlite_table} MATCH ?"
            return connection.exec_driver_sql(query, (_COMPLETE_WORD,)).first() is not None
        query = f"SELECT 1 FROM {WORDS} WHERE index_id = %s AND number = %s"
        return connection.exec_driver_sql(query, (self._id, _COMPLETE)).first() is not None

    def _insert(self, connection: Connection, numbered: Sequence[tuple[int, list[str]]]) -> None:
        if connection.dialect.name == "sqlite":
            statement = f"INSERT INTO {self._sqlite_table} (rowid, words) VALUES (?, ?)"
            rows: list[tuple[object, ...]] = [
                (number, " ".join(words) if number != _COMPLETE else _COMPLETE_WORD)
                for number, words in numbered
            ]
        else:
            values = "(%s, %s, array_to_tsvector(%s::text[]))"
            statement = f"INSERT INTO {WORDS} (index_id, number, words) VALUES {values}"
            rows = [(self._id, number, words) for number, words in numbered]
        connection.exec_driver_sql(statement, rows)
