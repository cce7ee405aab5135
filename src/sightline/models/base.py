"""The interface between the engine and a model back end, and what back ends share; none knows a benchmark."""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import msgspec
from msgspec import Struct, field, inspect

from sightline.errors import UserError, did_you_mean, holds_secret, is_secret_name
from sightline.formats.prediction import Prediction
from sightline.images import ImageLimits
from sightline.types import Answer, Failure, Origin, Request


class Capabilities(Struct, frozen=True):
    """What a model accepts, checked before the first call.

    Attributes:
        needs_image: Whether it answers no prompt without an image.
        likelihood: Whether it can choose the most likely of several answers.
        own_sampling: Whether it has sampling options of its own, which `effective` checks.
        replays: Whether it answers by the name of a probe, whatever the probe shows.
        endpoint: Whether it is known by URL and name only, so that its weights may change under the same
            identity. The engine then checks it before cached answers are used.
        own_process: Whether Sightline runs the model itself, here or on a server that it starts.
        replicas: How many copies of it, each in another process, share the requests; --concurrency counts for
            each. 0 if there are none.
        image_processor: The sizes to which its own processor brings images (`min_pixels`, `max_pixels`,
            `size`), as its files and the flags of its server state them; empty if they state none, and for
            servers that Sightline does not start.
        gather: Seconds for which an incomplete batch of requests that are sent again waits for more of them.
            Above 0 only where a call takes hours.
    """

    images: bool = True
    several_images: bool = True
    needs_image: bool = False
    system_role: bool = True
    seed: bool = True
    likelihood: bool = False
    own_sampling: bool = False
    replays: bool = False
    endpoint: bool = False
    own_process: bool = False
    replicas: int = 0
    limits: ImageLimits = ImageLimits()
    image_processor: Mapping[str, Any] = field(default_factory=dict)
    gather: float = 0.0


