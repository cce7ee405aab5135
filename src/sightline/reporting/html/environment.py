"""The Jinja environment of all HTML: every text is escaped, and shown as `sightline.visible` shows it."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.errors import needs_extra
from sightline.reporting.html.figures import interval, number, signed
from sightline.reporting.html.short_texts import shorten, without_servers
from sightline.visible import visible, visible_lines

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

FOLDER = Path(__file__).parent
TEMPLATES = FOLDER / "templates"


@cache
def environment(*folders: Path) -> Environment:
    """The environment of the templates of this package, and of those in other folders.

    Texts pass `visible`, then are escaped. The filter `lines` keeps their line feeds.
    """
    with needs_extra("web", "Jinja2 is not installed"):
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    made = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters |= {
        "lines": _lines,
        "shorten": shorten,
        "without_servers": without_servers,
        "number": number,
        "signed": signed,
        "interval": interval,
    }
    return made


@cache
def stylesheet() -> str:
    """The stylesheet of all pages."""
    return (FOLDER / "sightline.css").read_text(encoding="utf-8")


def content_security_policy() -> str:
    """The policy of a self-contained file: no script, no request, this stylesheet, images in data URLs."""
    digest = base64.b64encode(hashlib.sha256(stylesheet().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _shown(value: Any) -> Any:
    """What an expression of a template writes; markup that a macro made stays as it is."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _lines(text: str) -> Markup:
    from markupsafe import escape

    return escape(visible_lines(text))
