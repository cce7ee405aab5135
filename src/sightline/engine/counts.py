"""Counts of a run of requests; progress reads them while the run goes on."""

from __future__ import annotations

from msgspec import Struct, field

from sightline.engine.budget import Budget, Spending
from sightline.engine.keys import KeyedRequest
from sightline.engine.token_estimate import complete_usage
from sightline.models.image_references import ImageTraffic
from sightline.types import Answer


class EqualRequests(Struct, frozen=True):
    """Requests that share the answer of an equal one, and what their own answers would have needed.

    Attributes:
        tokens: As many tokens of prompts and answers as the answers have that they share.
        cost: The cost of these tokens.
    """

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0

    def plus(self, later: EqualRequests) -> EqualRequests:
        """Add further requests."""
        return EqualRequests(
            self.requests + later.requests, self.tokens + later.tokens, self.cost + later.cost
        )


class Counts(Struct):
    """The state of a run of requests.

    Attributes:
        spending: Tokens and money of this run's answers.
        images: The bytes of images to servers that accept references.
    """

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
    in_batches: int = 0
    waiting: str = ""
    images: ImageTraffic = ImageTraffic()
    equal: EqualRequests = EqualRequests()

    @property
    def done(self) -> int:
        """Distinct requests that need no more work."""
        return self.cached + self.answered + self.failed

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens of this run's answers."""
        return self.spending.prompt_tokens + self.spending.completion_tokens

    @property
    def cost(self) -> float:
        """Cost of this run's answers."""
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
            in_batches=self.in_batches + later.in_batches,
            images=self.images.plus(later.images),
            equal=self.equal.plus(later.equal),
        )


def count_answer(keyed: KeyedRequest, answer: Answer, budget: Budget, counts: Counts) -> float:
    """Count the tokens and the cost of an answer.

    Where the model has a price, tokens that the server does not report are estimated.
    """
    usage = answer.usage if budget.price is None else complete_usage(keyed, answer)
    cost = budget.cost_of(usage)
    saved = budget.price.saved_by_cache(usage) if budget.price is not None else 0.0
    counts.spending.add(usage, cost, is_estimated=usage != answer.usage, saved_by_cache=saved)
    return cost
