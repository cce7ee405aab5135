"""Answers that name the mask or refuse, read in the printed examples of MM-R3 (Figures 10 and 11)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sightline.benchmarks.groups.mask_words import names_colour, names_lines, names_shape
from sightline.scoring.non_answers import is_refusal

GREEN_AND_SQUARE = {
    ("LLaVa 1.5M", 2),
    ("moellava", 2),
    ("Qwen-VL", 2),
    ("BLIP-3", 2),
}
"""Figure 10: which answer (from 0) of which model names a green rectangle; the mask was one."""


def figure(shared: Path, number: int) -> dict[tuple[str, int], str]:
    """The answers of a figure by model and place."""
    lines = (shared / "data/mmr3/qualitative.jsonl").read_text().splitlines()
    cases = (json.loads(line) for line in lines)
    rows = [row for case in cases if case["figure"] == number for row in case["models"]]
    return {(row["model"], place): text for row in rows for place, text in enumerate(row["answers"])}


def test_the_answers_of_figure_10_that_describe_the_mask(shared: Path) -> None:
    answers = figure(shared, 10)
    found = {
        at for at, text in answers.items() if names_colour(text, "green") and names_shape(text, "rectangle")
    }
    assert found == GREEN_AND_SQUARE
    lined = {at for at, text in answers.items() if names_lines(text, "3")}
    assert lined == {("BLIP-3", 1), ("BLIP-3", 2)}


def test_the_answers_of_figures_10_and_11_that_refuse(shared: Path) -> None:
    refused = {at for at, text in figure(shared, 10).items() if is_refusal(text)}
    assert refused == {("GPT-4V", 0), ("GPT-4V", 1), ("GPT-4V", 2)}
    assert {is_refusal(text) for text in figure(shared, 11).values()} == {False}


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("a green square", "rectangle"),
        ("A white rectangular shape", "rectangle"),
        ("a solid block", "rectangle"),
        ("a yellow box", "rectangle"),
        ("a blue oval", "ellipse"),
        ("A black circle.", "ellipse"),
    ],
)
def test_a_mask_is_named_by_its_own_shape(text: str, shape: str) -> None:
    other = {"rectangle": "ellipse", "ellipse": "rectangle"}[shape]
    assert names_shape(text, shape)
    assert not names_shape(text, other)


@pytest.mark.parametrize("text", ["a box of pizza", "a traffic light", "a bar of soap", "a ball", "squared"])
def test_a_thing_is_no_shape(text: str) -> None:
    assert not names_shape(text, "rectangle")
    assert not names_shape(text, "ellipse")


LINES = ("lines", "stripes", "bars", "bands", "strips")
SEVERAL = ("{}", "black {}", "three thick {}", "white and green {}", "a set of horizontal {}")


@pytest.mark.parametrize("lines", LINES)
@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "horizontal {}",
        "a rectangle with {}",
        "The masked region contains white {}.",
        "There are three green {} in the masked region.",
        "a series of black {}",
        "It is a green square with thin {} on a white background.",
    ],
)
def test_lines_of_a_shape_or_of_the_region_are_named(text: str, lines: str) -> None:
    assert names_lines(text.format(lines), "5")
    assert not names_lines(text.format(lines), "1"), "a mask of one line has no gap that makes lines of it"


@pytest.mark.parametrize("lines", LINES)
@pytest.mark.parametrize("several", SEVERAL)
@pytest.mark.parametrize(
    "text",
    [
        "A bear behind the {}.",
        "a pizza covered by {}",
        "A cat, hidden under some {}",
        "Between these {} there is a dog.",
        "{} cover the bus.",
        "The bus is hard to see because of the {}.",
        "a train with {} in front of it",
        "{} over a pizza",
        "A couch; the {} are part of the mask.",
        "I can see a couch and {}.",
        "It is a couch. There are {} in the masked region.",
    ],
)
def test_lines_that_hide_an_object_are_named(text: str, several: str, lines: str) -> None:
    assert names_lines(text.format(several.format(lines)), "3")


@pytest.mark.parametrize("text", ["striped", "It is striped.", "a striped pattern", "a green striped box"])
def test_a_striped_shape_names_lines(text: str) -> None:
    assert names_lines(text, "5")


@pytest.mark.parametrize("lines", LINES)
@pytest.mark.parametrize("several", SEVERAL)
@pytest.mark.parametrize(
    "text",
    [
        "a zebra with {}",
        "The flag has {}.",
        "It is a bee. It has {}.",
        "{} on the road",
        "{} over a road",
        "{} of people",
        "a man wearing a shirt with dots and {}",
    ],
)
def test_lines_of_an_object_are_not_named(text: str, several: str, lines: str) -> None:
    assert names_lines(text.format(several.format(lines)), "5") is False


@pytest.mark.parametrize(
    "text",
    [
        "A zebra. There are black {}.",
        "black {}, as of a tiger",
        "The dress has black {} covering it.",
        "a cup decorated with black {}",
    ],
)
@pytest.mark.parametrize("lines", LINES)
def test_lines_that_may_be_those_of_an_object_are_undecided(text: str, lines: str) -> None:
    assert names_lines(text.format(lines), "5") is None


@pytest.mark.parametrize("line", ["line", "stripe", "bar", "band", "strip"])
def test_a_single_line_is_one_of_a_mask_if_it_is_described_or_hides_something(line: str) -> None:
    assert names_lines(f"a black {line}", "3")
    assert names_lines(f"A dog covered by a {line}", "3")
    assert not names_lines(f"a man at the {line}", "3")
    assert not names_lines(f"a {line}", "3")


@pytest.mark.parametrize(
    "text",
    [
        "power lines",
        "a striped shirt",
        "The shirt is striped.",
        "a zebra's stripes",
        "a chocolate bar",
        "a bar stool",
        "a rubber band",
        "people in line",
        "A bartender behind the bar",
        "a street lined with trees",
        "a headline",
        "a train",
        "",
    ],
)
def test_a_compound_or_a_striped_object_does_not_name_lines(text: str) -> None:
    assert not names_lines(text, "5")


def test_a_colour_is_a_whole_word() -> None:
    assert names_colour("RED, perhaps", "red")
    assert not names_colour("a sacred place", "red")
    assert not names_colour("a green square", "red")
