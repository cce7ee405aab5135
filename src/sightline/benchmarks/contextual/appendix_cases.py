"""The cases of ConTextual's appendix (Figures 23-52): responses of seven models and humans, with verdicts.

A transcription has one case a line: {"figure", "image_url": [url], "instruction", "reference", "responses":
[{"model", "response", "verdict", "annotation_verdict", "annotation"}]}. `verdict` is the verdict of the
figure's caption, null if there is none. `annotation` is the text of the mark next to the response, which
names errors; `annotation_verdict` is its verdict. Where the two differ, the caption counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sightline.formats.prediction import Prediction, RecordLocation, identifier, optional_text, reply
from sightline.formats.verdict_flags import CONTRADICTED, PARTLY
from sightline.types import Verdict, VerdictName

CAPTIONS = "captions"
"""The judge's name for verdicts of captions."""

PARTIALLY = "partially correct"

_ERROR_WORDS: Mapping[str, str] = {
    "context-sensitive": "context-sensitive reasoning",
    "fine-grained": "fine-grained perception",
    "hallucination": "hallucination",
    "ground": "not grounded",
    "incorrect reasoning": "incorrect reasoning",
}
"""A part of a mark's text -> the error that it names."""

ERRORS = (*_ERROR_WORDS.values(), PARTIALLY)
"""The errors that the marks name (Appendix I)."""

_VERDICTS: Mapping[str, VerdictName] = {"correct": "right", PARTIALLY: "wrong", "wrong": "wrong"}


def recognises(record: Mapping[str, Any]) -> bool:
    """Check whether a record is a case."""
    return "image_url" in record and "responses" in record


def predictions(record: Mapping[str, Any], location: RecordLocation, variant: str) -> Iterator[Prediction]:
    """Read the responses of a case, each with the verdict of the caption if there is one."""
    urls = record["image_url"]
    if not isinstance(urls, list) or len(urls) != 1:
        raise location.error(
            "does not name one image", field="image_url", found=urls, expected="a list of one url"
        )
    url = identifier(urls[0], "image_url", location)
    location = RecordLocation(location.file, f"Figure {record.get('figure')}")
    if not isinstance(record["responses"], list):
        raise location.error("is not a list", field="responses", expected="a list of responses")
    for one in record["responses"]:
        if not isinstance(one, dict):
            raise location.error("is not a response", field="responses", found=one, expected="an object")
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
    verdict, marked = one.get("verdict"), one.get("annotation_verdict")
    if verdict is None:
        return ()
    if verdict not in _VERDICTS:
        expected = f"one of {', '.join(_VERDICTS)}, or null"
        raise location.error("is not a verdict", field="responses.verdict", found=verdict, expected=expected)
    differs = marked is not None and marked != verdict
    raw = f"{location.record}, {one['model']}: {verdict}" + (
        f" (the mark beside it: {marked})" if differs else ""
    )
    flags = {PARTLY: verdict == PARTIALLY, CONTRADICTED: differs}
    return (
        Verdict(
            targets=(),
            question="correct",
            scorer="contextual/appendix",
            judge=CAPTIONS,
            kind="human",
            verdict=_VERDICTS[verdict],
            raw=raw,
            scores={name: 1.0 for name, holds in flags.items() if holds},
            labels=() if differs else _errors(one, location),
        ),
    )


def _errors(one: Mapping[str, Any], location: RecordLocation) -> tuple[str, ...]:
    """The errors that the mark next to a response names, in the order of ERRORS."""
    words = optional_text(one.get("annotation"), "responses.annotation", location).casefold()
    errors = [error for part, error in _ERROR_WORDS.items() if part in words]
    return (*errors, PARTIALLY) if one.get("annotation_verdict") == PARTIALLY else tuple(errors)
