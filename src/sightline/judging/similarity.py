"""The embedding of answers: each distinct text once, remembered in the store, read group by group."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.models.embedder import Embedder
from sightline.progress import progress
from sightline.scoring.scorer import VectorScorer
from sightline.scoring.similarity import SIMILAR
from sightline.types import Group

if TYPE_CHECKING:
    from sightline.scoring.scorer import Vectors

GROUPS = 256
"""Groups whose vectors are fetched together."""

WINDOW = 4096
"""Texts that are embedded and remembered together: what an interruption loses at most."""


def vector_scorer(benchmark: Benchmark, options: Mapping[str, Any]) -> VectorScorer | None:
    """The benchmark's scorer of similarity under these options, None where it has none."""
    scorer = benchmark.scorer(SIMILAR, "embedder", options)
    return scorer if isinstance(scorer, VectorScorer) else None


def similarity(
    benchmark: Benchmark,
    options: Mapping[str, Any],
    identity: str,
    load: Callable[[], Embedder],
    store: Store,
    *,
    show_progress: bool = False,
) -> Similarity | None:
    """The similarity of answers under these options, None where the benchmark measures none.

    For the others see Similarity; `show_progress` displays progress.
    """
    scorer = vector_scorer(benchmark, options)
    return None if scorer is None else Similarity(scorer, identity, load, store, show_progress=show_progress)


class Similarity:
    """A vector scorer with the embedder and the store behind it.

    `identity` is the embedder's; `load` makes it, and is called only where a text is not known.
    """

    def __init__(
        self,
        scorer: VectorScorer,
        identity: str,
        load: Callable[[], Embedder],
        store: Store,
        *,
        show_progress: bool = False,
    ) -> None:
        self.identity = identity
        self._scorer = scorer
        self._load = load
        self._store = store
        self._show_progress = show_progress

    def embed(self, groups: Iterable[Group]) -> None:
        """Embed every text of these groups that is not known, and remember it.

        Raises EnvironmentFailedError where the embedder gives no finite vector, or the store fails.
        """
        texts = self._unknown(groups)
        window = list(islice(texts, WINDOW))
        if not window:
            return
        model = self._load()
        if model.identity != self.identity:
            raise UserError(
                f"the embedder '{model.name}' is no longer what this run was measured with",
                found=model.identity,
                expected=self.identity,
            )
        with progress(
            f"embedding ({model.name})", None, "texts", show_progress=self._show_progress
        ) as advance:
            while window:
                vectors = model.embed([text for _, text in window])
                rows = (row.tobytes() for row in vectors.astype("<f4", copy=False))
                self._store.add_vectors(dict(zip((key for key, _ in window), rows, strict=True)))
                advance(len(window))
                window = list(islice(texts, WINDOW))

    def measured(self, groups: Iterable[Group]) -> Iterator[Group]:
        """Each group with what its vectors say of it and of the settings that it is held against."""
        iterator = iter(groups)
        while chunk := list(islice(iterator, GROUPS)):
            parts = [[group, *_partner_parts(group)] for group in chunk]
            texts = [self._scorer.texts(part) for group in parts for part in group]
            vectors = iter(self._vectors(texts))
            for group, own in zip(chunk, parts, strict=True):
                read = [self._scorer.read(part, next(vectors)) for part in own]
                yield _whole(group, read)

    def _unknown(self, groups: Iterable[Group]) -> Iterator[tuple[bytes, str]]:
        """The distinct texts that have no vector, with their keys."""
        seen: set[bytes] = set()
        iterator = iter(groups)
        while chunk := list(islice(iterator, GROUPS)):
            parts = (part for group in chunk for part in (group, *_partner_parts(group)))
            keyed = {self._key(text): text for part in parts for text in self._scorer.texts(part)}
            new = {key: text for key, text in keyed.items() if key not in seen}
            seen.update(new)
            known = self._store.vectors(list(new))
            yield from ((key, text) for key, text in new.items() if key not in known)

    def _vectors(self, texts: Sequence[Sequence[str]]) -> Iterator[Vectors]:
        """The unit vectors of several lists of texts, a matrix each."""
        import numpy as np

        keys = {text: self._key(text) for several in texts for text in several}
        known = self._store.vectors(list(dict.fromkeys(keys.values())))
        if not known:
            return (np.empty((0, 0), dtype="<f4") for _ in texts)
        places = {key: place for place, key in enumerate(known)}
        matrix = np.frombuffer(b"".join(known.values()), dtype="<f4").reshape(len(known), -1)
        return (matrix[[places[keys[text]] for text in several]] for several in texts)

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self.identity}\n{text}".encode("utf-8", "surrogatepass")).digest()


def _partner_parts(group: Group) -> list[Group]:
    """What other settings hold for this group, as groups of their own: the draws of one probe each."""
    return [
        replace(group, outcomes=tuple(draws), partners={})
        for outcomes in group.partners.values()
        for _, draws in groupby(outcomes, key=lambda outcome: (outcome.sample, outcome.variant))
    ]


def _whole(group: Group, read: Sequence[Group]) -> Group:
    """The group with all that was read of it and of its partners."""
    own, *others = read
    scored = iter([outcome for other in others for outcome in other.outcomes])
    partners = {name: tuple(next(scored) for _ in outcomes) for name, outcomes in group.partners.items()}
    judgements = [*own.judgements, *(verdict for other in others for verdict in other.judgements)]
    return replace(own, partners=partners, judgements=tuple(judgements))
