"""Drawn data know what they are: a file in their folder says that no paper's images lie there."""

from __future__ import annotations

from pathlib import Path

MARKER = ".sightline-mini"
"""The file by which a folder is known as one of ours; it names what was drawn."""


def is_synthetic(folder: Path | None) -> bool:
    """Whether a data folder holds drawn scenes, or is a part of one that does, as a task of MM-R3 is."""
    return folder is not None and any(
        (place / MARKER).is_file() for place in (folder, folder.absolute().parent)
    )
