"""Chat completions: requests with images as data URLs, and the answers or failures in servers' replies."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Raw, Struct

from sightline.formats.files import BYTE_ORDER_MARK
from sightline.formats.jsonl import decode_usage
from sightline.formats.prediction import NO_ANSWER, Content, content_of, finish_reason
from sightline.images import data_url
from sightline.models.http_client import MAX_BYTES
from sightline.text import lenient_json
from sightline.types import Answer, Failure, ImageFile, Message, Request, Text

T = TypeVar("T")

DETAIL = "image_detail"
"""Our sampling option for OpenAI's `detail`, which goes with each image and not into the body."""

INLINE_BYTES = 256 * 1024
"""Images up to this size are encoded on the event loop in at most 0.6 ms; a thread adds 0.1 to 0.4 ms."""

CACHED_IMAGES = 64
"""Re-encoded images that are kept for the next probe with the same image."""


class ChatRequestEncoder:
    """Encodes the requests of one model. Belongs to one event loop."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._encoded: dict[tuple[str, str], asyncio.Task[msgspec.Raw]] = {}

    async def encode(self, request: Request) -> bytes:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [await self._message(message, request) for message in request.messages],
            **{name: value for name, value in request.sampling.items() if name != DETAIL},
        }
        if "seed" in body:
            body["seed"] += request.draw
        return msgspec.json.encode(body)

    async def _message(self, message: Message, request: Request) -> dict[str, Any]:
        match message.parts:
            case [Text(text)]:
                # Not every server accepts a list with one text.
                return {"role": message.role, "content": text}
        content: list[dict[str, Any]] = []
        for part in message.parts:
            if isinstance(part, Text):
                content.append({"type": "text", "text": part.text})
            else:
                image: dict[str, Any] = {"url": await self._data_url(request.images[part.path])}
                if DETAIL in request.sampling:
                    image["detail"] = request.sampling[DETAIL]
                content.append({"type": "image_url", "image_url": image})
        return {"role": message.role, "content": content}

    async def _data_url(self, file: ImageFile) -> msgspec.Raw:
        """The data URL as a JSON string; probes that share a re-encoded image share its encoding."""
        if not file.transform:
            if file.stamp[0] <= INLINE_BYTES:
                return _encode(file)
            return await asyncio.to_thread(_encode, file)
        address = (file.digest, file.transform)
        task = self._encoded.get(address)
        if task is None:
            task = self._encoded[address] = asyncio.create_task(asyncio.to_thread(_encode, file))
            if len(self._encoded) > CACHED_IMAGES:
                del self._encoded[next(iter(self._encoded))]
        return await asyncio.shield(task)


def _encode(file: ImageFile) -> msgspec.Raw:
    return msgspec.Raw(b'"%s"' % data_url(file))


# -- Reads responses of chat completions servers: an answer, or the kind of failure

_TOO_LONG = (
    "context_length", "context length", "context window", "contextwindow", "context size",
    "context overflow", "context the overflows", "maximum model length", "maximum prompt length",
    "maximum allowed length", "maximum number of tokens", "too large for model", "too many tokens",
    "too many input tokens", "input length", "input is too long", "prompt is too long", "string too long",
    "`inputs` must have", "`max_new_tokens` must be",
)  # fmt: skip
"""Words of refusals of what is too long, in lower case: docs/models.md has their servers."""

_FILTERED = (
    "content_filter", "content filter", "content_policy", "content policy", "contentpolicy",
    "content management", "responsibleai", "safety system", "safety filter", "safety setting",
    "due to safety", "safety reasons", "flagged", "usage polic", "usage guideline", "inappropriate content",
    "data_inspection", "datainspection", "prohibited content", "prohibited_content", "guardrail policy",
    "guardrail_intervened", "blockreason", "block_reason", "敏感内容",
)  # fmt: skip
"""Words of refusals by a filter."""

_STATUSES = (
    ("insufficient_quota", 402),
    ("rate_limit", 429),
    ("rate limit", 429),
    ("too many requests", 429),
    ("resource_exhausted", 429),
    ("throttl", 429),
    *((words, 400) for words in (*_TOO_LONG, *_FILTERED)),
    ("overloaded", 529),
    ("unavailable", 503),
    ("invalid_request", 400),
    ("invalid_argument", 400),
)
"""Words of an error without a number, and the HTTP status that they mean; the first ones count."""

# 401, 403 and 404 too: the server answered before, so its key or model is unavailable for a while.
_PASSING = (401, 403, 404, 408, 409, 425, 429)
_TOO_LARGE_FOR_QUOTA = "request too large"
_NO_IMAGES = "image input is not supported"
"""llama.cpp's words for a model without an image encoder (tools/server, b11549), with status 500."""

_MAX_NAME = 200
"""The most characters of a model's version or of a finish reason that are kept."""

