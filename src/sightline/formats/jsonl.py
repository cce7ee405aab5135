"""answers.jsonl, verdicts.jsonl, and plain records of {"sample" or "id", "variant", "draw", "response"}."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.formats.files import AtomicLineFile, read_lines
from sightline.formats.prediction import (
    NO_ANSWER,
    Layout,
    Prediction,
    PredictionFile,
    RecordLocation,
    Response,
    finish_reason,
    identifier,
    labels_of,
    listed_options,
    optional_text,
    plain_reply,
    variant_of,
)
from sightline.formats.tables import cell_text
from sightline.text import Records, lenient_json
from sightline.types import Outcome, Usage, Verdict

_encoder = msgspec.json.Encoder()

KEY = re.compile("[0-9a-f]{64}")
_OUTSIDE = re.compile(r"\A(?:[/\\]|data:|[A-Za-z]:)|://|(?:\A|[/\\])\.\.(?:[/\\]|\Z)")
"""In a path that is absolute, has a drive, is a URL or leaves its folder. Both separators count anywhere."""

IDS = ("sample", "id", "group")
"""The fields that may name the sample of an answer."""

RESPONSES = ("response", "output", "prediction", "text")


class PlainLine(Struct, frozen=True, omit_defaults=True):
    """A line for other tools: id, variant, draw and response, and further fields if they are set."""

    id: str
    variant: str
    draw: int
    response: str
    error: str | None = None
    question: str = ""
    options: tuple[str, ...] = ()
    context: str = ""
    images: tuple[str, ...] = ()
    prompt: str = ""
    finish_reason: str = ""
    version: str = ""


def recognises(record: dict[str, Any]) -> bool:
    return id_field(record) is not None and _first(record, (*RESPONSES, "error")) is not None


def read(rows: Records, source: PredictionFile) -> list[Prediction]:
    """Read one answer per record.

    A missing variant is the name of the setting, if a sample has only one probe. A failed call has `error`,
    `status` 'error', or a response that is an object. If the field `model` names several models, the answers
    are those of these models. If several versions answer one probe, as in an import of several models, the
    versions are the models.
    """
    found = [_prediction(record, where, source) for where, record in rows]
    probes = [(one.sample, one.variant, one.draw) for one in found]
    models = [_text_or_nothing(record.get("model")) for _, record in rows]
    if len({model for model in models if model}) > 1:
        return [replace(one, model=model) for one, model in zip(found, models, strict=True)]
    if len(set(probes)) == len(set(zip(probes, (one.version for one in found), strict=True))):
        return found
    return [replace(one, model=one.version) for one in found]


def id_field(record: Mapping[str, Any]) -> str | None:
    """The name of the field that names the sample of an answer; None if there is none."""
    order = ("sample", "group", "id") if record.get("variant") else IDS
    return _first(record, order)


def response_of(record: Mapping[str, Any], location: RecordLocation) -> Response:
    """The response; '' with an error after a failed call, and where the finish reason says that it failed."""
    recorded = optional_text(record.get("error"), "error", location)
    recorded = recorded or NO_ANSWER.get(finish_reason(record.get("finish_reason")), "")
    if recorded or record.get("status") == "error":
        return Response("", recorded or "the file records a failed call")
    named = _first(record, RESPONSES)
    if named is None:
        raise location.error("has no answer", field="response", expected="one of " + ", ".join(RESPONSES))
    return plain_reply(record[named], named, location)


def write_answers(outcomes: Iterable[Outcome], path: Path) -> None:
    with AtomicLineFile(path) as file:
        for outcome in outcomes:
            file.write(answer_line(outcome))


def write_plain(outcomes: Iterable[Outcome], path: Path) -> None:
    """Write plain JSON Lines; the line of a failed call has an `error`."""
    with AtomicLineFile(path) as file:
        for one in outcomes:
            error = None if one.answered else one.error or "no answer"
            line = PlainLine(
                id=one.sample,
                variant=one.variant,
                draw=one.draw,
                response=one.response,
                error=error,
                question=one.question,
                options=one.options,
                context=one.context,
                images=one.images,
                prompt=one.prompt,
                finish_reason=one.finish_reason,
                version=one.version,
            )
            file.write(_encoder.encode(line))


def answer_line(outcome: Outcome) -> bytes:
    # JSON escapes quotes within texts, so that these bytes cannot occur earlier in the line.
    head, name, rest = _encoder.encode(outcome).partition(b',"key":')
    return b"".join((head, b',"group":', _encoder.encode(outcome.sample), name, rest))


def read_outcomes(path: Path) -> Iterator[Outcome]:
    """Read an answers.jsonl line by line."""
    return map(_current, read_lines(path, Outcome))


def _current(outcome: Outcome) -> Outcome:
    if outcome.images and not _in_data_folder(outcome.images):
        outcome = replace(outcome, images=())
    return outcome


def _prediction(record: dict[str, Any], where: str, source: PredictionFile) -> Prediction:
    location = source.at(where)
    named = id_field(record) or "id"
    sample = identifier(record.get(named), named, location)
    location = source.at(sample)
    response = response_of(record, source.at(where))
    options, empty_options = listed_options(record.get("options"), "options", location)
    return Prediction(
        sample=sample,
        variant=variant_of(record.get("variant"), source, location),
        response=response.response,
        draw=_draw(record.get("draw"), location),
        question=optional_text(record.get("question"), "question", location),
        options=options,
        empty_options=empty_options,
        labels=labels_of(record.get("labels"), "labels", location),
        image=optional_text(record.get("local_path"), "local_path", location),
        images=_image_paths(record.get("images")),
        prompt=_text_or_nothing(record.get("prompt")),
        context=_text_or_nothing(record.get("context")),
        sample_digest=_text_or_nothing(record.get("sample_digest")),
        error=response.error,
        key=_key(record),
        finish_reason=finish_reason(record.get("finish_reason")),
        version=optional_text(record.get("version"), "version", location),
        usage=read_usage(record.get("usage")),
        reasoning=response.reasoning or _text_or_nothing(record.get("reasoning")),
    )


def _image_paths(value: object) -> tuple[str, ...]:
    """The images sent; other tools write contents, URLs or paths of a machine into a field of this name."""
    paths = [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
    whole = isinstance(value, list) and len(paths) == len(value)
    return tuple(paths) if whole and _in_data_folder(paths) else ()


def _in_data_folder(paths: Iterable[str]) -> bool:
    """Whether all paths are relative and do not leave their folder."""
    return not any(map(_is_outside, paths))


def _is_outside(path: str) -> bool:
    # The search is slow, and nearly no path has any of these.
    if ":" not in path and ".." not in path and not path.startswith(("/", "\\")):
        return False
    return _OUTSIDE.search(path) is not None


def _text_or_nothing(value: object) -> str:
    """A text of ours; other tools write lists of messages into a field of this name."""
    return value if isinstance(value, str) else ""


def is_own_answer(record: Mapping[str, Any]) -> bool:
    """Whether a record is a line of an answers.jsonl that Sightline wrote."""
    key = record.get("key")
    is_key = isinstance(key, str) and KEY.fullmatch(key) is not None
    return is_key and "verdict" in record and "group" in record


def _key(record: dict[str, Any]) -> str:
    """The key of a line of answers.jsonl; the column `key` of another tool is ignored."""
    return record["key"] if is_own_answer(record) else ""


def _draw(value: object, location: RecordLocation) -> int:
    if value is None or value == "":
        return 0
    if isinstance(value, str | float) and (text := cell_text(value).removesuffix(".0")).isdecimal():
        return int(text)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise location.error("is not a repeat", field="draw", found=value, expected="a whole number from 0")
    return value


def _first(record: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in record), None)


LAYOUT = Layout(
    "plain records (sample, id or group, and response, output, prediction or text; variant and draw where "
    "needed; references and labels where no data folder has them)",
    recognises,
    read,
)


# -- Token counts as servers and answers files report them: invalid ones become null and lose no answer

MAX_TOKENS = 10**12
"""The largest number of tokens that is read as a count; no call has a million million."""

_COUNTS = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens", "image_tokens")
_DETAILS = {
    "reasoning_tokens": "completion_tokens_details",
    "cached_tokens": "prompt_tokens_details",
    "image_tokens": "prompt_tokens_details",
}
"""Count -> the object of chat completions that holds it."""


def read_usage(reported: Any) -> Usage:
    """Read reported token counts.

    `reported`: an object in the layout of chat completions or of our own files; None if nothing is reported.
    Returns the counts. A count that is no number from 0 to `MAX_TOKENS` is None, and `invalid` names it.
    """
    if not reported:
        return Usage()
    if not isinstance(reported, dict):
        return Usage(invalid=("usage",))
    recorded = reported.get("invalid")
    found = {name: reported.get(name) for name in _COUNTS}
    for name, details in _DETAILS.items():
        if isinstance(detailed := reported.get(details), dict):
            found[name] = detailed.get(name)
    counts = {name: _count(value) for name, value in found.items()}
    invalid = [name for name, value in found.items() if value is not None and counts[name] is None]
    if isinstance(recorded, list):
        invalid += [name for name in recorded if isinstance(name, str) and name not in invalid]
    return Usage(**counts, invalid=tuple(invalid))


def decode_usage(raw: bytes) -> Usage:
    """Decode token counts from JSON, which may have numbers that no JSON has, or too large ones."""
    try:
        return read_usage(msgspec.json.decode(raw) if raw else None)
    except (ValueError, RecursionError):
        pass
    try:
        return read_usage(lenient_json(raw))
    except (ValueError, RecursionError):
        return Usage(invalid=("usage",))


def _count(value: Any) -> int | None:
    """A number of tokens; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_TOKENS:
        return None
    return int(value)


