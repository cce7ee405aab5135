"""Tiny models and training data for the tests of adapters."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tiny_models import asking, folder, images, one_thread

__all__ = ["asking", "folder", "images", "one_thread"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Groups to train on."""
    from tests.adapter.training import write_groups

    return write_groups(tmp_path / "data", seed=0)
