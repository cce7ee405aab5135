"""Checks of a model's arguments: `--model-arg` and `--gen` values against their types and ranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from sightline.errors import UserError, did_you_mean, is_secret_name
from sightline.models.base import Model

T = TypeVar("T")

_BOUNDS = (("ge", "{:g} or more"), ("gt", "more than {:g}"), ("le", "{:g} at most"))


PROTOCOL_FIELDS = ("model", "messages", "n", "stream", "tools", "functions")
"""Fields of a chat completions request that Sightline sets itself."""

CACHE_NAMES = ("prompt_cache_key",)
"""Sampling options with the name of a secret that are none."""


def refuse_protocol_fields(names: Iterable[str]) -> None:
    """Refuse sampling options that would change the request itself, or hold a secret."""
    for name in names:
        if is_secret_name(name) and name not in CACHE_NAMES:
            raise UserError(
                f"--gen {name} is a secret, which would be written to the store",
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
    """Convert option values to a struct."""
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
    """Describe the values that a field accepts."""
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
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "modalities",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "temperature",
    "tool_choice",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
)
"""CompletionCreateParamsBase of openai-python 1.95 (types/chat/completion_create_params.py), and
prompt_cache_key, safety_identifier and verbosity of later versions."""

VLLM = (
    "add_generation_prompt",
    "add_special_tokens",
    "allowed_token_ids",
    "bad_words",
    "best_of",
    "cache_salt",
    "chat_template",
    "chat_template_kwargs",
    "continue_final_message",
    "documents",
    "echo",
    "guided_choice",
    "guided_decoding_backend",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "guided_whitespace_pattern",
    "ignore_eos",
    "include_reasoning",
    "include_stop_str_in_output",
    "kv_transfer_params",
    "length_penalty",
    "logits_processors",
    "min_p",
    "min_tokens",
    "mm_processor_kwargs",
    "priority",
    "prompt_logprobs",
    "repetition_detection",
    "repetition_penalty",
    "request_id",
    "return_tokens_as_token_ids",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "stop_token_ids",
    "structural_tag",
    "structured_outputs",
    "thinking_token_budget",
    "top_k",
    "truncate_prompt_tokens",
    "use_beam_search",
    "vllm_xargs",
)
"""ChatCompletionRequest of vLLM 0.10 (entrypoints/openai/protocol.py, commit 0052bed), and the fields of
SamplingParams that later versions take (sampling_params.py, commit 00388f6)."""

SGLANG = (
    "custom_logit_processor",
    "custom_params",
    "ebnf",
    "images_config",
    "lora_path",
    "max_dynamic_patch",
    "min_dynamic_patch",
    "no_stop_trim",
    "regex",
    "return_hidden_states",
    "separate_reasoning",
    "session_params",
    "stop_regex",
    "stream_reasoning",
)
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
