"""OpenAI-compatible endpoints (OpenAI, Azure, vLLM, SGLang, Ollama): chat completions, the Responses API."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from sightline.errors import UserError, hide_key
from sightline.images import BadImage, ImageLimits
from sightline.models.base import (
    Capabilities,
    Model,
    ServerReport,
    is_loopback,
    read_server_report,
)
from sightline.models.chat import (
    DETAIL,
    PLAIN,
    RESPONSES,
    ChatRequestEncoder,
    Form,
    failure_of_status,
    is_event_stream,
    read_response,
    too_large,
)
from sightline.models.http_client import CallError, HTTPClient, NoAnswerError, Timeouts, environment_proxy
from sightline.types import TIMED_OUT, Answer, Failure, Request

MODELS = "/models"

CONNECT_SECONDS = 30
REACHABLE_SECONDS = 10
"""How long the first connection to a server may take."""

_TIME_REMEDY = "--model-arg timeout=SECONDS changes the limit, --concurrency N the calls at a time"

# Reasoning models use another name for the token limit, and take no sampling options.
_REASONING_MODEL = re.compile(r"(o\d|gpt-5)(-|$)")


class EndpointArgs(Struct, frozen=True, forbid_unknown_fields=True):
    """`--model-arg` for endpoints.

    Attributes:
        timeout: Seconds that one call may take, until the last byte of the reply.
        max_side: Largest side of an image in pixels, 0 for no limit; larger images are scaled down.
        detail: OpenAI's `detail` of images, None to omit it.
    """

    timeout: Annotated[float, Meta(gt=0)] = 300.0
    max_side: Annotated[int, Meta(ge=0)] = 0
    max_bytes: Annotated[int, Meta(gt=0)] = 20 * 1024 * 1024
    detail: Literal["low", "high", "auto"] | None = None


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where a model is served, and under which names.

    Attributes:
        key: API key, sent to this address only; None for none.
        query: `?api-version=...` of Azure, which goes with each call; '' for other servers.
        form: The form that the URL names; the server's errors may ask for another one.
        proxy: URL of a proxy; None: the environment decides.
    """

    address: str
    model: str
    name: str
    identity: str
    key: str | None = None
    proxy: str | None = None
    is_direct: bool = False
    query: str = ""
    form: Form = PLAIN


