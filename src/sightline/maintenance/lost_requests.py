"""Restores requests whose rows are lost from the index of their keys, so that their answers stay."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from sightline.engine.probe_chunks import KEY_BYTES
from sightline.engine.requests import frame_only
from sightline.maintenance.sqlite.pages import Pages
from sightline.maintenance.sqlite.records import read_rows
from sightline.maintenance.sqlite.trees import read_definitions, walk

INDEX = "sqlite_autoindex_requests_1"
"""The index of the unique keys of requests: each entry is a key and the number of its request."""

_WITHOUT_TEXTS = frame_only(0)
"""A body that names no text: a check of the store finds it."""


def restore_requests(pages: Pages, target: sqlite3.Connection) -> None:
    """Add the requests that a salvaged store lacks, with their keys and without their texts.

    If an index names a number twice, one entry is damaged, and neither is used: an answer must not get to
    another request.

    Args:
        pages: The damaged database, of schema version 3.
        target: The salvaged one.
    """
    target.execute("CREATE TEMP TABLE entries (id INTEGER, key BLOB)")
    target.executemany("INSERT INTO entries VALUES (?, ?)", _entries(pages))
    target.execute(
        "INSERT OR IGNORE INTO requests (id, key, body) "
        "SELECT id, key, ? FROM entries WHERE id IN (SELECT request FROM answers) "
        "GROUP BY id HAVING count(*) = 1",
        (_WITHOUT_TEXTS,),
    )
    target.execute("DROP TABLE entries")


def _entries(pages: Pages) -> Iterator[tuple[int, bytes]]:
    """Number and key of each readable entry."""
    for one in read_definitions(pages):
        for page in walk(pages, one.root) if (one.kind, one.name) == ("index", INDEX) else ():
            for row in read_rows(pages, page.number, page.node) if page.node else ():
                match row.values if row else ():
                    case (bytes(key), int(number)) if len(key) == KEY_BYTES:
                        yield number, key
