"""Why a model with an adapter refuses a request: training included one of its images."""

from __future__ import annotations

_REASON = " was trained on this image"


def refusal_text(image: str, adapter: str) -> str:
    """Write the reason of a refusal."""
    return f"{image}: {adapter}{_REASON}"


def is_refusal(error: str) -> bool:
    """Tell whether an error is the refusal of a training image.

    >>> is_refusal(refusal_text("a.png", "seed0")), is_refusal("connection refused")
    (True, False)
    """
    return error.endswith(_REASON)
