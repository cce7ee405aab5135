"""What limits the requests of a run: its account of what is spent, and the calls at a time at each host."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from sightline.config import Price
from sightline.store.answers import KeyedRequest
from sightline.types import Answer, Text, Usage

# -- The budget of a run: a maximum number of calls, and a maximum cost where prices are configured


class Spending(Struct):
    """Tokens and money that answers cost. Money is in the currency of the configured prices.

    `estimated` counts the answers whose server reported no tokens.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    estimated: int = 0

    def add(self, usage: Usage, cost: float, *, is_estimated: bool = False) -> None:
        self.prompt_tokens += usage.prompt_tokens or 0
        self.completion_tokens += usage.completion_tokens or 0
        self.cost += cost
        self.estimated += is_estimated

    def plus(self, later: Spending) -> Spending:
        return Spending(
            self.prompt_tokens + later.prompt_tokens,
            self.completion_tokens + later.completion_tokens,
            self.cost + later.cost,
            self.estimated + later.estimated,
        )


class Spent(Struct):
    """What counts towards a budget, of the calls to one model."""

    calls: int = 0
    outstanding: int = 0
    answered: int = 0
    cost: float = 0.0
    highest: float = 0.0

    @property
    def committed(self) -> float:
        """The cost of the answers, and the expected cost of the outstanding ones."""
        return self.cost + self.outstanding * self.highest


class Budget(Struct, frozen=True):
    """Limits of a run, None for no limit; `price` is the price of the model that receives the requests."""

    max_requests: int | None = None
    max_cost: float | None = None
    price: Price | None = None

    def room(
        self, model: str, spent: Mapping[str, Spent], wanted: int, expected_cost: float | None = None
    ) -> int:
        """Decide how many more requests may be sent to a model.

        With a maximum cost, each outstanding request counts like the most expensive answer so far, and at
        most twice as many requests are outstanding as there are answers, because one answer predicts the cost
        of the next poorly.
        """
        own = spent.get(model, Spent())
        if self.max_requests is not None:
            wanted = min(wanted, self.max_requests - sum(one.calls for one in spent.values()))
        if self.max_cost is None:
            return max(0, wanted)
        if expected_cost is None:
            wanted = min(wanted, 2 * own.answered + 1 - own.outstanding)
            if sum(one.cost for one in spent.values()) >= self.max_cost:
                return 0
        others = sum(one.committed for name, one in spent.items() if name != model)
        each = max(own.highest, expected_cost or 0.0)
        room = 0
        while room < wanted and others + own.cost + each * (own.outstanding + room + 1) <= self.max_cost:
            room += 1
        return room

    def has_room_for_attempt(self, spent: Mapping[str, Spent]) -> bool:
        """Decide whether a request may be sent once more. Its cost counts as outstanding already."""
        return self.max_requests is None or sum(one.calls for one in spent.values()) < self.max_requests

    def cost_of(self, usage: Usage) -> float:
        return self.price.of(usage) if self.price is not None else 0.0


# -- The account of a run: what it has spent of its budget


class Account:
    """What a run has spent, by model: captioner, model and judges share it. Belongs to one event loop."""

    def __init__(self) -> None:
        self._spent: dict[str, Spent] = {}
        self._settled = asyncio.Event()

    @property
    def has_outstanding(self) -> bool:
        return any(one.outstanding for one in self._spent.values())

    def reserve(self, model: str, budget: Budget, wanted: int, expected_cost: float | None = None) -> int:
        """Count requests as sent, as many as the budget allows; returns their number."""
        spent = self._spent.setdefault(model, Spent())
        allowed = budget.room(model, self._spent, wanted, expected_cost)
        spent.calls += allowed
        spent.outstanding += allowed
        if allowed:
            spent.highest = max(spent.highest, expected_cost or 0.0)
        return allowed

    def reserve_attempt(self, model: str, budget: Budget) -> bool:
        has_room = budget.has_room_for_attempt(self._spent)
        self._spent[model].calls += has_room
        return has_room

    def settle(self, model: str, cost: float | None) -> None:
        """Record the result of a request; `cost` is None for a request without an answer."""
        spent = self._spent[model]
        spent.outstanding -= 1
        if cost is not None:
            spent.answered += 1
            spent.cost += cost
            spent.highest = max(spent.highest, cost)
        self._settled.set()

    def withdraw(self, model: str, requests: int) -> None:
        """Give back what was allowed and is not sent."""
        if requests:
            self._spent[model].calls -= requests
            self._spent[model].outstanding -= requests
            self._settled.set()

    def withdraw_attempts(self, model: str, attempts: int) -> None:
        """Give back further attempts that were allowed and are not sent."""
        if attempts:
            self._spent[model].calls -= attempts
            self._settled.set()

    async def changed(self) -> None:
        """Wait until a request is settled."""
        self._settled.clear()
        await self._settled.wait()


