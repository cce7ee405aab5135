"""The Jinja environment of all HTML, which escapes every text, and how it shows numbers and long texts."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from sightline.errors import needs_extra, visible, visible_lines
from sightline.reporting.table import interval_text, number_text
from sightline.types import IntervalMethod, Unit

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


FOLDER = Path(__file__).parent
TEMPLATES = FOLDER / "templates"


@cache
def environment() -> Environment:
    """The environment of the templates of this package, and of those in other folders.

    Texts pass `visible`, then are escaped. The filter `lines` keeps their line feeds.
    """
    with needs_extra("web", "Jinja2 is not installed"):
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
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


# -- Numbers as a reader sees them in HTML: rounded, with a minus sign, a missing one as a dash

NO_VALUE = "–"


def number(value: float | None, unit: Unit = "percent") -> str:
    """A rounded number; a dash for None.

    >>> number(38.24), number(-0.5, "number"), number(None)
    ('38.2', '−0.500', '–')
    """
    return NO_VALUE if value is None else _minus(number_text(value, unit))


def signed(value: float | None, unit: Unit = "percent") -> str:
    """A rounded difference; a dash for None.

    >>> signed(3.72), signed(-1.81)
    ('+3.7', '−1.8')
    """
    return NO_VALUE if value is None else _minus(number_text(value, unit, sign=True))


def interval(
    low: float | None,
    high: float | None,
    unit: Unit = "percent",
    method: IntervalMethod | None = None,
    *,
    sign: bool = False,
) -> str:
    """A confidence interval.

    >>> interval(33.0, 43.66), interval(-1.8, 9.1, sign=True)
    ('[33.0, 43.7]', '[−1.8, +9.1]')
    """
    return _minus(interval_text(low, high, unit, method, sign=sign))


def _minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


# -- Texts that are too long for a page: their beginning; names of models and judges without their servers

RESPONSE = 1_500
"""The characters of a response or a prompt that a report shows."""

QUESTION = 400
"""The characters of a question, a context, a reference or an option."""

_SERVER = re.compile(r"https?://[^\s,#]+#")


class ShortText(Struct, frozen=True):
    """The beginning of a text; `total` is the number of characters of the whole text."""

    text: str
    total: int

    @property
    def notice(self) -> str:
        """What is left out; '' if nothing is."""
        left_out = self.total - len(self.text)
        return f"[{left_out:,} of {self.total:,} characters are not shown]" if left_out else ""


def shorten(text: str, most: int = RESPONSE) -> ShortText:
    """Shorten a text for display.

    >>> shorten("a long response", 6).notice
    '[9 of 15 characters are not shown]'
    """
    return ShortText(text[:most], len(text))


def without_servers(names: str) -> str:
    """Names of models or judges without the addresses of their servers.

    >>> without_servers("rules, http://localhost:8000/v1#qwen (decides: first)")
    'rules, qwen (decides: first)'
    """
    return _SERVER.sub("", names)


# -- The files of the pages: style and scripts, with the digest of the content in their names
