"""Similarity of answers: every distinct text is embedded once, cached in the store, and read by group."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.formats.digests import text_digest
from sightline.metric_types import MetricValue
from sightline.metrics.confusion import ComparedTexts, confused
from sightline.models.embedder import Embedder
from sightline.progress import progress
from sightline.scoring.scorer import VectorScorer, by_question
from sightline.scoring.similarity import SIMILAR
from sightline.types import Group

if TYPE_CHECKING:
    from sightline.scoring.scorer import Vectors

GROUPS_PER_LOOKUP = 256
"""The number of groups whose vectors are fetched together."""

TEXTS_PER_COMMIT = 1024
"""The number of texts that are embedded and stored together: an interruption loses at most these."""


def vector_scorer(benchmark: Benchmark, options: Mapping[str, Any]) -> VectorScorer | None:
    """The scorer of similarity of a benchmark.

    Returns:
        The scorer; None if the benchmark measures no similarity under these options.
    """
    return by_question(benchmark.scorers(options), VectorScorer).get(SIMILAR)


class Similarity:
    """A vector scorer with its embedder and the store that caches vectors."""

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
        self._texts = ComparedTexts()
        self._clusters = array("q")

    def embed(self, groups: Iterable[Group]) -> None:
        """Embed and store every text of these groups that has no vector yet."""
        batches = self._texts_without_vector(groups)
        first = next(batches, None)
        if first is None:
            return
        model = self._load()
        if model.identity != self.identity:
            raise UserError(
                f"the embedder '{model.name}' is not the one that measured this run",
                found=model.identity,
                expected=self.identity,
            )
        with progress(
            f"embedding ({model.name})", None, "texts", show_progress=self._show_progress
        ) as advance:
            for batch in chain([first], batches):
                vectors = model.embed(list(batch.values()))
                rows = (row.tobytes() for row in vectors.astype("<f4", copy=False))
                self._store.caches.vectors.add(dict(zip(batch, rows, strict=True)))
                advance(len(batch))

    def measured(self, groups: Iterable[Group]) -> Iterator[Group]:
        """Add scores and judgements of similarity to groups and their partners."""
        self._texts, self._clusters = ComparedTexts(), array("q")
        last = None
        iterator = iter(groups)
        while chunk := list(islice(iterator, GROUPS_PER_LOOKUP)):
            parts = [[group, *partner_groups(group)] for group in chunk]
            texts = [[self._scorer.texts(part) for part in own] for own in parts]
            vectors = iter(self._vectors([several for own in texts for several in own]))
            for group, own, own_texts in zip(chunk, parts, texts, strict=True):
                for text in own_texts[0]:
                    self._texts.add(text)
                if group.cluster != last:
                    last = group.cluster
                    self._clusters.append(hash(last))
                scored = [self._scorer.read(part, next(vectors)) for part in own]
                yield _joined(group, scored)

    def confused(self) -> MetricValue:
        """How often the similarity confuses different short texts of the groups measured last."""
        import numpy as np

        clusters = len(np.unique(np.array(self._clusters)))
        return confused(self._texts, clusters, lambda texts: next(self._vectors([texts])))

    def _texts_without_vector(self, groups: Iterable[Group]) -> Iterator[dict[bytes, str]]:
        """The distinct texts that have no vector, by key, in batches. The next batch may be read when the
        vectors of the one before are stored."""
        new: dict[bytes, str] = {}
        iterator = iter(groups)
        while chunk := list(islice(iterator, GROUPS_PER_LOOKUP)):
            parts = (part for group in chunk for part in (group, *partner_groups(group)))
            keyed = {self._key(text): text for part in parts for text in self._scorer.texts(part)}
            unknown = [key for key in keyed if key not in new]
            cached = self._store.caches.vectors.look_up(unknown)
            new |= {key: keyed[key] for key in unknown if key not in cached}
            while len(new) >= TEXTS_PER_COMMIT:
                batch = dict(islice(new.items(), TEXTS_PER_COMMIT))
                yield batch
                new = dict(islice(new.items(), TEXTS_PER_COMMIT, None))
        if new:
            yield new

    def _vectors(self, texts: Sequence[Sequence[str]]) -> Iterator[Vectors]:
        """The unit vectors of several lists of texts: one matrix of shape (texts, dimensions) each."""
        import numpy as np

        keys = {text: self._key(text) for several in texts for text in several}
        cached = self._store.caches.vectors.look_up(list(dict.fromkeys(keys.values())))
        if not cached:
            return (np.empty((0, 0), dtype="<f4") for _ in texts)
        rows = {key: row for row, key in enumerate(cached)}
        matrix = np.frombuffer(b"".join(cached.values()), dtype="<f4").reshape(len(cached), -1)
        return (matrix[[rows[keys[text]] for text in several]] for several in texts)

    def _key(self, text: str) -> bytes:
        return bytes.fromhex(text_digest(f"{self.identity}\n{text}"))


def partner_groups(group: Group) -> list[Group]:
    """The outcomes of other settings as groups of their own."""
    return [
        replace(group, outcomes=tuple(draws), partners={})
        for outcomes in group.partners.values()
        for _, draws in groupby(outcomes, key=lambda outcome: (outcome.sample, outcome.variant))
    ]


def _joined(group: Group, scored: Sequence[Group]) -> Group:
    own, *others = scored
    outcomes_of_partners = iter([outcome for other in others for outcome in other.outcomes])
    partners = {
        name: tuple(next(outcomes_of_partners) for _ in outcomes) for name, outcomes in group.partners.items()
    }
    judgements = [*own.judgements, *(verdict for other in others for verdict in other.judgements)]
    return replace(own, partners=partners, judgements=tuple(judgements))
