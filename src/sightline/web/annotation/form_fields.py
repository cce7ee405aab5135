"""What a form holds: its fields as text, and the values of an item, which it names by their position."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from sightline.annotation.asked import Given, options_of
from sightline.annotation.task import Task
from sightline.annotation.types import Item
from sightline.errors import UserError
from sightline.web.viewer import Viewer

MOST_FIELDS = 1000
PREFIX = "f-"
"""Before the names of the task's fields, which could be those of the form."""

Fields = Mapping[str, Sequence[str]]
"""Name -> the texts that a form holds for it."""

FormPage = Callable[[Viewer, Request, Fields], Response]
"""What a form does: it may block."""


def endpoint(viewer: Viewer, page: FormPage) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        return await run_in_threadpool(page, viewer, request, read_form(await request.body()))

    return respond


def read_form(body: bytes) -> Fields:
    try:
        fields = parse_qs(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS
        )
    except ValueError:
        raise UserError("the form cannot be read", expected="a form of this page") from None
    return {
        name: [text.replace("\r\n", "\n").replace("\r", "\n") for text in texts]
        for name, texts in fields.items()
    }


def one(fields: Fields, name: str) -> str:
    return (fields.get(name) or [""])[0]


def number(fields: Fields, name: str) -> float:
    """Look a number up.

    Returns:
        The number; 0 if the form holds none.
    """
    try:
        found = float(one(fields, name))
    except ValueError:
        return 0.0
    return found if 0 <= found < 1e12 else 0.0


def given_values(task: Task, item: Item, fields: Fields) -> Given:
    """Read the values of an item's fields. A form names options by their position, from 0."""
    given = {}
    for field in task.fields:
        texts = fields.get(PREFIX + field.name, ())
        if texts and field.kind != "text":
            options = options_of(field, item)
            for text in texts:
                if not (text.isascii() and text.isdecimal() and len(text) < 5 and int(text) < len(options)):
                    raise UserError("is not an option", field=field.label or field.name, found=text)
            texts = [options[int(text)] for text in texts]
        given[field.name] = list(texts)
    return given
