"""The console that prints tables."""

from __future__ import annotations

from rich.console import Console as RichConsole


class Console(RichConsole):
    """A rich console that raises BrokenPipeError for a broken pipe; rich itself exits with status 1."""

    def on_broken_pipe(self) -> None:
        """Raise the error that Python raises.

        Raises:
            BrokenPipeError: Always.
        """
        raise BrokenPipeError
