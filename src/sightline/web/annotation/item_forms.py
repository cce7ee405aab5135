"""The form of an item: judge, skip, report or undo; and what it says when nothing could be stored."""

from __future__ import annotations

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from sightline.annotation.asked import Given
from sightline.annotation.eligibility import may_not_work
from sightline.annotation.links import is_form_token
from sightline.annotation.live import Form, NotYourItemError
from sightline.annotation.similar import with_similar
from sightline.annotation.store import ProjectClosedError
from sightline.annotation.types import Action, Item
from sightline.annotation.values import checked_values
from sightline.errors import EnvironmentFailedError, UserError
from sightline.web.addresses import read_word
from sightline.web.annotation.annotator_pages import CLOSED, STOPPED, show_item
from sightline.web.annotation.desk import Desk, desk_of
from sightline.web.annotation.form_fields import Fields, given_values, number, one
from sightline.web.annotation.item_view import can_go_back, fields_until, steps_of, view_item
from sightline.web.viewer import Viewer

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
