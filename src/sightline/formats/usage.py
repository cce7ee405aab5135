"""Token counts as servers and answers files report them: invalid ones become null and lose no answer."""

from __future__ import annotations

from typing import Any

import msgspec

from sightline.decoding import lenient_json
from sightline.types import Usage

MAX_TOKENS = 10**12
"""The largest number of tokens that is read as a count; no call has a million million."""

_COUNTS = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens")
_DETAILS = {"reasoning_tokens": "completion_tokens_details", "cached_tokens": "prompt_tokens_details"}
"""Count -> the object of chat completions that holds it."""


def read_usage(reported: Any) -> Usage:
    """Read reported token counts.

    Args:
        reported: An object in the layout of chat completions or of our own files; None if nothing is
            reported.

    Returns:
        The counts. A count that is no number from 0 to `MAX_TOKENS` is None, and `invalid` names it.
    """
    if not reported:
        return Usage()
    if not isinstance(reported, dict):
        return Usage(invalid=("usage",))
    recorded = reported.get("invalid")
    found = {name: reported.get(name) for name in _COUNTS}
    for name, details in _DETAILS.items():
        if isinstance(detailed := reported.get(details), dict):
            found[name] = detailed.get(name)
    counts = {name: _count(value) for name, value in found.items()}
    invalid = [name for name, value in found.items() if value is not None and counts[name] is None]
    if isinstance(recorded, list):
        invalid += [name for name in recorded if isinstance(name, str) and name not in invalid]
    return Usage(**counts, invalid=tuple(invalid))


def decode_usage(raw: bytes) -> Usage:
    """Decode token counts from JSON, which may have numbers that no JSON has, or too large ones."""
    try:
        return read_usage(msgspec.json.decode(raw) if raw else None)
    except (ValueError, RecursionError):
        pass
    try:
        return read_usage(lenient_json(raw))
    except (ValueError, RecursionError):
        return Usage(invalid=("usage",))


def _count(value: Any) -> int | None:
    """A number of tokens; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_TOKENS:
        return None
    return int(value)
