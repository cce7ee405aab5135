"""The budget of a run: a maximum number of calls, and a maximum cost where prices are configured."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from sightline.config import Price
from sightline.errors import UserError
from sightline.types import Usage


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
