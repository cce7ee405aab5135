"""The page of an item, for all tasks alike: parts and fields in the order of the task, form, images."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qs

from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from sightline.annotation.links import image_name
from sightline.annotation.live import LiveProject
from sightline.annotation.task import Field, Option, Part, Task
from sightline.annotation.types import Given, Item, ItemImage, can_be_asked, options_of
from sightline.errors import UserError
from sightline.evaluation.run_images import ImageError, RunImages
from sightline.viewer.addresses import NotFoundError
from sightline.viewer.viewer import KEPT, Viewer

LONGEST_BUTTON = 20
"""The most characters of a label in the bar at the bottom of the page, or of options side by side."""

MOST_BUTTONS = 3
"""The most buttons in that bar."""

ALL_STEPS = -1
"""All fields at once, and all parts, as the owner sees an item."""

_DIRECT = ("choice", "pair")


class ShownPart(Struct, frozen=True):
    """A part of an item: its texts, or the URLs of its images."""

    part: Part
    texts: Sequence[str]
    images: Sequence[str]


class ShownOption(Struct, frozen=True):
    """An option: its position in the form, label, key, whether it is chosen; verdicts have a tone."""

    position: int
    label: str
    key: str
    tone: str
    chosen: bool


class ShownField(Struct, frozen=True):
    """A field: its name in the form, its options or its text, and when it is asked (JSON for the script)."""

    field: Field
    name: str
    options: Sequence[ShownOption]
    text: str
    when: str

    @property
    def is_short(self) -> bool:
        """Whether the options can stand side by side."""
        return all(len(option.label) <= LONGEST_BUTTON for option in self.options)


class ItemView(Struct, frozen=True):
    """What a page shows of an item.

    `buttons` is the one field that must be filled in, if its options are buttons that send the form.
    """

    parts: Sequence[ShownPart]
    fields: Sequence[ShownField]
    buttons: ShownField | None
    in_bar: bool
    filled: Sequence[ShownField]
    later: Sequence[ShownField]
    step: int
    steps: int
    can_go_back: bool


def view_item(
    task: Task, item: Item, given: Given, image_url: Callable[[ItemImage], str], step: int
) -> ItemView:
    steps = _steps(task, item)
    filled = [] if step == ALL_STEPS else [field for fields in steps[:step] for field in fields]
    asked = [field for fields in steps for field in fields] if step == ALL_STEPS else steps[step]
    fields = [_shown_field(task, item, field, given) for field in asked]
    needed = [one for one in fields if one.field.required]
    single = needed[0] if len(needed) == 1 and needed[0].field.kind in _DIRECT else None
    return ItemView(
        parts=_shown_parts(
            task,
            item,
            image_url,
            None if step == ALL_STEPS else {one.name for one in filled},
            {field.options_from for of_step in steps[max(step, 0) :] for field in of_step},
        ),
        fields=fields,
        buttons=single,
        in_bar=single is not None and single.is_short and len(single.options) <= MOST_BUTTONS,
        filled=[_shown_field(task, item, field, given) for field in filled],
        later=[]
        if step == ALL_STEPS
        else [_shown_field(task, item, field, given) for of_step in steps[step + 1 :] for field in of_step],
        step=step,
        steps=len(steps),
        can_go_back=step > 0 and can_go_back(task, item, step),
    )


def fields_until(task: Task, item: Item, step: int) -> tuple[Field, ...]:
    return tuple(field for fields in _steps(task, item)[: step + 1] for field in fields)


def can_go_back(task: Task, item: Item, step: int) -> bool:
    before = {field.name for field in _steps(task, item)[step - 1]}
    return all(part.kind == "similar" for part in task.shows if part.after in before)


def steps_of(task: Task, item: Item) -> int:
    return len(_steps(task, item))


def _steps(task: Task, item: Item) -> list[list[Field]]:
    """The fields of each step: a field after which a part is shown ends one."""
    revealing = {part.after for part in task.shows if part.name in item.texts or part.name in item.images}
    steps: list[list[Field]] = [[]]
    for field in task.fields:
        if not can_be_asked(field, item):
            continue
        if steps[-1] and steps[-1][-1].name in revealing:
            steps.append([])
        steps[-1].append(field)
    return steps


def _shown_parts(
    task: Task,
    item: Item,
    image_url: Callable[[ItemImage], str],
    filled: set[str] | None,
    in_fields: Collection[str],
) -> list[ShownPart]:
    """The parts of the item that may be seen with what is filled in; all if `filled` is None.

    `in_fields` are those that are the options of a field now or later; after the choice they are a part.
    """
    parts = [
        ShownPart(
            part, item.texts.get(part.name, ()), [image_url(one) for one in item.images.get(part.name, ())]
        )
        for part in task.shows
        if part.name not in in_fields and (not part.after or filled is None or part.after in filled)
    ]
    return [part for part in parts if part.texts or part.images]


def _shown_field(task: Task, item: Item, field: Field, given: Given) -> ShownField:
    values = given.get(field.name, ())
    texts = field.kind == "text"
    return ShownField(
        field,
        PREFIX + field.name,
        ()
        if texts
        else [_shown_option(task, field, *one, values) for one in enumerate(options_of(field, item))],
        "".join(values) if texts else "",
        json.dumps(_when(task, item, field)) if field.when else "",
    )


def _shown_option(task: Task, field: Field, position: int, value: str, values: Sequence[str]) -> ShownOption:
    declared = next((option for option in field.options if option.value == value), Option(value))
    key = declared.key or (str(position + 1) if position < 9 else "")
    return ShownOption(position, declared.text, key, task.verdict_tone(declared), value in values)


def _when(task: Task, item: Item, field: Field) -> dict[str, list[str]]:
    """Name in the form -> the positions of the options with which the field is asked."""
    positions = {}
    for name, values in field.when.items():
        options = options_of(task.field(name), item)
        positions[PREFIX + name] = [str(at) for at, value in enumerate(options) if value in values]
    return positions


# -- What a form holds: its fields as text, and the values of an item, which it names by their position

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
    """A number of a form; 0 if the form holds none."""
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


# -- The images of items, under names that hold neither path nor digest

MISSING = "This image cannot be shown. If you need it, report the item as broken."
"""Nothing about the file: its path could name a model."""


def item_image(viewer: Viewer, live: LiveProject, request: Request) -> Response:
    """Answer a request for an image of an item: `number` and `name` are in its path."""
    item = live.state.items.get(request.path_params["number"])
    name = request.path_params["name"]
    row = live.row
    for image in (image for images in (item.images.values() if item else ()) for image in images):
        if name.isascii() and hmac.compare_digest(
            name, image_name(row, request.path_params["number"], image.digest)
        ):
            folders = [*([Path(row.project.data)] if row.project.data else []), *viewer.data]
            try:
                found = RunImages(viewer.store, folders).content(image.path, image.digest)
            except ImageError:
                raise NotFoundError(MISSING) from None
            return Response(found.body, media_type=found.media_type, headers={"cache-control": KEPT})
    raise NotFoundError(MISSING)