# -- Counts of a run of requests; progress reads them while the run goes on


class EqualRequests(Struct, frozen=True):
    """Requests that shared an equal one's answer, and the tokens and cost that this saved."""

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0

    def plus(self, later: EqualRequests) -> EqualRequests:
        return EqualRequests(
            self.requests + later.requests, self.tokens + later.tokens, self.cost + later.cost
        )


class Counts(Struct):
    """The state of a run of requests."""

    total: int = 0
    cached: int = 0
    sent: int = 0
    checks: int = 0
    answered: int = 0
    failed: int = 0
    retried: int = 0
    refused: int = 0
    in_flight: int = 0
    spending: Spending = field(default_factory=Spending)
    stopped: str = ""
    last_error: str = ""
    unavailable: list[str] = field(default_factory=list)
    loading: str = ""
    held_back: int = 0
    waiting: str = ""
    equal: EqualRequests = EqualRequests()

    @property
    def done(self) -> int:
        """Distinct requests that need no more work."""
        return self.cached + self.answered + self.failed

    @property
    def tokens(self) -> int:
        return self.spending.prompt_tokens + self.spending.completion_tokens

    @property
    def cost(self) -> float:
        return self.spending.cost

    def plus(self, later: Counts) -> Counts:
        stops = (self.stopped, later.stopped)
        return Counts(
            total=self.total + later.total,
            cached=self.cached + later.cached,
            sent=self.sent + later.sent,
            checks=self.checks + later.checks,
            answered=self.answered + later.answered,
            failed=self.failed + later.failed,
            retried=self.retried + later.retried,
            refused=self.refused + later.refused,
            spending=self.spending.plus(later.spending),
            stopped="budget" if "budget" in stops else self.stopped or later.stopped,
            last_error=later.last_error or self.last_error,
            unavailable=[*self.unavailable, *later.unavailable],
            held_back=self.held_back + later.held_back,
            equal=self.equal.plus(later.equal),
        )


def count_answer(keyed: KeyedRequest, answer: Answer, budget: Budget, counts: Counts) -> float:
    """Count the tokens and the cost of an answer.

    Where the model has a price, tokens that the server does not report are estimated.
    """
    usage = answer.usage if budget.price is None else complete_usage(keyed, answer)
    cost = budget.cost_of(usage)
    counts.spending.add(usage, cost, is_estimated=usage != answer.usage)
    return cost


# -- Estimates of tokens: of requests that are not sent yet, and of answers whose server reports no tokens

CHARACTERS_PER_TOKEN = 4
PIXELS_PER_TOKEN = 750
"""A rough mean over current vision encoders; the real number is the server's."""


DEFAULT_MAX_TOKENS = 1024
"""The assumed maximum length of an answer without a token limit."""


def token_limit(sampling: Mapping[str, Any]) -> int | None:
    limits = (sampling.get(name) for name in ("max_tokens", "max_completion_tokens"))
    return next((int(limit) for limit in limits if limit is not None), None)


def full_length_usage(keyed: KeyedRequest) -> Usage:
    limit = token_limit(keyed.request.sampling) or DEFAULT_MAX_TOKENS
    return Usage(prompt_tokens(keyed), limit)


def prompt_tokens(keyed: KeyedRequest) -> int:
    """Estimate the tokens of a request: one for four characters, and one for 750 pixels."""
    request = keyed.request
    characters = sum(
        len(part.text) for message in request.messages for part in message.parts if isinstance(part, Text)
    )
    pixels = sum(file.width * file.height for file in request.images.values())
    return characters // CHARACTERS_PER_TOKEN + pixels // PIXELS_PER_TOKEN


