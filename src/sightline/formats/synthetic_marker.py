"""The marker file of synthetic data: it says that a folder holds no images of a paper."""

from __future__ import annotations

from pathlib import Path

MARKER = ".sightline-mini"
"""The name of the marker file; it names the synthetic benchmark."""


def is_synthetic(folder: Path | None) -> bool:
    """Whether a data folder holds synthetic scenes.

    Args:
        folder: The data folder, or a part of one such as a task of MM-R3; None if there is none.
    """
    return folder is not None and any((one / MARKER).is_file() for one in (folder, folder.absolute().parent))
