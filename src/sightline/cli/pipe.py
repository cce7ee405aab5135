"""Standard output that is closed early, as by `head`, or cannot be written."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from sightline.errors import EnvironmentFailedError


@contextmanager
def output_errors() -> Iterator[None]:
    """Handle errors of standard output inside the block: a closed pipe ends the block without an error.

    Yields:
        None.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
    except OSError as error:
        if error.filename is not None:
            raise
        discard_output()
        raise EnvironmentFailedError(f"standard output: cannot be written: {error.strerror}") from None


def discard_output() -> None:
    """Discard everything that is written to standard output from now on, also by Python at exit."""
    _discard(sys.stdout)


def flush_output() -> None:
    """Write what is buffered; what cannot be written is discarded, or Python would change the exit status."""
    for stream in (sys.stdout, sys.stderr):
        # None in a process without the stream.
        if stream is not None:
            try:
                stream.flush()
            except OSError:
                _discard(stream)


def _discard(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
