"""Verbs and nouns of instructions, compared with ConTextual's paper and with a human annotation."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.data.describe import count_verbs, verb_and_noun
from sightline.formats.files import read_bytes
from sightline.formats.tables import read_table, table_rows

BY_HAND = {
    2: "describe feature",
    7: "examine characteristic",
    12: "estimate time",
    17: "identify pattern",
    22: "comment",
    27: "compute total",
    37: "discern month",
    42: "enumerate time",
    57: "identify ingredient",
    62: "describe product",
    67: "describe apparel",
    72: "spot item",
    87: "explain significance",
    92: "elaborate",
    102: "recognize name",
    107: "fill",
    112: "recognize",
    117: "itemize destination",
    122: "mention role",
    127: "guess number",
    132: "list item",
    162: "identify type",
    177: "describe",
    182: "connect text",
    192: "evaluate",
    197: "share thought",
    202: "suggest report",
    207: "count number",
    212: "describe sketch",
    217: "list selection",
    237: "describe name",
    252: "summarize logo",
    287: "extract span",
    292: "tell number",
    297: "catalog word",
    302: "highlight context",
    307: "give grain",
    317: "catalog sector",
    332: "mention question",
    342: "order country",
    357: "list company",
    367: "highlight number",
    372: "mention text",
    397: "highlight synergy",
    427: "recognize brand",
    447: "read text",
    457: "retrieve word",
    467: "arrange word",
    477: "give description",
    492: "explain irony",
}
"""Commands among every fifth row of contextual_test.csv (from 0): verb and noun as a reader has them."""


@pytest.fixture(scope="module")
def instructions(shared: Path) -> list[str]:
    path = shared / "data/contextual/contextual_test.csv"
    return [row["instruction"] for _, row in table_rows(read_table(read_bytes(path), path), path)]


def test_verbs_and_nouns_match_a_human_annotation(instructions: list[str]) -> None:
    said = {number: verb_and_noun(instructions[number]) for number in BY_HAND}
    wrong = {
        number: order
        for number, order in said.items()
        if order is None or " ".join(filter(None, order)) != BY_HAND[number]
    }
    # 'all the grains mention in the cell' (so in the data), 'the countries Spain, Italy and Germany'
    assert set(wrong) == {307, 342}


def test_there_are_about_as_many_verbs_as_in_the_paper(instructions: list[str]) -> None:
    """Table 2 counts 79 root verbs. 77 are found here, none of them a question's."""
    found = count_verbs(instructions)
    assert (found.different, found.commands, found.others) == (77, 336, 170)
    assert len(found.top) == 20
    assert found.top[0] == ("list", 29, (("word", 5), ("item", 3), ("name", 3), ("company", 2)))
    assert all(len(nouns) <= 4 for _, _, nouns in found.top)


@pytest.mark.parametrize(
    ("instruction", "verb", "noun"),
    [
        ("Please list all of the red cars.", "list", ""),
        ("List the two biggest red cars that are seen.", "list", "car"),
        ("Can you name the shop's owner?", "name", "owner"),
        ("Point out the children.", "point", "child"),
        ("Find the text written below the building.", "find", "text"),
        ("Describe the building situated on the hill.", "describe", "building"),
        ("Calculate the expected shopping costs.", "calculate", "cost"),
        ("Count and name the glasses, the dishes and the cherries.", "count", "glass"),
        ("Based on the map, give directions.", "give", "direction"),
        ("Explain why he laughs.", "explain", ""),
        ("Comment on the joke.", "comment", ""),
        ("State the speed limit of the red wing.", "state", "limit"),
    ],
)
def test_commands(instruction: str, verb: str, noun: str) -> None:
    assert verb_and_noun(instruction) == (verb, noun)


@pytest.mark.parametrize(
    "question",
    [
        "What is written here?",
        "Is it open?",
        "In which year?",
        "On what day, and why?",
        "The time?",
        "",
        "  ?",
    ],
)
def test_questions_have_no_verb_of_a_command(question: str) -> None:
    assert verb_and_noun(question) is None


@given(st.lists(st.text(max_size=40), max_size=8))
def test_any_text_can_be_parsed(texts: list[str]) -> None:
    found = count_verbs(texts)
    assert found.commands + found.others == len(texts)
    assert found.different <= found.commands
