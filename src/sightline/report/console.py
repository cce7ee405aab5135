"""The console on which tables are printed."""

from __future__ import annotations

from rich.console import Console as RichConsole


class Console(RichConsole):
    """One that tells a broken pipe as Python does: rich itself ends the process with status 1."""

    def on_broken_pipe(self) -> None:
        """Say so to whoever printed."""
        raise BrokenPipeError
