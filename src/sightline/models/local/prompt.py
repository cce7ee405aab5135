"""Prompts: from a conversation to the text that a model reads, with a marker for each image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from sightline.types import ImageFile, ImageRef, Message, Request, Text


class UnsupportedRequestError(Exception):
    """A request that this model does not support; its text says why."""


class Prompt(NamedTuple):
    """A prompt as text."""

    text: str
    images: tuple[ImageFile, ...]
    ending: str = ""
    lead: str = " "


class Plain(NamedTuple):
    """The prompt that an architecture was trained with."""

    form: str
    marked: bool = True
    ending: str = ""
    lead: str = " "


# The prompts on the models' own pages, for checkpoints without a chat template.
_PLAIN = {
    "blip-2": Plain("Question: {} Answer:", marked=False),
    "idefics2": Plain("User:{}<end_of_utterance>\nAssistant:"),
    "idefics3": Plain("User:{}<end_of_utterance>\nAssistant:"),
    "instructblip": Plain("{}", marked=False),
    "llava": Plain("USER: {} ASSISTANT:"),
    "llava_next": Plain("USER: {} ASSISTANT:"),
    "paligemma": Plain("{}", ending="\n", lead=""),
    "vipllava": Plain("###Human: {}###Assistant:"),
}

_NEW_LINE_BEFORE_TEXT = ("llava", "llava_next", "vipllava")


def prompt_of(
    request: Request, processor: Any, kind: str, template: Literal["auto", "chat", "plain"] = "auto"
) -> Prompt:
    images = images_in(request)
    has_template = bool(getattr(processor, "chat_template", None))
    if template == "chat" and not has_template:
        raise UnsupportedRequestError("its processor has no chat template: leave template=chat out")
    if has_template and template != "plain":
        text = _chat(request.messages, processor)
        return Prompt(text, images, lead="" if text[-1:].isspace() or text.endswith(">") else " ")
    plain = _PLAIN.get(kind, Plain("{}", marked=bool(getattr(processor, "image_token", None))))
    text = plain.form.format(_turn(request.messages, processor, kind, plain))
    return Prompt(text, images, plain.ending, plain.lead)


def images_in(request: Request) -> tuple[ImageFile, ...]:
    return tuple(
        request.images[part.path]
        for message in request.messages
        for part in message.parts
        if isinstance(part, ImageRef)
    )


def _chat(messages: Sequence[Message], processor: Any) -> str:
    turns = [
        {
            "role": message.role,
            "content": [
                {"type": "text", "text": part.text} if isinstance(part, Text) else {"type": "image"}
                for part in message.parts
            ],
        }
        for message in messages
    ]
    try:
        text: str = processor.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    # A template is a program that may raise any error.
    except Exception as error:
        raise UnsupportedRequestError(f"its chat template refuses the conversation: {error}") from None
    return text


def _turn(messages: Sequence[Message], processor: Any, kind: str, plain: Plain) -> str:
    """The one turn of a plain prompt; a system message comes before its text."""
    *before, last = messages
    if last.role != "user" or any(message.role != "system" for message in before):
        raise UnsupportedRequestError(
            "its processor has no chat template, so it accepts one turn, not a conversation"
        )
    mark = str(getattr(processor, "image_token", "")) if plain.marked else ""
    if mark and kind in _NEW_LINE_BEFORE_TEXT:
        mark += "\n"
    system_parts = [part for message in before for part in message.parts]
    pieces: list[str] = []
    for part in (*system_parts, *last.parts):
        if not isinstance(part, Text):
            pieces.append(mark)
            continue
        # A line break separates two texts; nothing separates an image and its text.
        follows_text = bool(pieces) and pieces[-1] != mark
        pieces.append(f"\n{part.text}" if follows_text else part.text)
    return "".join(pieces)
