"""The concurrency limit of one host: finds the number of parallel calls that the host accepts.

It starts at up to 64 and grows quickly. When the host refuses more than one call in twenty (429), the
limit falls to what the host accepted, and then grows by one per round; fewer refusals are treated as
noise. A host that refuses everything gets no calls for as long as it asks. A host that fails twenty times
in a row is tried with single calls (circuit breaker), and is unavailable if these fail too.
"""

from __future__ import annotations

import asyncio
from collections import deque

START = 64
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
    """The calls in flight at one host. Belongs to one event loop."""

    def __init__(self, host: str, maximum: int) -> None:
        self.host = host
        self.in_flight = 0
        self.given_up = False
        self._maximum = maximum
        self._limit = float(min(maximum, START))
        self._steady = self._limit
        self._peak = self._limit
        self._ramping = True
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

    def record_success(self) -> None:
        """Give a slot back: the host accepted the call, and answered or rejected the request itself."""
        self.in_flight -= 1
        self._alive()
        self._rest, self._last_taken = FIRST_PAUSE, self._loop_time()
        if self._limit < self._maximum:
            slow_start = self._limit < self._steady and not self._ramping
            if slow_start:
                self._limit += 1.0
            elif self._refusals <= TOLERATED:
                self._limit += 1.0 / max(self._limit, 8.0)
            self._peak = max(self._peak, self._limit)
        self._wake()

    def record_refusal(self, retry_after: float | None) -> None:
        """Give a slot back: the host refused the call (429); `retry_after` is in seconds."""
        self.in_flight -= 1
        self._alive()
        self._refusals += 1 / MEMORY
        if self._refusals > TOLERATED:
            self._ramping = False
            self._limit = self._steady = float(max(1, min(self.limit, self.in_flight)))
            if self.in_flight == 0:
                # A quota, not a lack of capacity: pause, then double the limit up to half of the peak.
                self._steady, self._peak = self._peak / 2, 1.0
                self._wait_for_quota(retry_after)
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