def completion_tokens(answer: Answer) -> int:
    """Estimate the tokens of an answer, with its reasoning."""
    return (len(answer.text) + len(answer.reasoning)) // CHARACTERS_PER_TOKEN


def complete_usage(keyed: KeyedRequest, answer: Answer) -> Usage:
    """Complete the tokens of an answer by estimates of what its server does not report.

    A server that reports 0 tokens for a text has not counted them.
    """
    usage = answer.usage
    return replace(
        usage,
        prompt_tokens=usage.prompt_tokens or prompt_tokens(keyed),
        completion_tokens=usage.completion_tokens or completion_tokens(answer),
    )


# -- The concurrency limit of one host, which finds the number of parallel calls that the host accepts

CONCURRENCY = 64
"""The maximum number of calls where the user names none."""
START = 64
FEW = 4
"""The first calls to a server on this machine where the user names no maximum: it may have one slot."""
LONG_WAIT = 30.0
"""Seconds of a call from which it may have waited for others."""
RAMP_SECONDS = 0.05
RAMP_FACTOR = 1.5
MEMORY = 128
"""Calls over which the share of refused calls is averaged."""
TOLERATED = 0.05
"""Share of refused calls that does not change the limit."""
FAILURES_TO_OPEN = 20
"""Consecutive failures that open the circuit breaker."""
TRIAL_PAUSES = (1.0, 2.0, 4.0)
"""Seconds before each single trial call while the circuit breaker is open."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds to pause if a host refuses everything without Retry-After: the first, doubled up to the longest."""
PATIENCE = 3600.0
"""Seconds for which a host may refuse everything before it is given up."""


class HostUnavailableError(Exception):
    """The host was given up: every call to it failed, the trial calls too."""


