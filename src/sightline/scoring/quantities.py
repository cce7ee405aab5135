"""Times of day, numbers and colours in an answer, and the ranges that a reference allows."""

from __future__ import annotations

import re

from sightline.scoring.text import lexicon, respelled, words

HALF_DAY = 12 * 60

_UNITS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_NUMBERS = {word: value for value, word in enumerate(_UNITS.split())} | {
    word: 10 * value for value, word in enumerate(_TENS.split(), start=2)
}
NUMBER_WORDS = frozenset(_NUMBERS)
"""The words that `numbers` recognises."""

_COLOURS = lexicon("black white red green yellow blue brown purple pink orange grey gray")
_TIME = re.compile(
    r"""(?<![\d:.])
    (?: (?P<hour>[01]?\d|2[0-4]) (?: [:h](?P<minute>[0-5]\d)(?::[0-5]\d)?        # 7:23, 19h23, 7:23:00
                                  | \.(?P<point>[0-5]\d)(?=\s*[ap]\.?m\b|$)     # 7.23 pm
                                  | (?=\s*(?:[ap]\.?m\b|o'?clock)) )            # 7 pm, 7 o'clock
      | (?P<bare>(?:[01]\d|2[0-3])[0-5]\d)(?=\s*h(?:ou)?rs\b|$) )               # 1923 hours
    (?!\d)\s*(?:o'?clock)?
    (?: \s*\(?(?P<half>[ap])\.?m\b
      | \s*in\ the\ (?P<day>morning|afternoon|evening)
      | \s*(?P<night>at\ night) )?""",
    re.VERBOSE,
)
_TRAILING = re.compile(r"\W+$")
_RANGE = re.compile(r"\b(?:from|between)\s+(\S+)\s+(?:to|and)\s+([^\s).,]+)")


def times_of_day(text: str) -> frozenset[int]:
    """The times in a text; 'pm' adds 12 hours.

    >>> sorted(times_of_day("It is 7:23 p.m., that is 19:23."))
    [1163]
    """
    return frozenset(map(_minutes, _TIME.finditer(_TRAILING.sub("", respelled(text)))))


def allowed_times(reference: str) -> frozenset[int]:
    """Every minute that a reference allows: its time, or its inclusive range.

    >>> sorted(allowed_times("7:23 (answers from 7:22 to 7:24 are all right)."))
    [442, 443, 444]
    """
    named = times_of_day(reference)
    if bounds := _RANGE.search(reference):
        first, last = (times_of_day(bound) for bound in bounds.groups())
        if first and last:
            return named | frozenset(range(min(first), max(last) + 1))
    return named


def on_the_dial(times: frozenset[int]) -> frozenset[int]:
    """Times as a 12-hour clock face shows them."""
    return frozenset(time % HALF_DAY for time in times)


def numbers(text: str) -> frozenset[float]:
    """The numbers in a text, in digits or, up to ninety-nine, in words.

    >>> sorted(numbers("There are twenty-one, not 7."))
    [7.0, 21.0]
    """
    values: list[float] = []
    tens = False
    for word in words(text):
        value = _NUMBERS.get(word)
        if tens and value is not None and 0 < value < 10:
            values[-1] += value
        elif value is not None:
            values.append(value)
        elif word.replace(".", "", 1).isdecimal():
            values.append(float(word))
        tens = value is not None and value >= 20
    return frozenset(map(float, values))


def colours(text: str) -> frozenset[str]:
    """The basic colours (Berlin and Kay's eleven) in a text."""
    return frozenset("grey" if word == "gray" else word for word in words(text) if word in _COLOURS)


def _minutes(time: re.Match[str]) -> int:
    bare = time["bare"]
    hour, minute = (int(bare[:2]), int(bare[2:])) if bare else (int(time["hour"]), _minute_of(time))
    late = time["half"] == "p" or time["day"] in ("afternoon", "evening") or (time["night"] and hour >= 6)
    early = time["half"] == "a" or time["day"] == "morning" or time["night"]
    if hour < 12 and late:
        hour += 12
    elif hour == 12 and early:
        hour = 0
    return hour % 24 * 60 + minute


def _minute_of(time: re.Match[str]) -> int:
    return int(time["minute"] or time["point"] or 0)
