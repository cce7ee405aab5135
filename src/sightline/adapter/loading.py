"""Loads a trained adapter for a local model; the registry names this function."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.errors import UserError
from sightline.models.local.load import INSTALL

if TYPE_CHECKING:
    from sightline.adapter.saved_adapter import SavedAdapter


def load_adapter(folder: str) -> SavedAdapter:
    """Load the adapter in a folder; torch is imported here, not before."""
    check_installed()
    from sightline.adapter.saved_adapter import SavedAdapter

    return SavedAdapter(Path(folder))


# -- The libraries that adapters need


def check_installed() -> None:
    for name in ("torch", "transformers", "safetensors"):
        if find_spec(name) is None:
            raise UserError(f"an adapter needs {name}", expected=INSTALL)
