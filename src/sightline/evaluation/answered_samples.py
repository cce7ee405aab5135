"""The samples of a run whose answers are complete while the model still answers others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, takewhile
from threading import Lock
from typing import NamedTuple

from sightline.engine.answers import Answers
from sightline.plan.plan import PlannedProbe
from sightline.plan.stored_probe import StoredProbe, sample_index

HELD = 4096
"""Probes that wait for their answers at most, 3 KB each; others are judged at the end."""
PROBES_PER_LOT = 512
"""Probes after which no more samples are looked up to be taken together."""
SAMPLES_PER_LOOKUP = 128


class AnsweredSample(NamedTuple):
    """A sample: its number, which is its index in the run, and its probes."""

    number: int
    probes: list[StoredProbe]


def probes_of(samples: Iterable[AnsweredSample]) -> list[StoredProbe]:
    """The probes of samples, sample by sample.

    Args:
        samples: The samples.

    Returns:
        The probes.
    """
    return [probe for sample in samples for probe in sample.probes]


class AnsweredSamples:
    """Finds samples whose answers are all in the store. One thread adds samples, another one takes them.

    They are taken in any order (`take`), or one after the other (`take_next`); `following` is then the index
    of the next one.
    """

    def __init__(self, answers: Answers, *, retry_errors: bool) -> None:
        """Start without samples.

        Args:
            answers: The answers of the store.
            retry_errors: Whether the run asks for permanent and blocked failures again.
        """
        self._answers = answers
        self._retry_errors = retry_errors
        self._lock = Lock()
        self._waiting: dict[int, list[StoredProbe]] = {}
        self._held = 0
        self._judged = bytearray()
        self.following = 0

    def add(self, planned: Sequence[PlannedProbe]) -> None:
        """Add the samples of a chunk of the plan, as far as there is room.

        Args:
            planned: Their probes, those of one sample next to each other.
        """
        for number, members in groupby(planned, key=lambda one: sample_index(one.position)):
            probes = [one.probe for one in members]
            with self._lock:
                if self._held + len(probes) <= HELD:
                    self._waiting[number] = probes
                    self._held += len(probes)

    def take(self) -> list[AnsweredSample]:
        """Take samples whose requests all have answers, also in the settings that they are compared with.

        Samples with a failure are left for the end: another process may ask for it again meanwhile.

        Returns:
            Some of them, the earliest first; none of them is returned again.
        """
        with self._lock:
            waiting = [AnsweredSample(*one) for one in self._waiting.items()]
        taken: list[AnsweredSample] = []
        size = 0
        for start in range(0, len(waiting), SAMPLES_PER_LOOKUP):
            complete = self._complete(waiting[start : start + SAMPLES_PER_LOOKUP], _keys)
            self._remove(complete)
            answered = self._complete(complete, _keys, answered_only=True)
            taken += answered
            size += len(probes_of(answered))
            if size >= PROBES_PER_LOT:
                break
        return taken

    def take_next(self) -> list[AnsweredSample]:
        """Take the next samples in their order, up to the first whose own answers are not complete.

        Returns:
            Some of them; none of them is returned again.
        """
        with self._lock:
            numbers = range(self.following, self.following + SAMPLES_PER_LOOKUP)
            waiting = [
                AnsweredSample(number, self._waiting[number])
                for number in takewhile(self._waiting.__contains__, numbers)
            ]
        if not waiting:
            return []
        complete = zip(numbers, self._complete(waiting, _own_keys), strict=False)
        taken = [sample for number, sample in complete if sample.number == number]
        self._remove(taken)
        self.following += len(taken)
        return taken

    def record_judged(self, samples: Sequence[AnsweredSample]) -> None:
        """Record that the judges are asked about samples.

        Args:
            samples: Samples that `take` returned.
        """
        last = max(sample.number for sample in samples)
        self._judged.extend(bytes(max(0, last + 1 - len(self._judged))))
        for sample in samples:
            self._judged[sample.number] = True

    def forget_judged(self) -> None:
        """Forget what was recorded: the judges must be asked about all samples."""
        self._judged.clear()

    def is_judged(self, index: int) -> bool:
        """Whether the judges are asked about a sample.

        Args:
            index: Its index in the run.

        Returns:
            True if `record_judged` recorded it.
        """
        return index < len(self._judged) and bool(self._judged[index])

    def _remove(self, samples: Sequence[AnsweredSample]) -> None:
        with self._lock:
            for sample in samples:
                del self._waiting[sample.number]
            self._held -= len(probes_of(samples))

    def _complete(
        self,
        samples: Sequence[AnsweredSample],
        keys_of: Callable[[Sequence[StoredProbe]], Iterator[str]],
        *,
        answered_only: bool = False,
    ) -> list[AnsweredSample]:
        """The samples for which nothing more is sent; with `answered_only`, those without a failure."""
        needed = [(sample, set(keys_of(sample.probes))) for sample in samples]
        keys = sorted(set().union(*(keys for _, keys in needed)))
        settled = self._answers.settled(keys, retry_errors=answered_only or self._retry_errors)
        return [sample for sample, keys in needed if keys <= settled]


def _keys(probes: Sequence[StoredProbe]) -> Iterator[str]:
    """The keys of all answers that judging a sample may read."""
    yield from _own_keys(probes)
    for probe in probes:
        for others in probe.partners.values():
            yield from _keys(others)


def _own_keys(probes: Sequence[StoredProbe]) -> Iterator[str]:
    """The keys of the answers to the probes themselves."""
    return (probe.key for probe in probes if probe.error is None)
