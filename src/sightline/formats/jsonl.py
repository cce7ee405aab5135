"""The files of a results folder: answers.jsonl, verdicts.jsonl, and what metrics.json says of the run."""

from __future__ import annotations

import os
import posixpath
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.errors import UserError
from sightline.formats.columns import completed
from sightline.formats.files import AtomicFile, file_digest, read_lines, write_atomically
from sightline.formats.prediction import (
    NO_ANSWER,
    RESPONSES,
    WHOLE_NUMBER,
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
from sightline.scoring.letters import carry_letter
from sightline.text import UNDECODABLE, Records, cell_text, fault, lenient_json
from sightline.types import LETTERS, ImageRef, ImageSize, Message, Outcome, Probe, Text, Usage, Verdict, user

_encoder = msgspec.json.Encoder()

KEY = re.compile("[0-9a-f]{64}")
_OUTSIDE = re.compile(r"\A(?:[/\\]|data:|[A-Za-z]:)|://|(?:\A|[/\\])\.\.(?:[/\\]|\Z)")
"""In a path that is absolute, has a drive, is a URL or leaves its folder. Both separators count anywhere."""

IDS = ("sample", "id", "group")
"""The fields that may name the sample of an answer."""


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
    `status` 'error', or a response that is an object. If the field `model` (or `model_name`) names several
    models, the answers are those of these models. If several versions answer one probe, as in an import of
    several models, the versions are the models.
    """
    found = [_prediction(record, where, source) for where, record in rows]
    probes = [(one.sample, one.variant, one.draw) for one in found]
    models = [_text_or_nothing(record.get("model") or record.get("model_name")) for _, record in rows]
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
    write_atomically(path, (answer_line(outcome) + b"\n" for outcome in outcomes))


def write_plain(outcomes: Iterable[Outcome], path: Path) -> None:
    """Write plain JSON Lines; the line of a failed call has an `error`."""
    with AtomicFile(path) as file:
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
            file.write(_encoder.encode(line) + b"\n")


def answer_line(outcome: Outcome) -> bytes:
    # JSON escapes quotes within texts, so that these bytes cannot occur earlier in the line.
    head, name, rest = _encoder.encode(outcome).partition(b',"key":')
    return b"".join((head, b',"group":', _encoder.encode(outcome.sample), name, rest))


def read_outcomes(path: Path) -> Iterator[Outcome]:
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
    images = _image_paths(record.get("images"))
    references = record.get("references")
    found = Prediction(
        sample=sample,
        variant=variant_of(record.get("variant"), source, location),
        response=response.response,
        draw=_draw(record.get("draw"), location),
        question=optional_text(record.get("question"), "question", location),
        options=options,
        empty_options=empty_options,
        references=tuple(
            cell_text(one)
            for one in (references if isinstance(references, list) else ())
            if isinstance(one, str | int | float) and not isinstance(one, bool)
        ),
        cluster=optional_text(record.get("cluster"), "cluster", location),
        labels=labels_of(record.get("labels"), "labels", location),
        image=optional_text(record.get("local_path"), "local_path", location),
        images=images,
        image_sizes=_image_sizes(record.get("image_sizes"), len(images)),
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
    return completed(found, record, location, "file")


def _image_paths(value: object) -> tuple[str, ...]:
    """The images sent; other tools write contents, URLs or paths of a machine into a field of this name."""
    paths = [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
    whole = isinstance(value, list) and len(paths) == len(value)
    return tuple(paths) if whole and _in_data_folder(paths) else ()


def _image_sizes(value: object, images: int) -> tuple[ImageSize | None, ...]:
    """The sizes of the images sent; none if they are not one for each image."""
    try:
        sizes = msgspec.convert(value, tuple[ImageSize | None, ...])
    except msgspec.ValidationError:
        return ()
    return sizes if len(sizes) == images else ()


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
    "reasoning_tokens": ("completion_tokens_details", "output_tokens_details"),
    "cached_tokens": ("prompt_tokens_details", "input_tokens_details"),
    "image_tokens": ("prompt_tokens_details", "input_tokens_details"),
}
"""Count -> the objects of chat completions and of the Responses API that hold it."""
_RESPONSES = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
"""Count -> its name in the Responses API."""


def read_usage(reported: Any) -> Usage:
    """Read reported token counts.

    `reported`: an object in the layout of chat completions, of the Responses API or of our own files; None if
    nothing is reported.
    Returns the counts. A count that is no number from 0 to `MAX_TOKENS` is None, and `invalid` names it.
    """
    if not reported:
        return Usage()
    if not isinstance(reported, dict):
        return Usage(invalid=("usage",))
    recorded = reported.get("invalid")
    found = {name: reported.get(name, reported.get(_RESPONSES.get(name))) for name in _COUNTS}
    for name, objects in _DETAILS.items():
        for details in objects:
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
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_TOKENS:
        return None
    return int(value)


# -- verdicts.jsonl: the verdicts of judges and humans, one a line

_HUMAN = {"scorer": "human", "kind": "human"}
"""The fields that a human's line may leave out."""


def write_verdicts(verdicts: Iterable[Verdict], path: Path) -> None:
    write_atomically(path, (verdict_line(verdict) + b"\n" for verdict in verdicts))


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


# -- metrics.json: the metadata of a run


class RunMetadata(Struct, frozen=True):
    """The benchmark, setting, model, options and versions of a run."""

    benchmark: str
    setting: str
    model: str
    options: Mapping[str, Any] = {}
    versions: Mapping[str, Any] = {}


def read_run_metadata(folder: Path) -> RunMetadata | None:
    """Read a run's metadata; None if there is no metrics.json, or one of another tool."""
    refuse_mixed_files(folder)
    file = folder / METRICS
    try:
        return msgspec.json.decode(file.read_bytes(), type=RunMetadata)
    except (FileNotFoundError, NotADirectoryError, msgspec.ValidationError):
        return None
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror or error}", file=file) from None
    except UNDECODABLE as error:
        expected = "the file that `sightline run` wrote, or none"
        raise UserError(f"is not JSON ({fault(error)})", file=file, expected=expected) from None


