"""Times as lists show them."""

from __future__ import annotations

import time


def local_time(seconds: float) -> str:
    """Format a time.

    Args:
        seconds: The time, in seconds since 1970.

    Raises:
        ValueError: No calendar reaches that far.
        OverflowError: The same, much farther.
    """
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except OSError as error:
        # No file is at fault, as which an OSError would be reported.
        raise ValueError(f"{seconds} is no time") from error
