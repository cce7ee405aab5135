"""The numbers that models measure on answers before they are judged: similarity and text metrics."""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark, requested_metrics
from sightline.errors import EnvironmentFailedError, UserError
from sightline.evaluation.plan import CollectedAnswers
from sightline.formats.files import text_digest
from sightline.progress import Advance, progress
from sightline.scoring.scorer import VectorScorer, by_question
from sightline.scoring.similarity import SIMILAR, ComparedTexts, confused
from sightline.store.store import Store
from sightline.types import Group, MetricValue, Outcome

if TYPE_CHECKING:
    from sightline.models.embedder import Embedder
    from sightline.models.text_metrics import ResponsePair, TextMetric
    from sightline.scoring.scorer import Vectors


class AnswerMeasures(Struct, frozen=True, kw_only=True):
    """The measures of an evaluation; None where the evaluation does not use one."""

    similarity: Similarity | None = None
    texts: TextMeasures | None = None

    def prepare(self, collected: CollectedAnswers) -> None:
        """Measure every text that the store does not hold numbers of; vectors are made in `measured`."""
        if self.texts is not None:
            self.texts.prepare(collected.groups())

    def measured(self, collected: CollectedAnswers) -> Iterator[Group]:
        """The groups with their measures among the scores of the outcomes; each call is a new pass."""
        groups = collected.groups()
        groups = groups if self.similarity is None else self.similarity.measured(groups)
        return groups if self.texts is None else self.texts.measured(groups)

    @property
    def versions(self) -> dict[str, str]:
        embedder = {} if self.similarity is None else {"embedder": self.similarity.identity}
        return embedder | dict({} if self.texts is None else self.texts.identities)


NO_MEASURES = AnswerMeasures()


# -- What a benchmark's rules read from responses, whoever judges them: numbers, and comparisons of
#    answers


def with_text_scores(
    groups: Iterable[Group], benchmark: Benchmark, options: Mapping[str, Any]
) -> Iterator[Group]:
    """Add the text scores of a benchmark to the outcomes of groups, and its verdicts on pairs of answers.

    Equal responses to one probe are read once.
    """
    of_sample: dict[tuple[object, ...], Mapping[str, float]] = {}
    sample = ""

    def scored(outcome: Outcome) -> Outcome:
        if not outcome.answered:
            return outcome
        key = outcome.variant, outcome.response, outcome.question, outcome.options
        scores = of_sample.get(key)
        if scores is None:
            scores = of_sample[key] = benchmark.text_scores(outcome, options)
        return replace(outcome, scores={**outcome.scores, **scores}) if scores else outcome

    for group in groups:
        if group.id != sample:
            sample = group.id
            of_sample.clear()
        pairs = [v for part in (group, *partner_groups(group)) for v in benchmark.pair_verdicts(part)]
        outcomes = tuple(map(scored, group.outcomes))
        yield replace(group, outcomes=outcomes, judgements=(*group.judgements, *pairs))


# -- Text metrics of answers: every distinct response and reference is measured once and cached in the
#    store

GROUPS_PER_LOOKUP = 256
"""The number of groups whose numbers are looked up together."""

PAIRS_PER_COMMIT = 64
"""The number of pairs that are measured and stored together: an interruption loses at most these."""

MAX_QUOTE = 80
"""The number of characters of a response that an error message quotes."""

_NUMBER = struct.Struct("<d")


def metrics_of(options: Mapping[str, Any]) -> dict[str, TextMetric]:
    """The text metrics that the options choose; no weights are loaded."""
    return {name: load_text_metric(name, options) for name in requested_metrics(options)}


def identities_of(metrics: Mapping[str, TextMetric]) -> dict[str, str]:
    return {name: metric.identity for name, metric in metrics.items()}


def load_text_metric(name: str, options: Mapping[str, Any]) -> TextMetric:
    from sightline.models.text_metrics import text_metric  # few evaluations measure texts

    return text_metric(name, options)


def load_embedder(name: str) -> Embedder:
    from sightline.models.embedder import embedder  # few evaluations compare answers by their vectors

    return embedder(name)


