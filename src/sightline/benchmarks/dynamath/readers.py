"""How an answer to DynaMath is read: ours, the repository's script, and VLMEvalKit's."""

from __future__ import annotations

import calendar
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from sightline.scoring.chosen import read_choice
from sightline.scoring.free_answers import read_free_answer
from sightline.scoring.markup import contents_of, own_turn, plain_text
from sightline.scoring.scorer import Reading
from sightline.types import LETTERS, Case

FLOAT = "Please answer in a floating-point number."
"""The sentence with which the repository's scripts end a question whose answer is a number."""
TOLERANCE = 0.001
"""The largest difference from the reference that all readers allow."""


def answer_type(case: Case) -> str:
    if case.options:
        return "multiple choice"
    return "float" if case.probe_question.endswith(FLOAT) else "text"


# -- Ours: the short answer, or what the response states, by its value

_FIELD = re.compile(r'"short[ _]answer"\s*:\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"}]+))', re.IGNORECASE)
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_ANNOUNCED = re.compile(
    r"\banswer\b[^.:=\n]{0,30}?(?:\bis\b|[:=])[:=\s]*([^\n]+?)(?:\.(?!\d)|\n|$)", re.IGNORECASE
)
_NUMBER = re.compile(
    r"(?<![\w.])(-?)(\d+(?:\.\d+)?|\.\d+)?(?:e([-+]?\d+)\b)?\s*(π|pi\b)?(?:\s*/\s*(\d+(?:\.\d+)?))?"
)
_EXPRESSION = re.compile(
    r"√|sqrt|\^|\b(?:log|ln|sin|cos|tan|exp)(?![a-z])|\d[ixyz](?![a-z])"
    r"|[±∓]|\\[pm][mp]\b|\+/?-|[≠≤≥]|\s[<>]\s|[-+]\s*\("
    r"|(?<=[\w)\]])(?<!\de)(?:\s+[-+]\s+|[-+]|\s*[×·÷]\s*)(?=\.?\d|π|\()"
    r"|(?<=[^\W\d_π])(?<!pi)\s*/\s*\d|\b(?:minus|negative)\b(?!\s+\w)"
    r"|(?:\b(?:can)?not|n't)(?:\s+(?:be|equals?|to|exactly|simply|the|an?))*\s*[-(]?\s*(?:\.?\d|π)",
    re.IGNORECASE,
)
"""What makes another value of a number, or denies it; only the result behind it is read."""
_VARIABLE = re.compile(r"\b([a-z])\s*=")
_WORD = re.compile(r"(?<!\\)(?<![^\W\d_])(?!pi\b)[^\W\d_]{2,}")
_SPELLINGS = tuple(
    (re.compile(pattern), sign)
    for pattern, sign in (
        (r"\\neq?(?![a-z])|!=", "≠"),
        (r"\\leq?(?![a-z])|<=", "≤"),
        (r"\\geq?(?![a-z])|>=", "≥"),
        (r"–(?=[\d.])", "-"),
        (r"\^\s*\{?\s*(?:\\circ|°)\s*\}?", "°"),
        (r"(?<=\d)\s*(?:[×x*·]|\\times|\\cdot)\s*10\s*\^\s*\{?\s*(-?\d+)\s*\}?", r"e\1"),
        (r"(?<![A-Za-z]e)(?<=[\de)\]}])\s*(?:\^|[²³¹⁰⁴-⁹])", " ^ "),  # a unit may be raised, a number not
        (r"(?<=[\w)])\s*\*\s*(?=[\w(])|(?<=\d)\s*x\s*(?=\d)", "×"),
    )
)
_SIGNS = tuple(
    (re.compile(pattern, re.IGNORECASE | re.MULTILINE), sign)
    for pattern, sign in (
        (r"\b(\d+)([/-])(\d+)\2(\d+)\b", r"\1 \3 \4"),  # a date
        (r"\b(?:minus|negative)\s+(?=[\d.π])", "-"),
        (r"((?:^|[=≈([{,:;]|\b(?:is|be|equals))\s*)-\s+(?=[\d.π])", r"\1-"),
    )
)
_MONTHS = {name[:3]: name for name in calendar.month_name[1:]}


