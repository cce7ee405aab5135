"""What the pages share: the store, its index, what is built for them, the names and images of runs."""

from __future__ import annotations

import hashlib
import queue
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup, escape
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from sightline.evaluation.run_images import NOT_SENT, ImageError
from sightline.evaluation.runs import RunLine
from sightline.reporting.notes import option_text
from sightline.reporting.table import cell_text
from sightline.store.store import Store
from sightline.viewer.addresses import NotFoundError, group_address
from sightline.viewer.data_set import DuplicateSearches
from sightline.viewer.environment import environment, without_servers
from sightline.viewer.group_view import ImageSource, ShownImage
from sightline.viewer.index import OutcomeIndex
from sightline.viewer.index_types import GroupRow, IndexedImage, IndexState, RunSummary
from sightline.viewer.live_run import LiveRuns
from sightline.viewer.plots import chart_image
from sightline.viewer.projects import Projects, as_html


def templates() -> Environment:
    """The templates of the pages, with those of the report."""
    made = environment()
    made.filters |= {
        "option": option_text,
        "cell": cell_text,
        "run_name": run_name,
        "markdown": as_html,
        "raw": escape,
        "breakable": breakable,
        "group_address": group_address,
    }
    return made


def breakable(name: str) -> Markup:
    """Let a long name go on in a new line after a slash, a colon or an underscore."""
    return Markup(re.sub("([/:_])", r"\1<wbr>", str(escape(name))))


class Viewer(Struct, frozen=True):
    """What the pages share."""

    store: Store
    data: Sequence[Path]
    index: OutcomeIndex
    builds: Builds
    live: LiveRuns
    duplicates: DuplicateSearches
    projects: Projects
    templates: Environment
    static: StaticFiles
    is_lasting: bool = True

    def page(self, template: str, context: Mapping[str, Any], status: int = 200) -> Response:
        text = self.templates.get_template(template).render(
            store_name=Path(self.store.name).name, static=self.static.url, **context
        )
        return HTMLResponse(text, status)


Page = Callable[[Viewer, Request], Response]
"""A page: it may block, because pages run in threads."""


# -- Builds indexes and comparisons of runs in the background: one thread, one after the other

READABLE = ("ready", "stale")
"""The steps in which there is an index to show."""

Job = tuple[int, ...]
"""A run to index, or two runs to compare."""


class Builds:
    """What pages asked for. The thread ends with the process."""

    def __init__(self, index: OutcomeIndex) -> None:
        self._index = index
        self._wanted: set[Job] = set()
        self._errors: dict[Job, str] = {}
        self._queue: queue.SimpleQueue[Job] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="index", daemon=True).start()

    def start(self, *runs: int) -> None:
        """Index a run or compare two runs, after what was asked for before."""
        if runs not in self._wanted:
            self._errors.pop(runs, None)
            self._wanted.add(runs)
            self._queue.put(runs)

    def state(self, run: RunSummary) -> IndexState:
        """Say whether the index of a run can be read; an absent or stale one is built."""
        state = run.state
        if state.step in ("absent", "stale") and not state.error:
            self.start(run.run)
        if state.step == "absent" and (run.run,) in self._wanted:
            return IndexState("building")
        return state

    def compared(self, base: int, other: int) -> IndexState:
        """Say whether the comparison of two indexed runs can be read; an absent one is made."""
        if self._index.comparison(base, other) is not None:
            return IndexState("ready")
        if error := self._errors.get((base, other)):
            return IndexState("failed", error=error)
        self.start(base, other)
        return IndexState("building")

    def start_missing(self, runs: Iterable[RunSummary]) -> list[RunSummary]:
        """Build the indexes of all runs that have none, and are finished; returns these runs."""
        missing = [run for run in runs if run.result is None and run.line.is_complete and not run.state.error]
        for run in missing:
            self.start(run.run)
        return missing

    def _work(self) -> None:
        while True:
            job = self._queue.get()
            try:
                if len(job) == 1:
                    self._index.build(*job)
                else:
                    self._index.compare(*job)
            except Exception as error:  # Its page shows the reason.
                self._errors[job] = str(error)
            finally:
                self._wanted.discard(job)


# -- What pages call a run: its name, otherwise its model without the server


def run_name(run: RunLine) -> str:
    return run.name or without_servers(run.model) or f"run {run.number}"


def names_of_two(base: RunLine, other: RunLine) -> tuple[str, str]:
    names = run_name(base), run_name(other)
    if names[0] != names[1]:
        return names
    return f"{names[0]} (run {base.number})", f"{names[1]} (run {other.number})"


# -- Images of runs: their addresses, and why one is not shown

KEPT = "private, max-age=31536000, immutable"
"""What browsers do with an image: its address names one content."""


