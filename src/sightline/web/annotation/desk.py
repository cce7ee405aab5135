"""What the pages of an annotator share: who asks, the state of the project, the frame of each page."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sightline.annotation.assignment import items_left
from sightline.annotation.links import image_name
from sightline.annotation.state import State
from sightline.annotation.types import Entry, Item, ItemImage
from sightline.web.annotation.gate import ROOT, holder_of
from sightline.web.annotation.projects import Holder
from sightline.web.viewer import Viewer

NOT_KEPT = {"cache-control": "no-store"}
"""A page that a browser kept would hold a form that was sent before."""


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
    def needs_consent(self) -> bool:
        """Whether the annotator has to consent first."""
        task = self.holder.live.row.project.task
        return bool(task.consent) and not self.state.has_consented(self.holder.annotator.number)

    @property
    def done(self) -> Mapping[int, Entry]:
        """The annotator's entries that count, by item."""
        return self.state.of_annotator(self.holder.annotator.number)

    def go(self, path: str) -> Response:
        """Continue at another page of the project."""
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
            "present": [one for one in self.state.project.task.phases if one.name in self.state.phases],
            "done": done,
            "total": done + left,
            "form": secrets.token_urlsafe(18),
        }
        response = self.viewer.page(template, shared | dict(context), status)
        response.headers.update(NOT_KEPT)
        return response


def desk_of(viewer: Viewer, request: Request) -> Desk:
    """Look up who asks."""
    holder = holder_of(request)
    return Desk(viewer, holder, holder.live.refresh())
