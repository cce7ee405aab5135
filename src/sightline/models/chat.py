"""Chat completions: requests with images as data URLs, and the answers or failures in servers' replies."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from sightline.formats.jsonl import decode_usage
from sightline.images import data_url
from sightline.models.base import Exchange
from sightline.text import lenient_json
from sightline.types import Answer, Failure, ImageFile, Message, Request, Text

if TYPE_CHECKING:
    import aiohttp


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

    async def encode(self, request: Request, exchange: Exchange | None = None) -> bytes:
        """Encode a request. Without an `exchange`, the bytes of all images are sent."""
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [await self._message(message, request, exchange) for message in request.messages],
            **{name: value for name, value in request.sampling.items() if name != DETAIL},
        }
        if "seed" in body:
            body["seed"] += request.draw
        return msgspec.json.encode(body)

    async def _message(self, message: Message, request: Request, exchange: Exchange | None) -> dict[str, Any]:
        match message.parts:
            case [Text(text)]:
                # Not every server accepts a list with one text.
                return {"role": message.role, "content": text}
        content: list[dict[str, Any]] = []
        for part in message.parts:
            if isinstance(part, Text):
                content.append({"type": "text", "text": part.text})
            else:
                file = request.images[part.path]
                image = exchange.reference(file) if exchange is not None else None
                if image is None:
                    url = await self._data_url(file)
                    image = {"type": "image_url", "image_url": {"url": url}}
                    if exchange is not None:
                        image |= exchange.sends(file, bytes(url))
                if DETAIL in request.sampling:
                    image["image_url"]["detail"] = request.sampling[DETAIL]
                content.append(image)
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

    `latency`: seconds that the call took. Returns the answer; reasoning in its own field is kept apart, and
    token counts that are no numbers are None. A failure if there is no answer.
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
    return Answer(
        text=text,
        reasoning=reasoning,
        finish_reason=(choice.finish_reason or "")[:_MAX_NAME],
        usage=decode_usage(bytes(reply.usage)),
        latency=round(latency, 4),
        version=" ".join(part for part in (reply.model, reply.system_fingerprint) if part)[:_MAX_NAME],
    )


def failure_of_status(host: str, status: int, raw: bytes, retry_after: str | None) -> Failure:
    """Find the failure that a status other than 200 means; `retry_after` is that header, if there is one."""
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

    `retry_after`: seconds or a date; None without the header. Returns seconds from now, 0 or more; None if
    the header is missing or invalid.
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


# -- Reads the body of a server's reply up to a limit of bytes, which hold after decompression too

MAX_BYTES = 16 * 1024**2
"""The most bytes of a reply, decompressed. 100,000 tokens have 0.5 MB, with log-probabilities 10 MB."""

_REMEDY = "check what this server sends; --retry-errors asks it again"


async def read_body(response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    """Read the body of a reply as far as the limit allows.

    Returns at most the first `MAX_BYTES` bytes, and whether this is the whole body. The rest is not received.
    """
    body = b""
    async for piece in response.content.iter_any():
        body = body + piece if body else piece
        if len(body) > MAX_BYTES:
            return body[:MAX_BYTES], False
    return body, True


def too_large(host: str) -> Failure:
    """The failure for a reply over the limit of bytes. It is permanent: another call costs as much."""
    limit = f"the limit is {MAX_BYTES:,} bytes, decompressed"
    remedy = f"limit the answer with --gen max_tokens=N, or {_REMEDY}"
    return Failure("permanent", f"{host}: the reply is too large: {limit}; {remedy}", status=200)


def too_deep(host: str) -> Failure:
    """The failure for a reply whose JSON is nested more deeply than Python reads."""
    limit = f"the limit is {sys.getrecursionlimit():,} levels"
    return Failure("permanent", f"{host}: the reply is nested too deeply: {limit}; {_REMEDY}", status=200)
