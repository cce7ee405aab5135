"""Writes requests to input files of batches, within a provider's limits of lines and bytes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from sightline.config import BatchSettings
from sightline.formats.write_errors import writing
from sightline.images import BadImage
from sightline.models.batch.client import CHAT
from sightline.types import Failure, Request

AROUND_BODY = len(b'{"custom_id":"","method":"POST","url":"","body":}\n') + len(CHAT) + 64
"""The bytes of a line besides the body of its request; a key has 64 characters."""

Encode = Callable[[Request], Awaitable[bytes]]


class InputFile(Struct, frozen=True):
    """A file that is complete: the keys of its requests in the order of its lines, and its size."""

    path: Path
    keys: Sequence[str]
    bytes: int


class Unwritable(Struct, frozen=True):
    """A request that is in no file, and why."""

    key: str
    failure: Failure


async def input_files(
    requests: Sequence[Request], encode: Encode, settings: BatchSettings, folder: Path
) -> AsyncIterator[InputFile | Unwritable]:
    """Write requests to files, one request at a time. A file may be deleted when the next one is asked for."""
    number, keys, size = 0, list[str](), 0
    with writing(folder), ExitStack() as stack:
        file = stack.enter_context(_path(folder, number).open("wb"))
        for request in requests:
            try:
                line = input_line(request.key, await encode(request))
            except BadImage as error:
                yield Unwritable(request.key, Failure("permanent", str(error)))
                continue
            if len(line) > settings.bytes:
                yield Unwritable(request.key, _too_large(len(line), settings.bytes))
                continue
            if keys and (len(keys) == settings.lines or size + len(line) > settings.bytes):
                file.close()
                yield InputFile(_path(folder, number), keys, size)
                number, keys, size = number + 1, [], 0
                file = stack.enter_context(_path(folder, number).open("wb"))
            file.write(line)
            keys.append(request.key)
            size += len(line)
        file.close()
        if keys:
            yield InputFile(_path(folder, number), keys, size)


def input_line(key: str, body: bytes) -> bytes:
    """Write the line of a request."""
    return b'{"custom_id":%b,"method":"POST","url":"%b","body":%b}\n' % (
        json.dumps(key).encode(),
        CHAT.encode(),
        body,
    )


def _path(folder: Path, number: int) -> Path:
    return folder / f"sightline-{number}.jsonl"


def _too_large(size: int, limit: int) -> Failure:
    return Failure(
        "permanent",
        f"the request has {size:,} bytes, a file of a batch at most {limit:,}; --model-arg max_bytes=N or"
        " max_side=N makes its images smaller",
    )