class OpenAICompatible(Model):
    """A model behind one endpoint that speaks the chat completions protocol, or OpenAI's Responses API.

    `form` is what the server takes, as far as its URL and its refusals have said; `has_streamed` says whether
    it has sent an event stream, asked for or not.
    """

    def __init__(self, endpoint: Endpoint, args: EndpointArgs) -> None:
        self.name = endpoint.name
        self.identity = endpoint.identity
        self.model = endpoint.model
        limits = ImageLimits(max_bytes=args.max_bytes, max_side=args.max_side)
        self.capabilities = Capabilities(limits=limits, endpoint=True)
        self.address = endpoint.address.rstrip("/")
        parts = urlsplit(endpoint.address)
        self._hostname = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self.host = f"{self._hostname}:{self._port}"
        self._key = endpoint.key
        self._query = endpoint.query
        self.form = endpoint.form
        self.has_streamed = False
        self.proxy = endpoint.proxy
        if self.proxy is None and not (endpoint.is_direct or is_loopback(self._hostname)):
            self.proxy = environment_proxy(self.address)
        self._timeout = args.timeout
        self._detail = args.detail
        self._encoder = ChatRequestEncoder(endpoint.model)
        self._client: HTTPClient | None = None
        self._has_answered = False

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """Rename the token limit for reasoning models, and drop their temperature and top_p."""
        options = dict(sampling)
        if self._detail is not None:
            options.setdefault(DETAIL, self._detail)
        if _REASONING_MODEL.match(self.model.rpartition("/")[2]):
            if "max_tokens" in options:
                options.setdefault("max_completion_tokens", options.pop("max_tokens"))
            for name in ("temperature", "top_p"):
                options.pop(name, None)
        return options

    async def __aenter__(self) -> Self:
        await self.check_reachable()
        self._client = self.new_client()
        return self

    def new_client(self) -> HTTPClient:
        """Open another client of the endpoint, which has its key and its proxy."""
        timeouts = Timeouts(self._timeout, CONNECT_SECONDS)
        # Azure takes a key beside an api-version in this header only; its /openai/v1 takes both headers.
        header: Literal["Authorization", "api-key"] = "api-key" if self._query else "Authorization"
        return HTTPClient(self.address, self._key, timeouts, key_header=header, proxy=self.proxy)

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        for index, request in enumerate(requests):
            yield index, await self._send(request)

    async def server_report(self) -> ServerReport | None:
        """What the server says about the model; None if it does not reply with a list of models."""
        assert self._client is not None, "used outside 'async with'"
        return await self.read_report(self._client)

    async def read_report(self, client: HTTPClient) -> ServerReport | None:
        """Read what the server says about the model; None if it does not reply with a list of models."""
        try:
            reply = await client.call(MODELS + self._query, total=REACHABLE_SECONDS)
        except CallError:
            return None
        raw = reply.body
        if self._key:
            raw = hide_key(raw.decode("utf-8", "replace"), self._key).encode()
        has_list = reply.status == 200 and reply.is_whole
        return read_server_report(raw, self.address + MODELS, self.model) if has_list else None

    async def _send(self, request: Request) -> Answer | Failure:
        try:
            return await self._call(request)
        except BadImage as error:
            return Failure("permanent", str(error))

    async def _call(self, request: Request) -> Answer | Failure:
        """Make one call, and again at once where the server asks for another form of the request."""
        assert self._client is not None, "used outside 'async with'"
        while True:
            form, body = self.form, await self._encoder.encode(request, self.form)
            began = time.perf_counter()
            try:
                reply = await self._client.call(form.path + self._query, body)
            except NoAnswerError as error:
                return Failure("transient", f"{self.host}: {error}; {_TIME_REMEDY}", status=TIMED_OUT)
            except CallError as error:
                return Failure("transient", f"{self.host}: {error}")
            raw = self.hide_key(reply.body)
            if 200 <= reply.status < 300:
                break
            if (wanted := form.wanted(reply.status, raw)) is None:
                return self.redact(self._failure(form, reply.status, raw, reply.headers))
            self.form = self.form.joined(wanted)
        self.has_streamed = self.has_streamed or is_event_stream(raw)
        if not reply.is_whole:
            self._has_answered = True
            return too_large(self.host)
        result = self.redact(read_response(raw, self.host, time.perf_counter() - began))
        has_answered, self._has_answered = self._has_answered, True
        status = result.status if isinstance(result, Failure) and result.kind != "blocked" else None
        if status in (401, 403) and not has_answered:
            raise self.refuse_key(status)
        return result

    async def encode(self, request: Request) -> bytes:
        return await self._encoder.encode(request)

    def hide_key(self, raw: bytes) -> bytes:
        """Replace the key in what the server sent."""
        if not self._key or (b"\\" not in raw and self._key.encode() not in raw):
            return raw
        return hide_key(raw.decode("utf-8", "surrogateescape"), self._key).encode("utf-8", "surrogateescape")

    def refuse_key(self, status: int) -> UserError:
        """The error where the server does not accept the key, or asks for one."""
        return UserError(
            f"{self.host} {'refuses the' if self._key else 'asks for an'} API key (HTTP {status})",
            expected="a valid key in the environment variable that sightline.toml names for this host",
        )

    def _failure(self, form: Form, status: int, raw: bytes, headers: Mapping[str, str]) -> Failure:
        """The failure for an HTTP status; before the first answer some mean that no call can succeed."""
        failure = failure_of_status(self.host, status, raw, headers)
        if self._has_answered or failure.kind == "blocked":
            return failure
        if status in (401, 403):
            raise self.refuse_key(status)
        if status == 404 or 300 <= status < 400:
            root = "a URL that ends in the API's root, such as http://host:8000/v1#model"
            azure = "RESOURCE.openai.azure.com/openai"
            if self._query and form.responses:
                root = f"https://{azure}/v1{RESPONSES}#DEPLOYMENT for a model without chat completions"
            elif self._query:
                root = f"https://{azure}/deployments/DEPLOYMENT?api-version=VERSION#MODEL"
            raise UserError(
                f"{self.address}{form.path}{self._query} does not exist or has no model '{self.model}'"
                f" (HTTP {status})",
                expected=root,
            )
        return failure

    def redact(self, result: Answer | Failure) -> Answer | Failure:
        """Remove the key from a result: some servers repeat it, with various escapes."""
        if not self._key:
            return result
        texts = {name: value for name, value in asdict(result).items() if isinstance(value, str)}
        return replace(result, **{name: hide_key(text, self._key) for name, text in texts.items()})

    async def check_reachable(self) -> None:
        """Check that something listens at the address, before any image is read. A proxy is not checked."""
        if self.proxy is not None:
            return
        try:
            connection = asyncio.open_connection(self._hostname, self._port)
            _, writer = await asyncio.wait_for(connection, REACHABLE_SECONDS)
        except (OSError, TimeoutError) as error:
            reason = error or f"no connection within {REACHABLE_SECONDS} s"
            raise UserError(
                f"no server answers at {self.host} ({reason})",
                expected="a running server: start it, or correct the URL",
            ) from None
        writer.close()
