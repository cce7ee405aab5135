"""Guidelines and consent texts: Markdown to HTML, in which HTML, images and links to scripts stay text."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from sightline.visible import visible_lines

if TYPE_CHECKING:
    from markupsafe import Markup


@cache
def as_html(markdown: str) -> Markup:
    """Write a text of a task as HTML."""
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
