"""ConTextual's rules: right by whole words of a short reference, wrong where nothing is answered."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.benchmarks.contextual.acceptance import read_acceptance
from sightline.benchmarks.contextual.formats import add_judgements
from sightline.benchmarks.registry import benchmark_class
from sightline.formats.other_tools import read_predictions
from sightline.formats.prediction import Prediction


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("Cuba", 'The portrait with people on the road is of "Cuba".'),
        ("16", "He wears number 16."),
        ("SOHO", "soho"),
        ("WA and MS", "Mississippi (MS) and Washington (WA)."),
        ("6 fl. oz", "The tube holds 6 fl oz (177 ml)."),
        ("The time shown is 11:00:26.", "The time shown on it is 11:00:26"),
        ("$1,250", "It costs 1250 dollars."),
        ('The displayed text is "A/C".', "The displayed text is a/c"),
        ("1. Birmingham\n2. Subscribe", "1. Birmingham 2. Subscribe"),
        ("Cuba", "It is not Peru. It is Cuba."),
        ("Cuba", "Is it Peru? It is Cuba."),
        ("left or right", "You may go. It says left or right."),
        ("-5 degrees", "It reads minus 5 degrees, or so it seems. It reads −5 degrees."),
        ("10%", "It is 10 percent of all."),
        ("¥500", "It is 500 ¥."),
        ("A+", "The grade is A+."),
    ],
)
def test_every_number_and_content_word_in_the_response_is_right(reference: str, response: str) -> None:
    assert read_acceptance(reference, response)[0] == "right"


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("16", "He wears number 161."),
        ("10", "It is 10:10."),
        ("Cuba", "A Cuban one."),
        ("WA and MS", "Only WA."),
        ("B: Green, D: Blue", "Both are green."),
        ("one two three four five six", "one two three four five six"),
        ("DO NOT", "They do not move."),
        ("It is on", "It is on."),
        ("WH97", "SS97 and WH12"),
        ("WH97", "97, of the WH boats"),
        ("16", "He wears the 16th."),
        ("16", "It is 1/16 or 16/16."),
        ('The displayed text is "A/C".', "The displayed text is C."),
        ("6 fl. oz", "It holds 8 fl oz, 6 servings."),
        ("1. Birmingham\n2. Subscribe", "1. Subscribe 2. Birmingham"),
        ("iPad > Android > iPhone", "iPhone > Android > iPad"),
        ("iPad > Android > iPhone", "iPad > Android > iPhone"),
        ("B: Green, D: Blue", "B is blue, and D is green."),
        ("Cuba", "It is not Cuba."),
        ("Cuba", "It can't be Cuba, but Peru."),
        ("No smoking", "It says smoking."),
        ("5 degrees", "It is -5 degrees."),
        ("5 degrees", "It is minus 5 degrees."),
        ("-5 degrees", "It is 5 degrees."),
        ("10%", "10 dollars"),
        ("10", "It is 10%."),
        ("¥500", "It costs $500."),
        ("$500", "It costs 500 euros."),
        ("C#", "It is written in C."),
        ("C", "It is written in C#."),
        ("A+", "The grade is A."),
        ("10", "It is 10-20."),
        ("Cuba", "It is either Cuba or Mexico."),
        ("Cuba", "Cuba or Mexico."),
        ("Cuba", "Is it Cuba?"),
        ("Cuba", 'Does it say "Cuba?"'),
        ("left", "It could be left or right."),
        ("Cuba", "It might be Cuba."),
        ("Cuba", "Perhaps Cuba."),
    ],
)
def test_what_rules_cannot_tell_is_undecided(reference: str, response: str) -> None:
    assert read_acceptance(reference, response)[0] == "undecided"


@pytest.mark.parametrize("reference", ["16", "A reference of many more words than rules compare."])
@pytest.mark.parametrize(
    "response",
    [
        "",
        " \n",
        "I'm sorry, but I can't identify real people.",
        "The image does not provide enough information to determine the number.",
    ],
)
def test_an_empty_response_and_one_that_declines_are_wrong(reference: str, response: str) -> None:
    assert read_acceptance(reference, response)[0] == "wrong"


def test_a_refusal_that_names_the_answer_is_in_doubt() -> None:
    assert read_acceptance("16", "I can't read it for sure, but it may be 16.")[0] == "undecided"


def test_an_answer_that_leaves_a_detail_open_in_parentheses_does_not_decline() -> None:
    assert read_acceptance("It costs 4500 rupees in all.", "It costs 4500 (currency not specified).")[0] == (
        "undecided"
    )


def test_what_rules_decide_of_the_appendix_is_what_its_captions_say(shared: Path) -> None:
    """161 verdicts are stated; rules decide few of them, and none the other way."""
    folder = shared / "data/contextual"
    predictions = read_predictions(
        folder / "appendix_cases.jsonl", benchmark_class("contextual").answer_files, setting="0-shot"
    )
    judged = by_rules_and_as_stated(predictions, folder)
    assert len(judged) == 161
    assert Counter(pair for pair in judged if pair[0] != "undecided") == {
        ("right", "right"): 4,
        ("wrong", "wrong"): 16,
    }


def test_of_the_released_judgements_four_have_a_reference_too_long_for_rules(shared: Path) -> None:
    folder = shared / "data/contextual"
    answers = read_predictions(
        folder / "master.json", benchmark_class("contextual").answer_files, setting="0-shot"
    )
    judged = by_rules_and_as_stated(add_judgements(answers, folder / "gpt4_judgments.json"), folder)
    assert Counter(judged) == {("undecided", "right"): 2, ("undecided", "wrong"): 2}


def by_rules_and_as_stated(predictions: list[Prediction], folder: Path) -> list[tuple[str, str]]:
    """What rules say of the answers with a released reference and a stated verdict, and that verdict."""
    with (folder / "contextual_val.csv").open(newline="") as stream:
        references = {row["image_url"]: row["response"] for row in csv.DictReader(stream)}
    return [
        (read_acceptance(references[one.sample], one.response)[0], verdict.verdict)
        for one in predictions
        if one.sample in references
        for verdict in one.verdicts
    ]


BEFORE = (
    "more than",
    "less than",
    "fewer than",
    "greater than or equal to",
    "no more than",
    "not more than",
    "at least",
    "at most",
    "up to",
    "over",
    "under",
    "above",
    "below",
    "about",
    "around",
    "nearly",
    "almost",
    "exceeding",
    "a minimum of",
    "max",
    "between 5 and",
    "from",
    "5 to",
    "5 -",
    "5–",
    "<",
    ">",
    ">=",
    "≤",
    "~",
    "≈",
    "±",
    "twice",
    "half of",
    "double",
    "three times",
    "2 x",
    "2 ×",
    "half past",
    "5 minutes to",
    "quarter to",
    "until",
    "one hundred and",
    "more than a total of",
)
AFTER = (
    "million",
    "thousand",
    "billion",
    "dozen",
    "lakh",
    "hundred soups",
    "k",
    "M",
    "and a half",
    "1/2",
    "½",
    "²",
    "squared",
    "to 12",
    "-12",
    "– 12",
    "through 12",
    "…12",
    "dollars to 12 dollars",
    "x 12",
    "times 2",
    "by 12",
    "or more",
    "or less",
    "soups or fewer",
    "or so",
    "plus",
    "+",
    "and up",
    "and above",
    "at least",
    "at most",
    "minimum",
    "onwards",
    "ish",
    "000",
    ",5",
    "‰",
    "more than the menu",
    "feet 6 inches",
    "± 1",
)


@given(
    number=st.integers(2, 999).map(str)
    | st.sampled_from(("ten", "twenty", "$10", "10%", "7:30", "２５", "٢٥")),
    before=st.sampled_from(BEFORE),
    after=st.sampled_from(AFTER),
    frame=st.sampled_from(("{}", "{}.", "There are {}.", "It says {}, I think.", "**{}**", "({})")),
)
def test_a_number_in_a_comparison_a_product_or_a_range_is_another_number(
    number: str, before: str, after: str, frame: str
) -> None:
    assert read_acceptance(number, frame.format(number))[0] == "right"
    for words in (f"{before} {number}", f"{number} {after}", f"{before} {number} {after}"):
        assert read_acceptance(number, frame.format(words))[0] == "undecided", words
        assert read_acceptance(words, number)[0] == "undecided", words


@pytest.mark.parametrize(
    "response",
    [
        "10 soups",
        "There are 10 soups and 4 salads.",
        "There are exactly 10.",
        "The number is equal to 10.",
        "- 10 soups",
        "10\n5 of them are red",
        "10 (ten)",
        "10 out of 12 are red",
        "10 of them",
        "10 – that is all",
        "In 2003, 10 soups",
        "a total of 10",
        "No. 10",
    ],
)
def test_a_number_that_is_only_counted_with_is_that_number(response: str) -> None:
    assert read_acceptance("10", response)[0] == "right"


@pytest.mark.parametrize(
    "reference",
    ["more than 10", "10 million", "10 to 20", "10-20", "over $5", "3 red, 4 blue", "2, 3", "50 m²"],
)
def test_a_reference_with_such_a_number_wants_the_same_words(reference: str) -> None:
    assert read_acceptance(reference, f"It is {reference}.")[0] == "right"
