"""Request keys: SHA-256 of the canonical JSON of everything that decides what a model receives."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from sightline.types import Message, Request, Text

KEY_VERSION = 1


class KeyedRequest(NamedTuple):
    """A request with its key, and the canonical JSON that the store keeps with the answer."""

    request: Request
    canonical: bytes


def with_key(request: Request, identity: str, fresh: str = "") -> KeyedRequest:
    """Compute the key of a request.

    Args:
        request: The request; its `key` is ignored.
        identity: Identity of the model that receives the request.
        fresh: Tag of `--fresh`; another tag gives another key. '' adds nothing.

    Returns:
        The request with its key, and its canonical JSON.
    """
    body = canonical_json(request, identity, fresh)
    return KeyedRequest(replace(request, key=key_of(body)), body)


def canonical_json(request: Request, identity: str, fresh: str = "") -> bytes:
    """Encode a request as canonical JSON: sorted keys, no spaces, whole floats as integers.

    Images enter by digest and transform, never by path. Retries, timeouts and credentials stay out.

    Args:
        request: The request; its `key` and `origin` stay out.
        identity: Identity of the model that receives the request.
        fresh: Tag of `--fresh`; '' adds nothing.

    Returns:
        The JSON, UTF-8.
    """
    body: dict[str, Any] = {
        "v": KEY_VERSION,
        "model": identity,
        "messages": [_message(message, request) for message in request.messages],
        "sampling": _whole(request.sampling),
        "draw": request.draw,
    }
    if fresh:
        body["fresh"] = fresh
    if request.choices:
        body["choices"] = request.choices
    return msgspec.json.encode(body, order="sorted")


def key_of(canonical: bytes) -> str:
    """Compute the key that belongs to canonical JSON.

    Args:
        canonical: What `canonical_json` returned.

    Returns:
        64 hexadecimal digits.
    """
    return hashlib.sha256(canonical).hexdigest()


def _message(message: Message, request: Request) -> list[Any]:
    parts: list[Any] = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(part.text)
        else:
            image = request.images[part.path]
            # Existing stores hold this name; another one would change the key of every image request.
            parts.append({"picture": image.digest, "transform": image.transform})
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
