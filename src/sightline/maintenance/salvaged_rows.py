"""What a row of schema version 3 looks like: the first check of a salvaged row, without any other row."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from sightline.engine.answers import State
from sightline.engine.compression import Compressor, DamagedBodyError
from sightline.engine.dictionaries import PLAIN
from sightline.engine.endpoint_log import EndpointRecord
from sightline.engine.probe_chunks import KEY_BYTES
from sightline.engine.runs import keys_of_row
from sightline.formats.verdicts import decode_verdict
from sightline.maintenance import early_rows

Row = Mapping[str, Any]

LEFT_OUT = ("claims", "run_leases", "spending", "images", "vectors", "readings", "results", "plans")
"""Tables that are not salvaged: nothing proves that a cached row is sound, and Sightline fills them again."""

_PLAIN = Compressor()
_STATES = {state.value for state in State}
_LARGEST = 1 << 53
"""Numbers of rows beyond this are damage."""


def checks_of(version: int) -> Mapping[str, Callable[[Row], bool]]:
    """The checks for the rows of a schema version.

    Args:
        version: The version.

    Returns:
        Table -> whether a row of it can be sound; the function may also raise ValueError for one that is not.
    """
    return _CHECKS if version >= 3 else early_rows.CHECKS


def _decompressed(body: bytes) -> bytes:
    """The content of a body without a dictionary."""
    if body[:1] != bytes((PLAIN,)):
        raise ValueError("compressed with a dictionary")
    try:
        return _PLAIN.decompress(body[1:])
    except DamagedBodyError as error:
        raise ValueError(str(error)) from None


def _check_dictionary(row: Row) -> bool:
    return bool(_decompressed(row["body"])) and 0 < row["id"] < 256


def _check_text(row: Row) -> bool:
    return len(row["digest"]) == 16 and len(row["body"]) > 1


def _check_request(row: Row) -> bool:
    references = msgspec.msgpack.decode(row["body"], type=list[int | bytes])
    return len(row["key"]) == KEY_BYTES and bool(references) and isinstance(references[0], int)


def _check_answer(row: Row) -> bool:
    is_known: bool = row["state"] in _STATES and max(row["request"], row["created"]) < _LARGEST
    return is_known


def _check_definitions(row: Row) -> bool:
    return bool(hashlib.sha256(_decompressed(row["body"])).digest() == row["digest"])


def _check_probes(row: Row) -> bool:
    keys = keys_of_row(row["run"], row["place"], row["definitions"], row["answer_keys"])
    return len(keys) % KEY_BYTES == 0


def _check_run(row: Row) -> bool:
    is_numbered: bool = row["id"] < _LARGEST
    return is_numbered and isinstance(msgspec.json.decode(row["body"]), dict)


def _check_verdict(row: Row) -> bool:
    decode_verdict(row["body"])
    return True


def _check_endpoint(row: Row) -> bool:
    return bool(msgspec.json.decode(row["body"], type=EndpointRecord).identity == row["identity"])


def _check_batch(row: Row) -> bool:
    is_numbered: bool = max(row["id"], row["requests"]) < _LARGEST
    return is_numbered and bool(row["address"] and row["file"])


def _check_batch_request(row: Row) -> bool:
    is_numbered: bool = row["batch"] < _LARGEST
    return is_numbered and len(row["key"]) == KEY_BYTES


_CHECKS: Mapping[str, Callable[[Row], bool]] = {
    "batches": _check_batch,
    "batch_requests": _check_batch_request,
    "dictionaries": _check_dictionary,
    "texts": _check_text,
    "requests": _check_request,
    "answers": _check_answer,
    "definitions": _check_definitions,
    "probes": _check_probes,
    "runs": _check_run,
    "verdicts": _check_verdict,
    "endpoints": _check_endpoint,
}
