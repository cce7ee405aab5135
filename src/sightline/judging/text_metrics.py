"""The text metrics of answers: each distinct response and reference once, remembered in the store."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from msgspec.structs import replace

from sightline.benchmarks.text_metrics import chosen
from sightline.engine.store import Store
from sightline.errors import EnvironmentFailedError, UserError
from sightline.models.text_metrics import ResponsePair, TextMetric, text_metric
from sightline.progress import Advance, progress
from sightline.types import Group, Outcome

GROUPS = 256
"""Groups whose numbers are looked up together."""

WINDOW = 64
"""Pairs that are measured and remembered together: what an interruption loses at most."""

_NUMBER = struct.Struct("<d")


def metrics_of(options: Mapping[str, Any]) -> dict[str, TextMetric]:
    """The text metrics that these options ask for, by name. UserError where one cannot be had here."""
    return {name: text_metric(name, options) for name in chosen(options)}


def identities_of(metrics: Mapping[str, TextMetric]) -> dict[str, str]:
    """Whose numbers these metrics give, by name."""
    return {name: metric.identity for name, metric in metrics.items()}


def loading(options: Mapping[str, Any]) -> Callable[[str], TextMetric]:
    """What makes a text metric under these options when it is needed."""
    return partial(text_metric, options=options)


class TextMeasures:
    """Text metrics with the store behind them.

    `identities` says by name whose numbers are wanted; `load` makes a metric, and is called only where a
    number is not known.
    """

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
        """Measure every answer of these groups that is not known, and remember it.

        Raises UserError where a model cannot be loaded or is another by now, EnvironmentFailedError where it gives
        no finite number, or the store fails.
        """
        with progress("text metrics", None, "texts", show_progress=self._show_progress) as advance:
            for chunk in _chunks(groups):
                pairs = _pairs(chunk)
                for name in self.identities:
                    self._values(name, pairs, advance)

    def measured(self, groups: Iterable[Group]) -> Iterator[Group]:
        """Each group, with the numbers of its answers among their `scores`.

        Of several references the nearest counts; an answer that failed or has none gets no number.
        """
        for chunk in _chunks(groups):
            pairs = _pairs(chunk)
            values = {name: self._values(name, pairs) for name in self.identities}
            for group in chunk:
                yield replace(group, outcomes=tuple(_scored(outcome, values) for outcome in group))

    def _values(
        self, name: str, pairs: Sequence[ResponsePair], advance: Advance = lambda _: None
    ) -> dict[ResponsePair, float]:
        """The number of each pair: as it is remembered, else measured now."""
        keys = {pair: self._key(name, pair) for pair in pairs}
        known = self._store.vectors(list(keys.values()))
        new = iter([pair for pair in pairs if keys[pair] not in known])
        while window := list(islice(new, WINDOW)):
            found = dict(zip(window, self._metric(name).score(window), strict=True))
            _refuse_unusable(name, found)
            measured = {keys[pair]: _NUMBER.pack(value) for pair, value in found.items()}
            self._store.add_vectors(measured)
            known |= measured
            advance(len(window))
        return {pair: _NUMBER.unpack(known[key])[0] for pair, key in keys.items()}

    def _metric(self, name: str) -> TextMetric:
        if name not in self._loaded:
            made = self._load(name)
            if made.identity != self.identities[name]:
                raise UserError(
                    f"the text metric '{name}' is no longer what this run was measured with",
                    found=made.identity,
                    expected=self.identities[name],
                )
            self._loaded[name] = made
        return self._loaded[name]

    def _key(self, name: str, pair: ResponsePair) -> bytes:
        said, reference = pair
        # The length tells where one text ends and the other begins.
        told = f"{name} {self.identities[name]}\n{len(said)}\n{said}{reference}"
        return hashlib.sha256(told.encode("utf-8", "surrogatepass")).digest()


def _chunks(groups: Iterable[Group]) -> Iterator[list[Group]]:
    iterator = iter(groups)
    while chunk := list(islice(iterator, GROUPS)):
        yield chunk


def _pairs(groups: Iterable[Group]) -> list[ResponsePair]:
    """The distinct pairs of a response and a reference."""
    return list(dict.fromkeys(pair for group in groups for outcome in group for pair in _of(outcome)))


def _of(outcome: Outcome) -> list[ResponsePair]:
    """An answer with each of its references."""
    if not outcome.answered:
        return []
    return [(outcome.response, reference) for reference in outcome.references if reference.strip()]


def _scored(outcome: Outcome, values: Mapping[str, Mapping[ResponsePair, float]]) -> Outcome:
    pairs = _of(outcome)
    if not pairs:
        return outcome
    found = {name: max(known[pair] for pair in pairs) for name, known in values.items()}
    return replace(outcome, scores={**outcome.scores, **found})


def _refuse_unusable(name: str, found: Mapping[ResponsePair, float]) -> None:
    for (said, _), value in found.items():
        if not math.isfinite(value):
            shown = said if len(said) <= 80 else said[:77] + "..."
            raise EnvironmentFailedError(
                f"the text metric '{name}' gives no finite number for {shown!r}: its weights are broken"
            )
