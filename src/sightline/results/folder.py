"""Writing a results folder: metrics.json, answers.jsonl, verdicts.jsonl, report.md, the released format."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from sightline.benchmarks.base import Benchmark
from sightline.errors import EnvironmentFailedError
from sightline.formats.atomic_file import AtomicFile, AtomicLineFile
from sightline.formats.export import AnswersToExport
from sightline.formats.files import refuse_unwritable
from sightline.formats.jsonl import answer_line
from sightline.formats.verdicts import verdict_line
from sightline.judging.panel import JudgedGroup
from sightline.metric_types import Result
from sightline.registry import export_formats

FILES = frozenset({"answers.jsonl", "verdicts.jsonl", "metrics.json", "report.md"})
"""The files of every results folder; other files come from the released formats of benchmarks."""


class Lines(NamedTuple):
    """Lines of answers.jsonl and of verdicts.jsonl, each with its line break."""

    answers: bytes
    verdicts: bytes


def lines_of(judged: JudgedGroup) -> Lines:
    """Encode a judged group.

    Args:
        judged: The group.

    Returns:
        Its lines.
    """
    return Lines(
        b"".join([answer_line(outcome) + b"\n" for outcome in judged.group]),
        b"".join([verdict_line(verdict) + b"\n" for verdict in judged.verdicts]),
    )


class ResultsFolder:
    """Writes a results folder while groups are judged; every file appears complete or not at all."""

    def __init__(self, path: str | None) -> None:
        """Choose the folder.

        Args:
            path: The folder; None writes nothing.
        """
        self._path = Path(path) if path else None
        self._stack = ExitStack()

    @staticmethod
    def check(path: str | None) -> None:
        """Check that results can be written.

        Args:
            path: The folder; None writes nothing.

        Raises:
            UserError: The folder cannot be written.
        """
        if path is not None:
            refuse_unwritable(Path(path))

    def __enter__(self) -> Self:
        """Create the folder and open the files that grow with each group."""
        if self._path is not None:
            try:
                self._path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise EnvironmentFailedError(f"{self._path}: cannot be created: {error.strerror}") from None
            self._answers = self._stack.enter_context(AtomicFile(self._path / "answers.jsonl"))
            self._verdicts = self._stack.enter_context(AtomicFile(self._path / "verdicts.jsonl"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the files their names; after an error, remove them."""
        self._stack.__exit__(kind, error, trace)

    def write(self, lines: Lines) -> None:
        """Add lines.

        Args:
            lines: The lines of one or several groups.
        """
        if self._path is not None:
            self._answers.write(lines.answers)
            self._verdicts.write(lines.verdicts)

    def finish(self, result: Result, benchmark: Benchmark, *, report: str, data: Path | None) -> None:
        """Write the files that need the complete result: the metrics, the report, the released format.

        Args:
            result: The result.
            benchmark: The benchmark, which writes its released formats.
            report: The text of report.md.
            data: The data folder; None if there is none.
        """
        if self._path is None:
            return
        self._stack.close()
        with AtomicLineFile(self._path / "metrics.json") as file:
            file.write(msgspec.json.format(msgspec.json.encode(result), indent=1))
        with AtomicLineFile(self._path / "report.md") as file:
            file.write(report.encode())
        path = self._path / "answers.jsonl"
        answers = AnswersToExport(path, data, result.model)
        released = [one for one in benchmark.export_formats.values() if one.file and one.applies(answers)]
        for one in released:
            one.write(answers, self._path / one.file)
        others = {file.name for file in self._path.iterdir()} - FILES - {one.file for one in released}
        # `export_formats` imports all benchmarks, so it is called only if there may be a file to remove.
        if others:
            for name in others & {one.file for one in export_formats().values()}:
                (self._path / name).unlink(missing_ok=True)
