"""The pages of an annotator: the way in, consent, guidelines, one item a screen, feedback, the end."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from sightline.annotation.asked import Given, as_given
from sightline.annotation.consensus import others_said
from sightline.annotation.eligibility import may_not_work
from sightline.annotation.gold import is_expected
from sightline.annotation.links import form_token, is_form_token
from sightline.annotation.live import NotYourItemError
from sightline.annotation.similar import with_similar
from sightline.annotation.store import ProjectClosedError
from sightline.annotation.task import Task
from sightline.annotation.types import Entry, Item, Values
from sightline.web.annotation.desk import Desk, desk_of
from sightline.web.annotation.form_fields import Fields, one
from sightline.web.annotation.gate import holder_of
from sightline.web.annotation.item_images import item_image
from sightline.web.annotation.item_view import ALL_STEPS, view_item
from sightline.web.annotation.owner_view import said
from sightline.web.errors import NotFoundError
from sightline.web.viewer import Viewer

STOPPED: Mapping[str, str] = {
    "paused": "The owner of this project has paused your items.",
    "gold": "Your items are paused until the owner has looked at your work.",
    "revoked": "Your link has ended.",
}
CLOSED = "This project is closed."
KEPT = "What a page confirmed is saved."


def start(viewer: Viewer, request: Request) -> Response:
    """Where the annotator goes on: consent, guidelines, or the next item."""
    desk = desk_of(viewer, request)
    if desk.needs_consent:
        return desk.go("consent")
    return desk.go("item" if desk.done else "guidelines")


def consent_page(viewer: Viewer, request: Request) -> Response:
    """The text to which annotators consent."""
    desk = desk_of(viewer, request)
    check = form_token(desk.holder.live.row, desk.holder.annotator, 0)
    return desk.page("task_consent_page.html", {"check": check, "given": not desk.needs_consent})


def consent(viewer: Viewer, request: Request, fields: Fields) -> Response:
    """Record that the annotator consents."""
    desk = desk_of(viewer, request)
    live, annotator = desk.holder.live, desk.holder.annotator
    if not is_form_token(one(fields, "check"), live.row, annotator, 0):
        raise NotYourItemError("this form is not one of your pages")
    live.consent(annotator, one(fields, "form"))
    return desk.go("guidelines")


def guidelines_page(viewer: Viewer, request: Request) -> Response:
    """The guidelines, before the first item or again."""
    return desk_of(viewer, request).page("task_guidelines_page.html", {})


def item_page(viewer: Viewer, request: Request) -> Response:
    """The next item of the annotator, or why there is none."""
    desk = desk_of(viewer, request)
    if desk.needs_consent:
        return desk.go("consent")
    if reason := may_not_work(desk.state, desk.holder.annotator):
        return _end(desk, f"{STOPPED[reason]} {KEPT}")
    try:
        item = desk.holder.live.next_item(desk.holder.annotator)
    except ProjectClosedError:
        return _end(desk, f"{CLOSED} {KEPT} Thank you.")
    if item is None:
        return _end(desk, "")
    saved = request.query_params.get("saved", "")
    entry = desk.done.get(int(saved)) if saved.isdecimal() and len(saved) < 16 else None
    gone = request.query_params.get("said") == "gone"
    message = f"{_said(desk, entry)} Press U to undo." if entry else ""
    message = "Undone. Another annotator has the item now." if gone else message
    return show_item(desk, item, _own_values(desk, item), message=message)


def own_item_page(viewer: Viewer, request: Request) -> Response:
    """An item that the annotator has judged, to change it, or has in hand."""
    desk, notice = desk_of(viewer, request), request.query_params.get("said", "")
    try:
        item = desk.holder.live.own_item(desk.holder.annotator, request.path_params["number"])
    except NotYourItemError:
        if notice == "undone":
            return desk.go("item?said=gone")
        raise
    message = {
        "undone": "Undone. The item is open again.",
        "kept": "This form was sent before, and the first version is kept. You can change it here.",
    }.get(notice, "")
    return show_item(desk, item, _own_values(desk, item), message=message)


def feedback_page(viewer: Viewer, request: Request) -> Response:
    """An item of a training phase with the expected values."""
    desk = desk_of(viewer, request)
    item = desk.holder.live.own_item(desk.holder.annotator, request.path_params["number"])
    entry = desk.done.get(item.number)
    if entry is None or entry.action != "judge" or not desk.is_training(item):
        raise NotFoundError("There is no feedback on this item.")
    task = desk.holder.live.row.project.task
    sides = [as_given(entry.values), as_given(item.expected)]
    mine, expected = (view_item(task, item, values, desk.image_url(item), ALL_STEPS) for values in sides)
    known = [
        (field, other, is_expected({field.field.name: item.expected[field.field.name]}, entry.values))
        for field, other in zip(mine.fields, expected.fields, strict=True)
        if field.field.name in item.expected
    ]
    return desk.page(
        "task_feedback_page.html", {"item": item, "view": expected, "known": known, "phase": item.phase}
    )


def image(viewer: Viewer, request: Request) -> Response:
    """An image of an item. A fault names no path."""
    return item_image(viewer, holder_of(request).live, request)


def show_item(
    desk: Desk,
    item: Item,
    given: Given,
    *,
    step: int = 0,
    form: str = "",
    message: str = "",
    fault: str = "",
    status: int = 200,
) -> Response:
    """The page of an item. A step that follows has the `form` of the step before."""
    live, annotator = desk.holder.live, desk.holder.annotator
    item = with_similar(desk.state, item, given)
    order = list(desk.done)
    at = order.index(item.number) if item.number in desk.done else len(order)
    undoable = item.number if item.number in desk.done else order[-1] if order else 0
    context = {
        "item": item,
        "view": view_item(live.row.project.task, item, given, desk.image_url(item), step),
        "check": form_token(live.row, annotator, item.number),
        "shown": f"{desk.viewer.projects.clock():.3f}",
        "phase": item.phase,
        "before": order[at - 1] if at else 0,
        "following": order[at + 1] if at + 1 < len(order) else 0,
        "entry": desk.done.get(item.number),
        "undoable": undoable,
        "undo_check": form_token(live.row, annotator, undoable),
        "others": _others(desk, item),
        "message": message,
        "fault": fault,
    }
    return desk.page("task_item_page.html", context | ({"form": form} if form else {}), status)


def _own_values(desk: Desk, item: Item) -> Given:
    """What a form begins with: the annotator's judgement, or what a model proposes."""
    entry = desk.done.get(item.number)
    return as_given(entry.values if entry and entry.action == "judge" else item.proposal)


