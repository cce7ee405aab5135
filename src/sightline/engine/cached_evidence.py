"""What the store says of a model's cached answers: which can be compared with new ones, and their times."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from sightline.engine.answers import Answers
from sightline.engine.asking_again import Candidate, plan_of, select_candidates
from sightline.engine.endpoint_log import EndpointRecord
from sightline.engine.keys import KeyedRequest
from sightline.engine.request_selector import REQUESTS_PER_LOOKUP
from sightline.models.server_report import ServerReport

LOOKED_UP = 4096
"""Requests that are looked up before a check, and held if they were read for it (3 KB each). Further ones are
looked up only where these do not suffice."""


class Asked(NamedTuple):
    """A request that may be cached: its key, and whether a new answer can be compared with the cached one."""

    key: str
    is_comparable: bool


class StoredRequests(NamedTuple):
    """The requests of a run, as the store holds them; `make` makes those with some keys."""

    asked: Iterable[Asked]
    make: Callable[[Collection[str]], Iterable[KeyedRequest]]


class _Reports(NamedTuple):
    """The reports of one URL, and since when each of them is the last one."""

    starts: list[float]
    reports: list[ServerReport]


class CachedEvidence:
    """Looks requests up, chunk by chunk.

    `looked_up` counts them, `has_cached` says whether any is cached, `candidates` are the best to ask again.
    """

    def __init__(
        self, answers: Answers, records: Iterable[tuple[float, EndpointRecord]], began: float
    ) -> None:
        """Start without requests.

        Args:
            answers: The answers in the store.
            records: What the servers of the model said, and when.
            began: Answers that were stored later (seconds since 1970) do not count.
        """
        self.looked_up = 0
        self.has_cached = False
        self.candidates: Sequence[Candidate] = ()
        self._answers = answers
        self._began = began
        self._history = _history(records)
        self._current: dict[str, set[int]] = {address: set() for address in self._history}

    @property
    def is_enough(self) -> bool:
        """Whether no more requests need to be looked up."""
        return self.looked_up >= LOOKED_UP and len(self.candidates) >= plan_of(self.candidates).first

    def add_next(self, asked: Iterator[Asked]) -> bool:
        """Look up the next requests, if more are needed.

        Args:
            asked: The requests that are left.

        Returns:
            Whether there were some.
        """
        chunk = [] if self.is_enough else list(islice(asked, REQUESTS_PER_LOOKUP))
        self.add(chunk)
        return bool(chunk)

    def add(self, asked: Sequence[Asked]) -> None:
        """Look requests up.

        Args:
            asked: The requests.

        Raises:
            EnvironmentFailedError: The store fails.
        """
        cached = self._answers.answers_before([one.key for one in asked], self._began)
        times = {one.created for one in cached.values()}
        for address, reports in self._history.items():
            self._current[address].update(bisect_right(reports.starts, time) - 1 for time in times)
        self.looked_up += len(asked)
        self.has_cached = self.has_cached or bool(cached)
        comparable = {
            one.key: cached[one.key].answer for one in asked if one.is_comparable and one.key in cached
        }
        self.candidates = select_candidates(self.candidates, comparable)

    def reports(self) -> Mapping[str, Sequence[ServerReport]]:
        """The reports that were the last ones when one of the cached answers was stored.

        Returns:
            URL -> its reports.
        """
        return {
            address: [reports.reports[index] for index in sorted(self._current[address]) if index >= 0]
            for address, reports in self._history.items()
        }


def _history(records: Iterable[tuple[float, EndpointRecord]]) -> dict[str, _Reports]:
    """What each URL said, and when."""
    history: dict[str, _Reports] = {}
    for created, record in records:
        if record.report is not None:
            reports = history.setdefault(record.report.address, _Reports([], []))
            reports.starts.append(created)
            reports.reports.append(record.report)
    return history
