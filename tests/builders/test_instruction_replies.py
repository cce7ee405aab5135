"""What a model writes becomes an instruction and a response, or is refused by a rule that has a name."""

from __future__ import annotations

import pytest

from sightline.builders.synthesize import (
    CONDITION,
    COPIED,
    CUT,
    DECLINED,
    GIVEN_AWAY,
    NO_PAIR,
    InstructionPair,
    read_instruction,
)

STOP = InstructionPair(
    "Determine the message conveyed by the combination of the STOP sign and the movement implied by the "
    "blurred background.",
    "The image conveys the message of a railroad crossing where vehicles are required to stop for passing "
    "trains, indicated by the combination of a STOP sign and the motion blur of a train in the background.",
)
"""What GPT-4V wrote in Figure 22."""
NUMBER = InstructionPair("State the number on the jersey of the running player.", "23")


@pytest.mark.parametrize(
    ("reply", "pair"),
    [
        (f"Good Instruction : {STOP.instruction}\nResponse : {STOP.response}", STOP),
        (
            f"Good Instruction: {NUMBER.instruction}\nResponse: 23\nReason: The player has to be found.",
            NUMBER,
        ),
        (f"**Good Instruction:** {NUMBER.instruction}\n\n**Response:** 23", NUMBER),
        (f"**Instruction**: {NUMBER.instruction}\n**Response**: 23", NUMBER),
        (f"1. Good Instruction: {NUMBER.instruction} Response: 23", NUMBER),
        (f'- Instruction: "{NUMBER.instruction}"\n- Response: “23”', NUMBER),
        (f"```\nGood Instruction:\n{NUMBER.instruction}\n\nResponse:\n23\n```", NUMBER),
        (f"Good Instruction: {NUMBER.instruction}\nGood Instruction response: 23", NUMBER),
        # The prompt ends with 'Good Instruction:', from which a model may go on.
        (f"{NUMBER.instruction}\nResponse: 23", NUMBER),
        (
            f"Uploaded Image 3:\nBad Instruction 1: What is the number?\nReason: It needs OCR alone.\n"
            f"Good Instruction: {NUMBER.instruction}\nResponse: 23\nReason: joint",
            NUMBER,
        ),
        # Examples that are said again come before the pair that was asked for.
        (
            "Good Instruction: Get the number of the boat.\nResponse: WH97\n"
            f"Good Instruction: {NUMBER.instruction}\nResponse: 23",
            NUMBER,
        ),
    ],
)
def test_a_pair_is_read_in_every_format(reply: str, pair: InstructionPair) -> None:
    assert read_instruction(reply) == (pair, "")


@pytest.mark.parametrize(
    ("reply", "objection"),
    [
        ("", NO_PAIR),
        ("An image of a street.", NO_PAIR),
        ("Good Instruction: Name the shop.", NO_PAIR),
        ("Good Instruction:\nResponse:", NO_PAIR),
        ("Bad Instruction 1: Name the shop.\nResponse: Cafe", NO_PAIR),
        ("Response: 23", NO_PAIR),
        ("I'm sorry, I can't assist with this image.", DECLINED),
        ("Instruction: Name the man.\nResponse: I'm sorry, I can't identify people.", DECLINED),
        ("Instruction: Count the red items if the number is SS681.\nResponse: 3", CONDITION),
        ("Instruction: Name the shop, unless it is shut.\nResponse: Cafe", CONDITION),
        ("Instruction: Which stores are visible in this image?\nResponse: Cafe", COPIED),
        (
            "Instruction: Name the shop whose main door directly leads to the subway's entrance\nResponse: A",
            COPIED,
        ),
        (
            "Instruction: Say where the Variety Store with the red door is.\nResponse: variety store",
            GIVEN_AWAY,
        ),
    ],
)
def test_an_instruction_that_breaks_a_guideline_is_refused_with_the_rule(reply: str, objection: str) -> None:
    assert read_instruction(reply) == (None, objection)


def test_a_response_that_was_cut_off_is_refused_and_a_reason_may_be_cut() -> None:
    whole = f"Good Instruction: {NUMBER.instruction}\nResponse: 23"
    assert read_instruction(whole, cut=True) == (None, CUT)
    assert read_instruction(f"{whole}\nReason: The pl", cut=True) == (NUMBER, "")
