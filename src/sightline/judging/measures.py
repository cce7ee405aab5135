"""The numbers that models measure on answers before they are judged: similarity and text metrics."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from sightline.judging.groups import CollectedAnswers
from sightline.judging.similarity import Similarity
from sightline.judging.text_metrics import TextMeasures
from sightline.types import Group


class AnswerMeasures(Struct, frozen=True, kw_only=True):
    """The measures of an evaluation; None where the evaluation does not use one."""

    similarity: Similarity | None = None
    texts: TextMeasures | None = None

    def prepare(self, collected: CollectedAnswers) -> None:
        """Measure every answer that the store does not hold measures of."""
        if self.similarity is not None:
            self.similarity.embed(collected.groups())
        if self.texts is not None:
            self.texts.prepare(collected.groups())

    def measured(self, collected: CollectedAnswers) -> Iterator[Group]:
        """The groups with their measures among the scores of the outcomes; each call is a new pass."""
        groups = collected.groups()
        groups = groups if self.similarity is None else self.similarity.measured(groups)
        return groups if self.texts is None else self.texts.measured(groups)

    @property
    def versions(self) -> dict[str, str]:
        """The identities of the models behind the measures, by name."""
        embedder = {} if self.similarity is None else {"embedder": self.similarity.identity}
        return embedder | dict({} if self.texts is None else self.texts.identities)


NO_MEASURES = AnswerMeasures()
