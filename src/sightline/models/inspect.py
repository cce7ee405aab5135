"""Every provider of inspect_ai: `inspect/PROVIDER/NAME`, one call for each request.

Sightline's engine does retries, caching and concurrency, so inspect's are switched off.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextvars import Context
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from urllib.parse import SplitResult, urlsplit

from msgspec import Meta, Struct
from msgspec.structs import replace

from sightline.errors import UserError, hide_key, unknown_name
from sightline.formats.files import json_digest
from sightline.formats.other_tools import inspect_reasoning, inspect_usage
from sightline.formats.prediction import NO_ANSWER, finish_reason
from sightline.images import BadImage, ImageLimits, data_url
from sightline.models.base import Capabilities, Model, read_values, refuse_adapter
from sightline.models.chat import failure_of_status
from sightline.types import Answer, Failure, Message, Request, Text

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, Content, GenerateConfig, ModelOutput
    from inspect_ai.model import Model as Provider

    from sightline.models.registry import ModelOptions


UNLIMITED = 4096
"""inspect's own limit of parallel calls: more than the engine ever has in flight."""

_NOT_SAMPLING = (
    "max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections",
    "adaptive_connections", "cache", "batch", "fail_on_refusal", "system_message", "stop_seqs", "num_choices",
    "logprobs", "top_logprobs", "prompt_logprobs", "modalities", "extra_headers", "max_tool_output",
)  # fmt: skip
"""Options of inspect that are not about sampling; `stop_seqs` is called `stop` here."""

_UNUSABLE = re.compile(r"Credential|NoRegion")
"""Names of exceptions, in clouds without HTTP statuses, that mean no call can succeed."""
_SHORTEST_KEY = 8
"""Shortest text that is redacted as a key: local servers accept any word, which answers may contain."""


class InspectArgs(Struct, frozen=True):
    """`--model-arg` that Sightline reads itself. `max_side`: largest side of an image in pixels, 0 for no
    limit.
    """

    timeout: Annotated[float, Meta(gt=0)] = 600.0
    max_side: Annotated[int, Meta(ge=0)] = 0
    max_bytes: Annotated[int, Meta(gt=0)] = 20 * 1024 * 1024


def inspect(rest: str, spec: str, options: ModelOptions) -> Sequence[Model]:
    """Create `inspect/PROVIDER/NAME`; other `--model-arg` go to the provider."""
    if find_spec("inspect_ai") is None:
        raise UserError("inspect_ai is not installed", expected="pip install 'sightline[inspect]'")
    if not all(rest.partition("/")):
        raise UserError(f"'{spec}' names no model", expected="inspect/PROVIDER/NAME")
    refuse_adapter(options.args, spec)
    own = {name: value for name, value in options.args.items() if name in InspectArgs.__struct_fields__}
    passed = {name: value for name, value in options.args.items() if name not in own}
    _refuse_password(passed)
    return [InspectModel(rest, spec, read_values("--model-arg", own, InspectArgs), passed)]