def stated(case: Case) -> Reading:
    """The short answer, else a container, else what is called the answer, else the whole response.

    Numbers count by value (1/2, 2π), lists of numbers one by one, options and words as the readers of other
    benchmarks read them. A part that holds another count of numbers than the reference, or an expression, is
    a miss; a reference that is an expression is compared by its text.
    """
    rule, said = _said(own_turn(case.texts[0]))
    reference = case.references[0]
    if case.options:
        choice = read_choice(said, case.options, case.probe_question)
        if choice.position is None:
            return Reading("miss", rule=f"{rule}, {choice.rule}", words=choice.words)
        return _judged(LETTERS[choice.position], reference, f"{rule}, {choice.rule}", choice.words)
    text, expected = _plain(said), _plain(reference)
    wanted, found = _values(expected), _values(text)
    if not wanted:
        references = [one for one in (reference, _MONTHS.get(reference)) if one]
        read = read_free_answer(said, references)
        right = read.reference is not None
        extracted = reference if right else said
        return Reading("right" if right else "wrong", extracted=extracted, rule=f"{rule}, words", words=said)
    if _EXPRESSION.search(expected):
        same = "".join(text.split()) == "".join(expected.split())
        return Reading("right" if same else "wrong", extracted=said, rule=f"{rule}, expression", words=said)
    if len(found) != len(wanted) or _EXPRESSION.search(text):
        result = re.split("[=≈]", text)[-1]
        found = [] if _EXPRESSION.search(result) else _values(result)
    if len(wanted) == 1 and len(set(found)) == 1:
        found = found[:1]
    if len(found) != len(wanted):
        return Reading(
            "miss", rule=f"{rule}, no number" if not found else f"{rule}, several numbers", words=said
        )
    variables = {tuple(names) for side in (reference, said) if (names := _VARIABLE.findall(side))}
    same = len(variables) < 2 or answer_type(case) == "float"
    same = same and all(abs(one - other) <= TOLERANCE for one, other in zip(found, wanted, strict=True))
    if _WORD.search(text):
        same = same and all(read_free_answer(said, [one]).reference for one in _WORD.findall(expected))
    extracted = " ".join(f"{value:.10g}" for value in found)
    return Reading("right" if same else "wrong", extracted=extracted, rule=f"{rule}, numbers", words=said)


def _said(response: str) -> tuple[str, str]:
    """Where the answer stands in a response, and what stands there."""
    if fields := list(_FIELD.finditer(response)):
        text, bare = fields[-1].groups()
        # Not json.loads: much JSON of models is broken by LaTeX, whose \\frac would be a form feed.
        said = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text or bare or "")
        return "short answer", said.replace("\\\\", "\\").replace('\\"', '"')
    if contents := list(contents_of(response)):
        return "container", contents[-1]
    if announced := _ANNOUNCED.findall(plain_text(response)):
        return "announced", announced[-1]
    return "response", response


def numbers(text: str) -> list[float]:
    """The numbers of a text, with sign, fractions and multiples of π.

    >>> numbers("(-1, 2.50)"), numbers("x = \\\\frac{1}{2}"), numbers("Q1")
    ([-1.0, 2.5], [0.5], [])
    """
    return _values(_plain(text))


def _plain(text: str) -> str:
    """The text without markup; signs stand at their numbers, powers of ten within them."""
    for pattern, sign in _SPELLINGS:
        text = pattern.sub(sign, text)
    text = plain_text(text)
    for pattern, sign in _SIGNS:
        text = pattern.sub(sign, text)
    return text


def _values(plain: str) -> list[float]:
    found = []
    for sign, digits, exponent, pi, divisor in _NUMBER.findall(plain):
        if digits or pi:
            value = float(f"{digits or 1}e{exponent or 0}") * (math.pi if pi else 1)
            value /= float(divisor or 1) or math.nan
            found.append(-value if sign else value)
    return found


# -- The repository's: evaluation/opensource_json_eval.py of DynaMath/DynaMath at 598c3c3d


