"""What the pages share: the store, its index, the templates and the static files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup, escape
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from sightline.engine.store import Store
from sightline.outcome_index.index import OutcomeIndex
from sightline.reporting.html.environment import environment
from sightline.reporting.option_texts import option_text
from sightline.reporting.table_text import cell_text
from sightline.web.annotation.guidelines import as_html
from sightline.web.annotation.projects import Projects
from sightline.web.builds import Builds
from sightline.web.duplicates import DuplicateSearches
from sightline.web.live_run import LiveRuns
from sightline.web.run_title import run_name
from sightline.web.static_files import StaticFiles

FOLDERS = [Path(__file__).parent / "templates", Path(__file__).parent / "annotation" / "templates"]


def templates() -> Environment:
    """The templates of the pages, with those of the report."""
    made = environment(*FOLDERS)
    made.filters |= {
        "option": option_text,
        "cell": cell_text,
        "run_name": run_name,
        "markdown": as_html,
        "raw": escape,
        "breakable": breakable,
    }
    return made


def breakable(name: str) -> Markup:
    """Let a long name go on in a new line after a slash or a colon."""
    return Markup(re.sub("([/:])", r"\1<wbr>", str(escape(name))))


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
