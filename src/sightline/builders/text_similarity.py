"""The similarity of pairs of texts by an embedder, on this machine or on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from sightline.builders.execution import Execution
from sightline.errors import UserError
from sightline.models.embedder import Embedder, embedder
from sightline.progress import progress
from sightline.scoring.similarity import cosines

if TYPE_CHECKING:
    from sightline.builders.ray_tasks import TextBatch

BATCH = 256
"""Pairs that are embedded at once; the same on one machine and on a cluster, so that the bytes are too."""


def similarities(pairs: Sequence[tuple[str, str]], model: Embedder, execution: Execution) -> list[float]:
    """Compute the cosine of the vectors of each pair.

    Args:
        pairs: Pairs of texts, none of them empty.

    Returns:
        A number in -1 to 1 for each pair.
    """
    batches = [
        (number, [text for pair in pairs[first : first + BATCH] for text in pair])
        for number, first in enumerate(range(0, len(pairs), BATCH))
    ]
    found: dict[int, list[float]] = {}
    with progress(
        f"embedding ({model.name})", 2 * len(pairs), "texts", show_progress=execution.show_progress
    ) as advance:
        for number, values in _embedded(batches, model, execution):
            found[number] = values
            advance(2 * len(values))
    return [value for number in sorted(found) for value in found[number]]


class _Elsewhere(Struct, frozen=True):
    """Embeds a batch with the embedder of a name; a process loads it once."""

    name: str
    identity: str

    def __call__(self, batch: TextBatch) -> tuple[int, list[float]]:
        return _cosines(_opened(self.name, self.identity), batch)


def _embedded(
    batches: Sequence[TextBatch], model: Embedder, execution: Execution
) -> Iterable[tuple[int, list[float]]]:
    """The number and the cosines of each batch, in the order in which they are ready."""
    if execution.ray is None:
        yield from (_cosines(model, batch) for batch in batches)
        return
    from sightline.builders.ray_tasks import TEXTS, map_on_ray

    there = _Elsewhere(model.name, model.identity)
    with closing(map_on_ray(there, batches, execution.ray, TEXTS)) as results:
        yield from results


def _cosines(model: Embedder, batch: TextBatch) -> tuple[int, list[float]]:
    number, texts = batch
    vectors = model.embed(texts)
    return number, cosines((vectors[0::2] * vectors[1::2]).sum(axis=1)).tolist()


@cache
def _opened(name: str, identity: str) -> Embedder:
    model = embedder(name)
    if model.identity != identity:
        raise UserError(
            f"the embedder '{name}' is another one there", found=model.identity, expected=identity
        )
    return model
