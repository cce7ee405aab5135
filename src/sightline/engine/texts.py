"""Texts of requests, each kept once, by its digest: prompts share instructions, exemplars and options."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from sightline.engine.compression import trained_dictionary
from sightline.engine.connection import Connection
from sightline.engine.database import insert_new, rows_in
from sightline.engine.dictionaries import MOST, Dictionaries

FIRST_TRAINING = 96
"""The number of texts at which the first dictionary is trained."""
GROWTH = 16
"""The next dictionary is trained when the store has this many times as many texts."""
SAMPLE = 192
"""The latest texts that a dictionary is trained on."""


class Texts:
    """The texts of one store. If `training_due`, the store has enough new ones for another dictionary."""

    def __init__(self, dictionaries: Dictionaries) -> None:
        self._dictionaries = dictionaries
        self.training_due = False

    def add(self, connection: Connection, texts: Iterable[bytes]) -> dict[bytes, int]:
        """Add the texts that the store does not have."""
        digests = {text: text_digest(text) for text in texts}
        numbers = self._numbers(connection, list(digests.values()))
        new = [text for text, digest in digests.items() if digest not in numbers]
        if new:
            newest = self._dictionaries.newest(connection)
            rows = [(digests[text], self._dictionaries.compress(connection, text, newest)) for text in new]
            insert_new(connection, "texts", ("digest", "body"), rows)
            numbers |= self._numbers(connection, [digests[text] for text in new])
            self.training_due = max(numbers.values()) >= _texts_before_training(newest)
        return {text: numbers[digest] for text, digest in digests.items()}

    def read(self, connection: Connection, numbers: Iterable[int]) -> dict[int, bytes]:
        """Read texts."""
        rows = rows_in(connection, "SELECT id, body FROM texts WHERE id IN ({})", sorted(set(numbers)))
        return {row: self._dictionaries.decompress(connection, body, "texts", row) for row, body in rows}

    def train(self, connection: Connection) -> None:
        """Train a dictionary on the latest texts, if the store has grown enough since the last one."""
        newest = self._dictionaries.newest(connection)
        self.training_due = False
        rows = connection.rows("SELECT id, body FROM texts ORDER BY id DESC LIMIT ?", (SAMPLE,))
        if newest < MOST and rows[0][0] >= _texts_before_training(newest):
            texts = [self._dictionaries.decompress(connection, body, "texts", row) for row, body in rows]
            self._dictionaries.add(connection, newest + 1, trained_dictionary(texts[::-1]))

    def _numbers(self, connection: Connection, digests: Sequence[bytes]) -> dict[bytes, int]:
        return dict(rows_in(connection, "SELECT digest, id FROM texts WHERE digest IN ({})", digests))


def _texts_before_training(newest: int) -> int:
    return FIRST_TRAINING * int(GROWTH ** (newest - 1))


def text_digest(text: bytes) -> bytes:
    """The digest of a text. It is short: the key of a request proves that its texts are the right ones."""
    return hashlib.sha256(text).digest()[:16]
