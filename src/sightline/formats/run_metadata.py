"""The metadata of a run in the metrics.json of its results folder."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.errors import UserError
from sightline.formats.files import file_digest
from sightline.formats.prediction import WHOLE_NUMBER, Prediction
from sightline.scoring.mentions import LETTERS
from sightline.scoring.options import carry_letter
from sightline.text import UNDECODABLE, fault
from sightline.types import ImageRef, Message, Probe, Text, user


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
    """The images of messages as answers.jsonl holds them."""
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
    order. A benchmark's own order applies only to an answer without options. What was sent is what the file
    says; where it says nothing, it is unknown and the messages are empty.

    Args:
        prediction: The recorded answer; None for a probe that a model is asked now.
    """
    if prediction is None:
        return probe
    sent: list[ImageRef | str] = [ImageRef(path) for path in prediction.images]
    if prediction.prompt:
        sent.append(prediction.prompt)
    probe = replace(
        probe,
        messages=(user(*sent),) if sent else (),
        question=prediction.question or probe.question,
        context=prediction.context or probe.context,
    )
    options = _as_in_data(prediction, probe.options)
    if options == probe.options:
        return probe
    return replace(probe, options=options, references=_carried(probe, options))


TRUTH_VALUES = "are true or false: they were read as the options yes and no"

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
