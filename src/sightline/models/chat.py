"""Chat completions and OpenAI's Responses API: requests with images as data URLs, and what replies mean.

A reply comes in one piece or as an event stream, of one API or of the other; `read_response` reads them all.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from io import BytesIO
from itertools import chain
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from sightline.formats.files import BYTE_ORDER_MARK
from sightline.formats.jsonl import decode_usage
from sightline.formats.prediction import NO_ANSWER, Content, content_of, finish_reason
from sightline.images import data_url
from sightline.models.http_client import MAX_BYTES, STREAM_FACTOR
from sightline.text import lenient_json
from sightline.types import Answer, Failure, ImageFile, Message, Request, Text

T = TypeVar("T")

COMPLETIONS = "/chat/completions"
RESPONSES = "/responses"

DETAIL = "image_detail"
"""Our sampling option for OpenAI's `detail`, which goes with each image and not into the body."""

INLINE_BYTES = 256 * 1024
"""Images up to this size are encoded on the event loop in at most 0.6 ms; a thread adds 0.1 to 0.4 ms."""

CACHED_IMAGES = 64
"""Re-encoded images that are kept for the next probe with the same image."""


class Form(Struct, frozen=True):
    """The form in which a server takes requests and answers them.

    `responses`: OpenAI's Responses API instead of chat completions. `streams`: answers are asked for as event
    streams, with their token counts if it `counts`.
    """

    responses: bool = False
    streams: bool = False
    counts: bool = True

    @property
    def path(self) -> str:
        return RESPONSES if self.responses else COMPLETIONS

    def joined(self, other: Form) -> Form:
        """What two refusals ask for together."""
        return Form(
            self.responses or other.responses, self.streams or other.streams, self.counts and other.counts
        )

    def wanted(self, status: int, raw: bytes) -> Form | None:
        """The form that a server's refusal of this one asks for; None if it is about something else."""
        words = raw[:4000].decode("utf-8", "replace").lower()
        if status in (400, 404) and not self.responses and any(sign in words for sign in _ONLY_RESPONSES):
            return replace(self, responses=True)
        if status in (400, 422) and self.streams and self.counts and "stream_options" in words:
            return replace(self, counts=False)
        if status in (400, 422) and not self.streams and any(sign in words for sign in _ONLY_STREAMS):
            return replace(self, streams=True)
        return None


PLAIN = Form()
"""A chat completion in one piece."""

_ONLY_RESPONSES = ("v1/responses", "use responses api", "chatcompletion operation does not work")
"""Words of refusals of chat completions: OpenAI (o1-pro), gateways, Azure (OperationNotSupported)."""
_ONLY_STREAMS = (
    "only support stream", "only supports stream", "non-stream", "stream=", "enable the stream parameter",
    "stream must be", "must be streamed", "stream is required", "streaming is required",
    "does not support http call",
)  # fmt: skip
"""Words of refusals of calls without a stream: DashScope (QwQ, QVQ, Qwen3), ModelScope, gateways."""


class ChatRequestEncoder:
    """Encodes the requests of one model. Belongs to one event loop."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._encoded: dict[tuple[str, str], asyncio.Task[msgspec.Raw]] = {}

    async def encode(self, request: Request, form: Form = PLAIN) -> bytes:
        messages = [await self._message(message, request, form) for message in request.messages]
        options = {name: value for name, value in request.sampling.items() if name != DETAIL}
        if "seed" in options:
            options["seed"] += request.draw
        body: dict[str, Any] = {"model": self._model, "messages": messages, **options}
        if form.responses:
            body = {"model": self._model, "input": messages, "store": False, **_responses_options(options)}
        if form.streams:
            body["stream"] = True
            if form.counts and not form.responses:
                body["stream_options"] = {"include_usage": True}
        return msgspec.json.encode(body)

    async def _message(self, message: Message, request: Request, form: Form) -> dict[str, Any]:
        match message.parts:
            case [Text(text)]:
                # Not every server accepts a list with one text.
                return {"role": message.role, "content": text}
        content: list[dict[str, Any]] = []
        for part in message.parts:
            if isinstance(part, Text):
                direction = "output_" if message.role == "assistant" else "input_"
                content.append({"type": f"{direction if form.responses else ''}text", "text": part.text})
                continue
            url = await self._data_url(request.images[part.path])
            detail = {"detail": request.sampling[DETAIL]} if DETAIL in request.sampling else {}
            if form.responses:
                content.append({"type": "input_image", "image_url": url, **detail})
            else:
                content.append({"type": "image_url", "image_url": {"url": url, **detail}})
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


def _responses_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a chat completion under their names in the Responses API (API reference: /v1/responses).

    The server refuses by name what that API does not have, such as `seed` and `stop`.
    """
    named = dict(options)
    for name in ("max_tokens", "max_completion_tokens"):
        if name in named:
            named["max_output_tokens"] = named.pop(name)
    if "reasoning_effort" in named:
        named["reasoning"] = {"effort": named.pop("reasoning_effort")}
    text = {"verbosity": named.pop("verbosity")} if "verbosity" in named else {}
    if isinstance(shape := named.get("response_format"), dict):
        del named["response_format"]
        text["format"] = {"type": shape.get("type"), **shape.get("json_schema", {})}
    return {**named, "text": text} if text else named


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
    delta: _Message | None = None
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
    # Of the Responses API: its result, and its events.
    object: Any = None
    status: Any = None
    incomplete_details: Any = None
    output: Any = None
    type: Any = None
    response: Raw = Raw()