def card_image(run: int) -> Callable[[GroupRow], str]:
    """The addresses of the thumbnails of the groups of a run; '' for a group without an image to show."""

    def address(row: GroupRow) -> str:
        return f"/runs/{run}/thumbnails/{row.image.digest}" if row.image and row.image.digest else ""

    return address


def shown_images(viewer: Viewer, run: int, *, small: bool = False) -> ImageSource:
    """How the images of a run are shown: the file that was sent, or why there is none."""
    images = viewer.index.images(run)
    kind = "thumbnails" if small else "images"

    def shown(image: IndexedImage) -> ShownImage:
        try:
            file = images.find(image.path, image.digest)
        except ImageError as error:
            return ShownImage(image.path, notice=str(error))
        if not image.digest:
            return ShownImage(image.path, notice=f"{image.path}: the run does not record which image it sent")
        facts = "" if small else f"{file.width} × {file.height} {file.format} · sha256 {file.digest[:8]}…"
        if not image.is_sent:
            facts = " · ".join(filter(None, (facts, NOT_SENT)))
        return ShownImage(image.path, f"/runs/{run}/{kind}/{image.digest}", file.width, file.height, facts)

    return shown


def image(viewer: Viewer, request: Request) -> Response:
    run, digest = request.path_params["run"], request.path_params["digest"]
    found = viewer.index.images(run).content(viewer.index.open(run).image_path(digest), digest)
    return Response(found.body, media_type=found.media_type, headers={"cache-control": KEPT})


def thumbnail(viewer: Viewer, request: Request) -> Response:
    run, digest = request.path_params["run"], request.path_params["digest"]
    body = viewer.index.images(run).thumbnail(viewer.index.open(run).image_path(digest), digest)
    return Response(body, media_type="image/webp", headers={"cache-control": KEPT})


def chart(viewer: Viewer, request: Request) -> Response:
    body = chart_image(request.path_params["name"])
    if body is None:
        raise NotFoundError("This chart is not kept any more: load its page again.")
    return Response(body, media_type="image/png", headers={"cache-control": KEPT})


# -- The pages that wait: for the index of a run, or for a comparison

RunPage = Callable[[Viewer, Request, RunSummary], Response]
"""A page of a run that reads its index."""


def with_index(page: RunPage) -> Page:
    """Make a page of a run wait for the index of the run that its address names."""

    def shown(viewer: Viewer, request: Request) -> Response:
        summary = viewer.index.summary(request.path_params["run"])
        return waiting_page(viewer, request, summary) or page(viewer, request, summary)

    return shown


def waiting_page(viewer: Viewer, request: Request, summary: RunSummary) -> Response | None:
    """The page that is shown until the index of a run can be read; None if it can be read."""
    state = viewer.builds.state(summary)
    if state.step in READABLE:
        return None
    title = f"{run_name(summary.line)} on {summary.line.task}"
    return progress_page(viewer, request, title, state, again=f"/runs/{summary.run}/index")


def progress_page(
    viewer: Viewer, request: Request, title: str, state: IndexState, again: str = ""
) -> Response:
    """The page of something that is being built, or could not be built."""
    query = f"?{request.url.query}" if request.url.query else ""
    context = {"title": title, "state": state, "address": request.url.path + query, "again": again}
    return viewer.page("waiting_page.html", context)


def build_again(viewer: Viewer, request: Request) -> Response:
    run = viewer.index.summary(request.path_params["run"]).run
    viewer.builds.start(run)
    return RedirectResponse(f"/runs/{run}", status_code=303)


# -- The files of the pages: style and scripts, with the digest of the content in their names

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
"""The media type by the ending of a name; other files, as licences, are not served."""
FOREVER = "public, max-age=31536000, immutable"


class StaticFile(Struct, frozen=True):
    """A file: its content and its media type."""

    content: bytes
    media_type: str


class StaticFiles:
    """All static files, by the names in their URLs."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._names: dict[str, str] = {}
        self._files: dict[str, StaticFile] = {}
        for path in paths:
            if path.suffix not in TYPES:
                continue
            content = path.read_bytes()
            name = f"{path.stem}.{hashlib.sha256(content).hexdigest()[:12]}{path.suffix}"
            self._names[path.name] = name
            self._files[name] = StaticFile(content, TYPES[path.suffix])

    def url(self, name: str) -> str:
        return f"/static/{self._names[name]}"

    async def respond(self, request: Request) -> Response:
        file = self._files.get(request.path_params["name"])
        if file is None:
            raise NotFoundError("There is no such file.")
        return Response(file.content, media_type=file.media_type, headers={"cache-control": FOREVER})

    async def icon(self, request: Request) -> Response:
        """Answer the request that browsers send for pages that name no icon, as refusals."""
        return RedirectResponse(self.url("sightline.svg"))
