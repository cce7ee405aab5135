"""What adapters need to be installed."""

from __future__ import annotations

from importlib.util import find_spec

from sightline.errors import UserError
from sightline.models.local.checkpoint import INSTALL


def check_installed() -> None:
    """Raise UserError where torch or transformers is missing."""
    for name in ("torch", "transformers", "safetensors"):
        if find_spec(name) is None:
            raise UserError(f"an adapter needs {name}", expected=INSTALL)
