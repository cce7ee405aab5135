"""OpenAI-compatible endpoints: chat completions with images as data URLs (OpenAI, vLLM, SGLang, Ollama)."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import asdict, replace

from sightline.errors import UserError
from sightline.images import BadImage, ImageLimits, data_url
from sightline.models.base import Capabilities
from sightline.models.reply import failure_of_status, read_reply
from sightline.types import Answer, Failure, ImageFile, Message, Request, Text

if TYPE_CHECKING:
    import aiohttp

INLINE_BYTES = 1024 * 1024
"""Images up to this size are read on the event loop; a thread costs more than they do."""

LOOPBACK = {"localhost", "127.0.0.1", "::1"}

# Models that think before they answer take another name for the token limit, and no sampling options.
_THINKING = re.compile(r"(o\d|gpt-5)(-|$)")

_DETAIL = "image_detail"
CONNECT_SECONDS = 30


class OpenAICompatible:
    """One address that speaks the chat completions protocol.

    `key` is sent to this address only, and never kept of what comes back. `timeout` is in seconds, for a
    whole call. `detail` is how closely OpenAI's models look at images.
    """

    batch_size = 1
    parallel: int | None = None

    def __init__(
        self,
        address: str,
        model: str,
        *,
        name: str,
        identity: str,
        key: str | None = None,
        proxy: str | None = None,
        timeout: float = 300.0,
        limits: ImageLimits | None = None,
        detail: str | None = None,
    ) -> None:
        self.name = name
        self.identity = identity
        self.model = model
        self.capabilities = Capabilities(limits=limits or ImageLimits())
        self._url = address.rstrip("/") + "/chat/completions"
        parts = urlsplit(address)
        self._hostname = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self.host = f"{self._hostname}:{self._port}"
        self._key = key
        self._proxy = proxy
        self._timeout = timeout
        self._detail = detail
        self._session: aiohttp.ClientSession | None = None
        self._has_answered = False
        self._encoded: dict[tuple[str, str], asyncio.Task[msgspec.Raw]] = {}

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """The options as this model takes them: thinking models get max_completion_tokens, no temperature.

        `image_detail` goes with the images; it stands here because it decides what is asked.
        """
        wanted = dict(sampling)
        if self._detail is not None:
            wanted.setdefault(_DETAIL, self._detail)
        if _THINKING.match(self.model.rpartition("/")[2]):
            if "max_tokens" in wanted:
                wanted.setdefault("max_completion_tokens", wanted.pop("max_tokens"))
            for name in ("temperature", "top_p"):
                wanted.pop(name, None)
        return wanted

    async def __aenter__(self) -> Self:
        """Open a session. Raises UserError where nothing listens at the address."""
        import aiohttp

        if self._proxy is None:
            await self._knock()
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        self._session = aiohttp.ClientSession(
            # Servers drop idle connections after 5 s (uvicorn, so vLLM and SGLang): let go before they do.
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=4),
            timeout=aiohttp.ClientTimeout(total=self._timeout, sock_connect=CONNECT_SECONDS),
            headers=headers,
            proxy=self._proxy,
            trust_env=self._hostname not in LOOPBACK,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        """Ask each request by one call."""
        for index, request in enumerate(requests):
            yield index, await self._ask(request)

    async def _ask(self, request: Request) -> Answer | Failure:
        import aiohttp

        assert self._session is not None, "asked outside 'async with'"
        try:
            body = await self._body(request)
        except BadImage as error:
            return Failure("permanent", str(error))
        began = time.perf_counter()
        try:
            # A redirect is not followed: the key, and the images, go to the address that was named.
            async with self._session.post(self._url, data=body, allow_redirects=False) as response:
                raw = await response.read()
                status, retry_after = response.status, response.headers.get("Retry-After")
        except aiohttp.ConnectionTimeoutError:
            return Failure("transient", f"{self.host}: no connection within {CONNECT_SECONDS} s")
        except TimeoutError:
            return Failure("transient", f"{self.host}: no answer within {self._timeout:g} s")
        except (aiohttp.ClientError, OSError) as error:
            return Failure("transient", f"{self.host}: {type(error).__name__}: {error}")
        if self._key:
            raw = raw.replace(self._key.encode(), b"[key]")
        if status != 200:
            return self._redacted(self._failure(status, raw, retry_after))
        self._has_answered = True
        return self._redacted(read_reply(raw, self.host, time.perf_counter() - began))

    def _failure(self, status: int, raw: bytes, retry_after: str | None) -> Failure:
        """What an HTTP status means; before the first answer it may mean that no call can ever succeed."""
        if not self._has_answered and status in (401, 403):
            raise UserError(
                f"{self.host} {'refuses the' if self._key else 'asks for an'} API key (HTTP {status})",
                expected="a valid key in the environment variable that sightline.toml names for this host",
            )
        if not self._has_answered and (status == 404 or 300 <= status < 400):
            raise UserError(
                f"{self._url} does not exist or has no model '{self.model}' (HTTP {status})",
                expected="an address that ends in the API's root, such as http://host:8000/v1#model",
            )
        return failure_of_status(self.host, status, raw, retry_after)

    def _redacted(self, result: Answer | Failure) -> Answer | Failure:
        """The result without the key, which some servers repeat, in whatever escapes, in what they say."""
        if not self._key:
            return result
        words = {name: value for name, value in asdict(result).items() if isinstance(value, str)}
        return replace(result, **{name: text.replace(self._key, "[key]") for name, text in words.items()})

    async def _body(self, request: Request) -> bytes:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [await self._message(message, request) for message in request.messages],
            **{name: value for name, value in request.sampling.items() if name != _DETAIL},
        }
        if "seed" in body:
            body["seed"] += request.draw
        return msgspec.json.encode(body)

    async def _message(self, message: Message, request: Request) -> dict[str, Any]:
        match message.parts:
            case [Text(text)]:
                # Words alone go as a string: not every server takes them as a list of one.
                return {"role": message.role, "content": text}
        content: list[dict[str, Any]] = []
        for part in message.parts:
            if isinstance(part, Text):
                content.append({"type": "text", "text": part.text})
            else:
                url: dict[str, Any] = {"url": await self._data_url(request.images[part.path])}
                if _DETAIL in request.sampling:
                    url["detail"] = request.sampling[_DETAIL]
                content.append({"type": "image_url", "image_url": url})
        return {"role": message.role, "content": content}

    async def _data_url(self, file: ImageFile) -> msgspec.Raw:
        """The image as a JSON string; a re-encoded one is made once for all probes that share it."""
        if not file.transform:
            if file.stamp[0] <= INLINE_BYTES:
                return _encode(file)
            return await asyncio.to_thread(_encode, file)
        address = (file.digest, file.transform)
        task = self._encoded.get(address)
        if task is None:
            task = self._encoded[address] = asyncio.create_task(asyncio.to_thread(_encode, file))
            if len(self._encoded) > 64:
                del self._encoded[next(iter(self._encoded))]
        return await asyncio.shield(task)

    async def _knock(self) -> None:
        """Whether anything listens at all, before the first image is read."""
        try:
            _, writer = await asyncio.wait_for(asyncio.open_connection(self._hostname, self._port), 10)
        except (OSError, TimeoutError) as error:
            if self._hostname not in LOOPBACK and _environment_proxy(self._hostname):
                return
            raise UserError(
                f"nothing answers at {self.host} ({error or 'no connection within 10 s'})",
                expected="a running server: start it, or mend the address",
            ) from None
        writer.close()


def _environment_proxy(hostname: str) -> bool:
    from urllib.request import getproxies, proxy_bypass

    return bool(getproxies()) and not proxy_bypass(hostname)


def _encode(file: ImageFile) -> msgspec.Raw:
    return msgspec.Raw(b'"%s"' % data_url(file))
