"""Reads the files of a batch's results: lines as they arrive, and the result that each line holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from sightline.decoding import lenient_json
from sightline.models.chat_response import failure_of_status, read_response
from sightline.models.reply_body import MAX_BYTES, too_deep, too_large
from sightline.types import Answer, Failure

_ID = re.compile(rb'"custom_id"\s*:\s*"([^"\\]{1,200})"')

FINAL = (401, 403, 404)
"""Statuses of lines that another batch would not change: the key has no access, or there is no such model."""


class _Response(Struct):
    status_code: int = 0
    body: Raw = Raw(b"null")


class _Error(Struct):
    code: str | None = None
    message: str | None = None


class _Line(Struct):
    custom_id: str
    response: _Response | None = None
    error: _Error | None = None


_decoder = msgspec.json.Decoder(_Line)


class LineResult(NamedTuple):
    """The result of a request: the key of the request, and what became of it."""

    key: str
    result: Answer | Failure


class LineReader:
    """Divides pieces of a file into lines. Memory holds one line, at most `MAX_BYTES` and a piece of it."""

    def __init__(self) -> None:
        self._held = b""
        self._is_cut = False

    def lines(self, piece: bytes) -> Iterator[bytes]:
        """Add a piece of the file.

        Args:
            piece: The bytes that follow.

        Yields:
            The lines that end in it. Of a line that is too long, only the first `MAX_BYTES` + 1 bytes.
        """
        first, *others = piece.split(b"\n")
        self._hold(first)
        for following in others:
            if self._held.strip():
                yield self._held
            self._held, self._is_cut = b"", False
            self._hold(following)

    def rest(self) -> bytes:
        """The last line, where the file does not end with a line feed; b'' if there is none."""
        return self._held.strip()

    def _hold(self, more: bytes) -> None:
        if not self._is_cut:
            self._held = self._held + more if self._held else more
            if len(self._held) > MAX_BYTES:
                self._held, self._is_cut = self._held[: MAX_BYTES + 1], True


def read_line(line: bytes, host: str) -> LineResult | None:
    """Read a line of an output file or an error file.

    Returns:
        The key of the request and its result; None for a line that names no request.
    """
    if len(line) > MAX_BYTES:
        named = _ID.search(line[:4096])
        return LineResult(named[1].decode("utf-8", "replace"), too_large(host)) if named else None
    try:
        found = _decode(line)
    except RecursionError:
        named = _ID.search(line[:4096])
        return LineResult(named[1].decode("utf-8", "replace"), too_deep(host)) if named else None
    except (msgspec.DecodeError, ValueError):
        return None
    return LineResult(found.custom_id, _result(found, host))


def _result(line: _Line, host: str) -> Answer | Failure:
    response, error = line.response, line.error
    if response is None or (error is not None and not response.status_code):
        code, message = (error.code, error.message) if error is not None else (None, None)
        return Failure("transient", f"{host}: {code or 'no response'}: {message or 'the line has no reason'}")
    body, status = bytes(response.body), response.status_code
    if status == 200:
        # The time in the queue of the provider says nothing about the model.
        return read_response(body, host, 0.0)
    failure = failure_of_status(host, status, body, None)
    return msgspec.structs.replace(failure, kind="permanent") if status in FINAL else failure


def _decode(line: bytes) -> _Line:
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        body = lenient_json(line.decode("utf-8", "replace"), constant=str)
        return _decoder.decode(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
