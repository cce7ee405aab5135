"""The rule that decides whether an endpoint changed: its error rates, and what servers say of themselves."""

from __future__ import annotations

from functools import cache
from math import comb

import pytest

from sightline.engine.check_rule import CLOSED, OPEN, Found, Plan, choose_plan, decide, report_changes
from sightline.models.server_report import ServerReport, read_server_report


def chance(plan: Plan, cached: int, differs: float, decision: str) -> float:
    """The probability of a decision if each cached answer differs independently with this probability."""

    @cache
    def after(compared: int, differing: int, size: int) -> float:
        now, total = min(compared + size, cached), 0.0
        for more in range(now - compared + 1):
            weight = comb(now - compared, more) * differs**more * (1 - differs) ** (now - compared - more)
            found = decide(plan, Found(now, differing + more, 0, min(plan.most, cached) - now))
            further = found == "ask further"
            total += weight * (after(now, differing + more, plan.further) if further else found == decision)
        return total

    return after(0, 0, plan.first)


@pytest.mark.parametrize(("plan", "cached"), [(plan, n) for plan in (OPEN, CLOSED) for n in range(2, 20)])
def test_a_noisy_server_is_taken_for_another_model_once_in_a_thousand_checks_at_most(
    plan: Plan, cached: int
) -> None:
    # A cached answer is a rare variation with 1 %, and all three new texts are with 1 % of 1 % of 1 %.
    noise = 0.01
    differs = noise + (1 - noise) * noise**3
    assert chance(plan, cached, differs, "changed") <= 0.001


@pytest.mark.parametrize("options", [2, 3, 4, 6, 26])
def test_other_weights_are_missed_once_in_a_hundred_checks_at_most_with_any_number_of_options(
    options: int,
) -> None:
    # The noise of 1 % gives the cached text by chance in one of three calls.
    differs = (1 - 1 / options) * (1 - 0.01 / options) ** 3
    assert 1 - chance(CLOSED, CLOSED.most, differs, "changed") <= 0.01
    assert chance(OPEN, OPEN.most, 1.0, "changed") == chance(OPEN, 1, 1.0, "changed") == 1.0


def test_closed_answers_are_short_ones_and_those_that_repeat() -> None:
    long = [f"The image shows {number} red cars." for number in range(9)]
    assert [choose_plan(long[:count]) for count in (1, 3, 9)] == [OPEN] * 3
    assert choose_plan(["Yes.", "No."] * 8) == choose_plan(["The answer is B."]) == CLOSED
    assert choose_plan([*long[:3], "Yes.", "No."]) == choose_plan([*long[:4], long[0]]) == CLOSED


@pytest.mark.parametrize("plan", [OPEN, CLOSED])
def test_one_differing_answer_is_a_change_only_if_no_other_exists(plan: Plan) -> None:
    for compared in range(1, plan.most + 1):
        for failed in range(plan.most + 1 - compared):
            expected = "changed" if (compared, failed) == (1, 0) else "unsure"
            assert decide(plan, Found(compared, 1, failed, 0)) == expected


@pytest.mark.parametrize("plan", [OPEN, CLOSED])
def test_equal_answers_show_the_same_model_only_if_as_many_as_planned_were_compared(plan: Plan) -> None:
    for compared in range(plan.first):
        assert decide(plan, Found(compared, 0, plan.first - compared, 1)) == "ask further"
        assert decide(plan, Found(compared, 0, plan.most - compared, 0)) == "incomplete"
    assert decide(plan, Found(plan.first, 0, 2, 0)) == decide(plan, Found(1, 0, 0, 0)) == "same"


def test_what_a_server_says_of_its_model_is_evidence_and_the_time_of_its_start_is_not() -> None:
    def report(**fields: object) -> ServerReport:
        import msgspec

        body = {"data": [{"id": "other"}, {"id": "m", "created": 1, **fields}]}
        found = read_server_report(msgspec.json.encode(body), "http://h/v1/models", "m")
        assert found is not None
        return found

    before = report(root="/step100", max_model_len=4096, created=1)
    assert report_changes([before], report(root="/step100", max_model_len=4096, created=2)) == []
    assert report_changes([before], report(root="/step200", max_model_len=4096)) == [
        "root is /step200, was /step100"
    ]
    assert report_changes([before], report(root="/step100", max_model_len=8192)) == [
        "max_model_len is 8192, was 4096"
    ]
    assert report_changes([before], report()) == report_changes([], before) == []
    absent = read_server_report(b'{"data": [{"id": "other"}]}', "http://h/v1/models", "m")
    assert absent is not None
    assert report_changes([before], absent) == ["it no longer lists the model m"]
