"""One answer as a file holds it, and the reading of the fields that all layouts share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field

from sightline.errors import UserError
from sightline.types import Labels, Usage, Verdict


class Prediction(Struct, frozen=True):
    """A model's answer to one probe, collected by any tool.

    `question` and `options` are those shown to the model, in the order shown, `image` its path and
    `prompt` the text sent, each empty where the file does not say it; so are `key`, `finish_reason`,
    `version` and `usage`, which our own answers.jsonl holds. `error` is the text of a recorded failed
    call; the response is then empty. `model` is whose answer it is, where a file holds those of several;
    `verdicts` are what the file says of it, without their targets.
    """

    sample: str
    variant: str
    response: str
    draw: int = 0
    question: str = ""
    options: tuple[str, ...] = ()
    labels: Labels = field(default_factory=dict)
    image: str = ""
    prompt: str = ""
    error: str | None = None
    key: str = ""
    finish_reason: str = ""
    version: str = ""
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    verdicts: tuple[Verdict, ...] = ()


class Source(Struct, frozen=True):
    """What a reader knows beside the records: their file, and what they answer.

    With `allow_missing`, an answer that a record lacks is left out, to be counted as missing; without it,
    it is an error.
    """

    file: Path
    benchmark: str
    setting: str
    allow_missing: bool = False

    def at(self, record: str) -> Place:
        """The place of a record, for its errors."""
        return Place(self.file, record)


class Place(NamedTuple):
    """A record of a file: where an error is."""

    file: Path
    record: str

    def error(
        self, message: str, *, field: str | None = None, found: object = None, expected: str | None = None
    ) -> UserError:
        """The error at this place."""
        return UserError(
            message, file=self.file, record=self.record, field=field, found=found, expected=expected
        )


MANY_VARIANTS = {
    "codis": "'context_1' or 'context_2'",
    "mmr3": "'original', 'r1', 'm0', a style's name, ...",
    "groups": "the variant's name",
}
"""Benchmarks that ask a sample several questions, so that a record must say which one it answers."""


def identifier(value: object, field: str, place: Place) -> str:
    """A sample's id: a text that is not empty, or a whole number as its digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is None or value == "":
        raise place.error("has no id", field=field, expected="the sample's id as text")
    if not isinstance(value, str):
        raise place.error("is no id", field=field, found=value, expected="the sample's id as text")
    return value


def variant_of(value: object, source: Source, place: Place) -> str:
    """The variant that a record names, else the setting's name where a sample has but one probe."""
    if value is None or value == "":
        if source.benchmark in MANY_VARIANTS:
            expected = MANY_VARIANTS[source.benchmark]
            raise place.error("does not say which variant it answers", field="variant", expected=expected)
        return source.setting
    return optional_text(value, "variant", place)


def optional_text(value: object, field: str, place: Place) -> str:
    """A text, or '' where there is none."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise place.error("is no text", field=field, found=value, expected="a text")
    return value


def texts(value: object, field: str, place: Place) -> tuple[str, ...]:
    """A list of texts, or () where there is none."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise place.error("is no list of texts", field=field, found=value, expected="a list of texts")
    return tuple(value)


def labels_of(value: object, field: str, place: Place) -> dict[str, str | tuple[str, ...]]:
    """Labels: an object whose values are texts or lists of texts."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise place.error("is no object", field=field, found=value, expected="label names with their values")
    return {
        str(name): label if isinstance(label, str) else texts(label, f"{field}.{name}", place)
        for name, label in value.items()
    }


def reply(value: Any, field: str, place: Place) -> tuple[str, str | None]:
    """The response and the error that a value stands for: a text, or a recorded failed call.

    A failed call is null or an object, as II-Bench/II-Bench infer/infer.py records it
    ({"error": "..."}) and its eval.py counts it (any object).
    """
    if isinstance(value, str):
        return value, None
    if value is None:
        return "", "no answer was recorded"
    if isinstance(value, dict):
        return "", str(value.get("error", value))
    expected = "a text, or null or {'error': ...} for a failed call"
    raise place.error("is no answer", field=field, found=value, expected=expected)