class Limiter:
    """The calls in flight at one host. Belongs to one event loop.

    The limit starts at up to 64 and grows quickly. When the host refuses more than one call in twenty (429),
    it falls to what the host accepted, and then grows by one per round; fewer refusals are treated as noise.
    A host that refuses everything gets no calls for as long as it asks. A host that fails twenty times in a
    row is tried with single calls (circuit breaker), and is unavailable if these fail too.

    Time-outs in the same share halve it. If the host `may_queue`, the limit starts at 4, and each answer adds
    one, so that it doubles per round, unless calls wait for each other.
    """

    def __init__(self, host: str, maximum: int, *, may_queue: bool = False) -> None:
        self.host = host
        self.in_flight = 0
        self.given_up = False
        self.successes = 0
        self._maximum = maximum
        self._steady = float(min(maximum, START))
        self._limit = min(self._steady, FEW) if may_queue else self._steady
        self._peak = self._limit
        self._ramping = not may_queue
        self._fastest = math.inf
        self._refusals = 0.0
        self._failures = 0
        self._open = False
        self._trial_running = False
        self._trials = 0
        self._paused_until = 0.0
        self._rest = FIRST_PAUSE
        self._last_taken: float | None = None
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def limit(self) -> int:
        return max(1, int(self._limit))

    @property
    def free(self) -> int:
        """How many more calls may start now; 0 while the host is paused."""
        if self._loop_time() < self._paused_until:
            return 0
        return self.limit - self.in_flight

    @property
    def is_on_trial(self) -> bool:
        """Whether single calls try out if the host answers again."""
        return self._open

    async def wait_for_slot(self) -> None:
        while not self.given_up and self.free <= 0:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(future)
            self._set_timer()
            try:
                await future
            except asyncio.CancelledError:
                self._wake()
                raise
        if self.given_up:
            raise HostUnavailableError(self.host)

    def try_acquire(self) -> bool:
        if self.given_up or self.free <= 0:
            return False
        self.in_flight += 1
        self._refusals *= 1 - 1 / MEMORY
        self._trial_running = self._open
        if self._last_taken is None:
            self._last_taken = self._loop_time()
        return True

    def release(self) -> None:
        """Give a slot back without a result of the call."""
        self.in_flight -= 1
        self._wake()

    def record_success(self, seconds: float | None = None) -> None:
        """Give a slot back: the host accepted the call, and answered or rejected the request itself.

        `seconds`: the time until its answer; None if it rejected the request.
        """
        self.in_flight -= 1
        self.successes += 1
        self._alive()
        self._rest, self._last_taken = FIRST_PAUSE, self._loop_time()
        if seconds is not None:
            self._fastest = min(self._fastest, seconds)
        if self._limit < self._maximum:
            slow_start = self._limit < self._steady and not self._ramping
            if slow_start:
                self._limit += 0.0 if seconds is None or self._has_waited(seconds) else 1.0
            elif self._refusals <= TOLERATED:
                self._limit += 1.0 / max(self._limit, 8.0)
            self._peak = max(self._peak, self._limit)
        self._wake()

    def record_refusal(self, retry_after: float | None) -> None:
        """Give a slot back: the host refused the call (429); `retry_after` is in seconds."""
        self.in_flight -= 1
        self._alive()
        if self._lower(min(self.limit, self.in_flight)) and self.in_flight == 0:
            # A quota, not a lack of capacity: pause, then double the limit up to half of the peak.
            self._steady, self._peak = self._peak / 2, 1.0
            self._wait_for_quota(retry_after)
        self._wake()

    def record_time_out(self, *, is_answering: bool) -> None:
        """Give a slot back: the host did not answer in time, but others meanwhile if it `is_answering`.

        A host that answers one call at a time has too many of them.
        """
        if is_answering:
            self.in_flight -= 1
            self._alive()
        else:
            self.record_failure()
        self._lower(self.limit // 2)
        self._wake()

    def record_failure(self) -> None:
        """Give a slot back: the call failed in a way that suggests an outage (connection, timeout, 5xx)."""
        self.in_flight -= 1
        self._failures += 1
        if self._trial_running:
            self._trial_running = False
            if self._trials == len(TRIAL_PAUSES):
                self.given_up = True
            else:
                self._rest_before_trial()
        elif self._failures == FAILURES_TO_OPEN:
            self._open, self._ramping = True, False
            self._steady, self._limit = self._peak / 2, 1.0
            self._rest_before_trial()
        self._wake()

    def _lower(self, limit: int) -> bool:
        """Count a call too many, and lower the limit if these are more than noise; returns whether."""
        self._refusals += 1 / MEMORY
        if self._refusals <= TOLERATED:
            return False
        self._ramping = False
        self._limit = self._steady = float(max(1, limit))
        return True

    def _has_waited(self, seconds: float) -> bool:
        """Whether a call took long, and half the time that it takes if calls are answered one by one.

        The first calls, which start together, do not show it.
        """
        in_turn = self.successes <= FEW or seconds > self._limit / 2 * self._fastest
        return seconds > LONG_WAIT and in_turn

    def _wait_for_quota(self, retry_after: float | None) -> None:
        rest = self._rest if retry_after is None else retry_after
        self._rest = min(LONGEST_PAUSE, self._rest * 2)
        if self._loop_time() + rest > (self._last_taken or 0.0) + PATIENCE:
            self.given_up = True
        else:
            self._pause(rest)

    def _alive(self) -> None:
        self._failures = self._trials = 0
        self._open = self._trial_running = False

    def _rest_before_trial(self) -> None:
        self._pause(TRIAL_PAUSES[self._trials])
        self._trials += 1

    def _pause(self, seconds: float) -> None:
        self._paused_until = self._loop_time() + seconds
        self._set_timer()

    def _wake(self) -> None:
        room = len(self._waiters) if self.given_up else self.free
        while self._waiters and room > 0:
            future = self._waiters.popleft()
            if not future.done():
                future.set_result(None)
                room -= 1

    def _set_timer(self) -> None:
        """Schedule the end of a pause, or the next growth while ramping up."""
        if self._timer is not None or not self._waiters:
            return
        rest = self._paused_until - self._loop_time()
        if rest > 0:
            self._timer = asyncio.get_running_loop().call_later(rest + 0.001, self._on_timer)
        elif self._ramping and self._limit < self._maximum:
            self._timer = asyncio.get_running_loop().call_later(RAMP_SECONDS, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._ramping and self.in_flight >= self.limit:
            self._limit = min(float(self._maximum), self._limit * RAMP_FACTOR)
            self._peak = self._limit
        self._wake()
        self._set_timer()

    def _loop_time(self) -> float:
        return asyncio.get_running_loop().time()