class InspectModel(Model):
    """One model of an inspect provider."""

    def __init__(self, model: str, name: str, args: InspectArgs, passed: Mapping[str, Any]) -> None:
        self.name = name
        named = addresses(model, passed)
        self.identity = identity_of(model, named, passed)
        self.host = host_of(model, named)
        limits = ImageLimits(max_bytes=args.max_bytes, max_side=args.max_side)
        self.capabilities = Capabilities(limits=limits, endpoint=True, own_sampling=True)
        self._named = model
        self._passed = passed
        self._timeout = args.timeout
        self._provider: Provider | None = None
        self._secrets: list[str] = []
        self._has_answered = False

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """Check all options; all are sent."""
        generate_config(sampling)
        return dict(sampling)

    async def __aenter__(self) -> Self:
        """Create the provider. Raises UserError if its package or its key is missing."""
        from inspect_ai.model import GenerateConfig, get_model

        alone = GenerateConfig(
            max_retries=0,
            attempt_timeout=math.ceil(self._timeout),
            max_connections=UNLIMITED,
            cache=False,
            batch=False,
        )
        try:
            self._provider = get_model(self._named, config=alone, memoize=False, **self._passed)
        except Exception as error:  # each provider has exceptions of its own for what it lacks
            raise UserError(f"{self.name} cannot be used: {_words(error)}") from None
        api = self._provider.api
        keys = (api.api_key, *map(os.environ.get, api.api_key_vars))
        self._secrets = [key for key in keys if key and len(key) >= _SHORTEST_KEY]
        client: Any = getattr(api, "client", None)
        if hasattr(client, "max_retries"):
            # A client that retries by itself would hide refusals from the limiter.
            client.max_retries = 0
        await self._provider.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        if self._provider is not None:
            await self._provider.__aexit__(*error)

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        for index, request in enumerate(requests):
            yield index, self._redacted(await self._ask(request))

    async def _ask(self, request: Request) -> Answer | Failure:
        assert self._provider is not None, "used outside 'async with'"
        try:
            images = await asyncio.to_thread(data_urls, request)
        except BadImage as error:
            return Failure("permanent", str(error))
        messages = chat_messages(request.messages, images)
        config = generate_config(request.sampling, request.draw)
        began = time.perf_counter()
        # An empty context, not a copy of this one: inspect keeps every message while a context lives, and an
        # earlier evaluation by inspect in this process has left one behind.
        call = asyncio.create_task(
            self._provider.generate(messages, config=config, cache=False), context=Context()
        )
        try:
            output = await call
        except Exception as error:  # as in __aenter__
            return self._failure(error, self._provider)
        self._has_answered = True
        return read_output(output, self.host, time.perf_counter() - began)

    def _failure(self, error: Exception, provider: Provider) -> Failure:
        """The failure that an exception means; a RetryError wraps one that the provider would retry."""
        from inspect_ai.model import RetryDecision
        from tenacity import RetryError

        if isinstance(error, RetryError):
            cause = error.last_attempt.exception()
            assert isinstance(cause, Exception)
            message, status = f"{self.host}: {_words(cause)}", _status(cause)
            decision = provider.api.should_retry(cause)
            if not isinstance(decision, RetryDecision):
                return Failure("transient", message, status=status)
            limited = decision.kind == "rate_limit"
            return Failure("transient", message, decision.retry_after, 429 if limited else status)
        status = _status(error)
        if not self._has_answered:
            self._refuse_hopeless(error, status, provider)
        if status is None:
            kind: Literal["transient", "permanent"] = "permanent"
            if isinstance(error, json.JSONDecodeError):
                # A truncated response, which the clients report as an error of the caller.
                kind = "transient"
            return Failure(kind, f"{self.host}: {_words(error)}")
        return failure_of_status(self.host, status, _words(error).encode(), {})

    def _refuse_hopeless(self, error: Exception, status: int | None, provider: Provider) -> None:
        """Raise UserError where, before anything was answered, a failure says that no call can succeed."""
        message = self._redact(f"{self.host}: {_words(error)}")
        unknown = status in (401, 403) or provider.api.is_auth_failure(error)
        if unknown or _UNUSABLE.search(type(error).__name__):
            raise UserError(message, expected="the key, or the region, that this provider requires")
        if status == 404:
            raise UserError(message, expected="a model that the provider has")

    def _redacted(self, result: Answer | Failure) -> Answer | Failure:
        """The result without keys, which some providers repeat in what they say."""
        if isinstance(result, Failure):
            return replace(result, message=self._redact(result.message))
        return replace(result, text=self._redact(result.text), reasoning=self._redact(result.reasoning))

    def _redact(self, text: str) -> str:
        for secret in self._secrets:
            text = hide_key(text, secret)
        return text


