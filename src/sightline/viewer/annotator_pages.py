"""The pages of an annotator: the way in, consent, guidelines, one item a screen, feedback, the end."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sightline.annotation.assignment import (
    is_for,
    is_test_over,
    items_left,
    may_not_work,
    passing,
    result_of_test,
)
from sightline.annotation.decisions import Match, gold_result, match_of, others_said
from sightline.annotation.links import form_token, image_name, is_form_token
from sightline.annotation.live import Form, NotYourItemError, checked_values, with_similar
from sightline.annotation.state import State
from sightline.annotation.store import ProjectClosedError
from sightline.annotation.task import Task
from sightline.annotation.types import Action, Entry, Given, Item, ItemImage, Values, as_given
from sightline.errors import EnvironmentFailedError, UserError
from sightline.viewer.access import NOT_KEPT, ROOT, holder_of
from sightline.viewer.addresses import NotFoundError, read_word
from sightline.viewer.annotation_items import (
    ALL_STEPS,
    Fields,
    can_go_back,
    fields_until,
    given_values,
    item_image,
    number,
    one,
    steps_of,
    view_item,
)
from sightline.viewer.owner_pages import said
from sightline.viewer.projects import Holder
from sightline.viewer.viewer import Viewer

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
    desk = desk_of(viewer, request)
    check = form_token(desk.holder.live.row, desk.holder.annotator, 0)
    return desk.page("task_consent_page.html", {"check": check, "given": not desk.needs_consent})


def consent(viewer: Viewer, request: Request, fields: Fields) -> Response:
    desk = desk_of(viewer, request)
    live, annotator = desk.holder.live, desk.holder.annotator
    if not is_form_token(one(fields, "check"), live.row, annotator, 0):
        raise NotYourItemError("this form is not one of your pages")
    live.consent(annotator, one(fields, "form"))
    return desk.go("guidelines")


def guidelines_page(viewer: Viewer, request: Request) -> Response:
    desk = desk_of(viewer, request)
    state, annotator = desk.state, desk.holder.annotator
    phases = [one.name for one in state.project.task.phases if one.kind == "qualification"]
    tests = {
        name: (
            sum(item.phase == name and is_for(item, annotator) for item in state.items.values()),
            passing(state, annotator, name),
        )
        for name in phases
    }
    return desk.page("task_guidelines_page.html", {"tests": tests})


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
        return _end(desk, _test_sentence(desk))
    saved = request.query_params.get("saved", "")
    entry = desk.done.get(int(saved)) if saved.isdecimal() and len(saved) < 16 else None
    gone = request.query_params.get("said") == "gone"
    message = f"{_said(desk, entry)}{_undo_hint(desk, entry)}" if entry else ""
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
        (field, other, _match(desk, item, entry, field.field.name))
        for field, other in zip(mine.fields, expected.fields, strict=True)
        if field.field.name in item.expected
    ]
    return desk.page(
        "task_feedback_page.html", {"item": item, "view": expected, "known": known, "phase": item.phase}
    )


def _match(desk: Desk, item: Item, entry: Entry, name: str) -> Match:
    """How one field of a training item compares with its expected value."""
    return match_of(desk.state, replace(item, expected={name: item.expected[name]}), entry.values)


def image(viewer: Viewer, request: Request) -> Response:
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
    undoable = 0 if undoable in desk.final else undoable
    is_final = item.number in desk.final
    step = ALL_STEPS if is_final else step
    context = {
        "item": item,
        "view": view_item(live.row.project.task, item, given, desk.image_url(item), step),
        "check": form_token(live.row, annotator, item.number),
        "shown": f"{desk.viewer.projects.clock():.3f}",
        "phase": item.phase,
        "before": order[at - 1] if at else 0,
        "following": order[at + 1] if at + 1 < len(order) else 0,
        "entry": desk.done.get(item.number),
        "is_final": is_final,
        "is_test": live.row.project.task.phase(item.phase).kind == "qualification",
        "needed": passing(desk.state, annotator, item.phase),
        "undoable": undoable,
        "undo_check": form_token(live.row, annotator, undoable),
        "others": _others(desk, item),
        "has_new_guidelines": desk.state.has_new_guidelines(annotator.number),
        "message": message,
        "fault": fault,
    }
    return desk.page("task_item_page.html", context | ({"form": form} if form else {}), status)


def _undo_hint(desk: Desk, entry: Entry) -> str:
    return "" if entry.item in desk.final else " Press U to undo."


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
    # Who was paused or failed a test gets no code: the owner decides. A closed project has taken the work.
    # Nor does who judged nothing: there is no work to pay for.
    live, annotator = desk.holder.live, desk.holder.annotator
    has_judged = any(entry.action == "judge" for entry in desk.done.values())
    is_over = has_judged and (not reason or reason.startswith(CLOSED))
    code = annotator.code if is_over else ""
    if code and not annotator.code_shown:
        desk.viewer.projects.annotations.change_annotator(
            live.row.number, annotator.number, lambda one: replace(one, code_shown=True)
        )
    context = {"reason": reason, "skipped": skipped, "last": last, "code": code}
    return desk.page("task_end_page.html", context | {"unpaid": bool(annotator.crowd) and not has_judged})


def _test_sentence(desk: Desk) -> str:
    """Why a test keeps the annotator from the work; '' if none does."""
    state, annotator = desk.state, desk.holder.annotator
    for phase in state.project.task.phases:
        result = result_of_test(state, annotator, phase.name)
        found = gold_result(state, annotator.number, phase.name)
        if result == "failed":
            needed = passing(state, annotator, phase.name)
            return (
                f"You have finished the test: {found.right} of your answers are as expected, and {needed} are"
                " needed. No items follow. Thank you."
            )
        if result == "waiting":
            many = "1 of your answers" if found.waiting == 1 else f"{found.waiting} of your answers"
            return (
                f"You have finished the test. Only a human can compare {many} with the expected ones, so the"
                " owner of this project decides. Open your link again later: if you pass, your items follow."
            )
    return ""


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


# -- What the pages of an annotator share: who asks, the state of the project, the frame of each page


class Desk(Struct, frozen=True):
    """What the pages of one request share."""

    viewer: Viewer
    holder: Holder
    state: State

    @property
    def place(self) -> str:
        return f"{ROOT}/{self.holder.live.row.number}"

    @property
    def needs_consent(self) -> bool:
        task = self.holder.live.row.project.task
        return bool(task.consent) and not self.state.has_consented(self.holder.annotator.number)

    @property
    def done(self) -> Mapping[int, Entry]:
        """The annotator's entries that count, by item."""
        return self.state.of_annotator(self.holder.annotator.number)

    @property
    def final(self) -> Collection[int]:
        """The items of tests that are over: their answers stay."""
        annotator, tasks = self.holder.annotator, self.state.project.task
        over = {phase.name for phase in tasks.phases if is_test_over(self.state, annotator, phase.name)}
        return {number for number in self.done if self.state.items[number].phase in over}

    def go(self, path: str) -> Response:
        return RedirectResponse(f"{self.place}/{path}", 303)

    def image_url(self, item: Item) -> Callable[[ItemImage], str]:
        row = self.holder.live.row
        return lambda one: (
            f"{self.place}/items/{item.number}/images/{image_name(row, item.number, one.digest)}"
        )

    def is_training(self, item: Item) -> bool:
        """Whether an item is one of a training phase, after which the expected values are shown."""
        return bool(item.expected) and self.state.project.task.phase(item.phase).kind == "training"

    def page(self, template: str, context: Mapping[str, Any], status: int = 200) -> Response:
        """Write a page with the annotator's progress."""
        annotator, done = self.holder.annotator, len(self.done)
        left = items_left(self.state, self.holder.annotators, annotator, self.viewer.projects.clock())
        shared = {
            "task": self.holder.live.row.project.task,
            "annotator": annotator.name,
            "place": self.place,
            "guidelines": self.state.guidelines,
            "version": 1 + len(self.state.versions),
            "present": [one for one in self.state.project.task.phases if one.name in self.state.phases],
            "done": done,
            "total": done + left,
            "form": secrets.token_urlsafe(18),
        }
        response = self.viewer.page(template, shared | dict(context), status)
        # A page that a browser kept would hold a form that was sent before.
        response.headers.update(NOT_KEPT)
        return response


