"""Groups of multiple-choice questions: the chosen options are compared, whatever their order."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import comb, sqrt

import pytest
from msgspec.structs import replace

from sightline.benchmarks.groups.benchmark import Groups
from sightline.evaluation.measures import with_text_scores
from sightline.metrics.consistency import consistency_metrics
from sightline.metrics.tally import tally
from sightline.scoring.scorer import Reading, RuleScorer, by_question
from sightline.scoring.similarity import same_option
from sightline.types import Case, Group, MetricValue, Outcome, Usage

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


def judged(response: str, options: Sequence[str], *references: str) -> Reading:
    scorers = Groups().scorers({"task": "other", "embedder": "none", "judge_answers": False})
    case = Case(("k",), "correct", "Which one?", (response,), references, tuple(options))
    return by_question(scorers, RuleScorer)["correct"].decide(case)


STREETS = [f"street {number}" for number in range(101, 131)]


@pytest.mark.parametrize(
    ("response", "verdict", "extracted"),
    [
        ("street 128", "right", "street 128"),
        ("It is street 128.", "right", "street 128"),
        ("street 127", "wrong", "street 127"),
        ("street 104", "wrong", "D"),
        ("no idea", "miss", None),
    ],
)
def test_an_option_after_z_is_chosen_by_its_text(response: str, verdict: str, extracted: str | None) -> None:
    found = judged(response, STREETS, "street 128")
    assert (found.verdict, found.extracted) == (verdict, extracted)


@pytest.mark.parametrize("reference", ["die Stra\u00dfe", "DIE STRASSE", "\uff44ie strasse"])
def test_a_reference_in_another_spelling_is_the_option(reference: str) -> None:
    assert judged("A", ["die Stra\u00dfe", "der Weg"], reference).verdict == "right"


@pytest.mark.parametrize("options", [("1,000", "1000"), ("dog", "the dog"), ("TT", "Tt")])
def test_options_that_differ_only_in_spelling_are_two_options(options: tuple[str, str]) -> None:
    group = answers("g", 2, 2, lambda shown, rng: "", random.Random(0))
    outcomes = (
        replace(group.outcomes[0], response="A", options=options),
        replace(group.outcomes[1], response="B", options=options),
    )
    (verdict,) = same_option(replace(group, outcomes=outcomes))
    assert verdict.verdict == "wrong"