def generate_config(sampling: Mapping[str, Any], draw: int = 0) -> GenerateConfig:
    """Convert sampling options; each draw has its own seed."""
    from inspect_ai.model import GenerateConfig
    from pydantic import ValidationError

    accepted = ["stop", *(name for name in GenerateConfig.model_fields if name not in _NOT_SAMPLING)]
    for name in sampling:
        if name not in accepted:
            raise unknown_name("sampling option of inspect", name, accepted)
    options = dict(sampling)
    if "stop" in options:
        stop = options.pop("stop")
        options["stop_seqs"] = [stop] if isinstance(stop, str) else stop
    if isinstance(options.get("seed"), int):
        options["seed"] += draw
    try:
        return GenerateConfig(**options)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise UserError(f"--gen {wrong['loc'][0]}: {wrong['msg']}", found=wrong["input"]) from None


def chat_messages(messages: Sequence[Message], images: Mapping[str, str]) -> list[ChatMessage]:
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageUser,
        ContentImage,
        ContentText,
    )

    roles: Mapping[str, Any] = {
        "system": ChatMessageSystem,
        "user": ChatMessageUser,
        "assistant": ChatMessageAssistant,
    }

    def content(message: Message) -> str | list[Content]:
        match message.parts:
            case [Text(text)]:
                return text
        return [
            ContentText(text=part.text) if isinstance(part, Text) else ContentImage(image=images[part.path])
            for part in message.parts
        ]

    return [roles[message.role](content=content(message)) for message in messages]


def read_output(output: ModelOutput, host: str, latency: float = 0.0) -> Answer | Failure:
    """Read inspect's output; reasoning is kept apart. `latency`: seconds that the call took."""
    if output.empty:
        return Failure("transient", f"{host}: {output.error or 'a reply without an answer'}")
    text, reason = output.message.text, finish_reason(output.stop_reason)
    if reason in NO_ANSWER:
        detail = _start(output.error or text)
        return Failure("blocked", f"{host}: {NO_ANSWER[reason]}" + (f": {detail}" if detail else ""))
    return Answer(
        text=text,
        reasoning=inspect_reasoning(output),
        finish_reason=reason,
        usage=inspect_usage(output.usage),
        latency=round(latency, 4),
        version=output.model,
    )


def data_urls(request: Request) -> dict[str, str]:
    return {path: data_url(file).decode() for path, file in request.images.items()}


def _status(error: Exception) -> int | None:
    statuses = (getattr(error, name, None) for name in ("status_code", "code"))
    return next((status for status in statuses if isinstance(status, int)), None)


def _words(error: Exception) -> str:
    """What an exception says, on one line. Inspect's own are marked up, and repeat the request."""
    from inspect_ai._util.error import PrerequisiteError
    from rich.text import Text as Markup

    if isinstance(error, PrerequisiteError):
        return _start(Markup.from_markup(str(error.message)).plain).removeprefix("ERROR: ")
    if isinstance(getattr(error, "provider_message", None), str):
        return _start(error.provider_message)  # type: ignore[attr-defined]
    return f"{type(error).__name__}: {_start(str(error))}"


def _start(text: str) -> str:
    return " ".join(text[:600].split())


# -- The arguments and environment variables of an inspect provider: secrets are refused, addresses are
#    found

_FROM_ENVIRONMENT = "the environment variable that the provider reads"

_ADDRESS = re.compile(r"(^|_)(BASE_URL|API_BASE|ENDPOINT|ENDPOINT_URL(_[A-Z_]+)?)$")
_FOR_EVERY_PROVIDER = "INSPECT_EVAL_MODEL_BASE_URL"

