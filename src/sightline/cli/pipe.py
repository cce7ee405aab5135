"""What happens where whoever reads standard output has seen enough, as `head` has."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sightline.errors import EnvironmentFailedError


@contextmanager
def until_the_reader_leaves() -> Iterator[None]:
    """Print inside the block; where nobody reads on, the rest of the block is left out.

    EnvironmentFailedError where what is printed cannot be written, as to a full disk.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        stop_writing()
    except OSError as error:
        if error.filename is not None:
            raise
        stop_writing()
        raise EnvironmentFailedError(f"standard output: cannot be written: {error.strerror}") from None


def stop_writing() -> None:
    """What is written to standard output from now on goes nowhere, also what Python writes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
