"""The tensors of a request: which of them have a token dimension, and how they are padded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def images_of(inputs: Mapping[str, Any], tokens: int) -> dict[str, Any]:
    """Select the inputs that hold images.

    Args:
        tokens: Tokens of its prompt.
    """
    return {name: tensor for name, tensor in inputs.items() if not is_token_aligned(name, tensor, tokens)}


def is_token_aligned(name: str, tensor: Any, tokens: int) -> bool:
    """Check whether an input has one entry for each token, of the prompt or of the Q-Former's text.

    Args:
        tokens: Tokens of the prompt.
    """
    if name.startswith("qformer_"):
        return True
    is_of_images = name.startswith(("pixel_", "image_"))
    return not is_of_images and tensor.ndim >= 2 and tensor.shape[1] == tokens


def pad_tensors(tensors: Sequence[Any], value: int, *, left: bool = True) -> list[Any]:
    """Pad tensors to the length of the longest.

    Args:
        tensors: Tensors of shape (1, tokens, ...).
    """
    import torch

    width = max(tensor.shape[1] for tensor in tensors)
    filled = []
    for tensor in tensors:
        room = tensor.new_full((tensor.shape[0], width - tensor.shape[1], *tensor.shape[2:]), value)
        filled.append(torch.cat((room, tensor) if left else (tensor, room), dim=1))
    return filled


def with_placeholders(inputs: Mapping[str, Any], length: int, pad: int) -> dict[str, Any]:
    """Put padding before a prompt, for vectors that an adapter writes there."""
    import torch

    tokens = inputs["input_ids"].shape[1]
    values = {"input_ids": pad, "attention_mask": 1}
    wider = dict(inputs)
    for name, tensor in inputs.items():
        if is_token_aligned(name, tensor, tokens) and not name.startswith("qformer_"):
            room = tensor.new_full((tensor.shape[0], length, *tensor.shape[2:]), values.get(name, 0))
            wider[name] = torch.cat((room, tensor), dim=1)
    return wider