# -- Whether the files of a results folder are of one run: metrics.json holds the digests of the others

ANSWERS, VERDICTS, METRICS = "answers.jsonl", "verdicts.jsonl", "metrics.json"

UNFINISHED = ".metrics.json.unfinished"
"""The next metrics.json, while the other files are put in their places."""

REPORT = "report.md"
"""The report, which may be edited: no command reads it."""


RUN_AGAIN = "the same command as before, which writes all files again"


class _Written(Struct):
    files: Mapping[str, str] = {}


def written_files(folder: Path) -> Mapping[str, str]:
    try:
        return msgspec.json.decode((folder / METRICS).read_bytes(), type=_Written).files
    except (OSError, *UNDECODABLE):
        return {}


def refuse_mixed_files(folder: Path) -> None:
    """Refuse a results folder with a file that is not of its run. A missing file is not refused here."""
    if (folder / UNFINISHED).exists():
        raise UserError(
            "holds files of two runs: writing the results has not ended, or was interrupted",
            file=folder,
            expected=RUN_AGAIN,
        )
    for name, digest in written_files(folder).items():
        file = folder / name
        if name != REPORT and file.is_file() and file_digest(file) != digest:
            raise UserError(
                f"is not the file of the run that wrote {METRICS}",
                file=file,
                expected=f"{RUN_AGAIN}, or a copy of the file in a folder of its own",
            )


# -- What was asked: the text and the images of messages, and the probe that a file of answers describes


def prompt_text(messages: Sequence[Message]) -> str:
    """The text of messages as answers.jsonl holds it.

    >>> print(prompt_text([user("2 + 2?"), Message("assistant", (Text("4"),)), user("3 + 3?")]))
    [user]
    2 + 2?
    [assistant]
    4
    [user]
    3 + 3?
    """
    texts = [
        "\n".join([part.text for part in message.parts if isinstance(part, Text)]) for message in messages
    ]
    if len(messages) == 1:
        return texts[0]
    return "\n".join(f"[{message.role}]\n{text}" for message, text in zip(messages, texts, strict=True))


def image_paths(messages: Sequence[Message]) -> tuple[str, ...]:
    images = [part for message in messages for part in message.parts if isinstance(part, ImageRef)]
    return tuple([path_in_data(image) for image in images])


def path_in_data(image: ImageRef) -> str:
    rest = image.path.removeprefix(f"{image.root}/")
    if (
        image.root
        and len(rest) < len(image.path)
        and rest == posixpath.normpath(rest)
        and rest[:1] not in "./"
    ):
        # What follows the folder is the path: relpath takes thirty times as long.
        return rest
    return Path(os.path.relpath(image.path, image.root) if image.root else image.path).as_posix()


def as_asked(probe: Probe, prediction: Prediction | None) -> Probe:
    """Describe a probe as its recorded answer says it was asked.

    The file always wins: its question, its options in their order, and the letters of the references in that
    order. A benchmark's own order applies only to an answer without options. The file's own references count
    where the data hold none. What was sent is what the file says; where it says nothing, it is unknown and
    the messages are empty.

    Args:
        prediction: The recorded answer; None for a probe that a model is asked now.
    """
    if prediction is None:
        return probe
    options = _as_in_data(prediction, probe.options)
    references = probe.references or prediction.references
    if probe.references and options != probe.options:
        references = _carried(probe, options)
    return replace(
        probe,
        messages=sent_messages(prediction),
        question=prediction.question or probe.question,
        context=prediction.context or probe.context,
        options=options,
        references=references,
    )


