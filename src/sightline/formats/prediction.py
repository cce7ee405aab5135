"""One answer as a file holds it, and readers for the fields that all layouts share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field

from sightline.errors import UserError, some_of
from sightline.text import Records
from sightline.types import Labels, Usage, Verdict


class Prediction(Struct, frozen=True):
    """A model's answer to one probe, collected by any tool.

    `question`, `context` and `options` are those that the model saw, in the order it saw them; `image` is the
    path of the record's image, `images` are the paths of the images sent, `prompt` is the text sent. Each is
    empty if the file does not hold it, and so are `key`, `finish_reason`, `version`, `usage` and `reasoning`,
    which our own answers.jsonl holds. `error` is the text of a recorded failed call; the response is then
    empty. `model` is the model that answered, in files of several models. `verdicts` are those that the file
    gives on the answer, without their targets. `sample_digest` is that of our own answers.jsonl.
    It has more than 15 fields, since it is the union of what all layouts hold.
    """

    sample: str
    variant: str
    response: str
    draw: int = 0
    question: str = ""
    options: tuple[str, ...] = ()
    labels: Labels = field(default_factory=dict)
    image: str = ""
    images: tuple[str, ...] = ()
    prompt: str = ""
    context: str = ""
    error: str | None = None
    key: str = ""
    finish_reason: str = ""
    version: str = ""
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    verdicts: tuple[Verdict, ...] = ()
    sample_digest: str = ""
    reasoning: str = ""


class Layout(Struct, frozen=True):
    """A file layout.

    `fields` names the fields that identify it, for error messages. `recognises` checks a record (of a table:
    its columns). `read` reads all records of a file, each with its position, and raises UserError where one
    is wrong.
    """

    fields: str
    recognises: Callable[[dict[str, Any]], bool]
    read: Callable[[Records, PredictionFile], list[Prediction]]


class AnswerFiles(Struct, frozen=True):
    """How files of other tools hold the answers to a benchmark. The defaults suit one probe a sample.

    `layouts` are the benchmark's own released layouts. `variants` describes the variants that a record must
    name where a sample has several probes; '' says that it has one. `sample_id` finds the benchmark's id
    among the values of a foreign record, and `sample_ids` describes such ids; without it the first value is
    the id. `question_in` reads the question and the options from a prompt, ('', ()) where it has none.
    """

    layouts: tuple[Layout, ...] = ()
    variants: str = ""
    sample_id: Callable[[Iterable[object]], str | None] | None = None
    sample_ids: str = ""
    question_in: Callable[[str], tuple[str, tuple[str, ...]]] | None = None


class PredictionFile(Struct, frozen=True):
    """A file of answers: its path, how answers to the benchmark are written, and the setting they answer.

    With `allow_missing`, a reader skips an answer that a record lacks, so that it counts as missing; without
    it, a missing answer is an error.
    """

    path: Path
    conventions: AnswerFiles
    setting: str
    allow_missing: bool = False

    def at(self, record: str) -> RecordLocation:
        return RecordLocation(self.path, record)


class RecordLocation(NamedTuple):
    """A record of a file, as error messages name it."""

    file: Path
    record: str

    def error(
        self, message: str, *, field: str | None = None, found: object = None, expected: str | None = None
    ) -> UserError:
        return UserError(
            message, file=self.file, record=self.record, field=field, found=found, expected=expected
        )


def identifier(value: object, field: str, location: RecordLocation) -> str:
    """Read a sample's id: a non-empty text, or a whole number as its digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is None or value == "":
        raise location.error("has no id", field=field, expected="the sample's id as text")
    if not isinstance(value, str):
        raise location.error("is not an id", field=field, found=value, expected="the sample's id as text")
    return value


def variant_of(value: object, source: PredictionFile, location: RecordLocation) -> str:
    """Read the variant of a record; where a sample has one probe and the record names none, the setting."""
    if value is None or value == "":
        if source.conventions.variants:
            expected = source.conventions.variants
            raise location.error("does not say which variant it answers", field="variant", expected=expected)
        return source.setting
    return optional_text(value, "variant", location)


