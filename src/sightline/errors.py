"""The exception for wrong input, and the exception for an environment that fails during a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice

from sightline.secret_text import hide_secrets
from sightline.visible import visible

MAX_FOUND = 300
"""The number of characters of a found value that a message shows."""


class UserError(Exception):
    """The input or the call is wrong, and the user can correct it (exit status 2).

    Its text is the complete message: where (`file`, `record`, `field`), what is wrong, what was `found`
    and what is `expected`. It is one line without control characters and passwords, followed by the lines of
    another program's log that it quotes.
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
        quoted: Sequence[str] = (),
    ) -> None:
        self.message, self.file, self.record, self.field = message, file, record, field
        self.found, self.expected = found, expected
        super().__init__(hide_secrets("\n".join(map(visible, (self._text(), *quoted)))))

    def _text(self) -> str:
        location = [
            str(self.file) if self.file is not None else "",
            f"record {self.record}" if self.record is not None else "",
            f"field {self.field}" if self.field is not None else "",
        ]
        where = ", ".join(part for part in location if part)
        text = f"{where}: {self.message}" if where else self.message
        if self.found is not None:
            text += f" (found {_shorten(self.found)})"
        if self.expected is not None:
            text += f"; expected {self.expected}"
        return text


class NoSuchRecordError(UserError):
    """A run or a group with this number does not exist."""


class EnvironmentFailedError(Exception):
    """The environment fails during a run, such as a full disk or a lost store (exit status 3).

    Everything that was committed before stays in the store. Its text has no passwords and keys.
    """

    def __init__(self, message: str) -> None:
        super().__init__(hide_secrets(message))


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a name that does not exist."""
    names = sorted(known)
    return UserError(
        f"unknown {kind} '{name}'{did_you_mean(name, names)}", expected=f"one of {', '.join(names)}"
    )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A suggestion for a misspelled name.

    Returns:
        ', did you mean ...?' with the most similar name; '' if none is similar.

    >>> did_you_mean("gpt-4i", ["GPT-4o", "Gemini"])
    ", did you mean 'GPT-4o'?"
    """
    folded = {other.casefold(): other for other in known}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    return f", did you mean '{folded[near[0]]}'?" if near else ""


def some_of(names: Collection[str], most: int, *, total: int | None = None, separator: str = ", ") -> str:
    """The first names of a long list, and the number of the others.

    >>> some_of(["a", "b", "c"], 2)
    'a, b and 1 more'
    >>> some_of(["a: no image", "b: no text"], 1, separator="; ")
    'a: no image; and 1 more'
    """
    listed = separator.join(islice(names, most))
    more = (len(names) if total is None else total) - min(len(names), most)
    return f"{listed}{separator.rstrip(', ')} and {more:,} more" if more > 0 else listed


def _shorten(found: object) -> str:
    """A found value as Python writes it, long enough for the messages of other libraries."""
    text = repr(found)
    return text if len(text) <= MAX_FOUND else text[: MAX_FOUND - 3] + "..."


@contextmanager
def needs_extra(extra: str, message: str, file: object = None) -> Iterator[None]:
    """Import packages of an extra; where one is missing, the error names the command that installs it."""
    try:
        yield
    except ImportError:
        raise UserError(message, file=file, expected=f"pip install 'sightline[{extra}]'") from None
