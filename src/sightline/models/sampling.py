"""What is no sampling option of a call."""

from __future__ import annotations

from collections.abc import Iterable

from sightline.errors import UserError

PROTOCOL = ("model", "messages", "n", "stream", "tools", "functions")
"""Fields of a call that say what is asked and how; they are not the user's to set."""


def refuse_protocol(names: Iterable[str]) -> None:
    """Raise UserError for a sampling option that would change what is asked."""
    for name in names:
        if name in PROTOCOL:
            raise UserError(f"--gen {name} is no sampling option", expected="what is asked stays as it is")
