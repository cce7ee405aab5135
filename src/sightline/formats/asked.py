"""What was asked: the text and the images of messages, and the probe that a file of answers describes."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from sightline.formats.prediction import Prediction
from sightline.scoring.letters import LETTERS, carry_letter
from sightline.types import ImageRef, Message, Probe, Text, user


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
    return tuple([_path_in_data(image) for image in images])


def _path_in_data(image: ImageRef) -> str:
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
    if not prediction.options or prediction.options == probe.options:
        return probe
    return replace(probe, options=prediction.options, references=_carried(probe, prediction.options))


def _carried(probe: Probe, order: tuple[str, ...]) -> tuple[str, ...]:
    """The references in another order of the options: letters change, texts stay."""
    letters = tuple(LETTERS[: len(probe.options)])
    carried = (
        carry_letter(letter, probe.options, order) if (letter := reference.strip()) in letters else reference
        for reference in probe.references
    )
    return tuple(reference for reference in carried if reference)