TRUTH_VALUES = "are true or false: they were read as the options yes and no"


def sent_messages(prediction: Prediction) -> tuple[Message, ...]:
    """What a recorded answer says was sent: one message, or none if that is unknown."""
    sent: list[ImageRef | str] = [ImageRef(path) for path in prediction.images]
    if prediction.prompt:
        sent.append(prediction.prompt)
    return (user(*sent),) if sent else ()


_INTEGER = re.compile(r"[+-]?[0-9]+")


_TRUTH = {"true": "yes", "false": "no"}


def as_answered(prediction: Prediction, known: tuple[str, ...]) -> Prediction:
    """An answer whose response a tool made a number ('3.0') or a truth value, with the option that is meant.

    '3.0' is the option '3' where all options are integers; true and false are the options yes and no where no
    option has their names. `known` are the options in the data.
    """
    response = prediction.response.strip()
    if not (is_number := WHOLE_NUMBER.fullmatch(response)) and response.casefold() not in _TRUTH:
        return prediction
    options = _as_in_data(prediction, known)
    if is_number:
        meant = [option for option in options if _same_number(response, option)]
        if response in options or not all(_INTEGER.fullmatch(option.strip()) for option in options):
            return prediction
    else:
        names = [option.strip().casefold() for option in options]
        meant = [one for one, name in zip(options, names, strict=True) if name == _TRUTH[response.casefold()]]
        if not _TRUTH.keys().isdisjoint(names):
            return prediction
        prediction = replace(prediction, doubt=TRUTH_VALUES) if meant else prediction
    return replace(prediction, response=meant[0]) if len(meant) == 1 else prediction


def _as_in_data(prediction: Prediction, known: tuple[str, ...]) -> tuple[str, ...]:
    """The options of a file as the data spell them ('3.0' as '3'), with lost ones; else those of the data.

    Raises:
        UserError: A lost option lies between others, and the data do not say which one it is.
    """
    if not prediction.options:
        return known
    left = list(known)
    found: list[str | None] = [_taken(left, text.__eq__) if text else None for text in prediction.options]
    options = [
        text if option is not None or not text else _taken(left, partial(_same_number, text)) or text
        for text, option in zip(prediction.options, found, strict=True)
    ]
    if not prediction.empty_options:
        return tuple(options)
    gaps = [place for place, text in enumerate(options) if not text]
    cells = len(options) + len(prediction.empty_options) - len(gaps)
    in_order = all(not text or text == other for text, other in zip(options, known, strict=False))
    if len(options) <= len(known) <= cells and in_order:
        return known
    if len(left) == 1 and len(gaps) <= 1:
        place = gaps[0] if gaps else len(options)
        return (*options[:place], left[0], *options[place + 1 :])
    if gaps:
        raise prediction.empty_options[0].error()
    return tuple(options)


def _taken(texts: list[str], is_meant: Callable[[str], bool]) -> str | None:
    """Take the first text that is meant out of a list."""
    found = next(filter(is_meant, texts), None)
    if found is not None:
        texts.remove(found)
    return found


def _same_number(text: str, other: str) -> bool:
    """Whether two texts are one number: a table with an empty cell makes '3.0' of '3'."""
    try:
        return float(text) == float(other)
    except ValueError:
        return False


def _carried(probe: Probe, order: tuple[str, ...]) -> tuple[str, ...]:
    """The references in another order of the options: letters change, texts stay."""
    letters = tuple(LETTERS[: len(probe.options)])
    carried = (
        carry_letter(letter, probe.options, order) if (letter := reference.strip()) in letters else reference
        for reference in probe.references
    )
    return tuple(reference for reference in carried if reference)


# -- The forms of names and tags of runs

LONGEST = 200

_NAME = re.compile(r"\w[\w.:=+-]*")

_FORM = f"at most {LONGEST} letters, digits and characters of '.:=+-_', the first one a letter or a digit"


def check_run_name(name: str) -> None:
    """Check the form of a name for a run: it must not be taken for a number, a path or a list of runs."""
    if not is_run_name(name):
        what = "looks like a number" if _is_number(name) else "has a character that names cannot have"
        raise UserError(f"the name of a run {what}", found=name, expected=f"{_FORM}, and not a number")


def check_tags(tags: Iterable[str]) -> None:
    """Check the form of tags. A tag may be a number."""
    for tag in tags:
        if not _has_form(tag):
            raise UserError("a tag has a character that tags cannot have", found=tag, expected=_FORM)


