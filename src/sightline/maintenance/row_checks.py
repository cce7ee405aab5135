"""Whether the content of single rows is sound: it decodes, and a key is the digest of what it names."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.maintenance import early_rows
from sightline.maintenance.salvage import Check


def checks_of(version: int) -> Mapping[str, Check]:
    """The checks for the rows of a schema version.

    Args:
        version: The version.

    Returns:
        Table -> the check of its rows.
    """
    return early_rows.CHECKS