class TextMeasures:
    """Text metrics with the store that caches their numbers."""

    def __init__(
        self,
        identities: Mapping[str, str],
        load: Callable[[str], TextMetric],
        store: Store,
        *,
        show_progress: bool = False,
    ) -> None:
        self.identities = identities
        self._load = load
        self._store = store
        self._show_progress = show_progress
        self._loaded: dict[str, TextMetric] = {}

    def prepare(self, groups: Iterable[Group]) -> None:
        """Measure and store every answer of these groups that has no numbers yet."""
        with progress("text metrics", None, "texts", show_progress=self._show_progress) as advance:
            for chunk in _chunks(groups):
                pairs = _pairs(chunk)
                for name in self.identities:
                    self._values(name, pairs, advance)

    def measured(self, groups: Iterable[Group]) -> Iterator[Group]:
        """Add text metrics to the scores of answers.

        The most similar of several references counts. A failed answer, or one without references, gets no
        number.
        """
        for chunk in _chunks(groups):
            pairs = _pairs(chunk)
            values = {name: self._values(name, pairs) for name in self.identities}
            for group in chunk:
                yield replace(group, outcomes=tuple(_scored(outcome, values) for outcome in group))

    def _values(
        self, name: str, pairs: Sequence[ResponsePair], advance: Advance = lambda _: None
    ) -> dict[ResponsePair, float]:
        """The number of each pair: the cached one, otherwise measured now."""
        keys = {pair: self._key(name, pair) for pair in pairs}
        cached = self._store.caches.vectors.look_up(list(keys.values()))
        new = iter([pair for pair in pairs if keys[pair] not in cached])
        while batch := list(islice(new, PAIRS_PER_COMMIT)):
            values = dict(zip(batch, self._metric(name).score(batch), strict=True))
            _check_finite(name, values)
            measured = {keys[pair]: _NUMBER.pack(value) for pair, value in values.items()}
            self._store.caches.vectors.add(measured)
            cached |= measured
            advance(len(batch))
        return {pair: _NUMBER.unpack(cached[key])[0] for pair, key in keys.items()}

    def _metric(self, name: str) -> TextMetric:
        if name not in self._loaded:
            metric = self._load(name)
            if metric.identity != self.identities[name]:
                raise UserError(
                    f"the text metric '{name}' is not the one that measured this run",
                    found=metric.identity,
                    expected=self.identities[name],
                )
            self._loaded[name] = metric
        return self._loaded[name]

    def _key(self, name: str, pair: ResponsePair) -> bytes:
        response, reference = pair
        # The length separates the two texts.
        text = f"{name} {self.identities[name]}\n{len(response)}\n{response}{reference}"
        return bytes.fromhex(text_digest(text))


def _chunks(groups: Iterable[Group]) -> Iterator[list[Group]]:
    iterator = iter(groups)
    while chunk := list(islice(iterator, GROUPS_PER_LOOKUP)):
        yield chunk


def _pairs(groups: Iterable[Group]) -> list[ResponsePair]:
    return list(dict.fromkeys(pair for group in groups for outcome in group for pair in _pairs_of(outcome)))


def _pairs_of(outcome: Outcome) -> list[ResponsePair]:
    if not outcome.answered:
        return []
    return [(outcome.response, reference) for reference in outcome.references if reference.strip()]


def _scored(outcome: Outcome, values: Mapping[str, Mapping[ResponsePair, float]]) -> Outcome:
    pairs = _pairs_of(outcome)
    if not pairs:
        return outcome
    best = {name: max(by_pair[pair] for pair in pairs) for name, by_pair in values.items()}
    return replace(outcome, scores={**outcome.scores, **best})


def _check_finite(name: str, values: Mapping[ResponsePair, float]) -> None:
    for (response, _), value in values.items():
        if not math.isfinite(value):
            quote = response if len(response) <= MAX_QUOTE else response[: MAX_QUOTE - 3] + "..."
            raise EnvironmentFailedError(
                f"the text metric '{name}' gives no finite number for {quote!r}: its weights are broken"
            )


# -- Similarity of answers: every distinct text is embedded once, cached in the store, and read by group

TEXTS_PER_COMMIT = 1024
"""The number of texts that are embedded and stored together: an interruption loses at most these."""


Embed = Callable[[Mapping[bytes, str]], Mapping[bytes, bytes]]
"""Embeds texts by their keys, and stores the vectors: key -> what is stored."""


