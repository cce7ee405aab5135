"""The owner's pages: projects, one project, its items, and the forms that change it."""

from __future__ import annotations

import io
import secrets
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sightline.annotation.asked import as_given
from sightline.annotation.decisions import decisions_of, ties_of
from sightline.annotation.export import export_project
from sightline.annotation.gold import gold_result, is_gold
from sightline.annotation.invitations import invite, renew, revoke
from sightline.annotation.label_agreement import label_agreement
from sightline.annotation.links import image_name
from sightline.annotation.overview import overview, stuck_sentence
from sightline.annotation.pairwise import mean_kappa, pairwise
from sightline.annotation.types import OWNER, Annotator, ItemImage
from sightline.errors import UserError
from sightline.web.addresses import number_of
from sightline.web.annotation.form_fields import Fields, given_values, one
from sightline.web.annotation.item_images import item_image
from sightline.web.annotation.item_view import ALL_STEPS, view_item
from sightline.web.annotation.owner_view import (
    DAY,
    doubtful_items,
    growth_chart,
    item_text,
    personal_links,
    quality_of,
    said,
    seconds_of,
)
from sightline.web.errors import NotFoundError
from sightline.web.viewer import Viewer

SECTION = "Annotate"
PAGE = 100
MOST_DAYS = 365


def projects_page(viewer: Viewer, request: Request) -> Response:
    """The annotation projects of the store."""
    rows = []
    for row in viewer.projects.rows():
        live = viewer.projects.live(row.number)
        rows.append((row, overview(live.refresh(), live.annotators(), viewer.projects.clock(), growth=0)))
    return viewer.page("projects_page.html", {"section": SECTION, "rows": rows})


def project_page(viewer: Viewer, request: Request) -> Response:
    """A project: progress, agreement, annotators, what to settle, personal links."""
    number = request.path_params["project"]
    row, live = viewer.projects.row(number), viewer.projects.live(number)
    state, annotators = live.refresh(), live.annotators()
    seen = overview(state, annotators, viewer.projects.clock())
    quality = quality_of(seen)
    pairs = pairwise(seen.votes.values())
    base = viewer.projects.base or f"{request.url.scheme}://{request.headers['host']}"
    return viewer.page(
        "project_page.html",
        {
            "section": SECTION,
            "row": row,
            "seen": seen,
            "stuck": stuck_sentence(seen),
            "left": seen.obtainable * (seen.seconds or 0),
            "chart": growth_chart(seen.growth),
            "pairs": pairs,
            "kappa": mean_kappa(pairs),
            "labels": label_agreement(state, annotators),
            "names": {one.number: one.name for one in annotators},
            "gold": sum(is_gold(state, item) for item in state.items.values()),
            "quality": {} if isinstance(quality, str) else {one.annotator: one for one in quality.annotators},
            "doubtful": doubtful_items(state, seen, annotators, quality),
            "links": personal_links(row, annotators, base, viewer.projects.clock()),
        },
    )


def items_page(viewer: Viewer, request: Request) -> Response:
    """The items of a project with their state."""
    live = viewer.projects.live(request.path_params["project"])
    state, annotators = live.refresh(), live.annotators()
    seen = overview(state, annotators, viewer.projects.clock(), growth=0)
    status, after = request.query_params.get("status", ""), number_of(request, "after") or 0
    chosen = (
        seen.broken if status == "broken" else seen.with_status(status) if status else list(seen.decisions)
    )
    following = [number for number in chosen if number > after]
    task, names = live.row.project.task, {one.number: one.name for one in annotators}
    rows = [
        (
            state.items[number],
            item_text(task, state.items[number]),
            seen.decisions[number],
            [(names.get(by, "owner"), entry) for by, entry in state.of_item(number).items()],
            seconds_of(list(state.of_item(number).values())),
        )
        for number in following[:PAGE]
    ]
    counts = {name: len(seen.with_status(name)) for name in ("open", "decided", "tie", "settled")}
    return viewer.page(
        "items_page.html",
        {
            "section": SECTION,
            "row": live.row,
            "rows": rows,
            "status": status,
            "counts": counts | {"broken": len(seen.broken)},
            "total": len(seen.decisions),
            "after": following[PAGE - 1] if len(following) > PAGE else 0,
            "said": said,
        },
    )


def owner_item_page(viewer: Viewer, request: Request) -> Response:
    """An item with its judgements, which the owner can settle."""
    return _item_page(viewer, request)


