"""The changes that a page of the docs shows as diffs without line numbers."""

from __future__ import annotations

import re
from pathlib import Path


def diffs(text: str) -> list[tuple[str, str]]:
    """The path and the hunks of each diff block of a text."""
    return re.findall(r"```diff\n--- [^\n]*\n\+\+\+ b/(.*?)\n(@@.*?)```", text, re.DOTALL)


def apply(file: Path, hunks: str) -> None:
    """Apply the hunks of a diff; the old lines of each occur exactly once in the file."""
    text = file.read_text() if file.exists() else ""
    for hunk in hunks.split("@@\n")[1:]:
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] or "\n" for line in lines if not line.startswith("+"))
        new = "".join(line[1:] or "\n" for line in lines if not line.startswith("-"))
        assert not old or text.count(old) == 1, old
        text = text.replace(old, new) if old else new
    file.write_text(text)
