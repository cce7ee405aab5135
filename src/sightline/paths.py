"""Folders of this machine that Sightline uses besides the user's data and results."""

from __future__ import annotations

from pathlib import Path


def cache_folder() -> Path:
    """Return the user's cache folder: files that Sightline can make again."""
    import platformdirs

    return platformdirs.user_cache_path("sightline", appauthor=False)
