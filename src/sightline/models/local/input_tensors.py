"""The tensors that a processor makes of a request: which of them run along its tokens, and how they widen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def images_of(inputs: Mapping[str, Any], tokens: int) -> dict[str, Any]:
    """The inputs that hold images."""
    return {name: tensor for name, tensor in inputs.items() if not runs_along(name, tensor, tokens)}


def runs_along(name: str, tensor: Any, tokens: int) -> bool:
    """Whether an input says something of each token, of the prompt or of what the Q-Former reads."""
    if name.startswith("qformer_"):
        return True
    is_of_images = name.startswith(("pixel_", "image_"))
    return not is_of_images and tensor.ndim >= 2 and tensor.shape[1] == tokens


def fill_up(tensors: Sequence[Any], value: int, *, left: bool = True) -> list[Any]:
    """Tensors of shape (1, tokens, ...), each filled up to as many tokens as the longest has."""
    import torch

    width = max(tensor.shape[1] for tensor in tensors)
    filled = []
    for tensor in tensors:
        room = tensor.new_full((tensor.shape[0], width - tensor.shape[1], *tensor.shape[2:]), value)
        filled.append(torch.cat((room, tensor) if left else (tensor, room), dim=1))
    return filled


def with_room(inputs: Mapping[str, Any], length: int, pad: int) -> dict[str, Any]:
    """The inputs of a request with room for `length` vectors before its prompt."""
    import torch

    tokens = inputs["input_ids"].shape[1]
    values = {"input_ids": pad, "attention_mask": 1}
    wider = dict(inputs)
    for name, tensor in inputs.items():
        if runs_along(name, tensor, tokens) and not name.startswith("qformer_"):
            room = tensor.new_full((tensor.shape[0], length, *tensor.shape[2:]), values.get(name, 0))
            wider[name] = torch.cat((room, tensor), dim=1)
    return wider
