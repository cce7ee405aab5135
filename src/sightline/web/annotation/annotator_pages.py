"""The pages of an annotator: the way in, consent, guidelines, one item a screen, feedback, the end."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sightline.annotation.assignment import items_left
from sightline.annotation.eligibility import may_not_work
from sightline.annotation.gold import is_expected
from sightline.annotation.links import form_token, image_name, is_form_token
from sightline.annotation.live import Form, NotYourItemError
from sightline.annotation.state import State
from sightline.annotation.store import ProjectClosedError
from sightline.annotation.types import Action, Entry, Item
from sightline.annotation.values import Given, checked_values
from sightline.errors import EnvironmentFailedError, UserError
from sightline.web.annotation.form_fields import Fields, as_given, given_values, number, one
from sightline.web.annotation.gate import ROOT, holder_of
from sightline.web.annotation.item_images import item_image
from sightline.web.annotation.item_view import ALL_STEPS, fields_until, steps_of, view_item
from sightline.web.annotation.projects import Holder
from sightline.web.errors import NotFoundError
from sightline.web.viewer import Viewer

NOT_KEPT = {"cache-control": "no-store"}
"""A page that a browser kept would hold a form that was sent before."""

STOPPED: Mapping[str, str] = {
    "paused": "The owner of this project has paused your items.",
    "gold": "Your items are paused until the owner has looked at your work.",
    "revoked": "Your link has ended.",
}
CLOSED = "This project is closed."
FAILED = "The server cannot save now."
KEPT = "What a page confirmed is saved."


class Desk(Struct, frozen=True):
    """What the pages of one request share."""

    viewer: Viewer
    holder: Holder
    state: State

    @property
    def place(self) -> str:
        """The path of the project's pages."""
        return f"{ROOT}/{self.holder.live.row.number}"

    @property
    def done(self) -> Mapping[int, Entry]:
        """The annotator's entries that count, by item."""
        return self.state.of_annotator(self.holder.annotator.number)

    def go(self, path: str) -> Response:
        """Continue at another page of the project."""
        return RedirectResponse(f"{self.place}/{path}", 303)

    def page(self, template: str, context: Mapping[str, Any], status: int = 200) -> Response:
        """Write a page with the annotator's progress."""
        annotator, done = self.holder.annotator, len(self.done)
        left = items_left(self.state, self.holder.annotators, annotator, self.viewer.projects.clock())
        shared = {
            "task": self.holder.live.row.project.task,
            "annotator": annotator.name,
            "place": self.place,
            "present": [one for one in self.state.project.task.phases if one.name in self.state.phases],
            "done": done,
            "total": done + left,
            "form": secrets.token_urlsafe(18),
        }
        response = self.viewer.page(template, shared | dict(context), status)
        response.headers.update(NOT_KEPT)
        return response


def _desk(viewer: Viewer, request: Request) -> Desk:
    holder = holder_of(request)
    return Desk(viewer, holder, holder.live.refresh())


def start(viewer: Viewer, request: Request) -> Response:
    """Where the annotator goes on: consent, guidelines, or the next item."""
    desk = _desk(viewer, request)
    if _needs_consent(desk):
        return desk.go("consent")
    return desk.go("item" if desk.done else "guidelines")


def consent_page(viewer: Viewer, request: Request) -> Response:
    """The text to which annotators consent."""
    desk = _desk(viewer, request)
    check = form_token(desk.holder.live.row, desk.holder.annotator, 0)
    return desk.page("task_consent_page.html", {"check": check, "given": not _needs_consent(desk)})


def consent(viewer: Viewer, request: Request, fields: Fields) -> Response:
    """Record that the annotator consents."""
    desk = _desk(viewer, request)
    live, annotator = desk.holder.live, desk.holder.annotator
    if not is_form_token(one(fields, "check"), live.row, annotator, 0):
        raise NotYourItemError("this form is not one of your pages")
    live.consent(annotator, one(fields, "form"))
    return desk.go("guidelines")


