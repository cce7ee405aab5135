"""Reads responses of chat completions servers: an answer, or the kind of failure."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import msgspec
from msgspec import Raw, Struct

from sightline.decoding import lenient_json
from sightline.formats.usage import decode_usage
from sightline.models.reply_body import too_deep
from sightline.types import Answer, Failure

# Reasoning before the answer. The opening tag may be in the prompt, the closing tag may be cut off.
_THOUGHT = re.compile(
    r"\s*<think(?:ing)?>(.*?)(?:</think(?:ing)?>\s*|\Z)|((?:(?!<think).)*?)</think(?:ing)?>\s*", re.DOTALL
)
_TOO_LONG = (
    "context_length",
    "context length",
    "context window",
    "context size",
    "too many tokens",
    "too long",
)
# 401, 403 and 404 too: the server answered before, so its key or model is unavailable for a while.
_PASSING = (401, 403, 404, 408, 409, 425, 429)
_TOO_LARGE_FOR_QUOTA = "request too large"
_FILTERED = ("content_filter", "content_policy", "responsibleai", "safety")


_MAX_NAME = 200
"""The most characters of a model's version or of a finish reason that are kept."""


class _Message(Struct):
    content: str | list[Any] | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    refusal: str | None = None


class _Choice(Struct):
    message: _Message
    finish_reason: str | None = None


class _Reply(Struct):
    choices: list[_Choice]
    model: str | None = None
    system_fingerprint: str | None = None
    usage: Raw = Raw()


_decoder = msgspec.json.Decoder(_Reply)


def read_response(raw: bytes, host: str, latency: float) -> Answer | Failure:
    """Read the body of a response with status 200.

    Args:
        latency: Seconds that the call took.

    Returns:
        The answer; reasoning, in its own field or in <think> tags, is kept apart, and token counts that are
        no numbers are None. A failure if there is no answer.
    """
    try:
        reply = _decode(raw)
        choice = reply.choices[0]
    except RecursionError:
        return too_deep(host)
    except (msgspec.DecodeError, ValueError, IndexError) as error:
        return Failure("transient", f"{host}: not a chat completion ({error}): {_start(raw)}")
    message = choice.message
    text = message.content or message.refusal or ""
    if isinstance(text, list):
        text = "".join(str(part.get("text", "")) for part in text if isinstance(part, dict))
    if choice.finish_reason == "content_filter" and not text:
        return Failure("blocked", f"{host}: the content filter stopped the answer", status=200)
    reasoning = next((r for r in (message.reasoning_content, message.reasoning) if isinstance(r, str)), "")
    thought = _THOUGHT.match(text)
    if thought is not None:
        reasoning = reasoning or (thought.group(1) or thought.group(2) or "").strip()
        text = text[thought.end() :]
    return Answer(
        text=text,
        reasoning=reasoning,
        finish_reason=(choice.finish_reason or "")[:_MAX_NAME],
        usage=decode_usage(bytes(reply.usage)),
        latency=round(latency, 4),
        version=" ".join(part for part in (reply.model, reply.system_fingerprint) if part)[:_MAX_NAME],
    )


def failure_of_status(host: str, status: int, raw: bytes, retry_after: str | None) -> Failure:
    """Find the failure that an HTTP status other than 200 means.

    Args:
        retry_after: The Retry-After header, None without one.
    """
    words = raw[:4000].decode("utf-8", "replace").lower()
    message = f"{host}: HTTP {status}: {_start(raw)}"
    if status == 402 or (status == 429 and "insufficient_quota" in words):
        return Failure("transient", message, status=402)
    if status == 429 and _TOO_LARGE_FOR_QUOTA in words:
        return Failure("blocked", message, status=413)
    if status in _PASSING or status < 400 or status >= 500:
        return Failure("transient", message, seconds_until(retry_after), status)
    if any(sign in words for sign in (*_TOO_LONG, *_FILTERED)):
        return Failure("blocked", message, status=status)
    return Failure("permanent", message, status=status)


def seconds_until(retry_after: str | None) -> float | None:
    """Read a Retry-After header.

    Args:
        retry_after: Seconds or a date; None without the header.

    Returns:
        Seconds from now, 0 or more; None if the header is missing or invalid.
    """
    if not retry_after:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    # Its import takes longer than most replies, and dates are rare here.
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _decode(raw: bytes) -> _Reply:
    """Decode a response; text cut within a character, and numbers outside JSON, do not lose the answer."""
    try:
        return _decoder.decode(raw)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        body = lenient_json(raw.decode("utf-8", "replace"), constant=str)
        return _decoder.decode(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))


def _start(raw: bytes) -> str:
    """The first characters of a body, on one line."""
    return " ".join(raw[:300].decode("utf-8", "replace").split())
