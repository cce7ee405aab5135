"""The error of a page that does not exist."""

from __future__ import annotations


class NotFoundError(Exception):
    """There is nothing at this address; the text says what is missing."""
