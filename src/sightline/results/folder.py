"""Writing a results folder: metrics.json, answers.jsonl, verdicts.jsonl, report.md, the released format."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from sightline.benchmarks.base import Benchmark
from sightline.errors import EnvironmentFailedError
from sightline.formats.atomic_file import AtomicFile
from sightline.formats.digests import file_digest
from sightline.formats.export import AnswersToExport
from sightline.formats.files import refuse_unwritable, write_atomically
from sightline.formats.jsonl import answer_line
from sightline.formats.leftovers import sole_writer, temporary_folder
from sightline.formats.verdicts import verdict_line
from sightline.formats.whole_results import METRICS, REPORT, UNFINISHED, written_files
from sightline.judging.panel import JudgedGroup
from sightline.metric_types import Result

ANSWERS, VERDICTS = "answers.jsonl", "verdicts.jsonl"

FILES = frozenset({ANSWERS, VERDICTS, METRICS, REPORT})
"""The files of every results folder; other files come from the released formats of benchmarks."""


class Lines(NamedTuple):
    """Lines of answers.jsonl and of verdicts.jsonl, each with its line break."""

    answers: bytes
    verdicts: bytes


def lines_of(judged: JudgedGroup) -> Lines:
    """Encode a judged group."""
    return Lines(
        b"".join([answer_line(outcome) + b"\n" for outcome in judged.group]),
        b"".join([verdict_line(verdict) + b"\n" for verdict in judged.verdicts]),
    )


class ResultsFolder:
    """Writes a results folder while groups are judged: its files are those of one run, or it is refused.

    All files are written to a temporary folder first. Then metrics.json, which holds their digests, is
    removed, the files get their places, and the new metrics.json comes last.
    """

    def __init__(self, path: str | None) -> None:
        """Choose the folder.

        Args:
            path: The folder; None writes nothing.
        """
        self._path = Path(path) if path else None
        self._stack = ExitStack()
        self._growing = ExitStack()

    @staticmethod
    def check(path: str | None) -> None:
        """Check that results can be written.

        Args:
            path: The folder; None writes nothing.
        """
        if path is not None:
            refuse_unwritable(Path(path))

    def __enter__(self) -> Self:
        """Create the folder and open the files that grow with each group."""
        if self._path is not None:
            self._is_new = not self._path.exists()
            try:
                self._path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise EnvironmentFailedError(f"{self._path}: cannot be created: {error.strerror}") from None
            self._drafts = self._stack.enter_context(temporary_folder(self._path / "results"))
            self._stack.enter_context(self._growing)
            self._answers = self._growing.enter_context(AtomicFile(self._drafts / ANSWERS))
            self._verdicts = self._growing.enter_context(AtomicFile(self._drafts / VERDICTS))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove what did not get its place, and a folder that was made for it."""
        self._stack.__exit__(kind, error, trace)
        if self._path is not None and self._is_new:
            # A folder with files stays.
            with suppress(OSError):
                self._path.rmdir()

    def write(self, judged: JudgedGroup) -> None:
        """Add the lines of a group."""
        if self._path is not None:
            lines = lines_of(judged)
            with self._draft_errors():
                self._answers.write(lines.answers)
                self._verdicts.write(lines.verdicts)

    def finish(self, result: Result, benchmark: Benchmark, *, report: str, data: Path | None) -> None:
        """Write the files that need the complete result, then put all files in their places.

        Args:
            data: The data folder; None if there is none.
        """
        if self._path is None:
            return
        with self._draft_errors():
            self._growing.close()
            write_atomically(self._drafts / REPORT, [report.encode()])
            answers = AnswersToExport(self._drafts / ANSWERS, data, result.model)
            for one in benchmark.export_formats.values():
                if one.file and one.applies(answers):
                    one.write(answers, self._drafts / one.file)
        files = {file.name: file_digest(file) for file in sorted(self._drafts.iterdir())}
        content = {**msgspec.to_builtins(result), "files": files}
        metrics = msgspec.json.format(msgspec.json.encode(content), indent=1)
        try:
            with sole_writer(self._path):
                self._put_in_place(files, metrics)
        except OSError as error:
            raise EnvironmentFailedError(f"{self._path}: cannot be written: {error.strerror}") from None

    @contextmanager
    def _draft_errors(self) -> Iterator[None]:
        """Name the folder in errors of its drafts, which no longer exist when the user reads the message."""
        try:
            yield
        except EnvironmentFailedError as error:
            raise EnvironmentFailedError(str(error).replace(str(self._drafts), str(self._path))) from None

    def _put_in_place(self, files: Collection[str], metrics: bytes) -> None:
        """Replace the files of an earlier run, and no other ones; metrics.json is removed first."""
        assert self._path is not None
        unfinished = self._path / UNFINISHED
        write_atomically(unfinished, [metrics, b"\n"])
        for name in _earlier_files(self._path).difference(files):
            (self._path / name).unlink(missing_ok=True)
        (self._path / METRICS).unlink(missing_ok=True)
        for name in files:
            (self._drafts / name).replace(self._path / name)
        unfinished.replace(self._path / METRICS)


def _earlier_files(folder: Path) -> set[str]:
    """The released formats that an earlier run wrote."""
    return written_files(folder).keys() - FILES
