"""Loading with transformers and libraries on top of it: without progress bars, with one kind of error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from sightline.errors import UserError


@contextmanager
def without_progress_bar() -> Iterator[None]:
    """Disable the progress bar of transformers inside the block."""
    logging = import_module("transformers.utils.logging")
    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()


@contextmanager
def loading(what: str, folder: Path, *, install: str, expected: str) -> Iterator[None]:
    """Turn every error inside the block into one message for the user; no progress bar is displayed."""
    try:
        with without_progress_bar():
            yield
    except ImportError as error:
        raise UserError(f"{what} needs a missing library", found=str(error), expected=install) from None
    # The libraries raise many types of errors for a folder that they cannot load.
    except Exception as error:
        raise UserError(
            f"{what} cannot be loaded",
            file=folder,
            found=f"{type(error).__name__}: {error}",
            expected=expected,
        ) from error
