"""The way of requests through a run: selection, admission, queue, retries, and the writing of results.

The selector skips requests that are on their way or failed in this run, and requests that the store can
answer. It waits for requests that another process on the same store is sending. It reads the requests (which
hashes images) and looks them up in a thread, so that the event loop stays responsive.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from itertools import islice
from typing import NamedTuple, ParamSpec, TypeVar

from msgspec import Struct

from sightline.engine.limits import PATIENCE, Account, Budget, Counts, EqualRequests, Limiter
from sightline.errors import UserError
from sightline.models.base import Model
from sightline.store.answers import Attempt, KeyedRequest
from sightline.store.database import run_in_thread
from sightline.store.store import Store
from sightline.types import TIMED_OUT, Answer, Failure

REQUESTS_PER_LOOKUP = 64
"""Requests that are looked up together where some must be sent."""
CACHED_PER_LOOKUP = 1024
"""Requests that are looked up together at most, while the store answers all of them."""
RECENT = 16 * 1024
"""Requests that are kept as recent. An equal one that comes later counts as cached."""
REVISIT_SECONDS = 0.2
"""How often requests that another process is sending are looked up again."""
MOST_REVISIT_SECONDS = 30.0
"""How rarely at least."""

ByKey = Mapping[str, KeyedRequest]


class _Chunk(NamedTuple):
    """New requests by key, those of their keys that are settled, and the keys of requests that came before.

    `is_last` ends the run's requests; if `must_wait`, more of them come later.
    """

    requests: ByKey
    settled: set[str]
    equal: list[str]
    is_last: bool
    must_wait: bool


class RequestSelector:
    """Selects the requests of one run that must be sent. Belongs to one event loop."""

    def __init__(
        self,
        store: Store,
        committer: Committer,
        admission: Admission,
        queue: CallQueue,
        counts: Counts,
        shared: SharedAnswers,
        recent: dict[str, None],
        before_first: Callable[[], Awaitable[None]],
        on_settled: Callable[[Iterable[str]], None],
        *,
        retry_errors: bool,
        held_back: Callable[[Sequence[str]], set[str]],
        cost_at_most: Callable[[KeyedRequest], float] | None = None,
    ) -> None:
        """Create it.

        Args:
            held_back: Finds the requests that must not be sent, although nothing answers them yet.
            cost_at_most: The most that a request costs, where answers come too late to learn from them.
        """
        self._store = store
        self._committer = committer
        self._admission = admission
        self._queue = queue
        self._counts = counts
        self._shared = shared
        self._retry_errors = retry_errors
        self._held_back = held_back
        self._cost_at_most = cost_at_most
        self._recent = recent
        self._before_first: Callable[[], Awaitable[None]] | None = before_first
        self._on_settled = on_settled
        self._on_their_way: set[str] = set()
        self._failed: set[bytes] = set()
        self._claimed_elsewhere: dict[str, KeyedRequest] = {}

    async def queue_unanswered(self, requests: Iterable[KeyedRequest] | RequestFeed) -> None:
        """Queue every request that must be sent; wait while the queue is long enough."""
        loop = asyncio.get_running_loop()
        revisit = loop.time() + REVISIT_SECONDS
        iterator, size, is_last = iter(requests), REQUESTS_PER_LOOKUP, False
        while not is_last:
            new, settled, equal, is_last, must_wait = await run_in_thread(self._read, iterator, size)
            size = min(2 * size, CACHED_PER_LOOKUP) if len(settled) == len(new) else REQUESTS_PER_LOOKUP
            if not await self._queue_chunk(new, settled):
                break
            self._shared.found(equal, self._on_their_way)
            self._on_settled(key for key in equal if key not in self._on_their_way)
            if self._claimed_elsewhere and loop.time() >= revisit:
                revisit = loop.time() + REVISIT_SECONDS
                if not await self._look_again():
                    break
            if must_wait and isinstance(requests, RequestFeed):
                self._queue.pause()
                with suppress(TimeoutError):
                    async with asyncio.timeout(REVISIT_SECONDS if self._claimed_elsewhere else None):
                        await requests.more()
        began = loop.time()
        while self._claimed_elsewhere and not self._counts.stopped:
            self._queue.pause()
            # The other process may wait for a day, and each look reads all these requests.
            await asyncio.sleep(min(max(REVISIT_SECONDS, (loop.time() - began) / 10), MOST_REVISIT_SECONDS))
            await self._look_again()

    async def claim_again(self, calls: Sequence[Call]) -> list[Call]:
        """Queue calls again whose claims may have lapsed, as far as this process may still send them.

        Those that another process is sending are queued later, to look again.
        """
        await self._committer.run(self._store.claims.renew)
        generation = self._store.claims.generation
        claimed, settled, held_back = await self._committer.run(
            self._claim, {call.keyed.request.key: call.keyed for call in calls}
        )
        self._counts.held_back += len(held_back)
        self._counts.cached += len(settled)
        self._on_settled(settled)
        for call in calls:
            if call.keyed.request.key in held_back:
                continue
            if call.keyed.request.key not in claimed:
                asyncio.get_running_loop().call_later(REVISIT_SECONDS, self._queue.put, call)
            elif call.keyed.request.key not in settled:
                call.claimed = generation
                self._queue.put(call)
        self._on_their_way -= settled | held_back
        return [call for call in calls if call.keyed.request.key in settled | held_back]

    def written(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            if isinstance(attempt.result, Failure):
                self._failed.add(_short(attempt.key))
            self._on_their_way.discard(attempt.key)
        self._on_settled([attempt.key for attempt in attempts])

    def _read(self, requests: Iterator[KeyedRequest | None], size: int) -> _Chunk:
        """Read the next requests, and look up those that are not remembered."""
        read = list(islice(_until_none(requests), size))
        chunk = [keyed for keyed in read if keyed is not None]
        must_wait = len(chunk) < len(read)
        new: dict[str, KeyedRequest] = {}
        equal = []
        for keyed in chunk:
            key = keyed.request.key
            if key in new or key in self._recent or key in self._on_their_way or _short(key) in self._failed:
                equal.append(key)
            else:
                new[key] = keyed
        self._recent.update(dict.fromkeys(new))
        for key in list(islice(self._recent, max(0, len(self._recent) - RECENT))):
            del self._recent[key]
        return _Chunk(new, self._settled(list(new)), equal, len(read) < size and not must_wait, must_wait)

    async def _look_again(self) -> bool:
        """Look again at requests that another process was sending; False: the budget is reached."""
        taken, self._claimed_elsewhere = self._claimed_elsewhere, {}
        return await self._queue_chunk(taken, await run_in_thread(self._settled, list(taken)))

    async def _queue_chunk(self, requests: ByKey, settled: set[str]) -> bool:
        """Queue requests without an answer that no other process sends; False: the budget is reached."""
        unanswered = self._without_cached(requests, settled)
        if not unanswered:
            return True
        generation = self._store.claims.generation
        claimed, settled, held_back = await self._committer.run(self._claim, unanswered)
        self._counts.held_back += len(held_back)
        self._claimed_elsewhere.update(
            (key, keyed) for key, keyed in unanswered.items() if key not in claimed | held_back
        )
        own = {key: keyed for key, keyed in unanswered.items() if key in claimed}
        to_send = self._without_cached(own, settled)
        if to_send and self._before_first is not None:
            before_first, self._before_first = self._before_first, None
            await before_first()
        cost = None
        if self._cost_at_most is not None:
            cost = max(map(self._cost_at_most, to_send.values()), default=0.0)
        for following, (key, keyed) in zip(reversed(range(len(to_send))), to_send.items(), strict=True):
            if not await self._admission.admit(following, cost):
                return False
            self._on_their_way.add(key)
            self._queue.put(Call(keyed, generation))
        return True

    def _claim(self, requests: ByKey) -> tuple[set[str], set[str], set[str]]:
        """The keys that this process may send, those that are settled by now, and those held back."""
        claimed = self._store.claims.take(list(requests))
        # Another process may have answered or sent them between the first look-up and the claim.
        held_back = self._held_back(list(requests))
        settled = self._settled(list(claimed | held_back))
        held_back -= settled
        self._give_up(claimed & held_back)
        return claimed - held_back, settled & claimed, held_back

    def _give_up(self, keys: set[str]) -> None:
        if keys:
            with self._store.database.write() as connection:
                self._store.claims.end(connection, [bytes.fromhex(key) for key in sorted(keys)])

    def _settled(self, keys: Sequence[str]) -> set[str]:
        return self._store.answers.settled(keys, retry_errors=self._retry_errors) if keys else set()

    def _without_cached(self, requests: ByKey, settled: set[str]) -> dict[str, KeyedRequest]:
        unanswered = {key: keyed for key, keyed in requests.items() if key not in settled}
        self._counts.cached += len(requests) - len(unanswered)
        self._on_settled(requests.keys() - unanswered.keys())
        return unanswered


def _short(key: str) -> bytes:
    """128 bits of a key, in a third of its memory: many requests may fail in one run."""
    return bytes.fromhex(key[:32])


def _until_none(requests: Iterator[KeyedRequest | None]) -> Iterator[KeyedRequest | None]:
    """The next requests, up to the first None and with it."""
    for keyed in requests:
        yield keyed
        if keyed is None:
            return


# -- Requests that share the answer of an equal request of the same run, and what that saves


class SharedAnswers:
    """Counts the requests of a run that get the answer of an equal one. Belongs to one event loop.

    Only answers that the run itself has received count: what the store answers was paid for by another run.
    """

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._waiting: dict[str, int] = {}
        self._answered: dict[str, tuple[int, float]] = {}

    def found(self, keys: Iterable[str], on_their_way: Container[str]) -> None:
        for key in keys:
            if key in self._answered:
                self._add(1, *self._answered[key])
            elif key in on_their_way:
                self._waiting[key] = self._waiting.get(key, 0) + 1

    def settled(self, key: str, result: Answer | Failure, cost: float | None) -> None:
        """Record the result of a request that was sent; `cost` is None for a failure."""
        waiting = self._waiting.pop(key, 0)
        if isinstance(result, Failure):
            return
        usage = result.usage
        size = (usage.prompt_tokens or 0) + (usage.completion_tokens or 0), cost or 0.0
        self._answered[key] = size
        if len(self._answered) > RECENT:
            del self._answered[next(iter(self._answered))]
        if waiting:
            self._add(waiting, *size)

    def _add(self, requests: int, tokens: int, cost: float) -> None:
        equal = EqualRequests(requests, requests * tokens, requests * cost)
        self._counts.equal = self._counts.equal.plus(equal)


# -- Admission: how many requests may be outstanding at a time, by memory and by the budget


class Admission:
    """Admits requests one by one. Belongs to one event loop."""

    def __init__(
        self,
        capacity: int,
        model: str,
        budget: Budget,
        account: Account,
        counts: Counts,
        queue: CallQueue,
    ) -> None:
        self.outstanding = 0
        self._room = asyncio.Semaphore(capacity)
        self._model = model
        self._budget = budget
        self._account = account
        self._counts = counts
        self._queue = queue
        self._reserved = 0
        self._admitted = 0
        self._admitted_again = 0

    async def admit(self, following: int = 0, expected_cost: float | None = None) -> bool:
        """Wait until one more request may be outstanding."""
        if self._room.locked():
            self._queue.pause()
        await self._room.acquire()
        while not self._reserved:
            self._reserved = self._account.reserve(self._model, self._budget, following + 1, expected_cost)
            if self._reserved:
                break
            if not self._account.has_outstanding:
                self._counts.stopped = "budget"
                return False
            self._queue.pause()
            await self._account.changed()
        self._queue.resume()
        self._reserved -= 1
        self._admitted += 1
        self.outstanding += 1
        return True

    def admit_attempt(self) -> bool:
        if self._account.reserve_attempt(self._model, self._budget):
            self._admitted_again += 1
            return True
        self._counts.stopped = "budget"
        return False

    def settle(self, cost: float | None = None) -> None:
        """Record that a request has its answer, or (`cost` None) has failed for good."""
        self.outstanding -= 1
        self._account.settle(self._model, cost)

    def close(self, sent: int, sent_again: int) -> None:
        """Give the rest back to the budget: attempts that were not sent, and requests that have no result."""
        unsent = self._admitted - sent
        self._account.withdraw(self._model, self._reserved + unsent)
        self._account.withdraw_attempts(self._model, self._admitted_again - sent_again)
        for _ in range(self.outstanding - unsent):
            self._account.settle(self._model, None)

    def withdraw(self, *, was_sent: bool, is_admitted: bool) -> None:
        """Record that an admitted request needs no answer any more: another process has it."""
        if was_sent:
            self.settle()
            if is_admitted:
                self._admitted_again -= 1
                self._account.withdraw_attempts(self._model, 1)
        else:
            self.outstanding -= 1
            self._admitted -= 1
            self._account.withdraw(self._model, 1)
        self.release(1)

    def release(self, requests: int) -> None:
        for _ in range(requests):
            self._room.release()


# -- The committer: writes answers to the store, off the event loop, as soon as they arrive

SECONDS = 0.005
"""How long answers are collected after a transaction, which takes 1 to 2 ms for a few of them.