def guidelines_page(viewer: Viewer, request: Request) -> Response:
    """The guidelines, before the first item or again."""
    return _desk(viewer, request).page("task_guidelines_page.html", {})


def item_page(viewer: Viewer, request: Request) -> Response:
    """The next item of the annotator, or why there is none."""
    desk = _desk(viewer, request)
    if _needs_consent(desk):
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
    return _show(desk, item, as_given(item.proposal), message=message)


def own_item_page(viewer: Viewer, request: Request) -> Response:
    """An item that the annotator has judged, to change it, or has in hand."""
    desk, said = _desk(viewer, request), request.query_params.get("said", "")
    try:
        item = desk.holder.live.own_item(desk.holder.annotator, request.path_params["number"])
    except NotYourItemError:
        if said == "undone":
            return desk.go("item?said=gone")
        raise
    entry = desk.done.get(item.number)
    values = entry.values if entry and entry.action == "judge" else item.proposal
    message = {
        "undone": "Undone. The item is open again.",
        "kept": "This form was sent before, and the first version is kept. You can change it here.",
    }.get(said, "")
    return _show(desk, item, as_given(values), message=message)


def feedback_page(viewer: Viewer, request: Request) -> Response:
    """An item of a training phase with the expected values."""
    desk = _desk(viewer, request)
    item = desk.holder.live.own_item(desk.holder.annotator, request.path_params["number"])
    entry = desk.done.get(item.number)
    if entry is None or entry.action != "judge" or not _is_training(desk, item):
        raise NotFoundError("There is no feedback on this item.")
    task = desk.holder.live.row.project.task
    sides = [as_given(entry.values), as_given(item.expected)]
    mine, expected = (view_item(task, item, values, _url(desk, item), ALL_STEPS) for values in sides)
    known = [
        (field, other, is_expected({field.field.name: item.expected[field.field.name]}, entry.values))
        for field, other in zip(mine.fields, expected.fields, strict=True)
        if field.field.name in item.expected
    ]
    return desk.page(
        "task_feedback_page.html", {"item": item, "view": expected, "known": known, "phase": item.phase}
    )


def act(viewer: Viewer, request: Request, fields: Fields) -> Response:
    """Judge, skip, report or undo an item. The page that follows confirms what is committed."""
    desk = _desk(viewer, request)
    live, annotator = desk.holder.live, desk.holder.annotator
    item = desk.state.items.get(request.path_params["number"])
    if item is None or not is_form_token(one(fields, "check"), live.row, annotator, item.number):
        raise NotYourItemError("this form is not one of your pages")
    if _needs_consent(desk):
        return desk.go("consent")
    if stopped := may_not_work(desk.state, annotator):
        return _unsaved(desk, item, fields, STOPPED[stopped], 409)
    try:
        return _acted(desk, item, fields)
    except NotYourItemError as error:
        reason = f"{error.message[:1].upper()}{error.message[1:]}."
        return _unsaved(desk, item, fields, reason, 403, can_send=False)
    except ProjectClosedError:
        return _unsaved(desk, item, fields, CLOSED, 409)
    except EnvironmentFailedError:
        return _unsaved(desk, item, fields, FAILED, 503)
    except UserError as error:
        given = _readable(desk, item, fields)
        return _show(desk, item, given, step=_step(desk, item, fields), fault=str(error), status=422)


def image(viewer: Viewer, request: Request) -> Response:
    """An image of an item. A fault names no path."""
    return item_image(viewer, holder_of(request).live, request)


