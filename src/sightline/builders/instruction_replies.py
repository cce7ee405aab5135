"""Reads an instruction and its response from a model's reply, or finds out what is wrong with it.

The rules are the guidelines of ConTextual's prompt (Figure 22) that text alone can violate. Humans decide
whether an instruction needs the image's text and its other contents together.
"""

from __future__ import annotations

import re
from itertools import pairwise

from msgspec import Struct

from sightline.builders.rephrasing_replies import given_away
from sightline.prompts import load
from sightline.scoring.refusals import is_refusal
from sightline.scoring.text import words

NO_PAIR = "no instruction with a response"
CUT = "the response is truncated"
CONDITION = "the instruction has a condition"
COPIED = "the instruction is one of the examples"
GIVEN_AWAY = "the instruction contains the response"
DECLINED = "the response declines to answer"
"""Reasons for which a reply is unusable, as they are counted."""


class InstructionPair(Struct, frozen=True):
    """An instruction about an image and its response, each in one line."""

    instruction: str
    response: str


class _Piece(Struct, frozen=True):
    """The text between a label and the next one."""

    label: str
    text: str
    last: bool


def read_instruction(reply: str, *, cut: bool = False) -> tuple[InstructionPair | None, str]:
    """Read the last pair of instruction and response in a reply.

    Returns:
        The pair and '', or None and the reason why the reply is unusable.

    >>> read_instruction("Good Instruction: Name the red shop.\\nResponse: Variety Store")
    (InstructionPair(instruction='Name the red shop.', response='Variety Store'), '')
    >>> read_instruction("Instruction: Count the boats if it rains.  Response: 3")
    (None, 'the instruction has a condition')
    """
    pieces = _pieces(reply)
    pairs = [
        (InstructionPair(instruction.text, response.text), response.last)
        for instruction, response in pairwise(pieces)
        if instruction.label == "instruction"
        and response.label == "response"
        and words(instruction.text)
        and response.text
    ]
    if not pairs:
        return None, DECLINED if is_refusal(reply) else NO_PAIR
    pair, last = pairs[-1]
    objection = CUT if cut and last else _objection(pair)
    return (None, objection) if objection else (pair, "")


def _objection(pair: InstructionPair) -> str:
    if _CONDITION.search(pair.instruction):
        return CONDITION
    if words(pair.instruction) in {words(example) for example in _examples()}:
        return COPIED
    if is_refusal(pair.response):
        return DECLINED
    if given_away(pair.instruction, "", [pair.response]):
        return GIVEN_AWAY
    return ""


_CONDITION = re.compile(r"\b(?:if|unless|in case|provided that)\b", re.IGNORECASE)

# A label begins a line, or follows the end of a sentence: 'Name the shop. Response: ...'.
_LABEL = re.compile(
    r"(?:^[\s>#*_`-]*(?:\d+[.)]\s*)?|(?<=[.?!\"”’'*])[ \t]+[*_]*)"
    r"(?P<label>(?:good|bad)?[ ]?instruction|(?:good[ ])?(?:instruction[ ])?response|reason(?:ing)?"
    r"|(?:uploaded[ ])?image)"
    r"(?:[ ]\d+)?[*_]*[ ]*:[*_]*",
    re.IGNORECASE | re.MULTILINE,
)


def _pieces(reply: str) -> list[_Piece]:
    """Split a reply at its labels.

    A single line before a first label `Response` is the instruction: the prompt ends with 'Good
    Instruction:', and a model may continue from there.
    """
    found = list(_LABEL.finditer(reply))
    if not found:
        return []
    ends = [*(label.start() for label in found[1:]), len(reply)]
    pieces = [
        _Piece(_kind(label["label"]), _line(reply[label.end() : end]), label is found[-1])
        for label, end in zip(found, ends, strict=True)
    ]
    before = reply[: found[0].start()].strip()
    if pieces[0].label == "response" and before and "\n" not in before:
        pieces.insert(0, _Piece("instruction", _line(before), False))
    return pieces


def _kind(label: str) -> str:
    """'instruction', 'response', or '' for other labels: reasons, images, bad instructions."""
    name = label.lower()
    if name.endswith("response"):
        return "response"
    return "instruction" if name.endswith("instruction") and "bad" not in name else ""


def _line(text: str) -> str:
    """A text in one line, without fences, emphasis and surrounding quotes."""
    plain = " ".join(text.replace("```", " ").split()).strip("*_ ")
    quoted = re.fullmatch(r"[\"“](?P<inside>[^\"“”]+)[\"”]", plain)
    return quoted["inside"].strip() if quoted else plain


def _examples() -> list[str]:
    """The instructions of the prompt's own examples, good and bad."""
    prompt: str = load(__package__)["synthesis"]["text"]
    return re.findall(r"^(?:Good|Bad) Instruction(?: \d)?: (.+)$", prompt, re.MULTILINE)
