"""The cases of ConTextual's appendix (Figures 23-52): seven responders, and what is said of their responses.

A transcription, one case a line: {"figure", "image_url": [url], "instruction", "reference", "responses":
[{"model", "response", "verdict", "annotation_verdict", "annotation"}]}. `verdict` is what the figure's
caption says of a response, null where it says nothing, `annotation` the words of the mark beside the
response, which name errors, and `annotation_verdict` what it comes to. Where the two differ, the caption's
counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sightline.formats.prediction import Prediction, RecordLocation, identifier, optional_text, reply
from sightline.formats.verdict_flags import CONTRADICTED, PARTLY
from sightline.types import Verdict, VerdictName

CAPTIONS = "captions"
"""The judge by whose name the captions' verdicts go."""

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

_SAID: Mapping[str, VerdictName] = {"correct": "right", PARTIALLY: "wrong", "wrong": "wrong"}


def recognises(record: Mapping[str, Any]) -> bool:
    """Whether a record is a case."""
    return "image_url" in record and "responses" in record


def predictions(record: Mapping[str, Any], location: RecordLocation, variant: str) -> Iterator[Prediction]:
    """The responses of a case, each with the caption's verdict where it gives one."""
    urls = record["image_url"]
    if not isinstance(urls, list) or len(urls) != 1:
        raise location.error(
            "names not one image", field="image_url", found=urls, expected="a list of one url"
        )
    url = identifier(urls[0], "image_url", location)
    location = RecordLocation(location.file, f"Figure {record.get('figure')}")
    if not isinstance(record["responses"], list):
        raise location.error("is no list", field="responses", expected="a list of responses")
    for one in record["responses"]:
        if not isinstance(one, dict):
            raise location.error("is no response", field="responses", found=one, expected="an object")
        response, error = reply(one.get("response"), "responses.response", location)
        yield Prediction(
            sample=url,
            variant=variant,
            response=response,
            question=optional_text(record.get("instruction"), "instruction", location),
            model=identifier(one.get("model"), "responses.model", location),
            verdicts=_verdict(one, location),
            error=error,
        )


def _verdict(one: Mapping[str, Any], location: RecordLocation) -> tuple[Verdict, ...]:
    said, marked = one.get("verdict"), one.get("annotation_verdict")
    if said is None:
        return ()
    if said not in _SAID:
        expected = f"one of {', '.join(_SAID)}, or null"
        raise location.error("is no verdict", field="responses.verdict", found=said, expected=expected)
    differs = marked is not None and marked != said
    raw = f"{location.record}, {one['model']}: {said}" + (
        f" (the mark beside it: {marked})" if differs else ""
    )
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
            labels=() if differs else _errors(one, location),
        ),
    )


def _errors(one: Mapping[str, Any], location: RecordLocation) -> tuple[str, ...]:
    """The errors that the mark beside a response names, in the order of ERRORS."""
    words = optional_text(one.get("annotation"), "responses.annotation", location).casefold()
    named = [error for part, error in _NAMED.items() if part in words]
    return (*named, PARTIALLY) if one.get("annotation_verdict") == PARTIALLY else tuple(named)
