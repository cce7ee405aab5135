"""The rule that decides whether an endpoint changed: its error rates, and what servers say of themselves."""

from __future__ import annotations

from itertools import product

import pytest

from sightline.engine.check_rule import FIRST, FURTHER, decide, report_changes
from sightline.models.server_report import ServerReport, read_server_report


def found(differing: tuple[bool, ...]) -> str:
    """The decision on cached answers of which these differ, asked in two steps."""
    cached = len(differing)
    compared = min(FIRST, cached)
    decision = decide(compared, sum(differing[:compared]), cached - compared)
    if decision == "ask further":
        decision = decide(cached, sum(differing), 0)
    return decision


def chance(cached: int, differs: float, decision: str) -> float:
    """The probability of a decision if each cached answer differs independently with this probability."""
    total = 0.0
    for differing in product((False, True), repeat=cached):
        if found(differing) == decision:
            count = sum(differing)
            total += differs**count * (1 - differs) ** (cached - count)
    return total


@pytest.mark.parametrize("cached", [2, 3, 4, 5])
def test_a_noisy_server_is_taken_for_another_model_once_in_a_thousand_checks_at_most(cached: int) -> None:
    # A cached answer is a rare variation with 1 %, and all three new texts are with 1 % of 1 % of 1 %.
    noise = 0.01
    differs = noise + (1 - noise) * noise**3
    assert chance(cached, differs, "changed") <= 0.001


def test_other_weights_are_missed_once_in_a_hundred_checks_at_most_even_with_six_options() -> None:
    assert 1 - chance(FIRST + FURTHER, 5 / 6, "changed") <= 0.01
    assert chance(FIRST + FURTHER, 1.0, "changed") == chance(1, 1.0, "changed") == 1.0


def test_one_differing_answer_counts_only_if_it_is_the_only_one() -> None:
    assert found((True,)) == "changed"
    assert [found((True, *[False] * others)) for others in (1, 2, 4)] == ["unsure"] * 3
    assert found((False, False, False, False, False)) == "same"


def test_what_a_server_says_of_its_model_is_evidence_and_the_time_of_its_start_is_not() -> None:
    def report(**fields: object) -> ServerReport:
        import msgspec

        body = {"data": [{"id": "other"}, {"id": "m", "created": 1, **fields}]}
        return read_server_report(msgspec.json.encode(body), "http://h/v1/models", "m")

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
    assert report_changes([before], absent) == ["it no longer lists the model m"]
