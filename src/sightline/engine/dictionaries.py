"""The dictionaries of a store, and the bodies that are compressed with them.

A body starts with the number of its dictionary. Every store has dictionary 1, for answers; a growing store
trains more for its prompts (`texts.py`).
"""

from __future__ import annotations

from sightline.engine.compression import COMMON_TEXTS, Compressor, DamagedBodyError
from sightline.engine.connection import Connection
from sightline.engine.database import insert_new, rows_in
from sightline.engine.database_errors import damage

PLAIN = 0
"""The number of no dictionary."""
COMMON = 1
"""The number of the dictionary that every store has."""
MOST = 255
"""The highest number: it is one byte of each body."""


class Dictionaries:
    """Compresses and decompresses the bodies of one store, `name`; several threads may use it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._compressors = {PLAIN: Compressor()}

    def newest(self, connection: Connection) -> int:
        """The number of the newest dictionary."""
        self._read_new(connection)
        return max(self._compressors)

    def add(self, connection: Connection, number: int, dictionary: bytes) -> None:
        """Add a dictionary. If another process added one with this number, that one stays."""
        row = (number, self.compress(connection, dictionary, PLAIN))
        insert_new(connection, "dictionaries", ("id", "body"), [row])

    def compress(self, connection: Connection, body: bytes, number: int) -> bytes:
        return bytes((number,)) + self._compressor(connection, number).compress(body)

    def decompress(self, connection: Connection, body: bytes, table: str, row: int) -> bytes:
        try:
            return self._compressor(connection, body[0]).decompress(body[1:])
        # TypeError: SQLite keeps a value of another type in any column.
        except (DamagedBodyError, IndexError, TypeError) as error:
            raise damage(self.name, table, row, str(error)) from None

    def _compressor(self, connection: Connection, number: int) -> Compressor:
        if number not in self._compressors:
            self._read_new(connection)
        if number not in self._compressors:
            raise DamagedBodyError(f"dictionary {number} is missing")
        return self._compressors[number]

    def _read_new(self, connection: Connection) -> None:
        query = "SELECT id, body FROM dictionaries WHERE id > ({}) ORDER BY id"
        for number, body in rows_in(connection, query, [max(self._compressors)]):
            if not (isinstance(body, bytes) and body and body[0] in self._compressors):
                raise damage(self.name, "dictionaries", number, "it is not a dictionary")
            self._compressors[number] = Compressor(self.decompress(connection, body, "dictionaries", number))


def add_common_dictionary(connection: Connection) -> None:
    """Add the dictionary that every store has."""
    Dictionaries("").add(connection, COMMON, COMMON_TEXTS)
