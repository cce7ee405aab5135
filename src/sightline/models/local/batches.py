"""Which requests go through the model together, and how their inputs become one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sightline.models.local.encode import Encoded
from sightline.models.local.input_tensors import fill_up, runs_along
from sightline.models.local.prompt import images_shown
from sightline.types import Request, Text


def chunks(requests: Sequence[Request], size: int) -> Iterator[list[int]]:
    """Places of requests in chunks of `size` at most, those neighbours that go well together.

    First come those with the same sampling, then those with images of one size, then those that show the
    same images, each of these by their longest text: what shares an image is encoded with it, and what
    shares a length needs little padding.
    """
    shown = [images_shown(request) for request in requests]
    longest: dict[tuple[Any, ...], int] = {}
    for request, images in zip(requests, shown, strict=True):
        longest[images] = max(longest.get(images, 0), _characters(request))

    def neighbourhood(place: int) -> tuple[Any, ...]:
        request, images = requests[place], shown[place]
        return (
            bool(request.choices),
            sorted(request.sampling.items()),
            [(file.width, file.height) for file in images],
            longest[images],
            [file.digest for file in images],
            _characters(request),
        )

    order = sorted(range(len(requests)), key=neighbourhood)
    for first in range(0, len(order), size):
        yield order[first : first + size]


def alike(encoded: Iterable[tuple[int, Encoded]]) -> list[list[tuple[int, Encoded]]]:
    """Requests in batches that the model takes as one: the same sampling, the same room for the answer,
    inputs whose shapes fit together; where choices are weighed also prompts of one length."""
    batches: dict[Any, list[tuple[int, Encoded]]] = {}
    for place, one in encoded:
        shapes = tuple(
            (name, tuple(tensor.shape[1:]))
            for name, tensor in sorted(one.inputs.items())
            if not runs_along(name, tensor, one.tokens)
        )
        batch = (one.sampling, one.limit, shapes, one.tokens if one.request.choices else None)
        batches.setdefault(batch, []).append((place, one))
    return list(batches.values())


def collate(batch: Sequence[Encoded], pad: int) -> dict[str, Any]:
    """The inputs of several requests as one: what runs along the tokens is filled up on its left, what the
    Q-Former reads on its right, and the images follow each other."""
    import torch

    together: dict[str, Any] = {}
    for name in batch[0].inputs:
        tensors = [one.inputs[name] for one in batch]
        if runs_along(name, tensors[0], batch[0].tokens):
            value = pad if name == "input_ids" else 0
            tensors = fill_up(tensors, value, left=not name.startswith("qformer_"))
        together[name] = torch.cat(tensors)
    return together


def _characters(request: Request) -> int:
    return sum(
        len(part.text) for message in request.messages for part in message.parts if isinstance(part, Text)
    )
