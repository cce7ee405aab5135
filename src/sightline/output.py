"""Lines on standard output and standard error: no other module prints a text that it has not escaped.

The passwords of database URLs are hidden in them.
"""

from __future__ import annotations

import sys

from sightline.secret_text import hide_secrets
from sightline.visible import visible


def print_line(text: str = "") -> None:
    """Print one line on standard output; a line break within the text is shown as an escape."""
    print(hide_secrets(visible(text)))


def print_url(name: str, url: str) -> None:
    """Print a URL with its token, which other lines hide: whoever started the command needs it."""
    print(f"{hide_secrets(visible(name))}: {visible(url)}")


def print_note(text: str) -> None:
    """Print one line on standard error; a line break within the text is shown as an escape."""
    print(hide_secrets(visible(text)), file=sys.stderr, flush=True)


def print_document(text: str) -> None:
    """Print a document on standard output whose writer has escaped the texts in it."""
    print(text, end="")
