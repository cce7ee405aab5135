"""The queue of calls that wait to be sent, and the batches that models take from it."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from itertools import islice

from msgspec import Struct

from sightline.engine.account import Counts
from sightline.engine.limiter import PATIENCE, Limiter
from sightline.errors import UserError
from sightline.models.base import Model
from sightline.store.keys import KeyedRequest
from sightline.types import Answer, Failure

PASSED_OVER = 64
"""How often another call than the first one is taken, because of its image."""
LOOKED_AT = 256
"""Calls among which a suitable one is looked for."""


class Call(Struct):
    """A request on its way to a model."""

    keyed: KeyedRequest
    claimed: int = 0
    is_admitted: bool = True
    attempts: int = 0
    refusals: int = 0

    @property
    def image(self) -> str | None:
        """The digest of the first image, which most requests with the same prefix have; None without one."""
        return next((file.digest for file in self.keyed.request.images.values()), None)


class CallQueue:
    """Calls that wait to be sent, first in, first out. Belongs to one event loop.

    Where several hosts take calls, those with the same image go to the same host, whose prefix cache has the
    image. A host that must get the bytes of an image only once gets a second call with a new image after the
    first one has ended. No host waits for either.
    """

    def __init__(self) -> None:
        self.first_call = asyncio.Event()
        """Set when the first call arrives: no model has to load before."""
        self._waiting: deque[Call] = deque()
        # As many items as calls wait.
        self._places: asyncio.Queue[None] = asyncio.Queue()
        self._images = ImagePlaces()
        self._passed_over = 0
        self._changed = asyncio.Event()
        self._is_filling = True

    def put(self, call: Call) -> None:
        self._waiting.append(call)
        self._places.put_nowait(None)
        self._changed.set()
        self.first_call.set()

    def resume(self) -> None:
        """Let models wait for full batches: more calls arrive soon."""
        self._is_filling = True

    def pause(self) -> None:
        """Let models take incomplete batches: no more calls arrive until some are answered."""
        self._is_filling = False
        self._changed.set()

    def take_all(self) -> list[Call]:
        """Take all calls that wait.

        Returns:
            The calls; there may be none.
        """
        return [self._take_now(None, sends_once=False) for _ in range(self._places.qsize())]

    async def take_batch(
        self, size: int, gather: float = 0.0, host: str | None = None, *, sends_once: bool = False
    ) -> list[Call]:
        """Wait for a batch of calls.

        Args:
            gather: Seconds for which an incomplete batch of calls that are sent again waits for more of them.
            host: The host that they are for; None if it does not matter.
            sends_once: Whether the host must get the bytes of an image only once; then `end` must be called.
        """
        await self._places.get()
        calls = [self._choose(host, sends_once=sends_once)]
        # First attempts come together; what failed comes back one by one.
        until = asyncio.get_running_loop().time() + (gather if calls[0].attempts else 0.0)
        while len(calls) < size:
            rest = until - asyncio.get_running_loop().time()
            if not self._places.empty():
                calls.append(self._take_now(host, sends_once=sends_once))
            elif self._is_filling or rest > 0:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if self._is_filling else rest):
                        await self._changed.wait()
            else:
                break
        return calls

    def end(self, host: str, calls: Sequence[Call]) -> None:
        """Record that calls are not in flight any more, where the host gets the bytes of an image
        only once.
        """
        for call in calls:
            if (image := call.image) is not None:
                self._images.ended(image, host)

    def _take_now(self, host: str | None, *, sends_once: bool) -> Call:
        self._places.get_nowait()
        return self._choose(host, sends_once=sends_once)

    def _choose(self, host: str | None, *, sends_once: bool) -> Call:
        """Take the first call that suits a host; the first of all if it was passed over too often."""
        if host is None:
            return self._waiting.popleft()
        is_late = self._passed_over >= PASSED_OVER
        index = 0 if is_late else self._first_suitable(host, sends_once=sends_once)
        self._passed_over = self._passed_over + 1 if index else 0
        call = self._waiting[index]
        del self._waiting[index]
        if (image := call.image) is not None:
            self._images.sent(image, host, may_arrive=sends_once)
        return call

    def _first_suitable(self, host: str, *, sends_once: bool) -> int:
        """The index of the first call that suits a host; 0 if there is none."""
        images = self._images
        for index, call in enumerate(islice(self._waiting, LOOKED_AT)):
            image = call.image
            if image is None or not (
                images.is_elsewhere(image, host) or (sends_once and images.is_arriving(image, host))
            ):
                return index
        return 0


# -- Requests that come into being while a run already sends others


class RequestFeed:
    """Requests of one run, added on the event loop until `close`; a thread of the run reads them.

    Reading yields None where the next request does not exist yet; `more` waits for it.
    """

    def __init__(self) -> None:
        self._added: deque[Iterable[KeyedRequest]] = deque()
        self._is_closed = False
        self._has_more, self._is_read = asyncio.Event(), asyncio.Event()
        self._is_read.set()

    def add(self, requests: Iterable[KeyedRequest]) -> None:
        """Add requests; they are made when they are read."""
        self._added.append(requests)
        self._is_read.clear()
        self._has_more.set()

    def close(self) -> None:
        """End the requests after those that were added."""
        self._is_closed = True
        self._has_more.set()

    def __iter__(self) -> Iterator[KeyedRequest | None]:
        while True:
            is_closed = self._is_closed  # before the look at what was added: nothing is added afterwards
            while self._added:
                yield from self._added.popleft()
            if is_closed:
                return
            yield None

    async def more(self) -> None:
        """Wait, when None was read, until something is added or the feed is closed."""
        if not (self._added or self._is_closed):
            self._is_read.set()
            self._has_more.clear()
            await self._has_more.wait()

    async def all_read(self) -> None:
        """Wait until everything that was added is read."""
        await self._is_read.wait()


# -- Where images are: which hosts have them, and which images are on their way to a host

REMEMBERED = 4096
"""Images whose host is remembered, and images of which a host is known to have them."""


class ImagePlaces:
    """What was sent to which host. Belongs to one event loop."""

    def __init__(self) -> None:
        self._hosts: dict[str, str] = {}
        self._arriving: dict[tuple[str, str], int] = {}
        self._arrived: dict[tuple[str, str], None] = {}

    def is_elsewhere(self, image: str, host: str) -> bool:
        """Find out whether an image was sent to another host last."""
        return self._hosts.get(image, host) != host

    def is_arriving(self, image: str, host: str) -> bool:
        """Find out whether a first request with an image has no answer yet."""
        return (host, image) in self._arriving

    def sent(self, image: str, host: str, *, may_arrive: bool) -> None:
        """Record that a request with an image is sent."""
        self._hosts.pop(image, None)
        self._hosts[image] = host
        if len(self._hosts) > REMEMBERED:
            del self._hosts[next(iter(self._hosts))]
        place = host, image
        if may_arrive and place not in self._arrived:
            self._arriving[place] = self._arriving.get(place, 0) + 1

    def ended(self, image: str, host: str) -> None:
        """Record that a request is not in flight any more."""
        place = host, image
        left = self._arriving.pop(place, 0) - 1
        if left > 0:
            self._arriving[place] = left
        self._arrived.pop(place, None)
        self._arrived[place] = None
        if len(self._arrived) > REMEMBERED:
            del self._arrived[next(iter(self._arrived))]


# -- Retries: which failures are sent again, after which delay

MAX_FAILURES = 8
"""Failures of one call after which it is not retried."""
MAX_REFUSALS = 30
"""Refusals (429) of one call after which it is not retried."""
BACKOFF_SECONDS = 0.2
MAX_BACKOFF_SECONDS = 30.0


def is_capacity_refusal(failure: Failure) -> bool:
    """Decide whether a host refused a call for lack of capacity; the call itself is not to blame."""
    return failure.status == 429 or (failure.status in (503, 529) and failure.retry_after is not None)


def report_to(limiter: Limiter, results: Sequence[Answer | Failure]) -> None:
    """Tell the limiter what the results of a batch show about the host."""
    failures = [result for result in results if isinstance(result, Failure)]
    refusals = [failure.retry_after or 0.0 for failure in failures if is_capacity_refusal(failure)]
    if refusals:
        limiter.record_refusal(max(refusals) or None)
    elif len(failures) < len(results) or any(failure.kind != "transient" for failure in failures):
        limiter.record_success()
    else:
        limiter.record_failure()


def retry_delay(call: Call, failure: Failure, jitter: random.Random) -> float | None:
    """Compute when a failed call is sent again: exponential backoff with jitter.

    Returns:
        Seconds until the next attempt, never before the host's Retry-After; None where the call is not sent
        again in this run.
    """
    too_often = call.refusals > MAX_REFUSALS or call.attempts - call.refusals >= MAX_FAILURES
    backoff = min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2 ** min(call.attempts - 1, 16))
    delay = max(backoff * jitter.uniform(0.5, 1.0), failure.retry_after or 0.0)
    return None if failure.kind != "transient" or too_often or delay > PATIENCE else delay


# -- The open models of a run: each is opened at its first use


class OpenModels:
    """Opens each model at its first use; `stack` closes the models. Several runners may share it."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._models: list[Model] = []
        self._opening = asyncio.Lock()

    async def open(self, model: Model) -> None:
        async with self._opening:
            if not any(model is other for other in self._models):
                await self._stack.enter_async_context(model)
                self._models.append(model)

    async def open_usable(self, models: Sequence[Model], counts: Counts) -> list[Model]:
        """Open the model at each of its hosts."""
        usable: list[Model] = []
        errors: list[UserError] = []
        for model in models:
            counts.loading = model.name
            try:
                await self.open(model)
                usable.append(model)
            except UserError as error:
                errors.append(error)
        counts.loading = ""
        if not usable:
            raise errors[0]
        counts.unavailable += [message for message in map(str, errors) if message not in counts.unavailable]
        return usable
