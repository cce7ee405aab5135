"""Times, numbers and colours in answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.scoring.text import allowed_times, colours, numbers, on_the_dial, times_of_day


@pytest.mark.parametrize(
    "text",
    [
        "19:23",
        "It is 19:23.",
        "7:23 PM",
        "7.23 p.m.",
        "07:23 in the evening",
        "19h23",
        "1923 hours",
        "19:23:00",
    ],
)
def test_a_time_is_read_in_twelve_and_in_twenty_four_hour_form(text: str) -> None:
    assert times_of_day(text) == {19 * 60 + 23}


@pytest.mark.parametrize(
    ("text", "minutes"), [("12:05 am", 5), ("12:05 pm", 725), ("8 o'clock", 480), ("10 a.m.", 600)]
)
def test_midnight_noon_and_full_hours(text: str, minutes: int) -> None:
    assert times_of_day(text) == {minutes}


def test_a_plain_number_is_no_time() -> None:
    assert not times_of_day("There are 7 cubes, 1234 in all, 3.14 of them round")


@given(st.integers(0, 23), st.integers(0, 59))
def test_every_minute_of_the_day_reads_as_itself(hour: int, minute: int) -> None:
    assert (
        times_of_day(f"{hour}:{minute:02}") == times_of_day(f"{hour:02}:{minute:02}") == {60 * hour + minute}
    )
    half = "am" if hour < 12 else "pm"
    assert times_of_day(f"{hour % 12 or 12}:{minute:02} {half}") == {60 * hour + minute}


def test_a_range_in_a_reference_is_inclusive() -> None:
    assert allowed_times("10:20 (answers from 10:18 to 10:20 are all right).") == {618, 619, 620}
    assert allowed_times("10:20") == {620}
    assert not allowed_times("Left.")


def test_the_dial_knows_no_half_of_the_day() -> None:
    assert on_the_dial(frozenset({6 * 60 + 9, 18 * 60 + 9})) == {6 * 60 + 9}


def test_numbers_are_read_from_figures_and_words() -> None:
    assert numbers("Seven, 7, twenty-one and 2.5") == {7, 21, 2.5}


def test_colours_are_the_basic_ones() -> None:
    assert colours("A gray cat on a Red mat by the sea") == {"grey", "red"}
