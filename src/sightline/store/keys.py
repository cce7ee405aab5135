"""Request keys: SHA-256 of the canonical JSON of everything that decides what a model receives."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from sightline.types import ImageFile, Message, Origin, Request, Text

KEY_VERSION = 1

_encode = msgspec.json.Encoder(order="sorted").encode


class KeyedRequest(NamedTuple):
    """A request with its key, and the canonical JSON that the store keeps with the answer."""

    request: Request
    canonical: bytes


class RequestFrame:
    """What all requests to one model under the same options share, encoded once: it makes their keys."""

    def __init__(self, identity: str, sampling: Mapping[str, Any], fresh: str = "") -> None:
        self._sampling = sampling
        # The names of the fields are sorted: choices, draw, fresh, messages, model, sampling, v.
        tag = b'"fresh":%b,' % _encode(fresh) if fresh else b""
        self._before_messages = tag + b'"messages":'
        self._after_messages = b',"model":%b,"sampling":%b,"v":%d}' % (
            _encode(identity),
            _encode(_whole(sampling)),
            KEY_VERSION,
        )

    def keyed(
        self,
        messages: tuple[Message, ...],
        images: Mapping[str, ImageFile],
        draw: int = 0,
        origin: Origin | None = None,
        choices: tuple[str, ...] = (),
    ) -> KeyedRequest:
        start = b'{"choices":%b,' % _encode(choices) if choices else b"{"
        body = b'%b"draw":%d,%b%b%b' % (
            start,
            draw,
            self._before_messages,
            _encode([_message(message, images) for message in messages]),
            self._after_messages,
        )
        return KeyedRequest(
            Request(key_of(body), messages, self._sampling, images, draw, origin, choices), body
        )


def with_key(request: Request, identity: str, fresh: str = "") -> KeyedRequest:
    """Encode a request as canonical JSON: sorted keys, no spaces, whole floats as integers.

    Images enter by digest and transform, never by path. Retries, timeouts and credentials stay out.
    """
    frame = RequestFrame(identity, request.sampling, fresh)
    return frame.keyed(request.messages, request.images, request.draw, request.origin, request.choices)


def key_of(canonical: bytes) -> str:
    return hashlib.sha256(canonical).hexdigest()


def _message(message: Message, images: Mapping[str, ImageFile]) -> list[Any]:
    parts: list[Any] = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(part.text)
        else:
            image = images[part.path]
            parts.append({"image": image.digest, "transform": image.transform})
    return [message.role, parts]


def _whole(value: Any) -> Any:
    """Replace whole floats by integers at any depth: 0.0 and 0 are the same temperature."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {name: _whole(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(inner) for inner in value]
    return value