def released(case: Case) -> Reading:
    """The short answer of the JSON, else the last line without its last character; it holds the reference."""
    response, reference = case.texts[0], case.references[0]
    cut = _from_brace(response)
    try:
        held: Any = json.loads(cut, strict=False)
    except ValueError:
        held = {"short answer": cut.split("\n")[-1][:-1]}
    if not isinstance(held, dict):
        return Reading("wrong", rule="JSON without fields", words=response)
    said = str(held.get("short answer"))
    kind = answer_type(case)
    if kind == "float":
        try:
            right = abs(_value(said) - float(reference)) <= TOLERANCE
        except ValueError:
            return Reading("wrong", extracted=said, rule="no number", words=said)
    elif kind == "multiple choice" and len(said) == 1:
        right = said == reference
    else:
        right = reference in (said[:3] if kind == "multiple choice" else said)
    return Reading("right" if right else "wrong", extracted=said, rule=f"released, {kind}", words=said)


def _from_brace(response: str) -> str:
    """From the first brace to the last, without backslashes; the response where there is none."""
    start = response.find("{")
    end = response.rfind("}")
    if start < 0 or start == len(response) - 1 or end <= start:
        return response
    return response[start : end + 1].replace("\\", "")


def _value(said: str) -> float:
    """The number of the first word; ValueError if it is none."""
    if said.isdigit():
        return float(said)
    first = said.split(" ")[0]
    return float(first.split("π")[0]) * math.pi if "π" in first else float(first)


# -- VLMEvalKit's: DynaMath_auxeval of vlmeval/dataset/dynamath.py at e8e78f05


def vlmevalkit(case: Case) -> Reading:
    """The short answer of the JSON, else the response; undecided where VLMEvalKit asks a model."""
    if (said := parsed(case)) is None:
        return Reading("undecided", rule="VLMEvalKit asks a model", words=case.texts[0])
    return judged_as_vlmevalkit(case, said)


def parsed(case: Case) -> Any:
    """What VLMEvalKit reads without a model; None if it reads nothing."""
    response = shortened(case.texts[0])
    try:
        said = json.loads(response, strict=False)["short answer"]
    except (ValueError, TypeError, KeyError):
        said = None
    read = None if said is None else _parsed(said, answer_type(case))
    return _parsed(response, answer_type(case)) if read is None else read


def shortened(response: str) -> str:
    """From the first brace to the last, if there are two; without backslashes."""
    start, end = response.find("{"), response.rfind("}")
    return (response[start : end + 1] if 0 <= start < end else response).replace("\\", "")


def _parsed(said: Any, kind: str) -> Any:
    if kind == "text":
        return said
    if not isinstance(said, str):
        return None
    if kind == "float":
        try:
            return _value(said)
        except ValueError:
            return None
    if len(said) == 1:
        return said.upper()
    found = [letter for letter in "ABCDE" if letter in said.upper()]
    return found[0] if len(found) == 1 else None


def judged_as_vlmevalkit(case: Case, said: Any) -> Reading:
    """A number is near the reference, a letter equals it, a text is held by the reference."""
    kind, reference = answer_type(case), case.references[0]
    if kind == "float":
        right = abs(said - float(reference)) <= TOLERANCE
    elif kind == "multiple choice":
        right = said == reference
    elif isinstance(said, str):
        right = said.lower() in reference.lower()
    else:
        return Reading("miss", rule="VLMEvalKit ends with an error: no text", words=str(said))
    return Reading(
        "right" if right else "wrong", extracted=str(said), rule=f"VLMEvalKit, {kind}", words=str(said)
    )


def read_reply(case: Case, reply: str) -> Reading:
    """The answer that a model made of a response; without one, the letter at the start of the response."""
    said = _parsed(reply, answer_type(case))
    if said is not None:
        return judged_as_vlmevalkit(case, said)
    starts = (
        answer_type(case) == "multiple choice" and case.references[0] in shortened(case.texts[0])[:3].upper()
    )
    return Reading("right" if starts else "wrong", reply, rule="the start of the response" if starts else "")


def _judged(said: str, reference: str, rule: str, words: str) -> Reading:
    return Reading("right" if said == reference else "wrong", extracted=said, rule=rule, words=words)


READERS: Mapping[str, Callable[[Case], Reading]] = {
    "stated": stated,
    "released": released,
    "vlmevalkit": vlmevalkit,
}