def _acted(desk: Desk, item: Item, fields: Fields) -> Response:
    live, annotator = desk.holder.live, desk.holder.annotator
    task = live.row.project.task
    action = _action(fields)
    given = given_values(task, item, fields) if action == "judge" else {}
    step = _step(desk, item, fields)
    if action == "judge" and step + 1 < steps_of(task, item):
        checked_values(replace(task, fields=fields_until(task, item, step), records=""), item, given)
        return _show(desk, item, given, step=step + 1, form=one(fields, "form"))
    reason = one(fields, "reason").strip()
    if action in ("skip", "broken") and not reason:
        raise UserError("is empty", field="Reason", expected="why the item is skipped or broken")
    elapsed = max(0.0, desk.viewer.projects.clock() - number(fields, "shown"))
    seconds = min(number(fields, "seconds") or elapsed, elapsed)
    entry = live.submit(annotator, Form(one(fields, "form"), item.number, action, given, seconds, reason))
    if action == "undo":
        return desk.go(f"items/{item.number}?said=undone")
    # A form that was sent before adds nothing; if it says something else now, the annotator must see that.
    if entry.action != action or (action == "judge" and entry.values != checked_values(task, item, given)):
        return desk.go(f"items/{item.number}?said=kept")
    if action == "judge" and _is_training(desk, item):
        return desk.go(f"items/{item.number}/feedback")
    return desk.go(f"item?saved={item.number}")


def _show(
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
    order = list(desk.done)
    at = order.index(item.number) if item.number in desk.done else len(order)
    undoable = item.number if item.number in desk.done else order[-1] if order else 0
    context = {
        "item": item,
        "view": view_item(live.row.project.task, item, given, _url(desk, item), step),
        "check": form_token(live.row, annotator, item.number),
        "shown": f"{desk.viewer.projects.clock():.3f}",
        "phase": item.phase,
        "before": order[at - 1] if at else 0,
        "following": order[at + 1] if at + 1 < len(order) else 0,
        "entry": desk.done.get(item.number),
        "undoable": undoable,
        "undo_check": form_token(live.row, annotator, undoable),
        "message": message,
        "fault": fault,
    }
    return desk.page("task_item_page.html", context | ({"form": form} if form else {}), status)


def _unsaved(
    desk: Desk, item: Item, fields: Fields, reason: str, status: int, *, can_send: bool = True
) -> Response:
    """The page of a form that could not be stored: why, and all that was filled in."""
    task, given = desk.holder.live.row.project.task, _readable(desk, item, fields)
    context = {
        "item": item,
        "reason": reason,
        "view": view_item(task, item, given, _url(desk, item), _step(desk, item, fields)),
        "typed_reason": one(fields, "reason").strip(),
        "can_send": can_send,
        "sent": list(fields.items()),
    }
    return desk.page("task_unsaved_page.html", context, status)


def _end(desk: Desk, reason: str) -> Response:
    """The page without an item: all is done, or why there is nothing now."""
    skipped = [number for number, entry in desk.done.items() if entry.action == "skip"]
    last = next(reversed(desk.done), None)
    return desk.page("task_end_page.html", {"reason": reason, "skipped": skipped, "last": last})


def _needs_consent(desk: Desk) -> bool:
    task = desk.holder.live.row.project.task
    return bool(task.consent) and not desk.state.has_consented(desk.holder.annotator.number)


def _is_training(desk: Desk, item: Item) -> bool:
    return bool(item.expected) and desk.state.project.task.phase(item.phase).kind == "training"


def _url(desk: Desk, item: Item) -> Any:
    row = desk.holder.live.row
    return lambda one: f"{desk.place}/items/{item.number}/images/{image_name(row, item.number, one.digest)}"


def _action(fields: Fields) -> Action:
    action = one(fields, "action") or "judge"
    for known in get_args(Action):
        if action == known and known != "consent":
            found: Action = known
            return found
    raise UserError("is not known", field="action", found=action)


def _step(desk: Desk, item: Item, fields: Fields) -> int:
    most = steps_of(desk.holder.live.row.project.task, item) - 1
    return min(int(number(fields, "step")), most)


def _readable(desk: Desk, item: Item, fields: Fields) -> Given:
    try:
        return given_values(desk.holder.live.row.project.task, item, fields)
    except UserError:
        return {}


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