# -- verdicts.jsonl: the verdicts of judges and humans, one a line

_HUMAN = {"scorer": "human", "kind": "human"}
"""The fields that a human's line may leave out."""


def write_verdicts(verdicts: Iterable[Verdict], path: Path) -> None:
    with AtomicLineFile(path) as file:
        for verdict in verdicts:
            file.write(verdict_line(verdict))


def verdict_line(verdict: Verdict) -> bytes:
    return _encoder.encode(verdict)


def read_verdicts(path: Path) -> list[Verdict]:
    """Read a verdicts.jsonl, or a file of human verdicts."""
    return list(read_lines(path, Verdict, _completed))


def read_recorded_verdicts(path: Path) -> list[Verdict]:
    """Read the verdicts.jsonl of a results folder, which is empty if there was nothing to judge."""
    return [] if path.is_file() and not path.stat().st_size else read_verdicts(path)


def decode_verdict(line: bytes) -> Verdict:
    """Decode one verdict: a line of `verdict_line`, or of a human, who leaves fields out."""
    return msgspec.convert(_completed(msgspec.json.decode(line)), Verdict)


def _completed(record: Any) -> Any:
    """A record with the fields that a human's line leaves out."""
    return {**_HUMAN, **record} if isinstance(record, dict) else record


# -- Flags of human verdicts, kept in `Verdict.scores`: partly right, and contradicted by a second mark

PARTLY = "partly"
"""Marks a verdict on a response that is partly right; the verdict itself is `wrong`."""

CONTRADICTED = "contradicted"
"""Marks a verdict that another mark of the same source contradicts."""

Partly = Literal["wrong", "left-out"]
"""How partly right responses count."""


def apply_partly(verdicts: Iterable[Verdict], partly: Partly) -> list[Verdict]:
    """Count partly right responses as wrong, or leave them out."""
    return [verdict for verdict in verdicts if partly == "wrong" or PARTLY not in verdict.scores]


def contradictions(verdicts: Iterable[Verdict]) -> list[str]:
    """Quote the verdicts that a second mark contradicts."""
    return [verdict.raw for verdict in verdicts if CONTRADICTED in verdict.scores]
