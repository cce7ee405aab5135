"""The address of an answer: SHA-256 of the canonical JSON of everything that decides what is asked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from sightline.types import ImageFile, Message, Text

KEY_VERSION = 1


def canonical(
    identity: str,
    messages: tuple[Message, ...],
    images: Mapping[str, ImageFile],
    sampling: Mapping[str, Any],
    draw: int = 0,
    fresh: str = "",
    choices: tuple[str, ...] = (),
) -> bytes:
    """The canonical JSON of a request: sorted keys, no spaces, whole floats as integers.

    Images enter by digest and transform, never by path. Retries, time-outs and credentials stay out.
    """
    body: dict[str, Any] = {
        "v": KEY_VERSION,
        "model": identity,
        "messages": [
            [
                message.role,
                [
                    part.text
                    if isinstance(part, Text)
                    else {"picture": images[part.path].digest, "transform": images[part.path].transform}
                    for part in message.parts
                ],
            ]
            for message in messages
        ],
        "sampling": _whole(sampling),
        "draw": draw,
    }
    if fresh:
        body["fresh"] = fresh
    if choices:
        body["choices"] = choices
    return msgspec.json.encode(body, order="sorted")


def key_of(canonical_json: bytes) -> str:
    """The key of a request: 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json).hexdigest()


def _whole(value: Any) -> Any:
    """0.0 and 0 are one temperature, at whatever depth."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {name: _whole(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(inner) for inner in value]
    return value
