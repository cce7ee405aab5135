"""Where on this machine Sightline keeps what is no result."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Where what can be made anew is kept for this user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sightline"
