"""The ledger of a run: what each of its processes has spent, in the store that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from sightline.config import Price
from sightline.errors import UserError
from sightline.store.claims import new_owner, read_times, state_of_owner
from sightline.store.database import Connection, Database, lock_table, repeat_if_lost
from sightline.types import Usage

# -- The budget of a run: a maximum number of calls, and a maximum cost where prices are configured


class Spending(Struct):
    """Tokens and money that answers cost. Money is in the currency of the configured prices.

    Attributes:
        prompt_tokens: Tokens of the prompts.
        completion_tokens: Tokens of the answers.
        cost: The cost of the tokens.
        estimated: The answers whose tokens are an estimate, because their server did not report them.
        cached_tokens: Tokens of prompts that a server had in its prefix cache.
        cacheable_tokens: Tokens of the prompts of which a server reported how many were in its prefix cache.
        saved_by_cache: What the tokens in the prefix cache would have cost in addition.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    estimated: int = 0
    cached_tokens: int = 0
    cacheable_tokens: int = 0
    saved_by_cache: float = 0.0

    def add(
        self, usage: Usage, cost: float, *, is_estimated: bool = False, saved_by_cache: float = 0.0
    ) -> None:
        """Count one more answer.

        Args:
            usage: Its tokens.
            is_estimated: Whether some of the tokens are an estimate.
            saved_by_cache: What the tokens in the prefix cache would have cost in addition.
        """
        self.prompt_tokens += usage.prompt_tokens or 0
        self.completion_tokens += usage.completion_tokens or 0
        self.cost += cost
        self.estimated += is_estimated
        if usage.cached_tokens is not None:
            self.cached_tokens += usage.cached_tokens
            self.cacheable_tokens += usage.prompt_tokens or 0
            self.saved_by_cache += saved_by_cache

    def plus(self, later: Spending) -> Spending:
        return Spending(
            self.prompt_tokens + later.prompt_tokens,
            self.completion_tokens + later.completion_tokens,
            self.cost + later.cost,
            self.estimated + later.estimated,
            self.cached_tokens + later.cached_tokens,
            self.cacheable_tokens + later.cacheable_tokens,
            self.saved_by_cache + later.saved_by_cache,
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

    def plus(self, other: Spent) -> Spent:
        """Add what another process spent on the same model."""
        return Spent(
            self.calls + other.calls,
            self.outstanding + other.outstanding,
            self.answered + other.answered,
            self.cost + other.cost,
            max(self.highest, other.highest),
        )


class Budget(Struct, frozen=True):
    """Limits of a run, None for no limit; `price` is the price of the model that receives the requests."""

    max_requests: int | None = None
    max_cost: float | None = None
    price: Price | None = None

    @property
    def is_limited(self) -> bool:
        """Whether there is any limit."""
        return self.max_requests is not None or self.max_cost is not None

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
        """Compute the cost of one answer.

        Args:
            usage: Its tokens.
        """
        return self.price.of(usage) if self.price is not None else 0.0


def check_request_limits(concurrency: int, max_requests: int | None, max_cost: float | None) -> None:
    """Check --concurrency, --max-requests and --max-cost.

    Args:
        max_requests: The largest number of requests; None for no limit.
        max_cost: The largest cost; None for no limit.
    """
    if concurrency < 1:
        raise UserError(f"--concurrency {concurrency} is too small", expected="at least 1")
    for name, number in (("--max-requests", max_requests), ("--max-cost", max_cost)):
        if number is not None and not number >= 0:
            problem = "is negative" if number < 0 else "is no number"
            raise UserError(f"{name} {number} {problem}", expected="0 or more")


LEASE_SECONDS = 30.0
"""How long a process counts as running without a renewal, unless it can be seen that it has ended."""
RENEWAL_SECONDS = 1.0
"""How often a process writes what it has spent, although it asks for nothing."""

_LEFT = 0.0
"""`until` of a process that has left."""

Room = Callable[[Mapping[str, Spent]], Spent]
"""What is added to the spending of a model, given what was spent on each model."""


class _Entry(NamedTuple):
    """What a process has spent by model, and whether it runs."""

    spent: dict[str, Spent]
    is_running: bool


class Ledger:
    """The part of one process in the ledger of a run. All methods block."""

    def __init__(self, database: Database, uptime: Callable[[], float], run: bytes) -> None:
        """Prepare it; nothing is read or written.

        Args:
            uptime: The seconds since the machine started; a server has a clock of its own.
        """
        self._database = database
        self._uptime = uptime
        self._run = run
        self._process = new_owner()

    @repeat_if_lost
    def join(self) -> None:
        """Begin; if no other process runs, what earlier ones have spent is forgotten."""
        with self._database.write() as connection:
            _lock(connection)
            if not any(entry.is_running for entry in self._others(connection)):
                connection.change("DELETE FROM spending WHERE run = ?", (self._run,))
            self._write(connection, {})

    @repeat_if_lost
    def write(self, spent: Mapping[str, Spent]) -> None:
        """Tell the other processes that this one runs, and what it has spent."""
        with self._database.write() as connection:
            self._write(connection, spent)

    @repeat_if_lost
    def reserve(self, spent: Mapping[str, Spent], model: str, room: Room) -> tuple[Spent, bool]:
        """Add to what this process has spent, as far as the spending of all processes allows."""
        with self._database.write() as connection:
            _lock(connection)
            others = self._others(connection)
            added = room(_sums([spent, *(_final(entry) for entry in others)]))
            self._write(connection, {**spent, model: spent.get(model, Spent()).plus(added)})
        return added, any(
            one.outstanding for entry in others if entry.is_running for one in entry.spent.values()
        )

    @repeat_if_lost
    def leave(self, spent: Mapping[str, Spent]) -> None:
        """End: what this process has spent counts as long as another one runs."""
        with self._database.write() as connection:
            self._write(connection, spent, until=_LEFT)

    def _write(self, connection: Connection, spent: Mapping[str, Spent], until: float | None = None) -> None:
        if until is None:
            until = read_times(connection, self._uptime).now + LEASE_SECONDS
        row = (msgspec.json.encode(spent), until, self._run, self._process)
        if not connection.change(
            "UPDATE spending SET body = ?, until = ? WHERE run = ? AND process = ?", row
        ):
            connection.change("INSERT INTO spending (body, until, run, process) VALUES (?, ?, ?, ?)", row)

    def _others(self, connection: Connection) -> list[_Entry]:
        times = read_times(connection, self._uptime)

        def is_running(process: str, until: float) -> bool:
            state = state_of_owner(process, one_machine=times.is_one_machine)
            return until != _LEFT and times.hold(until, LEASE_SECONDS, state)

        query = "SELECT process, body, until FROM spending WHERE run = ? AND process != ?"
        return [
            _Entry(msgspec.json.decode(body, type=dict[str, Spent]), is_running(process, until))
            for process, body, until in connection.rows(query, (self._run, self._process))
        ]


def _lock(connection: Connection) -> None:
    """Let one process at a time read the ledger and write to it."""
    lock_table(connection, "spending", "EXCLUSIVE")


def _final(entry: _Entry) -> Mapping[str, Spent]:
    """What counts of a process: the requests that an ended one had in flight count as answered."""
    if entry.is_running:
        return entry.spent
    return {
        model: msgspec.structs.replace(one, cost=one.committed, outstanding=0)
        for model, one in entry.spent.items()
    }


def _sums(all_spent: Sequence[Mapping[str, Spent]]) -> dict[str, Spent]:
    """Model -> what all processes have spent on it."""
    sums: dict[str, Spent] = {}
    for spent in all_spent:
        for model, one in spent.items():
            sums[model] = sums.get(model, Spent()).plus(one)
    return sums