An answer that comes later than this after the last transaction is written at once. At a kill, the answers of
this time and of the transaction are lost.
"""

P = ParamSpec("P")
T = TypeVar("T")


class Committer:
    """The one thread of a run that writes to the store, in the order of the calls.

    `error` is the error of the first write that failed.
    """

    def __init__(self, store: Store, committed: Callable[[Sequence[Attempt]], None]) -> None:
        self._store = store
        self._committed = committed
        self._buffer: list[Attempt] = []
        self._timer: asyncio.TimerHandle | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sightline-store")
        self._writes: set[asyncio.Future[None]] = set()
        self._next_write = 0.0
        self.error: BaseException | None = None

    def add(self, attempt: Attempt) -> None:
        """Queue an attempt; it is written at once, or SECONDS after the last write."""
        self._buffer.append(attempt)
        self._schedule()

    async def run(self, write: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run another write on the thread, after the queued attempts."""
        self._flush()
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: write(*args, **kwargs))

    async def close(self) -> None:
        """Write the rest, and wait for all writes. Raises the error of the first one that failed."""
        self._flush()
        if self._writes:
            await asyncio.wait(self._writes)
        self._thread.shutdown()
        if self.error is not None:
            raise self.error

    def _schedule(self) -> None:
        """Write what is queued; soon after a write a little later, which makes the group larger."""
        if self._buffer and self._timer is None and not self._writes:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(loop.time(), self._next_write), self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._buffer:
            return
        group, self._buffer = self._buffer, []
        write = asyncio.get_running_loop().run_in_executor(self._thread, self._store.answers.add, group)
        self._writes.add(write)
        write.add_done_callback(lambda write: self._written(write, group))

    def _written(self, write: asyncio.Future[None], group: Sequence[Attempt]) -> None:
        self._writes.discard(write)
        self._next_write = asyncio.get_running_loop().time() + SECONDS
        if not write.cancelled() and write.exception() is not None:
            self.error = self.error or write.exception()
        self._committed(group)
        self._schedule()