_decoder = msgspec.json.Decoder(_Reply)


def read_response(raw: bytes, host: str, latency: float) -> Answer | Failure:
    """Read the body of a response with a status from 200 to 299.

    `latency`: seconds that the call took. Returns the answer; reasoning in a field or a part of its own is
    kept apart, and token counts that are no numbers are None. A failure if there is no answer, which includes
    an error in the reply and a generation that failed or was filtered, also beside a text.
    """
    raw = _without_comments(raw)
    try:
        reply = _joined(raw) if is_event_stream(raw) else decode_reply(_decoder, raw)
        if reply is None:
            end = _start(raw[-300:])
            return Failure("transient", f"{host}: the event stream ended before the answer: ... {end}")
        if reply.object == "response":
            reply = _as_completion(reply)
        return _stated_failure(_error_in(reply), host) or _answer(reply, raw, host, latency)
    except RecursionError:
        return too_deep(host)
    except (msgspec.DecodeError, ValueError) as error:
        return Failure("transient", f"{host}: not a chat completion ({error}): {_start(raw)}")


def is_event_stream(raw: bytes) -> bool:
    return _without_comments(raw).startswith((b"data:", b"event:", b"id:", b"retry:"))


def _events(raw: bytes) -> Iterator[bytes]:
    """The data of each event of a stream (WHATWG HTML, 9.2: server-sent events), also of a cut one."""
    data: list[bytes] = []
    for line in chain(BytesIO(raw), (b"",)):
        name, _, value = line.rstrip(b"\r\n").partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif not name and not value and data:
            yield b"\n".join(data)
            data = []


_LAST_EVENTS = ("response.completed", "response.incomplete", "response.failed")
"""The events of the Responses API that end a stream and hold the whole response."""


def _joined(raw: bytes) -> _Reply | None:
    """The reply that an event stream holds in parts; None if it ends before the reply does.

    A chat completion ends with a finish reason for each choice. `[DONE]` says nothing: some servers omit it,
    and gateways (one-api) send it after an upstream server that broke off.
    """
    whole, choices = _Reply(), dict[int, _Choice]()
    texts, thoughts = dict[int, list[str]](), dict[int, list[str]]()
    for data in _events(raw):
        if data.strip() == b"[DONE]":
            break
        part = decode_reply(_decoder, data)
        if error := _error_in(part):
            return _Reply(error=error)
        if part.type in _LAST_EVENTS:
            return decode_reply(_decoder, bytes(part.response))
        whole.model = part.model or whole.model
        whole.system_fingerprint = part.system_fingerprint or whole.system_fingerprint
        whole.usage = whole.usage if bytes(part.usage) in (b"", b"null") else part.usage
        for piece in part.choices or ():
            place = _place(piece)
            choice = choices.setdefault(place, _Choice(index=place))
            choice.finish_reason = piece.finish_reason or choice.finish_reason
            choice.native_finish_reason = piece.native_finish_reason or choice.native_finish_reason
            message = piece.delta or piece.message
            choice.error = choice.error or piece.error or (message and message.error)
            if message is not None:
                found = _content(message)
                texts.setdefault(place, []).append(found.text)
                thoughts.setdefault(place, []).append(found.reasoning)
    endings = [
        finish_reason(one.native_finish_reason) or finish_reason(one.finish_reason) or one.error
        for one in choices.values()
    ]
    if not endings or not all(endings):
        return None
    for place, choice in choices.items():
        choice.message = _Message(
            content="".join(texts.get(place, ())), reasoning="".join(thoughts.get(place, ()))
        )
    whole.choices = list(choices.values())
    return whole


