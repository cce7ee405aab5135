"""Text metrics of answers: every distinct response and reference is measured once and cached in the store."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from msgspec.structs import replace

from sightline.benchmarks.text_metrics import requested_metrics
from sightline.engine.store import Store
from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.digests import text_digest
from sightline.models.text_metrics import ResponsePair, TextMetric, text_metric
from sightline.progress import Advance, progress
from sightline.types import Group, Outcome

GROUPS_PER_LOOKUP = 256
"""The number of groups whose numbers are looked up together."""

PAIRS_PER_COMMIT = 64
"""The number of pairs that are measured and stored together: an interruption loses at most these."""

MAX_QUOTE = 80
"""The number of characters of a response that an error message quotes."""

_NUMBER = struct.Struct("<d")


def metrics_of(options: Mapping[str, Any]) -> dict[str, TextMetric]:
    """The text metrics that the options choose; no weights are loaded."""
    return {name: text_metric(name, options) for name in requested_metrics(options)}


def identities_of(metrics: Mapping[str, TextMetric]) -> dict[str, str]:
    return {name: metric.identity for name, metric in metrics.items()}


def loading(options: Mapping[str, Any]) -> Callable[[str], TextMetric]:
    """A function that makes a text metric when it is needed."""
    return partial(text_metric, options=options)


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
    """The distinct pairs of a response and a reference."""
    return list(dict.fromkeys(pair for group in groups for outcome in group for pair in _pairs_of(outcome)))


def _pairs_of(outcome: Outcome) -> list[ResponsePair]:
    """The response with each of its references."""
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
