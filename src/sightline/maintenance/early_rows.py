"""What the rows of a store of schema version 1 or 2 hold: the check that a salvaged row is what it was."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from sightline.engine.endpoint_log import EndpointRecord
from sightline.formats.verdicts import decode_verdict
from sightline.types import Answer, Failure, ImageFile

Row = Mapping[str, Any]


def _check_request(row: Row) -> bool:
    return bool(hashlib.sha256(row["body"]).hexdigest() == row["key"])


def _check_answer(row: Row) -> bool:
    msgspec.json.decode(row["body"], type=Answer if row["ok"] else Failure)
    return row["ok"] in (0, 1) and len(bytes.fromhex(row["key"])) == 32


def _check_json(row: Row) -> bool:
    msgspec.json.decode(row["body"])
    return True


def _check_verdict(row: Row) -> bool:
    decode_verdict(row["body"])
    return True


def _check_endpoint(row: Row) -> bool:
    return bool(msgspec.json.decode(row["body"], type=EndpointRecord).identity == row["identity"])


def _check_image(row: Row) -> bool:
    return bool(msgspec.json.decode(row["body"], type=ImageFile).path == row["path"])


def _check_vector(row: Row) -> bool:
    return len(row["key"]) == 32 and len(row["body"]) % 4 == 0


CHECKS: Mapping[str, Callable[[Row], bool]] = {
    "requests": _check_request,
    "answers": _check_answer,
    "runs": _check_json,
    "probes": _check_json,
    "verdicts": _check_verdict,
    "endpoints": _check_endpoint,
    "images": _check_image,
    "vectors": _check_vector,
    "readings": _check_json,
}
"""Table -> whether a row of it is sound; a function may also raise ValueError for one that is not."""
