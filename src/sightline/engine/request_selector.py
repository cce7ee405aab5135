"""Selects the requests that must be sent, and puts them into the queue.

The selector skips requests that it has selected before in this run, and requests that the store can answer.
It waits for requests that another process on the same store is sending. It reads the requests (which hashes
images) and looks them up in threads, so that the event loop stays responsive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from itertools import islice

from sightline.engine.admission import Admission
from sightline.engine.call_queue import Call, CallQueue
from sightline.engine.committer import Committer
from sightline.engine.counts import Counts
from sightline.engine.keys import KeyedRequest
from sightline.engine.retry import is_settled
from sightline.engine.store import Store
from sightline.engine.threads import run_in_thread

CHUNK = 64
"""Requests that are looked up together."""
REVISIT_SECONDS = 0.2
"""How often requests that another process is sending are looked up again."""

ByKey = Mapping[str, KeyedRequest]


class RequestSelector:
    """Selects the requests of one run that must be sent. Belongs to one event loop."""

    def __init__(
        self,
        store: Store,
        committer: Committer,
        admission: Admission,
        queue: CallQueue,
        counts: Counts,
        *,
        retry_errors: bool,
    ) -> None:
        self._store = store
        self._committer = committer
        self._admission = admission
        self._queue = queue
        self._counts = counts
        self._retry_errors = retry_errors
        self._selected: set[str] = set()
        self._claimed_elsewhere: dict[str, KeyedRequest] = {}

    async def queue_unanswered(self, requests: Iterable[KeyedRequest]) -> None:
        """Queue every request that must be sent; wait while the queue is long enough.

        Args:
            requests: The requests of the run. They are read in a thread, one chunk at a time.
        """
        loop = asyncio.get_running_loop()
        revisit = loop.time() + REVISIT_SECONDS
        iterator = iter(requests)
        while chunk := await run_in_thread(lambda: list(islice(iterator, CHUNK))):
            new = {keyed.request.key: keyed for keyed in chunk if keyed.request.key not in self._selected}
            self._selected.update(new)
            if self._claimed_elsewhere and loop.time() >= revisit:
                revisit = loop.time() + REVISIT_SECONDS
                new |= self._take_claimed_elsewhere()
            if not await self._queue_chunk(new):
                break
        while self._claimed_elsewhere and not self._counts.stopped:
            self._queue.pause()
            await asyncio.sleep(REVISIT_SECONDS)
            await self._queue_chunk(self._take_claimed_elsewhere())

    def _take_claimed_elsewhere(self) -> dict[str, KeyedRequest]:
        taken, self._claimed_elsewhere = self._claimed_elsewhere, {}
        return taken

    async def _queue_chunk(self, requests: ByKey) -> bool:
        """Queue requests without an answer that no other process sends; False: the budget is reached."""
        unanswered = self._without_cached(requests, await run_in_thread(self._settled, requests))
        if not unanswered:
            return True
        claimed, settled = await self._committer.run(self._claim, unanswered)
        self._claimed_elsewhere.update(
            (key, keyed) for key, keyed in unanswered.items() if key not in claimed
        )
        own = {key: keyed for key, keyed in unanswered.items() if key in claimed}
        for keyed in self._without_cached(own, settled).values():
            if not await self._admission.admit():
                return False
            self._queue.put(Call(keyed))
        return True

    def _claim(self, requests: ByKey) -> tuple[set[str], set[str]]:
        """The keys that this process may send, and those of them that are settled by now."""
        claimed = self._store.claims.take(list(requests))
        # Another process may have answered between the first look-up and the claim.
        return claimed, self._settled(claimed)

    def _settled(self, keys: Iterable[str]) -> set[str]:
        stored = self._store.answers.look_up(list(keys))
        return {key for key, result in stored.items() if is_settled(result, self._retry_errors)}

    def _without_cached(self, requests: ByKey, settled: set[str]) -> dict[str, KeyedRequest]:
        unanswered = {key: keyed for key, keyed in requests.items() if key not in settled}
        self._counts.cached += len(requests) - len(unanswered)
        return unanswered
