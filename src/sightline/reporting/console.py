"""The console that prints tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment


class Console(RichConsole):
    """A rich console that raises BrokenPipeError for a broken pipe; rich itself exits with status 1."""

    def on_broken_pipe(self) -> None:
        """Raise the error that Python raises."""
        raise BrokenPipeError


class WithoutPadding:
    """A renderable without the spaces that rich adds at the ends of lines."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: RichConsole, options: ConsoleOptions) -> Iterator[Segment]:
        """Render the lines."""
        for line in console.render_lines(self._renderable, options, pad=False):
            while line and not line[-1].text.rstrip(" "):
                line.pop()
            if line:
                last = line.pop()
                line.append(Segment(last.text.rstrip(" "), last.style, last.control))
            yield from line
            yield Segment.line()
