"""The names of sampling options that OpenAI's API, vLLM and SGLang take in a chat completions request."""

from __future__ import annotations

from collections.abc import Iterable

from sightline.errors import UserError, did_you_mean
from sightline.models.base import Model

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
