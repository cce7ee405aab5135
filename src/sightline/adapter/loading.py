"""Loads a trained adapter for a local model; the registry names this function."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sightline.adapter.requirements import check_installed

if TYPE_CHECKING:
    from sightline.adapter.saved_adapter import SavedAdapter


def load_adapter(folder: str) -> SavedAdapter:
    """Load the adapter in a folder; torch is imported here, not before."""
    check_installed()
    from sightline.adapter.saved_adapter import SavedAdapter

    return SavedAdapter(Path(folder))