# -- The queue of calls that wait to be sent, of which models take several at a time

PASSED_OVER = 64
"""How often another call than the first one is taken, because of its image."""
LOOKED_AT = 256
"""Calls among which a suitable one is looked for."""
REMEMBERED = 4096
"""Images whose host is remembered."""


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
    image. No host waits for that.
    """

    def __init__(self) -> None:
        self.first_call = asyncio.Event()
        """Set when the first call arrives: no model has to load before."""
        self._waiting: deque[Call] = deque()
        # As many items as calls wait.
        self._places: asyncio.Queue[None] = asyncio.Queue()
        self._hosts: dict[str, str] = {}
        self._passed_over = 0
        self._changed = asyncio.Event()
        self._is_filling = True

    def put(self, call: Call) -> None:
        self._waiting.append(call)
        self._places.put_nowait(None)
        self._changed.set()
        self.first_call.set()

    def resume(self) -> None:
        """Let models wait for as many calls as they take at a time: more arrive soon."""
        self._is_filling = True

    def pause(self) -> None:
        """Let models take fewer calls: no more arrive until some are answered."""
        self._is_filling = False
        self._changed.set()

    def take_all(self) -> list[Call]:
        return [self._take_now(None) for _ in range(self._places.qsize())]

    async def take(
        self,
        size: int,
        gather: float = 0.0,
        host: str | None = None,
        *,
        is_trial: bool = False,
    ) -> list[Call]:
        """Wait for as many calls as a model takes at a time, for a host if it matters.

        With `is_trial`, the first call is the last one of those that failed least often: some requests fail
        at a healthy host. Fewer calls that are sent again wait `gather` seconds for more of them.
        """
        await self._places.get()
        if is_trial:
            place = max(range(len(self._waiting)), key=lambda at: (-self._waiting[at].attempts, at))
            call = self._waiting[place]
            del self._waiting[place]
            self._waiting.appendleft(call)
        calls = [self._choose(host)]
        # First attempts come together; what failed comes back one by one.
        until = asyncio.get_running_loop().time() + (gather if calls[0].attempts else 0.0)
        while len(calls) < size:
            rest = until - asyncio.get_running_loop().time()
            if not self._places.empty():
                calls.append(self._take_now(host))
            elif self._is_filling or rest > 0:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if self._is_filling else rest):
                        await self._changed.wait()
            else:
                break
        return calls

    def _take_now(self, host: str | None) -> Call:
        self._places.get_nowait()
        return self._choose(host)

    def _choose(self, host: str | None) -> Call:
        """Take the first call that suits a host; the first of all if it was passed over too often."""
        if host is None:
            return self._waiting.popleft()
        is_late = self._passed_over >= PASSED_OVER
        index = 0 if is_late else self._first_suitable(host)
        self._passed_over = self._passed_over + 1 if index else 0
        call = self._waiting[index]
        del self._waiting[index]
        if (image := call.image) is not None:
            self._hosts.pop(image, None)
            self._hosts[image] = host
            if len(self._hosts) > REMEMBERED:
                del self._hosts[next(iter(self._hosts))]
        return call

    def _first_suitable(self, host: str) -> int:
        """The index of the first call that suits a host; 0 if there is none."""
        for index, call in enumerate(islice(self._waiting, LOOKED_AT)):
            if call.image is None or self._hosts.get(call.image, host) == host:
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
        await self._is_read.wait()


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


def report_to(limiter: Limiter, results: Sequence[Answer | Failure], successes: int) -> None:
    """Tell the limiter what the results of one call of a model show about the host.

    `successes`: those of the host when the calls were sent.
    """
    failures = [result for result in results if isinstance(result, Failure)]
    refusals = [failure.retry_after or 0.0 for failure in failures if is_capacity_refusal(failure)]
    if refusals:
        limiter.record_refusal(max(refusals) or None)
    elif len(failures) < len(results) or any(failure.kind != "transient" for failure in failures):
        limiter.record_success(max((one.latency for one in results if isinstance(one, Answer)), default=None))
    elif all(failure.status == TIMED_OUT for failure in failures):
        limiter.record_time_out(is_answering=limiter.successes > successes)
    else:
        limiter.record_failure()


def retry_delay(call: Call, failure: Failure, jitter: random.Random) -> float | None:
    """Seconds until a failed call is sent again (exponential backoff with jitter), never before the
    Retry-After of its host; None where it is not sent again in this run.
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
