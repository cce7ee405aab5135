"""The annotation projects of the served store: each is kept in memory once it was opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from msgspec import Struct

from sightline.annotation.links import Problem, check, claim_of, crowd_worker, token_of
from sightline.annotation.live import LiveProject
from sightline.annotation.store import AnnotationStore, ProjectRow
from sightline.annotation.types import Annotator
from sightline.errors import visible_lines
from sightline.store.store import Store
from sightline.viewer.addresses import NotFoundError

if TYPE_CHECKING:
    from markupsafe import Markup


class Holder(Struct, frozen=True):
    """Who holds a personal link: the project, the annotator, and all annotators as the store has them now."""

    live: LiveProject
    annotator: Annotator
    annotators: Sequence[Annotator]


class Projects:
    """The annotation projects of a store; threads may share it. The clock returns seconds since 1970.

    `notes` are those of projects that this server started.
    """

    def __init__(
        self, store: Store, clock: Callable[[], float], data: Sequence[Path] = (), base: str = ""
    ) -> None:
        self.annotations = AnnotationStore(store, clock)
        self.data = data
        self.clock = clock
        self.base = base
        self.notes: dict[int, Sequence[str]] = {}
        self._live: dict[int, LiveProject] = {}
        self._lock = Lock()

    def rows(self) -> list[ProjectRow]:
        return self.annotations.projects()[::-1]

    def row(self, number: int) -> ProjectRow:
        """Read a project: whether it is closed may have changed."""
        for row in self.annotations.projects():
            if row.number == number:
                return row
        raise NotFoundError("There is no such project.")

    def live(self, number: int) -> LiveProject:
        with self._lock:
            if number not in self._live:
                self._live[number] = LiveProject(self.annotations, self.row(number), self.clock)
            return self._live[number]

    def holder(self, token: str) -> Holder | Problem:
        claim = claim_of(token)
        if claim is None:
            return "invalid"
        try:
            live = self.live(claim.project)
        except NotFoundError:
            return "invalid"
        annotators = live.annotators()
        found = [one for one in annotators if one.number == claim.annotator]
        problem = check(token, live.row, found[0] if found else None, self.clock())
        return problem or Holder(live, found[0], annotators)

    def worker_token(self, link: Holder, own_id: str) -> str:
        """The token of a worker who opens a crowd link with an id of their own."""
        row = link.live.row
        return token_of(row, crowd_worker(self.annotations, row, link.annotator, own_id))


# -- Guidelines and consent texts: Markdown to HTML, in which HTML, images and links to scripts stay text


@cache
def as_html(markdown: str) -> Markup:
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    reader = (
        MarkdownIt("commonmark", {"html": False})
        .enable("table")
        .disable(["image", "html_block", "html_inline"])
    )
    tokens = reader.parse(visible_lines(markdown))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 1, 6)}"
    # With `html` off, the renderer escapes all text.
    return Markup(reader.renderer.render(tokens, reader.options, {}))