def settle(viewer: Viewer, request: Request, fields: Fields) -> Response:
    """Decide an item as the owner; then the next one to settle follows."""
    live = viewer.projects.live(request.path_params["project"])
    number = request.path_params["number"]
    if number not in live.state.items:
        raise NotFoundError("There is no such item.")
    task, item = live.row.project.task, live.state.items[number]
    try:
        live.settle(number, given_values(task, item, fields), one(fields, "form"))
    except UserError as error:
        return _item_page(viewer, request, fault=str(error))
    ties = ties_of(decisions_of(live.refresh(), live.annotators()))
    place = f"/projects/{live.row.number}"
    following = next((tie for tie in ties if tie > number), ties[0] if ties else None)
    return RedirectResponse(f"{place}/items/{following}?saved={number}" if following else place, 303)


def invite_annotator(viewer: Viewer, request: Request, fields: Fields) -> Response:
    """Make a personal link."""
    row = viewer.projects.row(request.path_params["project"])
    now = viewer.projects.clock()
    invite(
        viewer.projects.annotations, row, one(fields, "name"), now + _days(fields), role=one(fields, "role")
    )
    return RedirectResponse(f"/projects/{row.number}#links", 303)


def change_annotator(viewer: Viewer, request: Request, fields: Fields) -> Response:
    """Pause, resume, forgive; renew or revoke a link."""
    row, number = viewer.projects.row(request.path_params["project"]), request.path_params["annotator"]
    store, action = viewer.projects.annotations, one(fields, "action")
    if action == "renew":
        renew(store, row, number, viewer.projects.clock() + _days(fields))
    elif action == "revoke":
        revoke(store, row, number)
    else:
        store.change_annotator(row.number, number, _change(viewer, row.number, action))
    return RedirectResponse(
        f"/projects/{row.number}#{'links' if action in ('renew', 'revoke') else 'annotators'}", 303
    )


def close(viewer: Viewer, request: Request, fields: Fields) -> Response:
    """Close a project, or open it again."""
    row = viewer.projects.row(request.path_params["project"])
    viewer.projects.annotations.close(row.number, closed=one(fields, "action") == "close")
    return RedirectResponse(f"/projects/{row.number}", 303)


def export(viewer: Viewer, request: Request) -> Response:
    """The files of `sightline annotate export`, in one archive."""
    live = viewer.projects.live(request.path_params["project"])
    log = viewer.projects.annotations.entries(live.row.number)
    out = io.BytesIO()
    with (
        tempfile.TemporaryDirectory(prefix="sightline-") as scratch,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for path, _ in export_project(live.refresh(), live.annotators(), log, Path(scratch), xlsx=True):
            archive.write(path, path.relative_to(scratch))
    headers = {
        "content-disposition": f'attachment; filename="project-{live.row.number}.zip"',
        "cache-control": "no-store",
    }
    return Response(out.getvalue(), media_type="application/zip", headers=headers)


def owner_image(viewer: Viewer, request: Request) -> Response:
    """An image of an item."""
    return item_image(viewer, viewer.projects.live(request.path_params["project"]), request)


def _item_page(viewer: Viewer, request: Request, fault: str = "") -> Response:
    live, number = viewer.projects.live(request.path_params["project"]), request.path_params["number"]
    state, annotators = live.refresh(), live.annotators()
    if number not in state.items:
        raise NotFoundError("There is no such item.")
    item, task = state.items[number], live.row.project.task
    place = f"/projects/{live.row.number}"

    def url(image: ItemImage) -> str:
        return f"{place}/items/{number}/images/{image_name(live.row, number, image.digest)}"

    entries = state.of_item(number)
    values = entries[OWNER].values if OWNER in entries else {}
    decisions = decisions_of(state, annotators)
    names = {one.number: one.name for one in annotators}
    context = {
        "task": task,
        "item": item,
        "place": place,
        "name": live.row.project.name,
        "view": view_item(task, item, as_given(values), url, ALL_STEPS),
        "entries": [
            (names.get(by, "owner"), entry, said(task, entry.values)) for by, entry in entries.items()
        ],
        "decision": decisions.get(number),
        "ties": ties_of(decisions),
        "form": secrets.token_urlsafe(18),
        "saved": request.query_params.get("saved", ""),
        "fault": fault,
        "said": said,
    }
    response = viewer.page("owner_item_page.html", context, 422 if fault else 200)
    response.headers["cache-control"] = "no-store"
    return response


def _change(viewer: Viewer, project: int, action: str) -> Callable[[Annotator], Annotator]:
    state = viewer.projects.live(project).refresh()
    changes: dict[str, Callable[[Annotator], Annotator]] = {
        "pause": lambda one: replace(one, paused=True),
        "resume": lambda one: replace(one, paused=False, forgiven=gold_result(state, one.number).failures),
    }
    if action not in changes:
        raise UserError("is not known", field="action", found=action, expected=", ".join(changes))
    return changes[action]


def _days(fields: Fields) -> float:
    text = one(fields, "days")
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:6]) <= MOST_DAYS):
        raise UserError("is no number of days", field="days", found=text, expected=f"1 to {MOST_DAYS}")
    return int(text) * DAY