class Model(Protocol):
    """Something that answers requests.

    Attributes:
        identity: Identifies the model in request keys: another identity means other cached answers.
        host: The server or device. Models of one host share concurrency limit, retries and circuit breaker.
        batch_size: Requests in one call of `answer`; 1 for an API.
        parallel: Calls of `answer` at a time; None for any number.
    """

    name: str
    identity: str
    host: str
    batch_size: int = 1
    parallel: int | None = None
    capabilities: Capabilities = Capabilities()

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """Translate sampling options to those that are sent; they enter the request key.

        Raises:
            UserError: The model does not have an option, or a value is out of range.
        """
        ...

    async def __aenter__(self) -> Self:
        """Open the model. The engine calls this only if a request must be sent.

        Raises:
            UserError: The model cannot be used at all (no server, no file).
        """
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the model."""
        return

    def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        """Answer requests, in any order.

        Args:
            requests: At most `batch_size` requests.

        Yields:
            The index of a request in `requests`, and its answer or failure.
        """
        ...

    async def server_report(self) -> ServerReport | None:
        """Ask the open model's server what it says about the model.

        Returns:
            The report; None, the default, if there is no server or it says nothing.
        """
        return None

    def training_overlap(self, folder: Path) -> str:
        """Check whether the model was trained on the data.

        Returns:
            A warning for the user; '' for none, the default.
        """
        return ""

    def recorded(self, origin: Origin) -> Prediction | None:
        """What a file of answers holds about a probe, for a model that replays one.

        Returns:
            The recorded answer; None, the default, if there is none.
        """
        return None


# -- What a server says about the models that it serves: its reply to GET /v1/models


class ServerReport(Struct, frozen=True, omit_defaults=True):
    """What a server says about one model. The time of `created` is left out: it changes with each restart.

    Attributes:
        root: Where the server has the weights from (vLLM, SGLang).
        max_model_len: The maximum number of tokens of prompt and response.
        listed: The models that it lists, if this one is none of them.
    """

    address: str
    id: str | None = None
    root: str | None = None
    max_model_len: int | None = None
    listed: tuple[str, ...] = ()


class _ListedModel(Struct):
    id: str
    root: str | None = None
    max_model_len: int | None = None


class _ModelList(Struct):
    data: list[_ListedModel]


def read_server_report(raw: bytes, address: str, model: str) -> ServerReport | None:
    """Read what a server says about a model.

    Returns the report, without `id` if the server does not list the model; None if the body is not a list of
    models.
    """
    try:
        listed = msgspec.json.decode(raw, type=_ModelList).data
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    for one in listed:
        if one.id == model:
            return ServerReport(address, one.id, one.root, one.max_model_len)
    return ServerReport(address, listed=tuple(one.id for one in listed))


# -- Checks of a model's arguments: `--model-arg` and `--gen` values against their types and ranges

T = TypeVar("T")

_BOUNDS = (("ge", "{:g} or more"), ("gt", "more than {:g}"), ("le", "{:g} at most"))


PROTOCOL_FIELDS = ("model", "messages", "n", "stream", "tools", "functions")
"""Fields of a chat completions request that Sightline sets itself."""

CACHE_NAMES = ("prompt_cache_key",)
"""Sampling options with the name of a secret that are none."""


def is_loopback(hostname: str) -> bool:
    """Whether a host is this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("10.0.0.1")
    (True, True, True, False)
    """
    try:
        return hostname == "localhost" or ipaddress.ip_address(hostname).is_loopback
    except ValueError:
        return False


def check_request_limits(concurrency: int | None, max_requests: int | None, max_cost: float | None) -> None:
    if concurrency is not None and concurrency < 1:
        raise UserError(f"--concurrency {concurrency} is too small", expected="at least 1")
    for name, number in (("--max-requests", max_requests), ("--max-cost", max_cost)):
        if number is not None and not number >= 0:
            problem = "is negative" if number < 0 else "is no number"
            raise UserError(f"{name} {number} {problem}", expected="0 or more")


def refuse_protocol_fields(sampling: Mapping[str, Any]) -> None:
    """Refuse sampling options that would change the request itself, or hold a secret."""
    for name, value in sampling.items():
        if name not in CACHE_NAMES and (is_secret_name(name) or holds_secret(value)):
            raise UserError(
                f"--gen {name} is a secret, which would be written to the results",
                expected="a key variable for this host in sightline.toml",
            )
        if name in PROTOCOL_FIELDS:
            raise UserError(
                f"--gen {name} is not a sampling option", expected="an option such as temperature or seed"
            )


def refuse_adapter(args: Mapping[str, Any], spec: str) -> None:
    """Refuse an adapter for a model that Sightline does not run itself."""
    if "adapter" in args:
        raise UserError(
            f"--model-arg adapter needs a model that runs in this process, and {spec} does not",
            expected="hf/ORG/NAME, hf/FOLDER or mini",
        )


def read_values(option: str, values: Mapping[str, Any], kind: type[T]) -> T:
    """Read the values of an option that takes KEY=VALUE, such as --model-arg.

    Args:
        option: The option, for messages.
        values: Its values by name: JSON values, each a field of `kind`. Unknown names are ignored.
        kind: A Struct whose fields all have defaults. The description of a type (`Meta`) is what a message
            says that it expects.

    Raises:
        UserError: A value is of another type or out of its range.
    """
    try:
        return msgspec.convert(dict(values), kind)
    except msgspec.ValidationError as error:
        name = next((name for name in values if not _is_valid(name, values[name], kind)), None)
        if name is None:
            raise UserError(f"{option}: {error}") from None
        raise _invalid(option, name, values[name], kind) from None


def _is_valid(name: str, value: object, kind: type[Any]) -> bool:
    try:
        msgspec.convert({name: value}, kind)
    except msgspec.ValidationError:
        return False
    return True


def _invalid(option: str, name: str, value: object, kind: type[Any]) -> UserError:
    struct = inspect.type_info(kind)
    fields = struct.fields if isinstance(struct, inspect.StructType) else ()
    (field_type,) = (field.type for field in fields if field.name == name)
    near = did_you_mean(value, _choices(field_type)) if isinstance(value, str) else ""
    return UserError(f"{option} {name} cannot be {value!r}{near}", expected=_allowed(field_type))


def _choices(kind: inspect.Type) -> list[str]:
    return [str(value) for value in kind.values] if isinstance(kind, inspect.LiteralType) else []


def _allowed(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.Metadata):
        return str((kind.extra_json_schema or {}).get("description") or _allowed(kind.type))
    if isinstance(kind, inspect.UnionType):
        return " or ".join(
            _allowed(member) for member in kind.types if not isinstance(member, inspect.NoneType)
        )
    if isinstance(kind, inspect.LiteralType):
        return f"one of {', '.join(_choices(kind))}"
    if isinstance(kind, inspect.BoolType):
        return "true or false"
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        bounds = [
            words.format(getattr(kind, name)) for name, words in _BOUNDS if getattr(kind, name) is not None
        ]
        number = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
        return ", ".join([number, *bounds])
    return "text"


# -- The names of sampling options that OpenAI's API, vLLM and SGLang take in a chat completions request

OPENAI = (
    "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "metadata",
    "modalities", "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key",
    "reasoning_effort", "response_format", "safety_identifier", "seed", "service_tier", "stop", "store",
    "temperature", "tool_choice", "top_logprobs", "top_p", "user", "verbosity", "web_search_options",
)  # fmt: skip
"""CompletionCreateParamsBase of openai-python 1.95 (types/chat/completion_create_params.py), and
prompt_cache_key, safety_identifier and verbosity of later versions."""

VLLM = (
    "add_generation_prompt", "add_special_tokens", "allowed_token_ids", "bad_words", "best_of",
    "cache_salt", "chat_template", "chat_template_kwargs", "continue_final_message", "documents", "echo",
    "guided_choice", "guided_decoding_backend", "guided_grammar", "guided_json", "guided_regex",
    "guided_whitespace_pattern", "ignore_eos", "include_reasoning", "include_stop_str_in_output",
    "kv_transfer_params", "length_penalty", "logits_processors", "min_p", "min_tokens",
    "mm_processor_kwargs", "priority", "prompt_logprobs", "repetition_detection", "repetition_penalty",
    "request_id", "return_tokens_as_token_ids", "skip_special_tokens", "spaces_between_special_tokens",
    "stop_token_ids", "structural_tag", "structured_outputs", "thinking_token_budget", "top_k",
    "truncate_prompt_tokens", "use_beam_search", "vllm_xargs",
)  # fmt: skip
"""ChatCompletionRequest of vLLM 0.10 (entrypoints/openai/protocol.py, commit 0052bed), and the fields of
SamplingParams that later versions take (sampling_params.py, commit 00388f6)."""

SGLANG = (
    "custom_logit_processor", "custom_params", "ebnf", "images_config", "lora_path", "max_dynamic_patch",
    "min_dynamic_patch", "no_stop_trim", "regex", "return_hidden_states", "separate_reasoning",
    "session_params", "stop_regex", "stream_reasoning",
)  # fmt: skip
"""ChatCompletionRequest of SGLang (srt/entrypoints/openai/protocol.py, commit 004c82e), without the fields
that OpenAI or vLLM have too, and without those that route requests."""

KNOWN = frozenset((*OPENAI, *VLLM, *SGLANG))


def refuse_unknown_sampling(model: Model, names: Iterable[str], option: str) -> None:
    """Refuse sampling options that no known server takes: most servers ignore them without a word.

    A model with sampling options of its own checks them itself.
    """
    for name in names:
        if name not in KNOWN and not model.capabilities.own_sampling:
            raise UserError(
                f"{option} {name} is not a sampling option of OpenAI, vLLM or SGLang"
                f"{did_you_mean(name, sorted(KNOWN))}",
                expected="a known name (docs/models.md), or --gen-any, which sends any name",
            )