_LOADING = ("loading", "not ready", "starting", "warming up")
LOADING_SECONDS = 5.0
"""The pause after a 503 of a server that loads its model, which is a lack of capacity and no outage."""

_LONG_PAUSE = 60.0
"""Seconds of Retry-After above which the message of a failure says them."""


class _Message(Struct):
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    refusal: Any = None
    error: Any = None


class _Choice(Struct):
    message: _Message | None = None
    finish_reason: Any = None
    native_finish_reason: Any = None
    index: Any = 0
    error: Any = None


class _Reply(Struct):
    choices: list[_Choice] | None = None
    error: Any = None
    message: Any = None
    detail: Any = None
    code: Any = None
    model: Any = None
    system_fingerprint: Any = None
    usage: Raw = Raw()


_decoder = msgspec.json.Decoder(_Reply)


def read_response(raw: bytes, host: str, latency: float) -> Answer | Failure:
    """Read the body of a response with a status from 200 to 299.

    `latency`: seconds that the call took. Returns the answer; reasoning in a field or a part of its own is
    kept apart, and token counts that are no numbers are None. A failure if there is no answer, which includes
    an error in the reply and a generation that failed or was filtered, also beside a text.
    """
    raw = _without_comments(raw)
    if is_event_stream(raw):
        return Failure("transient", f"{host} replies with an event stream: {_start(raw)}", status=200)
    try:
        reply = decode_reply(_decoder, raw)
        return _stated_failure(_error_in(reply), host) or _answer(reply, raw, host, latency)
    except RecursionError:
        return too_deep(host)
    except (msgspec.DecodeError, ValueError) as error:
        return Failure("transient", f"{host}: not a chat completion ({error}): {_start(raw)}")


def is_event_stream(raw: bytes) -> bool:
    return raw.startswith((b"data:", b"event:"))


def _answer(reply: _Reply, raw: bytes, host: str, latency: float) -> Answer | Failure:
    """The answer of the first choice with a text, in the order of `index`; ValueError without a message."""
    choices = sorted(reply.choices or (), key=_place)
    text = reason = ""
    thoughts: list[str] = []
    for place, choice in enumerate(choices):
        error = choice.error or (choice.message.error if choice.message is not None else None)
        if (failure := _stated_failure(error, host)) is not None:
            return failure
        native, stated = finish_reason(choice.native_finish_reason), finish_reason(choice.finish_reason)
        ending = native if native in NO_ANSWER or native == "length" else stated
        if ending in NO_ANSWER:
            kind: Literal["transient", "blocked"] = "transient" if ending == "error" else "blocked"
            return Failure(kind, f"{host}: {NO_ANSWER[ending]}: {_start(raw)}", status=200)
        found = _content(choice)
        thoughts += filter(None, [found.reasoning])
        if found.text or not place:
            text, reason = found.text, ending
        if found.text:
            break
    if not choices:
        lower = raw[:4000].decode("utf-8", "replace").lower()
        if any(sign in lower for sign in _FILTERED):
            return Failure("blocked", f"{host}: no choices: {_start(raw)}", status=200)
        raise ValueError("no choices")
    if not (text or thoughts or reason in ("", "stop", "length")):
        return Failure("permanent", f"{host}: no text, finish reason '{reason[:_MAX_NAME]}'", status=200)
    names = (reply.model, reply.system_fingerprint)
    return Answer(
        text=text,
        reasoning="\n\n".join(thoughts),
        finish_reason=reason[:_MAX_NAME],
        usage=decode_usage(bytes(reply.usage)),
        latency=round(latency, 4),
        version=" ".join(name for name in names if isinstance(name, str) and name)[:_MAX_NAME],
    )


def _place(choice: _Choice) -> int:
    if isinstance(choice.index, str):
        return int(choice.index) if re.fullmatch(r"\d{1,9}", choice.index) else 0
    return choice.index if isinstance(choice.index, int) else 0


def _content(choice: _Choice) -> Content:
    """The text and the reasoning of a choice; ValueError if its message is not understood."""
    message = choice.message
    if message is None:
        raise ValueError("a choice has no message")
    fields = (message.reasoning_content, message.reasoning, message.reasoning_details)
    if message.content and isinstance(message.content, str) and not any(fields):
        return Content(message.content, "")
    if (found := content_of(message.content)) is None:
        raise ValueError("no text in a message")
    apart = (content_of(field) for field in fields if field and not isinstance(field, bool))
    reasoning = next((one.joined for one in apart if one is not None and one.joined), "")
    text = found.text or (message.refusal if isinstance(message.refusal, str) else "")
    return Content(text, "\n\n".join(filter(None, (reasoning, found.reasoning))))


