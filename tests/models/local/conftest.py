"""Tiny models for the tests of local ones."""

from __future__ import annotations

from tests.tiny_models import asking, folder, one_thread, pictures

__all__ = ["asking", "folder", "one_thread", "pictures"]
