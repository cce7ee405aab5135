"""Batches: which requests share a forward pass, and how their inputs are combined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sightline.models.local.encode import Encoded
from sightline.models.local.input_tensors import is_token_aligned, pad_tensors
from sightline.models.local.prompt import images_in
from sightline.types import Request, Text


def similar_chunks(requests: Sequence[Request], size: int) -> Iterator[list[int]]:
    """Divide requests into chunks of similar requests.

    Requests are sorted by sampling, then image size, then images, then the longest text for these images:
    a shared image is encoded once, and similar lengths need little padding.
    """
    images_of_request = [images_in(request) for request in requests]
    longest: dict[tuple[Any, ...], int] = {}
    for request, images in zip(requests, images_of_request, strict=True):
        longest[images] = max(longest.get(images, 0), _characters(request))

    def sort_key(position: int) -> tuple[Any, ...]:
        request, images = requests[position], images_of_request[position]
        return (
            bool(request.choices),
            sorted(request.sampling.items()),
            [(file.width, file.height) for file in images],
            longest[images],
            [file.digest for file in images],
            _characters(request),
        )

    order = sorted(range(len(requests)), key=sort_key)
    for first in range(0, len(order), size):
        yield order[first : first + size]


def compatible_batches(encoded: Iterable[tuple[int, Encoded]]) -> list[list[tuple[int, Encoded]]]:
    """Divide encoded requests into batches that the model accepts as one.

    Requests of a batch have the same sampling, the same limit of answer tokens, and inputs whose shapes
    fit together; if choices are scored, also prompts of one length.
    """
    batches: dict[Any, list[tuple[int, Encoded]]] = {}
    for position, request in encoded:
        shapes = tuple(
            (name, tuple(tensor.shape[1:]))
            for name, tensor in sorted(request.inputs.items())
            if not is_token_aligned(name, tensor, request.tokens)
        )
        batch = (request.sampling, request.limit, shapes, request.tokens if request.request.choices else None)
        batches.setdefault(batch, []).append((position, request))
    return list(batches.values())


def collate(batch: Sequence[Encoded], pad: int) -> dict[str, Any]:
    """Combine the inputs of several requests.

    Inputs along the tokens are padded on the left, those of the Q-Former on the right; images follow each
    other.
    """
    import torch

    combined: dict[str, Any] = {}
    for name in batch[0].inputs:
        tensors = [encoded.inputs[name] for encoded in batch]
        if is_token_aligned(name, tensors[0], batch[0].tokens):
            value = pad if name == "input_ids" else 0
            tensors = pad_tensors(tensors, value, left=not name.startswith("qformer_"))
        combined[name] = torch.cat(tensors)
    return combined


def _characters(request: Request) -> int:
    return sum(
        len(part.text) for message in request.messages for part in message.parts if isinstance(part, Text)
    )
