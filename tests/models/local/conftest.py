"""Tiny models for the tests of local ones."""

from __future__ import annotations

from tests.tiny_models import asking, folder, images, one_thread

__all__ = ["asking", "folder", "images", "one_thread"]
