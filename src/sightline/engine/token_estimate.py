"""Estimates of tokens: of requests that are not sent yet, and of answers whose server reports no tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from sightline.engine.keys import KeyedRequest
from sightline.types import Answer, Text, Usage

CHARACTERS_PER_TOKEN = 4
PIXELS_PER_TOKEN = 750
"""A rough mean over current vision encoders; the real number is the server's."""


DEFAULT_MAX_TOKENS = 1024
"""The assumed maximum length of an answer without a token limit."""


def token_limit(sampling: Mapping[str, Any]) -> int | None:
    """The token limit of an answer.

    Returns:
        The limit; None without one.
    """
    limits = (sampling.get(name) for name in ("max_tokens", "max_completion_tokens"))
    return next((int(limit) for limit in limits if limit is not None), None)


def full_length_usage(keyed: KeyedRequest) -> Usage:
    """Estimate the tokens of a request whose answer is as long as its limit."""
    limit = token_limit(keyed.request.sampling) or DEFAULT_MAX_TOKENS
    return Usage(prompt_tokens(keyed), limit)


def prompt_tokens(keyed: KeyedRequest) -> int:
    """Estimate the tokens of a request.

    Returns:
        One token for four characters, and one for 750 pixels.
    """
    request = keyed.request
    characters = sum(
        len(part.text) for message in request.messages for part in message.parts if isinstance(part, Text)
    )
    pixels = sum(file.width * file.height for file in request.images.values())
    return characters // CHARACTERS_PER_TOKEN + pixels // PIXELS_PER_TOKEN


def completion_tokens(answer: Answer) -> int:
    """Estimate the tokens of an answer, with its reasoning."""
    return (len(answer.text) + len(answer.reasoning)) // CHARACTERS_PER_TOKEN


def complete_usage(keyed: KeyedRequest, answer: Answer) -> Usage:
    """Complete the tokens of an answer by estimates of what its server does not report.

    A server that reports 0 tokens for a text has not counted them.
    """
    usage = answer.usage
    return replace(
        usage,
        prompt_tokens=usage.prompt_tokens or prompt_tokens(keyed),
        completion_tokens=usage.completion_tokens or completion_tokens(answer),
    )