def is_run_name(word: str) -> bool:
    """Whether a word can be the name of a run; paths with a separator and numbers cannot.

    >>> [is_run_name(word) for word in ("llava-13b", "sizes:size=224", "12", "1e3", "results/a", ".", "")]
    [True, True, False, False, False, False, False]
    """
    return _has_form(word) and not _is_number(word)


def are_named(runs: Sequence[str]) -> bool:
    """Whether all runs have a name, which is then enough to call them.

    >>> [are_named(["alpha", "beta"]), are_named(["alpha", "run 3"]), are_named([])]
    [True, False, False]
    """
    return bool(runs) and all(map(is_run_name, runs))


def _has_form(word: str) -> bool:
    return _NAME.fullmatch(word) is not None and len(word) <= LONGEST


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return word.isdecimal()
    return True


# -- Export formats: answers.jsonl in the layouts that other tools read; each reports what it cannot hold

T = TypeVar("T")


class AnswersToExport:
    """The answers of one model: their answers.jsonl, the data folder or None, and the model's name or ''.

    The file is read anew in each pass over the answers, so that its size does not matter.
    """

    def __init__(self, file: Path, data: Path | None, model: str) -> None:
        self.file = file
        self.data = data
        self.model = model
        self._made: dict[object, Any] = {}

    def once(self, make: Callable[[AnswersToExport], T]) -> T:
        """Make what several formats need of the answers, at the first call."""
        if make not in self._made:
            self._made[make] = make(self)
        made: T = self._made[make]
        return made

    @property
    def outcomes(self) -> Iterator[Outcome]:
        """The answers, in a new pass. Raises UserError where the file is no answers.jsonl."""
        try:
            yield from read_outcomes(self.file)
        except UserError as error:
            expected = f"{error.expected or 'an answers.jsonl'}; `sightline import` converts other formats"
            raise UserError(
                error.message, file=error.file, record=error.record, field=error.field, expected=expected
            ) from None

    @property
    def first_draws(self) -> Iterator[Outcome]:
        """The answers without repeats, in a new pass."""
        return (outcome for outcome in self.outcomes if outcome.draw == 0)

    def error(self, message: str, outcome: Outcome, **more: Any) -> UserError:
        return UserError(message, file=self.file, record=outcome.sample, **more)


class ExportFormat(Struct, frozen=True):
    """A layout in which answers are written.

    `write` writes a file and returns what the layout cannot hold, a sentence each. `check` raises UserError
    where `sightline export` must refuse the answers. A format with a `file` is also written under that name
    into results folders, if `applies`.
    """

    summary: str
    write: Callable[[AnswersToExport, Path], list[str]]
    check: Callable[[AnswersToExport], None] = lambda answers: None
    file: str = ""
    applies: Callable[[AnswersToExport], bool] = lambda answers: True


def export(file: Path, layout: ExportFormat, path: Path, data: Path | None, model: str = "") -> list[str]:
    """Write an answers.jsonl in another layout.

    Args:
        model: The model's name; '' takes the name from the metrics.json next to the answers.

    Returns:
        What the layout cannot hold, a sentence each.

    Raises:
        UserError: The answers do not fit the layout; nothing is written then.
    """
    answers = AnswersToExport(file, data, model)
    # A line that cannot be read is found before anything is written.
    deque(answers.outcomes, maxlen=0)
    layout.check(answers)
    return layout.write(answers, path)


def counted_notes(*notes: tuple[int, str]) -> list[str]:
    """Write notes that begin with a count, without those whose count is 0.

    >>> counted_notes((2, "answers of repeats are left out"), (0, "answers failed"))
    ['2 answers of repeats are left out']
    """
    return [f"{count:,} {what}" for count, what in notes if count]


def repeats_note(answers: AnswersToExport) -> tuple[int, str]:
    """Count the repeats, which most layouts cannot hold."""
    return sum(outcome.draw != 0 for outcome in answers.outcomes), "answers of repeats are left out"


def model_name(answers: AnswersToExport) -> str:
    """Name the model: the given name, else that of the run that wrote the answers.

    Raises:
        UserError: Neither is known.
    """
    if answers.model:
        return answers.model
    run = read_run_metadata(answers.file.parent)
    if run is None:
        raise UserError("does not say which model answered", file=answers.file, expected="--model NAME")
    return run.model


def _write_lines(answers: AnswersToExport, path: Path) -> list[str]:
    write_plain(answers.outcomes, path)
    return []


JSONL = ExportFormat('plain lines of {"id", "variant", "draw", "response"}', _write_lines)
