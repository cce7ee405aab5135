"""Reads chat completions requests: from a body to a request for a local model, with its images in files."""

from __future__ import annotations

import binascii
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import msgspec
import pybase64
from msgspec import Struct

from sightline.errors import UserError
from sightline.formats.write_errors import writing
from sightline.images import BadImage, inspect_image
from sightline.models.base import Model
from sightline.replicas.worker.wire import FIELD, RequestField, key_of
from sightline.types import ImageFile, ImageRef, Message, Part, Request, Text

IGNORED = ("user", "metadata", "store")
"""Fields that do not change the answer."""

SINGLE = {"stream": False, "n": 1}
"""Fields of the protocol of which a worker has one value."""


class BadRequestError(Exception):
    """A request that no model can answer; the text says why."""


class UnknownModelError(BadRequestError):
    """A request for a model that the worker does not serve."""


class _TextPart(Struct, tag="text", forbid_unknown_fields=True):
    text: str


class _Url(Struct):
    url: str


class _ImagePart(Struct, tag="image_url", forbid_unknown_fields=True):
    image_url: _Url


class _ChatMessage(Struct):
    role: Literal["system", "user", "assistant"]
    content: str | list[_TextPart | _ImagePart]


class ChatReader:
    """Reads the requests of one model."""

    def __init__(self, model: Model, folders: Sequence[Path] = ()) -> None:
        self._name = model.name
        self._effective = model.effective
        self._folders = [str(folder.resolve()) for folder in folders]

    @contextmanager
    def reading(self, raw: bytes) -> Iterator[Request]:
        try:
            body = msgspec.json.decode(raw, type=dict[str, Any])
            field = msgspec.convert(body.pop(FIELD, {}), RequestField)
            messages = msgspec.convert(body.get("messages"), list[_ChatMessage])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadRequestError(f"the body is no chat completions request: {error}") from None
        if not messages:
            raise BadRequestError("messages is empty; expected one message or more")
        # As with vLLM, a request need not name the model.
        if (name := body.get("model")) not in (None, "", self._name):
            raise UnknownModelError(f"The model `{name}` does not exist; this worker serves `{self._name}`")
        sampling = self._sampling(body)
        with ExitStack() as stack:
            with writing("the folder of temporary files (TMPDIR)"):
                folder = stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="sightline-images-", ignore_cleanup_errors=True)
                )
            images: dict[str, ImageFile] = {}
            yield Request(
                field.key or key_of({name: value for name, value in body.items() if name not in IGNORED}),
                tuple(self._message(message, Path(folder), images) for message in messages),
                sampling,
                images,
                draw=field.draw,
                choices=field.choices,
            )

    def _sampling(self, body: Mapping[str, Any]) -> dict[str, Any]:
        for name, value in SINGLE.items():
            if body.get(name, value) not in (value, None):
                raise BadRequestError(f"{name}={body[name]} is not supported, only {name}={value}")
        known = {"model", "messages", *IGNORED, *SINGLE}
        options = {name: value for name, value in body.items() if name not in known and value is not None}
        if "max_completion_tokens" in options:
            options.setdefault("max_tokens", options.pop("max_completion_tokens"))
        try:
            return self._effective(options)
        except UserError as error:
            # Clients of the protocol do not have the options of the command line.
            raise BadRequestError(str(error).removeprefix("--gen ")) from None

    def _message(self, message: _ChatMessage, folder: Path, images: dict[str, ImageFile]) -> Message:
        if isinstance(message.content, str):
            return Message(message.role, (Text(message.content),))
        parts: list[Part] = []
        for part in message.content:
            if isinstance(part, _TextPart):
                parts.append(Text(part.text))
            else:
                image = self._image(part.image_url.url, folder, len(images) + 1)
                images[image.path] = _inspected(image, len(images) + 1)
                parts.append(image)
        return Message(message.role, tuple(parts))

    def _image(self, url: str, folder: Path, number: int) -> ImageRef:
        """The image of a URL as a file: its own one, or one with the received bytes."""
        if url.startswith("file:"):
            try:
                path = unquote(urlsplit(url).path)
                real = os.path.realpath(path)
            except ValueError as error:
                raise BadRequestError(f"image {number}: its file:// URL is wrong: {error}") from None
            for allowed in self._folders:
                if real.startswith(os.path.join(allowed, "")):
                    return ImageRef(path, allowed)
            raise BadRequestError(f"image {number}: its file is in no folder of --images")
        head, comma, data = url.partition(",")
        if not comma or not head.startswith("data:") or not head.endswith(";base64"):
            raise BadRequestError(
                f"image {number}: expected a data URL in base64, or file:// in a folder of --images"
            )
        try:
            content = pybase64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise BadRequestError(f"image {number}: not base64") from None
        received = folder / str(number)
        with writing(received):
            received.write_bytes(content)
        return ImageRef(str(received))


def _inspected(image: ImageRef, number: int) -> ImageFile:
    try:
        return inspect_image(image, {})
    except BadImage as error:
        raise BadRequestError(str(error).replace(image.path, f"image {number}")) from None
