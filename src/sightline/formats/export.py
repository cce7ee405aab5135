"""Export formats: answers.jsonl in the layouts that other tools read; each reports what it cannot hold."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from sightline.errors import UserError
from sightline.formats.jsonl import read_outcomes, read_run_metadata, write_plain
from sightline.types import Outcome

T = TypeVar("T")


class AnswersToExport:
    """The answers of one model: their answers.jsonl, the data folder or None, and the model's name or ''.

    The file is read anew in each pass over the answers, so that its size does not matter.
    """

    def __init__(self, file: Path, data: Path | None, model: str) -> None:
        self.file = file
        self.data = data
        self.model = model
        self._made: dict[object, Any] = {}

    def once(self, make: Callable[[AnswersToExport], T]) -> T:
        """Make what several formats need of the answers, at the first call."""
        if make not in self._made:
            self._made[make] = make(self)
        made: T = self._made[make]
        return made

    @property
    def outcomes(self) -> Iterator[Outcome]:
        """The answers, in a new pass. Raises UserError where the file is no answers.jsonl."""
        try:
            yield from read_outcomes(self.file)
        except UserError as error:
            expected = f"{error.expected or 'an answers.jsonl'}; `sightline import` converts other formats"
            raise UserError(
                error.message, file=error.file, record=error.record, field=error.field, expected=expected
            ) from None

    @property
    def first_draws(self) -> Iterator[Outcome]:
        """The answers without repeats, in a new pass."""
        return (outcome for outcome in self.outcomes if outcome.draw == 0)

    def error(self, message: str, outcome: Outcome, **more: Any) -> UserError:
        """Make the error for one answer."""
        return UserError(message, file=self.file, record=outcome.sample, **more)


def _accept(answers: AnswersToExport) -> None:
    """Accept any answers."""


def _always(answers: AnswersToExport) -> bool:
    return True


class ExportFormat(Struct, frozen=True):
    """A layout in which answers are written.

    `write` writes a file and returns what the layout cannot hold, a sentence each. `check` raises UserError
    where `sightline export` must refuse the answers. A format with a `file` is also written under that name
    into results folders, if `applies`.
    """

    summary: str
    write: Callable[[AnswersToExport, Path], list[str]]
    check: Callable[[AnswersToExport], None] = _accept
    file: str = ""
    applies: Callable[[AnswersToExport], bool] = _always


def export(file: Path, layout: ExportFormat, path: Path, data: Path | None, model: str = "") -> list[str]:
    """Write an answers.jsonl in another layout.

    Args:
        model: The model's name; '' takes the name from the metrics.json next to the answers.

    Returns:
        What the layout cannot hold, a sentence each.

    Raises:
        UserError: The answers do not fit the layout; nothing is written then.
    """
    answers = AnswersToExport(file, data, model)
    # A line that cannot be read is found before anything is written.
    deque(answers.outcomes, maxlen=0)
    layout.check(answers)
    return layout.write(answers, path)


def counted_notes(*notes: tuple[int, str]) -> list[str]:
    """Write notes that begin with a count, without those whose count is 0.

    >>> counted_notes((2, "answers of repeats are left out"), (0, "answers failed"))
    ['2 answers of repeats are left out']
    """
    return [f"{count:,} {what}" for count, what in notes if count]


def repeats_note(answers: AnswersToExport) -> tuple[int, str]:
    """Count the repeats, which most layouts cannot hold."""
    return sum(outcome.draw != 0 for outcome in answers.outcomes), "answers of repeats are left out"


def model_name(answers: AnswersToExport) -> str:
    """Name the model: the given name, else that of the run that wrote the answers.

    Raises:
        UserError: Neither is known.
    """
    if answers.model:
        return answers.model
    run = read_run_metadata(answers.file.parent)
    if run is None:
        raise UserError("does not say which model answered", file=answers.file, expected="--model NAME")
    return run.model


def _write_lines(answers: AnswersToExport, path: Path) -> list[str]:
    write_plain(answers.outcomes, path)
    return []


JSONL = ExportFormat('plain lines of {"id", "variant", "draw", "response"}', _write_lines)