def desk_of(viewer: Viewer, request: Request) -> Desk:
    holder = holder_of(request)
    return Desk(viewer, holder, holder.live.refresh())


# -- The form of an item: judge, skip, report or undo; and what it says when nothing could be stored

FAILED = "The server cannot save now."

EARLIER = "earlier"
"""The action of a form that leads back to the step before; it is no action of the log."""

ON_ITEMS: tuple[Action, ...] = ("judge", "skip", "broken", "undo")
"""The actions of the form of an item that the log has."""


def act(viewer: Viewer, request: Request, fields: Fields) -> Response:
    """Judge, skip, report or undo an item. The page that follows confirms what is committed."""
    desk = desk_of(viewer, request)
    live, annotator = desk.holder.live, desk.holder.annotator
    item = desk.state.items.get(request.path_params["number"])
    if item is None or not is_form_token(one(fields, "check"), live.row, annotator, item.number):
        raise NotYourItemError("this form is not one of your pages")
    if desk.needs_consent:
        return desk.go("consent")
    item = with_similar(desk.state, item, _readable(desk, item, fields))
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
        return show_item(desk, item, given, step=_step(desk, item, fields), fault=str(error), status=422)


def _acted(desk: Desk, item: Item, fields: Fields) -> Response:
    live, annotator = desk.holder.live, desk.holder.annotator
    task = live.row.project.task
    step = _step(desk, item, fields)
    if one(fields, "action") == EARLIER and step and can_go_back(task, item, step):
        given = given_values(task, item, fields)
        return show_item(desk, item, given, step=step - 1, form=one(fields, "form"))
    if one(fields, "action") == "remark":
        live.remark(annotator, item.number, one(fields, "remark"), one(fields, "form"))
        given = given_values(task, item, fields)
        return show_item(desk, item, given, step=step, message="Your remark is sent to the owner.")
    action = _action(fields)
    given = given_values(task, item, fields) if action == "judge" else {}
    if action == "judge" and step + 1 < steps_of(task, item):
        checked_values(replace(task, fields=fields_until(task, item, step), records=""), item, given)
        return show_item(desk, item, given, step=step + 1, form=one(fields, "form"))
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
    if action == "judge" and desk.is_training(item):
        return desk.go(f"items/{item.number}/feedback")
    return desk.go(f"item?saved={item.number}")


def _unsaved(
    desk: Desk, item: Item, fields: Fields, reason: str, status: int, *, can_send: bool = True
) -> Response:
    """The page of a form that could not be stored: why, and all that was filled in."""
    task, given = desk.holder.live.row.project.task, _readable(desk, item, fields)
    context = {
        "item": item,
        "reason": reason,
        "view": view_item(task, item, given, desk.image_url(item), _step(desk, item, fields)),
        "typed_reason": one(fields, "reason").strip(),
        "can_send": can_send,
        "sent": list(fields.items()),
    }
    return desk.page("task_unsaved_page.html", context, status)


def _action(fields: Fields) -> Action:
    return read_word("action", one(fields, "action") or "judge", ON_ITEMS)


def _step(desk: Desk, item: Item, fields: Fields) -> int:
    most = steps_of(desk.holder.live.row.project.task, item) - 1
    return min(int(number(fields, "step")), most)


def _readable(desk: Desk, item: Item, fields: Fields) -> Given:
    try:
        return given_values(desk.holder.live.row.project.task, item, fields)
    except UserError:
        return {}
