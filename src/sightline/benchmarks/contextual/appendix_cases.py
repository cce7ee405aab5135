"""The cases of ConTextual's appendix (Figures 23-52): seven responders, and what is said of their responses.

A transcription, one case a line: {"figure", "image_url": [url], "instruction", "reference", "responses":
[{"model", "response", "verdict", "annotation_verdict", "annotation"}]}. `verdict` is what the figure's
caption says of a response, null where it says nothing, `annotation` the words of the mark beside the
response, which name errors, and `annotation_verdict` what it comes to. Where the two differ, the caption's
counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from sightline.formats.prediction import Place, Prediction, identifier, optional_text, reply
from sightline.types import Verdict, VerdictName

CAPTIONS = "captions"
"""The judge by whose name the captions' verdicts go."""

PARTLY = "partly"
"""The score of a verdict on a response that is called partly right; the verdict is `wrong`."""

PARTIALLY = "partially correct"

_NAMED: Mapping[str, str] = {
    "context-sensitive": "context-sensitive reasoning",
    "fine-grained": "fine-grained perception",
    "hallucination": "hallucination",
    "ground": "not grounded",
    "incorrect reasoning": "incorrect reasoning",
}
"""The words of a mark that name an error, and the error."""

ERRORS = (*_NAMED.values(), PARTIALLY)
"""What the marks beside the responses name as wrong with them (Appendix I)."""

CONTRADICTED = "contradicted"
"""The score of a verdict that the mark beside the response contradicts."""

Partly = Literal["wrong", "left-out"]
"""The two readings of 'partially correct'."""

_SAID: Mapping[str, VerdictName] = {"correct": "right", PARTIALLY: "wrong", "wrong": "wrong"}


def recognises(record: Mapping[str, Any]) -> bool:
    """Whether a record is a case."""
    return "image_url" in record and "responses" in record


def predictions(record: Mapping[str, Any], place: Place, variant: str) -> Iterator[Prediction]:
    """The responses of a case, each with the caption's verdict where it gives one."""
    urls = record["image_url"]
    if not isinstance(urls, list) or len(urls) != 1:
        raise place.error("names not one image", field="image_url", found=urls, expected="a list of one url")
    url = identifier(urls[0], "image_url", place)
    place = Place(place.file, f"Figure {record.get('figure')}")
    if not isinstance(record["responses"], list):
        raise place.error("is no list", field="responses", expected="a list of responses")
    for one in record["responses"]:
        if not isinstance(one, dict):
            raise place.error("is no response", field="responses", found=one, expected="an object")
        response, error = reply(one.get("response"), "responses.response", place)
        yield Prediction(
            sample=url,
            variant=variant,
            response=response,
            question=optional_text(record.get("instruction"), "instruction", place),
            model=identifier(one.get("model"), "responses.model", place),
            verdicts=_verdict(one, place),
            error=error,
        )


def reading(verdicts: Iterable[Verdict], partly: Partly) -> list[Verdict]:
    """The verdicts in one of the two readings: partly right responses count as wrong, or are left out."""
    return [verdict for verdict in verdicts if partly == "wrong" or PARTLY not in verdict.scores]


def contradicted(verdicts: Iterable[Verdict]) -> list[str]:
    """What is said on either side of the verdicts that the marks contradict, a line each."""
    return [verdict.raw for verdict in verdicts if CONTRADICTED in verdict.scores]


def _verdict(one: Mapping[str, Any], place: Place) -> tuple[Verdict, ...]:
    said, marked = one.get("verdict"), one.get("annotation_verdict")
    if said is None:
        return ()
    if said not in _SAID:
        expected = f"one of {', '.join(_SAID)}, or null"
        raise place.error("is no verdict", field="responses.verdict", found=said, expected=expected)
    differs = marked is not None and marked != said
    raw = f"{place.record}, {one['model']}: {said}" + (f" (the mark beside it: {marked})" if differs else "")
    flags = {PARTLY: said == PARTIALLY, CONTRADICTED: differs}
    return (
        Verdict(
            targets=(),
            question="correct",
            scorer="contextual/appendix",
            judge=CAPTIONS,
            kind="human",
            verdict=_SAID[said],
            raw=raw,
            scores={name: 1.0 for name, holds in flags.items() if holds},
            labels=() if differs else _errors(one, place),
        ),
    )


def _errors(one: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    """The errors that the mark beside a response names, in the order of ERRORS."""
    words = optional_text(one.get("annotation"), "responses.annotation", place).casefold()
    named = [error for part, error in _NAMED.items() if part in words]
    return (*named, PARTIALLY) if one.get("annotation_verdict") == PARTIALLY else tuple(named)
