"""Quiet while transformers loads: a command's standard error is for what it says itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module


@contextmanager
def without_bars() -> Iterator[None]:
    """Without the progress bar that transformers draws for its weights."""
    logging = import_module("transformers.utils.logging")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
