"""What a budget allows, given what was spent."""

from __future__ import annotations

import pytest

from sightline.config import Price
from sightline.engine.budget import Budget, Spending
from sightline.types import Usage


def test_without_limits_everything_is_allowed() -> None:
    assert Budget().allows(10**9, 10**6, 1, Spending(cost=1e9))


def test_requests_are_counted_when_they_are_admitted() -> None:
    budget = Budget(max_requests=3)
    assert [budget.allows(n, 0, 0, Spending()) for n in range(5)] == [True, True, True, False, False]


def test_the_first_request_goes_alone_where_money_is_limited_and_nothing_is_known_of_its_price() -> None:
    budget = Budget(max_cost=1.0)
    assert budget.allows(0, 0, 0, Spending())
    assert not budget.allows(1, 1, 0, Spending())
    assert not Budget(max_cost=0.0).allows(0, 0, 0, Spending())


def test_what_is_not_answered_yet_counts_like_the_dearest_answer() -> None:
    spending = Spending(cost=0.4, highest_cost=0.2)
    assert Budget(max_cost=1.0).allows(6, 2, 4, spending)
    assert not Budget(max_cost=1.0).allows(7, 3, 4, spending)


def test_few_answers_are_little_to_go_by() -> None:
    assert Budget(max_cost=1.0).allows(3, 2, 1, Spending(cost=0.001, highest_cost=0.001))
    assert not Budget(max_cost=1.0).allows(4, 3, 1, Spending(cost=0.001, highest_cost=0.001))


def test_a_price_is_per_million_tokens() -> None:
    price = Price(prompt=2.0, completion=10.0)
    assert Budget(price=price).cost_of(Usage(1_000_000, 100_000)) == pytest.approx(3.0)
    assert Budget(price=price).cost_of(Usage()) == 0.0
    assert Budget().cost_of(Usage(10, 10)) == 0.0
