"""Decodes the bodies of annotation projects, items, annotators and entries in the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Connection

from sightline.annotation.types import Annotator, Entry, Item, Project
from sightline.engine.database_errors import damage

T = TypeVar("T")

PROJECT = msgspec.json.Decoder(Project)
ITEM = msgspec.json.Decoder(Item)
ANNOTATOR = msgspec.json.Decoder(Annotator)
ENTRY = msgspec.json.Decoder(Entry)

DECODERS: Mapping[str, msgspec.json.Decoder[Any]] = {
    "annotation_projects": PROJECT,
    "annotation_items": ITEM,
    "annotators": ANNOTATOR,
    "annotation_log": ENTRY,
}
"""Table -> what decodes the bodies of its rows."""


def decode(
    connection: Connection, decoder: msgspec.json.Decoder[T], table: str, number: int, body: bytes
) -> T:
    """Decode the body of a row."""
    try:
        return decoder.decode(body)
    except (ValueError, TypeError) as error:
        url = connection.engine.url
        is_file = connection.dialect.name == "sqlite"
        raise damage(str(url.database) if is_file else str(url), table, number, str(error)) from None