def optional_text(value: object, field: str, location: RecordLocation) -> str:
    """Read an optional text; '' for None."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise location.error("is not a text", field=field, found=value, expected="a text")
    return value


def texts(value: object, field: str, location: RecordLocation) -> tuple[str, ...]:
    """Read an optional list of texts; () for None."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise location.error("is not a list of texts", field=field, found=value, expected="a list of texts")
    return tuple(value)


def labels_of(value: object, field: str, location: RecordLocation) -> dict[str, str | tuple[str, ...]]:
    """Read optional labels: an object whose values are texts or lists of texts.

    Returns label name -> value or values; empty if the value is None.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise location.error(
            "is not an object", field=field, found=value, expected="label names with their values"
        )
    return {
        str(name): label if isinstance(label, str) else texts(label, f"{field}.{name}", location)
        for name, label in value.items()
    }


def reply(value: Any, field: str, location: RecordLocation) -> tuple[str, str | None]:
    """Read a response: a text, or the record of a failed call.

    A failed call is null or an object, as II-Bench/II-Bench infer/infer.py records it
    ({"error": "..."}); its eval.py counts any object as an error.

    Returns:
        The response and None, or '' and the error.
    """
    if isinstance(value, str):
        return value, None
    if value is None:
        return "", "no answer was recorded"
    if isinstance(value, dict):
        return "", str(value.get("error", value))
    expected = "a text, or null or {'error': ...} for a failed call"
    raise location.error("is not an answer", field=field, found=value, expected=expected)


# -- Matches predictions with the probes of a benchmark; reports unknown and missing ones

LISTED = 5
"""The most ids that a message lists."""


def match(
    predictions: Sequence[Prediction],
    expected: Sequence[tuple[str, str]],
    *,
    file: Path,
    allow_missing: bool,
) -> dict[tuple[str, str, int], Prediction]:
    """Match predictions with probes. Every probe needs an answer in every draw that the file has."""
    probes = set(expected)
    _refuse_unknown_samples(predictions, list(dict.fromkeys(sample for sample, _ in expected)), file)
    _refuse_unknown_variants(predictions, probes, file)
    matched = {(p.sample, p.variant, p.draw): p for p in predictions}
    draws = sorted({p.draw for p in predictions}) or [0]
    absent = [(*probe, draw) for probe in expected for draw in draws if (*probe, draw) not in matched]
    if absent and not allow_missing:
        raise UserError(
            f"{len(absent)} of {len(expected) * len(draws)} answers are missing: "
            + some_of([_named(*probe, draws) for probe in absent], LISTED),
            file=file,
            expected="an answer for every probe; --only-answered, which leaves the others out; "
            "or --allow-missing, which counts the missing as wrong",
        )
    return matched


def _refuse_unknown_samples(predictions: Sequence[Prediction], ids: list[str], file: Path) -> None:
    samples = set(ids)
    unknown = [p.sample for p in predictions if p.sample not in samples]
    if not unknown:
        return
    near = get_close_matches(unknown[0], ids, n=1, cutoff=0.0) or ["none"]
    raise UserError(
        f"{len(unknown)} of {len(predictions)} answers are for samples that the benchmark does not have: "
        + some_of(dict.fromkeys(unknown), LISTED),
        file=file,
        field="id",
        expected=f"ids of its {len(ids)} samples; nearest to '{unknown[0]}' is '{near[0]}'",
    )


def _refuse_unknown_variants(
    predictions: Sequence[Prediction], probes: set[tuple[str, str]], file: Path
) -> None:
    unknown = next((p for p in predictions if (p.sample, p.variant) not in probes), None)
    if unknown is None:
        return
    variants = sorted(variant for sample, variant in probes if sample == unknown.sample)
    raise UserError(
        "answers a variant that this setting does not have",
        file=file,
        record=unknown.sample,
        field="variant",
        found=unknown.variant,
        expected=" or ".join(f"'{variant}'" for variant in variants),
    )


def _named(sample: str, variant: str, draw: int, draws: Sequence[int]) -> str:
    return f"{sample} ({variant})" if len(draws) == 1 else f"{sample} ({variant}, draw {draw})"
