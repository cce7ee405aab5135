"""What a worker and its clients send: chat completions, with one more field for what the protocol lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from sightline.formats.digests import json_digest
from sightline.models.chat_request import ChatRequestEncoder
from sightline.types import Answer, Failure, Request

KEY_VARIABLE = "SIGHTLINE_WORKER_KEY"
"""The environment variable with the key of a worker."""

FIELD = "sightline"
"""The field of requests and replies that other servers do not have."""


class RequestField(Struct, frozen=True, forbid_unknown_fields=True):
    """What a request of ours holds besides the chat."""

    key: str = ""
    draw: int = 0
    choices: tuple[str, ...] = ()


class ReplyField(Struct, frozen=True, omit_defaults=True):
    """The result as the model in this process would give it."""

    answer: Answer | None = None
    failure: Failure | None = None


class _Reply(Struct):
    sightline: ReplyField


async def encode_request(request: Request, encoder: ChatRequestEncoder) -> bytes:
    """Encode a request for a worker.

    Args:
        encoder: Encodes the chat; it sends the bytes that a model in this process would read.
    """
    # The encoder adds the draw to the seed, for servers that do not have draws.
    body = await encoder.encode(replace(request, draw=0))
    field = RequestField(request.key, request.draw, request.choices)
    return b'%s,"%s":%s}' % (body[:-1], FIELD.encode(), msgspec.json.encode(field))


def read_reply(raw: bytes) -> Answer | Failure | None:
    """Read the reply of a worker.

    Returns:
        The answer or failure; None if the body is none of a worker.
    """
    try:
        field = msgspec.json.decode(raw, type=_Reply).sightline
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return field.answer or field.failure


def key_of(body: Mapping[str, Any]) -> str:
    """A key for a request of another client."""
    return json_digest(body)


def completion(answer: Answer, model: str, key: str, created: int) -> dict[str, Any]:
    """The reply with an answer.

    Args:
        created: Seconds since 1970.
    """
    usage = {name: value for name, value in asdict(answer.usage).items() if isinstance(value, int)}
    usage["total_tokens"] = usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)
    return {
        "id": f"chatcmpl-{key[:24]}",
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": answer.text},
                "finish_reason": answer.finish_reason or "stop",
            }
        ],
        "usage": usage,
        FIELD: ReplyField(answer=answer),
    }


def error(message: str, kind: str, failure: Failure | None = None, code: str | None = None) -> dict[str, Any]:
    """The reply with an error.

    Args:
        failure: The failure of the model, None if it was not asked.
        code: The protocol's code of the error, None if it follows from the failure.
    """
    if failure is not None and failure.kind == "blocked":
        code = "context_length_exceeded"
    body: dict[str, Any] = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return body if failure is None else {**body, FIELD: ReplyField(failure=failure)}
