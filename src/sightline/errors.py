"""The one exception for what the user can put right, and the one for environment that failed on the way."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MOST_FOUND = 300
"""Characters that are shown of what was found."""


class UserError(Exception):
    """The input or the call is wrong (exit status 2).

    Carries where it is wrong (`file`, `record`, `field`), what was `found` and what was `expected`; its
    text is the whole message that a user reads.
    """

    def __init__(
        self,
        message: str,
        *,
        file: object = None,
        record: object = None,
        field: str | None = None,
        found: object = None,
        expected: str | None = None,
    ) -> None:
        self.message, self.file, self.record, self.field = message, file, record, field
        self.found, self.expected = found, expected
        super().__init__(self._text())

    def _text(self) -> str:
        place = [
            str(self.file) if self.file is not None else "",
            f"record {self.record}" if self.record is not None else "",
            f"field {self.field}" if self.field is not None else "",
        ]
        where = ", ".join(part for part in place if part)
        text = f"{where}: {self.message}" if where else self.message
        if self.found is not None:
            text += f" (found {_shorten(self.found)})"
        if self.expected is not None:
            text += f"; expected {self.expected}"
        return text


class EnvironmentFailedError(Exception):
    """The environment failed on the way, as when a disk is full (exit status 3).

    Everything that was committed is kept.
    """


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a name that does not exist, with the nearest one that does."""
    names = sorted(known)
    return UserError(
        f"unknown {kind} '{name}'{did_you_mean(name, names)}", expected=f"one of {', '.join(names)}"
    )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """', did you mean ...?' with the nearest known name, case aside; '' where none is near.

    >>> did_you_mean("gpt-4i", ["GPT-4o", "Gemini"])
    ", did you mean 'GPT-4o'?"
    """
    folded = {other.casefold(): other for other in known}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    return f", did you mean '{folded[near[0]]}'?" if near else ""


def _shorten(found: object) -> str:
    """What was found, as Python writes it: long enough for what other libraries say, reason and all."""
    text = repr(found)
    return text if len(text) <= MOST_FOUND else text[: MOST_FOUND - 3] + "..."
