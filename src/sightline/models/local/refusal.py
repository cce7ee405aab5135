"""Why a model with an adapter refuses a request: training included one of its images."""

from __future__ import annotations

_REASON = " was trained on this image"


def refusal_text(image: str, adapter: str) -> str:
    """Write the reason of a refusal.

    Args:
        image: The path of the image.
        adapter: The folder of the adapter.

    Returns:
        The reason, which becomes the error of the request.
    """
    return f"{image}: {adapter}{_REASON}"


def is_refusal(error: str) -> bool:
    """Tell whether an error is the refusal of a training image.

    >>> is_refusal(refusal_text("a.png", "seed0")), is_refusal("connection refused")
    (True, False)

    Args:
        error: The error of a request.

    Returns:
        Whether it is.
    """
    return error.endswith(_REASON)
