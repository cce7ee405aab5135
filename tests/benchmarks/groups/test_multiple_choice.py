"""Groups of multiple-choice questions: the chosen options are compared, whatever their order."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import comb, sqrt

import pytest

from sightline.benchmarks.groups.benchmark import Groups
from sightline.evaluation.measures import with_text_scores
from sightline.metrics.consistency import consistency_metrics
from sightline.metrics.tally import tally
from sightline.types import Group, MetricValue, Outcome, Usage

GROUPS = 400
FRUITS = ("apple", "pear", "banana", "plum", "cherry", "melon")

Answering = Callable[[Sequence[str], random.Random], str]


def answers(name: str, options: int, variants: int, answering: Answering, rng: random.Random) -> Group:
    """A group whose variants show the same options in orders of their own."""
    outcomes = []
    for nth in range(variants):
        shown = rng.sample(FRUITS[:options], options)
        outcomes.append(
            Outcome(
                sample=name,
                variant=f"v{nth}",
                draw=0,
                key=f"{name}-{nth}",
                labels={},
                response=answering(shown, rng),
                status="ok",
                finish_reason="stop",
                usage=Usage(),
                verdict="unscored",
                options=tuple(shown),
            )
        )
    return Group(name, 0, name, tuple(outcomes))


def values(options: int, variants: int, answering: Answering) -> dict[str, MetricValue]:
    rng = random.Random(f"{options} {variants}")
    groups = [answers(str(n), options, variants, answering, rng) for n in range(GROUPS)]
    scored = with_text_scores(groups, Groups(), {})
    metrics = consistency_metrics(embedded=False)
    return {value.metric: value for value in tally(scored, metrics)}


def letter(shown: Sequence[str], rng: random.Random) -> str:
    return f"The answer is ({rng.choice('ABCDEF'[: len(shown)])})."


@pytest.mark.parametrize("options", [2, 4, 6])
@pytest.mark.parametrize("variants", [2, 4])
def test_random_letters_get_the_con_of_chance(options: int, variants: int) -> None:
    found = values(options, variants, letter)
    pairs, chance = GROUPS * comb(variants, 2), 100 / options
    # Equality of two of several uniform choices is independent pair by pair: the standard error is exact.
    error = sqrt(chance * (100 - chance) / pairs)
    assert found["con"].n == pairs
    assert found["con"].value == pytest.approx(chance, abs=4 * error)
    assert found["agree"].value == found["con"].value


def test_the_same_option_under_other_letters_is_consistent() -> None:
    found = values(4, 4, lambda shown, rng: "ABCD"[shown.index("pear")])
    assert found["con"].value == found["agree"].value == 100


def test_the_same_letter_of_other_options_is_not_consistent() -> None:
    found = values(4, 4, lambda shown, rng: "A")
    assert found["con"].value == pytest.approx(25, abs=4 * sqrt(25 * 75 / (GROUPS * 6)))


def test_answers_without_an_option_differ_from_all_others_and_stay_in_n() -> None:
    found = values(4, 4, lambda shown, rng: "I cannot see it.")
    assert (found["con"].value, found["con"].n) == (0, GROUPS * 6)
    assert (found["agree"].value, found["agree"].n) == (0, GROUPS * 6)


def test_options_need_no_embedder_and_have_no_similarity() -> None:
    found = values(4, 4, letter)
    assert found["con"].judge == "rules"
    assert found["s_c"].value is None
    assert found["contrary_consistent"].value is None
