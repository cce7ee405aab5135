"""The budget of a run: a maximum number of calls, and a maximum cost where prices are configured."""

from __future__ import annotations

from msgspec import Struct

from sightline.config import Price
from sightline.errors import UserError
from sightline.types import Usage


class Spending(Struct):
    """Tokens and money that answers cost. Money is in the currency of the configured prices."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    highest_cost: float = 0.0
    """The cost of the most expensive answer."""

    def add(self, usage: Usage, cost: float) -> None:
        """Count one more answer.

        Args:
            usage: Its tokens.
            cost: Its cost.
        """
        self.prompt_tokens += usage.prompt_tokens or 0
        self.completion_tokens += usage.completion_tokens or 0
        self.cost += cost
        self.highest_cost = max(self.highest_cost, cost)

    def plus(self, later: Spending) -> Spending:
        """Add the spending of a later run.

        Args:
            later: The other spending.

        Returns:
            The sums; `highest_cost` is the larger of the two.
        """
        return Spending(
            self.prompt_tokens + later.prompt_tokens,
            self.completion_tokens + later.completion_tokens,
            self.cost + later.cost,
            max(self.highest_cost, later.highest_cost),
        )


class Budget(Struct, frozen=True):
    """Limits of a run, None for no limit; `price` is the price of the model that receives the requests."""

    max_requests: int | None = None
    max_cost: float | None = None
    price: Price | None = None

    def allows(self, admitted: int, outstanding: int, answered: int, spending: Spending) -> bool:
        """Decide whether one more request may be sent.

        With a maximum cost, each outstanding request counts like the most expensive answer so far, and at
        most twice as many requests are outstanding as there are answers, because one answer predicts the cost
        of the next poorly.

        Args:
            admitted: Requests that were allowed before.
            outstanding: Those of them without an answer yet.
            answered: Answers so far.
            spending: What they cost.

        Returns:
            Whether the budget has room for one more request.
        """
        if self.max_requests is not None and admitted >= self.max_requests:
            return False
        if self.max_cost is None:
            return True
        expected = spending.cost + spending.highest_cost * (outstanding + 1)
        has_estimate = outstanding <= 2 * answered
        return has_estimate and spending.cost < self.max_cost and expected <= self.max_cost

    def allows_check(self, sent: int, spent: float, cost: float) -> bool:
        """Decide whether one more request of an endpoint check may be sent, whose cost is known.

        Args:
            sent: Requests sent before.
            spent: What they cost.
            cost: The cost of the cached answer that is asked again.

        Returns:
            Whether the budget has room for it.
        """
        if self.max_requests is not None and sent >= self.max_requests:
            return False
        return self.max_cost is None or spent + cost <= self.max_cost

    def cost_of(self, usage: Usage) -> float:
        """Compute the cost of one answer.

        Args:
            usage: Its tokens.

        Returns:
            The cost, 0 where no price is configured.
        """
        return self.price.of(usage) if self.price is not None else 0.0


def check_request_limits(concurrency: int, max_requests: int | None, max_cost: float | None) -> None:
    """Check --concurrency, --max-requests and --max-cost.

    Args:
        concurrency: The largest number of simultaneous requests to a host.
        max_requests: The largest number of requests; None for no limit.
        max_cost: The largest cost; None for no limit.

    Raises:
        UserError: A number is too small.
    """
    if concurrency < 1:
        raise UserError(f"--concurrency {concurrency} is too small", expected="at least 1")
    for name, number in (("--max-requests", max_requests), ("--max-cost", max_cost)):
        if number is not None and number < 0:
            raise UserError(f"{name} {number} is negative", expected="0 or more")