def vector_scorer(benchmark: Benchmark, options: Mapping[str, Any]) -> VectorScorer | None:
    """The scorer of similarity; None if the benchmark measures none under these options."""
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

    def measured(self, groups: Iterable[Group]) -> Iterator[Group]:
        """Add similarities to groups; their texts that have no vector are embedded and stored first."""
        self._texts, self._clusters = ComparedTexts(), array("q")
        last = None
        with self._embedding() as embed:
            for chunk in _chunks(groups):
                parts = [[group, *partner_groups(group)] for group in chunk]
                texts = [[self._scorer.texts(part) for part in own] for own in parts]
                vectors = iter(self._vectors([several for own in texts for several in own], embed))
                for group, own, own_texts in zip(chunk, parts, texts, strict=True):
                    for text in own_texts[0]:
                        self._texts.add(text)
                    if group.cluster != last:
                        last = group.cluster
                        self._clusters.append(hash(last))
                    stored = [next(vectors) for _ in own]
                    scored = [
                        self._scorer.read(part, rows[:, :-1], rows[:, -1].tolist())
                        for part, rows in zip(own, stored, strict=True)
                    ]
                    yield _joined(group, scored)

    def confused(self) -> MetricValue:
        """How often the similarity confuses different short texts of the groups measured last."""
        import numpy as np

        clusters = len(np.unique(np.array(self._clusters)))
        with self._embedding() as embed:
            return confused(self._texts, clusters, lambda texts: next(self._vectors([texts], embed))[:, :-1])

    @contextmanager
    def _embedding(self) -> Iterator[Embed]:
        """What embeds and stores texts; the model is loaded for the first of them."""
        with ExitStack() as shown:
            started: list[tuple[Embedder, Advance]] = []

            def embed(missing: Mapping[bytes, str]) -> dict[bytes, bytes]:
                """The vector of each text, then the share of its tokens that the embedder does not know."""
                if not started:
                    model = self._loaded()
                    title, show = f"embedding ({model.name})", self._show_progress
                    advance = shown.enter_context(progress(title, None, "texts", show_progress=show))
                    started.append((model, advance))
                model, advance = started[0]
                added: dict[bytes, bytes] = {}
                rest = iter(missing.items())
                while batch := dict(islice(rest, TEXTS_PER_COMMIT)):
                    rows = _rows_of(model, list(batch.values()))
                    stored = dict(zip(batch, rows, strict=True))
                    self._store.caches.vectors.add(stored)
                    added |= stored
                    advance(len(batch))
                return added

            yield embed

    def _loaded(self) -> Embedder:
        model = self._load()
        if model.identity != self.identity:
            raise UserError(
                f"the embedder '{model.name}' is not the one that measured this run",
                found=model.identity,
                expected=self.identity,
            )
        return model

    def _vectors(self, texts: Sequence[Sequence[str]], embed: Embed) -> Iterator[Vectors]:
        """What is stored of several lists of texts: one matrix of shape (texts, dimensions + 1) each."""
        import numpy as np

        keys = {text: self._key(text) for several in texts for text in several}
        named = {key: text for text, key in keys.items()}
        cached = self._store.caches.vectors.look_up(list(named))
        if missing := {key: text for key, text in named.items() if key not in cached}:
            cached |= embed(missing)
        if not cached:
            return (np.empty((0, 1), dtype="<f4") for _ in texts)
        rows = {key: row for row, key in enumerate(cached)}
        matrix = np.frombuffer(b"".join(cached.values()), dtype="<f4").reshape(len(cached), -1)
        return (matrix[[rows[keys[text]] for text in several]] for several in texts)

    def _key(self, text: str) -> bytes:
        return bytes.fromhex(text_digest(f"{self.identity} and unknown words\n{text}"))


def _rows_of(model: Embedder, texts: Sequence[str]) -> Iterator[bytes]:
    import numpy as np

    vectors = np.column_stack([model.embed(texts), model.unknown(texts)])
    return (row.tobytes() for row in vectors.astype("<f4", copy=False))


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


# -- The models that measure responses without judging them: embedders and text metrics


class PreparedMeasures(NamedTuple):
    """The identities of what measures responses without judging them."""

    embedder: str | None
    text_metrics: Mapping[str, str]


def prepare_measures(benchmark: Benchmark, options: Mapping[str, Any]) -> PreparedMeasures:
    """The embedder and the text metrics that the options choose; no weights are loaded."""
    compares = vector_scorer(benchmark, options) is not None
    embedder = load_embedder(options["embedder"]).identity if compares else None
    return PreparedMeasures(embedder, identities_of(metrics_of(options)))


def answer_measures(
    benchmark: Benchmark,
    options: Mapping[str, Any],
    embedder: str | None,
    text_metrics: Mapping[str, str],
    store: Store,
    *,
    show_progress: bool = False,
) -> AnswerMeasures:
    """The measures of an evaluation; models are loaded where the store lacks a number.

    Args:
        embedder: The identity of the embedder; None if nothing is compared.
        text_metrics: Name of a text metric -> its identity.
    """
    similarity, texts = None, None
    scorer = vector_scorer(benchmark, options)
    if scorer is not None and embedder:
        load = partial(load_embedder, options.get("embedder", ""))
        similarity = Similarity(scorer, embedder, load, store, show_progress=show_progress)
    if text_metrics:
        load_metric = partial(load_text_metric, options=options)
        texts = TextMeasures(text_metrics, load_metric, store, show_progress=show_progress)
    return AnswerMeasures(similarity=similarity, texts=texts)