def _others(desk: Desk, item: Item) -> list[str]:
    """What the other annotators said about an item that is to be agreed on; nobody is named."""
    task, holder = desk.state.project.task, desk.holder
    found = others_said(desk.state, holder.annotators, holder.annotator, item.number)
    own = desk.done.get(item.number)
    return sorted(_differing(task, entry.values, own.values if own else {}) for entry in found)


def _differing(task: Task, values: Values, own: Values) -> str:
    """What another annotator said otherwise, a line a field; a task with one field needs no labels."""
    if len(task.fields) == 1:
        return said(task, values)
    lines = [
        f"{field.label or field.name}: {said(task, {field.name: values[field.name]})}"
        for field in task.fields
        if values.get(field.name, "") and values.get(field.name) != own.get(field.name)
    ]
    return "\n".join(lines) or "the same as you"


def _end(desk: Desk, reason: str) -> Response:
    """The page without an item: all is done, or why there is nothing now."""
    skipped = [number for number, entry in desk.done.items() if entry.action == "skip"]
    last = next(reversed(desk.done), None)
    return desk.page("task_end_page.html", {"reason": reason, "skipped": skipped, "last": last})


def _said(desk: Desk, entry: Entry) -> str:
    """What an entry says, for the line that confirms it."""
    if entry.action != "judge":
        return "Skipped." if entry.action == "skip" else "Reported as broken."
    task = desk.holder.live.row.project.task
    labels = [
        option.text
        for field in task.fields
        for option in field.options
        if option.value == entry.values.get(field.name)
    ]
    return f"Saved: {', '.join(labels)}." if labels else "Saved."