def _as_completion(reply: _Reply) -> _Reply:
    """A result of the Responses API as a chat completion: its items are the parts of one message."""
    ending = reply.status
    if ending == "incomplete" and isinstance(reply.incomplete_details, dict):
        ending = reply.incomplete_details.get("reason") or ending
    return replace(reply, choices=[_Choice(_Message(content=reply.output), finish_reason=ending)])


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
        if choice.message is None:
            raise ValueError("a choice has no message")
        found = _content(choice.message)
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


def _content(message: _Message) -> Content:
    """The text and the reasoning of a message or a part of one; ValueError if it is not understood."""
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
    """Find the failure that a status outside 200 to 299 means."""
    pause = _pause(status, headers)
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


LONGEST_RESET = 60.0
"""The longest pause by a header of a rate limit. Limits are refilled all the time: the reset is when one is
full again, hours later for a limit of a day, and a call may be accepted long before."""


def _pause(status: int, headers: Mapping[str, str]) -> float | None:
    """Seconds for which a server asks for a pause; None if it asks for none.

    `Retry-After` and its forms in milliseconds (OpenAI; Azure) come first. Otherwise a refusal by a rate
    limit waits for the reset of what has nothing remaining, or for the earliest one:
    `x-ratelimit-reset-tokens` (OpenAI 6m0s, Groq 7.66s, Azure 55), `x-rate-limit-reset-tokens` (Azure,
    openai-python #937), `anthropic-ratelimit-tokens-reset` (a time), `x-ratelimit-reset` (OpenRouter,
    milliseconds since 1970).
    """
    lower = {name.lower(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 0.001), ("x-ms-retry-after-ms", 0.001), ("retry-after", 1.0)):
        if (pause := seconds_until(lower.get(name), unit)) is not None:
            return pause
    if status != 429:
        return None
    resets = {
        name: seconds
        for name, value in lower.items()
        if "ratelimit" in name.replace("-", "") and "reset" in name and (seconds := seconds_until(value))
    }
    used_up = [
        seconds for name, seconds in resets.items() if lower.get(name.replace("reset", "remaining")) == "0"
    ]
    pause = max(used_up, default=min(resets.values(), default=None))
    return None if pause is None else min(pause, LONGEST_RESET)


_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
_SINCE_1970 = 1e9
"""A number from here on is a time: 2001 in seconds since 1970, as a pause it had 31 years."""
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds_until(retry_after: str | None, unit: float = 1.0) -> float | None:
    """Read a Retry-After header.

    `retry_after`: a number of `unit` seconds, a duration such as 500ms or 1m30s, a date of HTTP or ISO 8601,
    or seconds or milliseconds since 1970; None without the header. Returns seconds from now, 0 or more; None
    if the header is missing or invalid.
    """
    if not retry_after:
        return None
    try:
        number = float(retry_after)
        if _SINCE_1970 <= number < math.inf:
            return max(0.0, number * (0.001 if number >= 1000 * _SINCE_1970 else 1.0) - time.time())
        return max(0.0, number * unit)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(retry_after)
        return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - time.time())
    except (ValueError, OverflowError):
        pass
    if not _DURATION.sub("", retry_after).strip():
        return sum(float(number) * _SECONDS[name] for number, name in _DURATION.findall(retry_after))
    # Its import takes longer than most replies, and dates are rare here.
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


_COMMENTS = re.compile(rb"(?:\s+|:[^\n]*\n?)*")


def _without_comments(raw: bytes) -> bytes:
    """A body without what may stand before its JSON: a byte order mark, and comments that keep it alive."""
    if raw.startswith(b"{"):
        return raw
    raw = raw.removeprefix(BYTE_ORDER_MARK)
    before = _COMMENTS.match(raw)
    return raw[before.end() :] if before is not None else raw


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
    limit = f"the limit is {MAX_BYTES:,} bytes, decompressed, {STREAM_FACTOR} times that for an event stream"
    remedy = f"limit the answer with --gen max_tokens=N, or {_REMEDY}"
    return Failure("permanent", f"{host}: the reply is too large: {limit}; {remedy}", status=200)


def too_deep(host: str) -> Failure:
    """The failure for a reply whose JSON is nested more deeply than Python reads."""
    limit = f"the limit is {sys.getrecursionlimit():,} levels"
    return Failure("permanent", f"{host}: the reply is nested too deeply: {limit}; {_REMEDY}", status=200)