# Prefixes of the variables of inspect's own providers.
_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_",),
    "azureai": ("AZURE_", "AZUREAI_"),
    "bedrock": ("BEDROCK_", "AWS_"),
    "cloudflare": ("CLOUDFLARE_",),
    "deepseek": ("DEEPSEEK_",),
    "fireworks": ("FIREWORKS_",),
    "google": ("GOOGLE_",),
    "grok": ("XAI_", "GROK_"),
    "groq": ("GROQ_",),
    "hf-inference-providers": ("HF_INFERENCE_PROVIDERS_",),
    "litellm-proxy": ("LITELLM_",),
    "llama-cpp-python": ("LLAMA_CPP_PYTHON_",),
    "meta": ("META_",),
    "mistral": ("MISTRAL_",),
    "moonshot": ("MOONSHOT_",),
    "ollama": ("OLLAMA_",),
    "openai": ("OPENAI_",),
    "openai-api": (),
    "openai-api-completions": (),
    "openrouter": ("OPENROUTER_",),
    "perplexity": ("PERPLEXITY_",),
    "sagemaker": ("AWS_",),
    "sambanova": ("SAMBANOVA_",),
    "sglang": ("SGLANG_",),
    "together": ("TOGETHER_",),
    "vllm": ("VLLM_",),
    "vllm-completions": ("VLLM_",),
}
_CLOUDS: Mapping[str, tuple[str, ...]] = {
    "azure": ("AZURE_", "AZUREAI_"),
    "bedrock": ("BEDROCK_", "AWS_"),
    "vertex": ("VERTEX_", "GOOGLE_"),
}
"""Variables of clouds that host models of other providers: `openai/azure/NAME`."""
_IN_PROCESS = ("hf", "mockllm", "nnterp", "none", "transformer_lens")
"""Providers of inspect that send nothing to a server."""


def _refuse_password(passed: Mapping[str, Any]) -> None:
    address = _split(str(passed.get("base_url", "")), "--model-arg base_url")
    if address.username or address.password or address.query:
        raise UserError(
            "--model-arg base_url contains a password or a query, which would be written to the results",
            expected=_FROM_ENVIRONMENT,
        )


def addresses(model: str, passed: Mapping[str, Any]) -> list[str]:
    """Find the addresses that are configured for a model.

    For a provider that is not inspect's own, all variables that may hold an address count.

    Returns:
        Sorted addresses without passwords and queries; none if the provider uses its default.
    """
    if passed.get("base_url"):
        return [str(passed["base_url"])]
    provider, *path = model.split("/")
    if provider in _IN_PROCESS:
        return []
    begins = _beginnings(provider, path)
    return sorted(
        {
            _bare(value, variable)
            for variable, value in os.environ.items()
            if value
            and _ADDRESS.search(variable)
            and (variable == _FOR_EVERY_PROVIDER or variable.startswith(begins))
        }
    )


def host_of(model: str, named: Sequence[str]) -> str:
    """Find what shares a rate limit."""
    host = _split(named[0], "base_url").netloc if len(named) == 1 else ""
    return host or f"inspect/{model.partition('/')[0]}"


def identity_of(model: str, named: Sequence[str], passed: Mapping[str, Any]) -> str:
    """Build the identity of a model: name, addresses, arguments; arguments with several values by digest."""
    arguments = {**passed, "base_url": ",".join(named)} if named else passed
    return " ".join(
        [
            f"inspect {model}",
            *(
                f"{name}={value if isinstance(value, str | int | float) else _digest(value)}"
                for name, value in sorted(arguments.items())
            ),
        ]
    )


def _beginnings(provider: str, path: Sequence[str]) -> tuple[str, ...]:
    """Prefixes of the variables that may hold the address of a provider; '' matches all."""
    if provider not in _VARIABLES:
        return ("",)
    begins = _VARIABLES[provider]
    if len(path) > 1:
        begins += _CLOUDS.get(path[0], ())
        if provider.startswith("openai-api"):
            begins += (f"{path[0].upper().replace('-', '_')}_",)
    return begins


def _bare(address: str, variable: str) -> str:
    parts = _split(address, f"the environment variable {variable}")
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl().lstrip("/")


def _split(address: str, source: str) -> SplitResult:
    try:
        # Some providers accept a host without a scheme, which urlsplit would parse as a path.
        return urlsplit(address if "://" in address or not address else f"//{address}")
    except ValueError as error:
        raise UserError(
            f"{source} is not a valid URL ({error})", expected="such as http://host:8000/v1"
        ) from None


def _digest(value: Any) -> str:
    """The digest of a value; for objects that only Python can pass, such as a client, of their type."""
    return json_digest(value, lambda thing: type(thing).__qualname__)[:16]