def _error_in(reply: _Reply) -> Any:
    """The error that a reply states; a reply without choices may be one as a whole."""
    if reply.error or reply.choices:
        return reply.error
    words = reply.detail if isinstance(reply.message, dict) else reply.message or reply.detail
    return {"message": words, "code": reply.code} if words else None


def _stated_failure(error: Any, host: str) -> Failure | None:
    """The failure that an error within a reply of status 200 means, by its code, otherwise by its words."""
    if not error:
        return None
    words = msgspec.json.encode(error)
    codes = [error.get(name) for name in ("code", "status", "status_code")] if isinstance(error, dict) else []
    numbers = (int(code) for code in map(str, codes) if code.isascii() and code.isdigit() and len(code) == 3)
    lower = words.decode().lower()
    by_words = (status for sign, status in _STATUSES if sign in lower)
    status = next((one for one in numbers if 400 <= one < 600), None) or next(by_words, None)
    message = f"{host}: HTTP 200 with an error: {_start(words)}"
    return Failure("transient", message) if status is None else _failure(status, lower, message, None)


def failure_of_status(host: str, status: int, raw: bytes, headers: Mapping[str, str]) -> Failure:
    """Find the failure that a status outside 200 to 299 means; the names of `headers` are in lower case."""
    pause = seconds_until(headers.get("retry-after-ms"), 0.001)
    pause = seconds_until(headers.get("retry-after")) if pause is None else pause
    words = raw[:4000].decode("utf-8", "replace").lower()
    if pause is None and status == 503 and any(sign in words for sign in _LOADING):
        pause = LOADING_SECONDS
    message = f"{host}: HTTP {status}: {_start(raw)}"
    if pause is not None and pause > _LONG_PAUSE:
        message += f" (Retry-After: {pause:,.0f} s)"
    return _failure(status, words, message, pause)


def _failure(status: int, words: str, message: str, pause: float | None) -> Failure:
    if status == 402 or (status == 429 and "insufficient_quota" in words):
        return Failure("transient", message, status=402)
    if status == 429 and _TOO_LARGE_FOR_QUOTA in words:
        return Failure("blocked", message, status=413)
    if status == 500 and _NO_IMAGES in words:
        return Failure("permanent", message, status=400)
    is_filtered = any(sign in words for sign in _FILTERED)
    if status < 400 or status >= 500 or (status in _PASSING and not (status == 403 and is_filtered)):
        return Failure("transient", message, pause, status)
    is_blocked = is_filtered or any(sign in words for sign in _TOO_LONG)
    return Failure("blocked" if is_blocked else "permanent", message, status=status)


_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds_until(retry_after: str | None, unit: float = 1.0) -> float | None:
    """Read a Retry-After header.

    `retry_after`: a number of `unit` seconds, a duration such as 500ms or 1m30s, or a date; None without the
    header. Returns seconds from now, 0 or more; None if the header is missing or invalid.
    """
    if not retry_after:
        return None
    try:
        return max(0.0, float(retry_after) * unit)
    except ValueError:
        pass
    if not _DURATION.sub("", retry_after).strip():
        return sum(float(number) * _SECONDS[name] for number, name in _DURATION.findall(retry_after))
    # Its import takes longer than most replies, and dates are rare here.
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _without_comments(raw: bytes) -> bytes:
    """A body without what may stand before its JSON: a byte order mark, and comments that keep it alive."""
    if raw.startswith(b"{"):
        return raw
    raw = raw.removeprefix(BYTE_ORDER_MARK).lstrip()
    while raw.startswith(b":"):
        raw = raw.partition(b"\n")[2].lstrip()
    return raw


def decode_reply(decoder: msgspec.json.Decoder[T], raw: bytes) -> T:
    """Decode a reply; text cut within a character, and numbers outside JSON, do not lose the answer."""
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if isinstance(error, msgspec.ValidationError) and "out of range" not in str(error):
            raise
        body = lenient_json(raw.decode("utf-8", "replace"), constant=str)
        return decoder.decode(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))


def _start(raw: bytes) -> str:
    """The first characters of a body, on one line."""
    return " ".join(raw[:300].decode("utf-8", "replace").split())


# -- Failures for replies over a limit

_REMEDY = "check what this server sends; --retry-errors asks it again"


def too_large(host: str) -> Failure:
    """The failure for a reply over the limit of bytes. It is permanent: another call costs as much."""
    limit = f"the limit is {MAX_BYTES:,} bytes, decompressed"
    remedy = f"limit the answer with --gen max_tokens=N, or {_REMEDY}"
    return Failure("permanent", f"{host}: the reply is too large: {limit}; {remedy}", status=200)


def too_deep(host: str) -> Failure:
    """The failure for a reply whose JSON is nested more deeply than Python reads."""
    limit = f"the limit is {sys.getrecursionlimit():,} levels"
    return Failure("permanent", f"{host}: the reply is nested too deeply: {limit}; {_REMEDY}", status=200)
