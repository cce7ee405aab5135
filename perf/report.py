"""What a script measures: tables and notes, printed as they come and saved for docs/performance.md."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec
from msgspec import Struct, field


class Table(Struct):
    """A table of measured values.

    Attributes:
        title: What the rows are; '' where the script has one table only.
        columns: The heads; the first column names the row.
        rows: Formatted values.
    """

    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)

    def markdown(self) -> list[str]:
        """Format the table.

        Returns:
            The lines; numbers are aligned to the right.
        """
        rule = ["---", *["---:"] * (len(self.columns) - 1)]
        return [_line(cells) for cells in (self.columns, rule, *self.rows)]


class Report(Struct):
    """The results of one script.

    Attributes:
        tables: The tables.
        notes: Sentences that hold what no table has.
    """

    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def table(self, title: str, *columns: str) -> None:
        """Begin a table, and print its head.

        Args:
            title: What the rows are.
            columns: The heads.
        """
        self.tables.append(Table(title, list(columns)))
        print("\n".join(["", *([title] if title else []), *self.tables[-1].markdown()]), flush=True)

    def row(self, *cells: str) -> None:
        """Add a row to the last table, and print it.

        Args:
            cells: The formatted values, one for each column.
        """
        assert len(cells) == len(self.tables[-1].columns), cells
        self.tables[-1].rows.append(list(cells))
        print(_line(cells), flush=True)

    def note(self, text: str) -> None:
        """Add a sentence, and print it.

        Args:
            text: The sentence.
        """
        self.notes.append(text)
        print(text, flush=True)

    def save(self, file: Path | None) -> None:
        """Write the report.

        Args:
            file: The file; None writes nothing.
        """
        if file is not None:
            file.write_bytes(msgspec.json.encode(self))


def new_parser(doc: str | None) -> argparse.ArgumentParser:
    """Make the parser of a script, with the option that saves its results.

    Args:
        doc: The docstring of the script.

    Returns:
        The parser.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to FILE")
    return parser


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
