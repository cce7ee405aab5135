"""What a budget allows, given what was spent."""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline.config import Price, load_config
from sightline.engine.limits import Budget, Spent
from sightline.errors import UserError
from sightline.models.base import check_request_limits
from sightline.types import Usage


def room(budget: Budget, wanted: int, own: Spent | None = None, **others: Spent) -> int:
    return budget.room("m", {"m": own or Spent(), **others}, wanted)


def test_without_limits_everything_is_allowed() -> None:
    assert room(Budget(), 10**6, Spent(10**9, 10**6, 1, 1e9, 1e9)) == 10**6


def test_calls_are_counted_when_they_are_allowed_over_all_models_and_attempts() -> None:
    budget = Budget(max_requests=5)
    assert room(budget, 9) == 5
    assert room(budget, 9, Spent(calls=2), judge=Spent(calls=1)) == 2
    assert room(budget, 9, Spent(calls=4), judge=Spent(calls=1)) == 0
    assert budget.has_room_for_attempt({"m": Spent(calls=4)})
    assert not budget.has_room_for_attempt({"m": Spent(calls=4), "judge": Spent(calls=1)})


def test_the_first_request_goes_alone_where_money_is_limited_and_nothing_is_known_of_its_price() -> None:
    budget = Budget(max_cost=1.0)
    assert room(budget, 9) == 1
    assert room(budget, 9, Spent(calls=1, outstanding=1)) == 0
    assert room(budget, 9, judge=Spent(calls=9, answered=9, cost=0.1, highest=0.1)) == 1
    assert room(Budget(max_cost=0.0), 9) == 0


def test_what_is_not_answered_yet_counts_like_the_dearest_answer() -> None:
    assert room(Budget(max_cost=1.0), 9, Spent(6, 2, 4, 0.4, 0.2)) == 1
    assert room(Budget(max_cost=1.0), 9, Spent(7, 3, 4, 0.4, 0.2)) == 0
    assert room(Budget(max_cost=1.0), 9, Spent(6, 2, 4, 0.4, 0.2), judge=Spent(3, 2, 1, 0, 0.1)) == 0


def test_few_answers_are_little_to_go_by() -> None:
    assert room(Budget(max_cost=1.0), 9, Spent(3, 2, 1, 0.001, 0.001)) == 1
    assert room(Budget(max_cost=1.0), 9, Spent(4, 3, 1, 0.001, 0.001)) == 0


@pytest.mark.parametrize("number", [-1, float("nan"), -0.5])
def test_a_limit_is_a_number_from_0(number: float) -> None:
    with pytest.raises(UserError, match="--max-cost"):
        check_request_limits(1, None, number)
    check_request_limits(1, 0, 0.0)


@pytest.mark.parametrize(
    "price",
    [
        "cached = nan",
        "cached = -1",
        "prompt = -1",
        "completion = -0.5",
        "prompt = nan",
        "prompt = inf",
        "promt = 1",
        'prompt = "1"',
    ],
)
def test_a_price_that_is_no_amount_of_money_or_has_another_field_is_refused(
    tmp_path: Path, price: str
) -> None:
    (tmp_path / "s.toml").write_text(f'[prices."m"]\n{price}\n')
    with pytest.raises(UserError, match=r"s.toml.*prices"):
        load_config(str(tmp_path / "s.toml"))


def test_a_price_is_per_million_tokens() -> None:
    price = Price(prompt=2.0, completion=10.0)
    assert Budget(price=price).cost_of(Usage(1_000_000, 100_000)) == pytest.approx(3.0)
    assert Budget(price=price).cost_of(Usage()) == 0.0
    assert Budget().cost_of(Usage(10, 10)) == 0.0


def test_tokens_in_the_prefix_cache_have_a_price_of_their_own_if_one_is_given() -> None:
    usage = Usage(1_000_000, 0, cached_tokens=400_000)
    assert Price(prompt=2.0).of(usage) == pytest.approx(2.0)
    price = Price(prompt=2.0, cached=0.5)
    assert price.of(usage) == pytest.approx(1.4)
    # More than the whole prompt cannot be cached, whatever the server says.
    assert price.of(Usage(1_000_000, 0, cached_tokens=9_000_000)) == pytest.approx(0.5)
