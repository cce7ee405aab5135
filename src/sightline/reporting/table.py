"""Tables: their cells and columns, and how a terminal shows them."""

from __future__ import annotations

import csv
import io
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import IO, Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from rich import box
from rich.cells import cell_len
from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from sightline.errors import hide_secrets, visible, visible_lines
from sightline.text import for_csv, for_json, print_line
from sightline.types import IntervalMethod, MetricValue, PublishedValue, Unit, is_approximate


class Value(Struct, frozen=True):
    """A number of a run with its 95 % CI and the method of that; None if it is undefined, or has no interval.

    `difference` is the distance from the number in the first half of the row; None if there is none. If
    undecided verdicts leave the number open, `other_end` is the number if all of them were right.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    unit: Unit = "percent"
    interval: IntervalMethod | None = None
    difference: float | None = None
    other_end: float | None = None


class PublishedCell(Struct, frozen=True):
    """A figure of a paper; `difference` is this run's value minus it."""

    figure: PublishedValue
    difference: float | None
    unit: Unit = "percent"


class PValue(Struct, frozen=True):
    """A p-value, 0-1; None if its test is undefined."""

    value: float | None


Cell = str | int | float | Value | PublishedCell | PValue | None
"""A bare number is a count, None an empty cell."""


class Column(Struct, frozen=True):
    """A column of cells of one kind; one that is `aside` is left out of a first view that is too wide."""

    kind: Literal["text", "count", "value", "published", "spread", "p_value"]
    head: str
    key: str
    differences: bool = True
    aside: bool = False


class ReportTable(Struct, frozen=True):
    """A title, columns, rows of cells with unrounded numbers, and what is said about them.

    Attributes:
        notes: What holds for these values, the worst first.
        lead: What the table shows, in a sentence between title and table.
        legend: What metrics, marks and methods mean, and the options of the runs.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    lead: str = ""
    legend: tuple[str, ...] = ()

    @property
    def all_notes(self) -> tuple[str, ...]:
        return (*self.notes, *self.legend)


def heading(*lines: str) -> str:
    """A heading of several lines, some of which come from data."""
    return "\n".join(map(visible, lines))


def visible_table(table: ReportTable) -> ReportTable:
    """A table for a display: all texts as a reader sees them."""

    def head(text: str) -> str:
        return "\n".join(line.strip() for line in visible_lines(text).split("\n"))

    return ReportTable(
        visible(table.title).strip(),
        tuple(replace(column, head=head(column.head)) for column in table.columns),
        tuple(
            tuple(visible(cell).strip() if isinstance(cell, str) else cell for cell in row)
            for row in table.rows
        ),
        tuple(visible(note).strip() for note in table.notes),
        visible(table.lead).strip(),
        tuple(visible(note).strip() for note in table.legend),
    )


_Record = TypeVar("_Record")
Field = tuple[Column, Callable[[_Record], Cell]]
"""A column, and the function that makes its cell from a record."""


def build_table(
    title: str,
    fields: Sequence[Field[_Record]],
    rows: Iterable[_Record],
    notes: Sequence[str],
    legend: Sequence[str] = (),
) -> ReportTable:
    columns = tuple(column for column, _ in fields)
    cells = tuple(tuple(cell(row) for _, cell in fields) for row in rows)
    return ReportTable(title, columns, cells, tuple(notes), legend=tuple(legend))


def estimate(metric: MetricValue) -> Value:
    return Value(metric.value, metric.low, metric.high, metric.unit, metric.interval)


def value_cell(metric: MetricValue | None) -> Cell:
    """The cell of a value with its interval; empty for None."""
    return None if metric is None else estimate(metric)


def n_cell(metric: MetricValue | None) -> Cell:
    """The cell of the number that a metric averages over; empty for None."""
    if metric is None:
        return None
    return int(metric.n) if metric.n == int(metric.n) else metric.n


def clusters_cell(metric: MetricValue | None) -> Cell:
    """The cell of the number of clusters; empty for None."""
    return None if metric is None else metric.clusters


def size_fields(of: Callable[[Any], MetricValue | None], n: str = "n") -> list[Field[Any]]:
    """The columns of the number that a metric averages over, called `n`, and of its clusters."""
    return [
        (Column("count", n, "n"), lambda row: n_cell(of(row))),
        (Column("count", "clusters", "clusters"), lambda row: clusters_cell(of(row))),
    ]


def published_cell(metric: MetricValue | None, value: PublishedValue | None) -> Cell:
    """The cell of a published figure; empty without the value of this run or the figure."""
    if metric is None or value is None:
        return None
    difference = None if metric.value is None else metric.value - value.value
    return PublishedCell(value, difference, metric.unit)


# -- Report tables as text cells, CSV and JSON

DECIMALS: dict[Unit, int] = {"percent": 1, "points": 1, "number": 3}
"""The decimals of each unit in text."""

LEAST_P_VALUE = 0.001
"""Smaller p-values are printed as smaller than this."""

MARKS = ("*", "†")
"""The marks of published figures."""


def number_text(value: float, unit: Unit = "percent", *, sign: bool = False) -> str:
    """A rounded number; nothing has a minus if it rounds to zero."""
    return f"{value:{'+' if sign else ''}z.{DECIMALS[unit]}f}"


def interval_text(
    low: float | None,
    high: float | None,
    unit: Unit = "percent",
    method: IntervalMethod | None = None,
    *,
    sign: bool = False,
) -> str:
    """A confidence interval, with '~' if it is approximate; '' without bounds.

    >>> interval_text(-1.8, 9.1, sign=True), interval_text(17.3, 25.7, method="wilson, approximate")
    ('[-1.8, +9.1]', '~[17.3, 25.7]')
    """
    if low is None or high is None:
        return ""
    mark = "~" if is_approximate(method) else ""
    return f"{mark}[{number_text(low, unit, sign=sign)}, {number_text(high, unit, sign=sign)}]"


def p_value_text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if value >= LEAST_P_VALUE else f"<{LEAST_P_VALUE}"


def parts(cell: Cell, column: Column) -> tuple[str, ...]:
    """A cell as a reader sees it: rounded, in the parts that are aligned in a column.

    A value, its interval and its difference; a published figure with its mark, and the difference; otherwise
    one part.

    Returns:
        The parts; none for an empty cell.
    """
    match cell:
        case None:
            return ()
        case PValue(value):
            return (p_value_text(value),)
        case Value(value=None):
            return ("-",)
        case Value(other_end=float(end)):
            ends = sorted((cell.value or 0.0, end))
            return (" to ".join(number_text(one, cell.unit) for one in ends),)
        case Value():
            number = number_text(cell.value or 0.0, cell.unit)
            difference = cell.difference
            more = interval_text(cell.low, cell.high, cell.unit, cell.interval)
        case PublishedCell():
            number = f"{number_text(cell.figure.value, cell.unit)}{cell.figure.mark}"
            difference, more = cell.difference if column.differences else None, ""
        case _:
            return (cell if isinstance(cell, str) else f"{cell:,}",)
    change = "" if difference is None else f"({number_text(difference, cell.unit, sign=True)})"
    return tuple(filter(None, (number, more, change)))


def cell_text(cell: Cell, column: Column) -> str:
    """A cell as a reader sees it, in one text.

    >>> cell_text(Value(2.0, 1.0, 4.1), Column("value", "value", ""))
    '2.0 [1.0, 4.1]'
    """
    return " ".join(parts(cell, column))


def flat(table: ReportTable) -> list[dict[str, Any]]:
    """The rows as plain values under flat names, with unrounded numbers; an absent value is None."""
    return [
        {
            name: value
            for column, cell in zip(table.columns, row, strict=True)
            for name, value in _flat(column, cell).items()
        }
        for row in table.rows
    ]


def csv_text(table: ReportTable) -> str:
    """The table as CSV with a header line, without notes; numbers are not rounded."""
    rows = flat(table)
    names = [name for column in table.columns for name in _flat(column, None)]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    for cells in (names, *([row[name] for name in names] for row in rows)):
        writer.writerow([for_csv(cell) if isinstance(cell, str) else cell for cell in cells])
    return file.getvalue()


def json_text(tables: Sequence[ReportTable]) -> str:
    plain = [
        {
            "title": table.title,
            **({"lead": table.lead} if table.lead else {}),
            "rows": flat(table),
            "notes": table.all_notes,
        }
        for table in tables
    ]
    return for_json(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()) + "\n"


def _flat(column: Column, cell: Cell) -> dict[str, Any]:
    """One cell under flat names, which depend on the column alone."""
    if column.kind in ("value", "spread"):
        shown = cell if isinstance(cell, Value) else Value(None)
        first = f"{column.key} value".strip() if column.kind == "value" else column.key
        names = [first, *(f"{column.key} {part}".strip() for part in ("low", "high", "interval"))]
        plain = dict(zip(names, (shown.value, shown.low, shown.high, shown.interval), strict=True))
        has_difference = column.kind == "spread" and column.differences
        return plain | ({f"{column.key} difference": shown.difference} if has_difference else {})
    if column.kind == "published":
        names = [column.key, f"{column.key} difference", f"{column.key} comparable"]
        if not isinstance(cell, PublishedCell):
            return dict.fromkeys(names)
        found = cell.figure.value, cell.difference, cell.figure.comparable
        return dict(zip(names, found, strict=True))
    return {column.key: cell.value if isinstance(cell, PValue) else cell}


# -- Report tables and paragraphs in a terminal, and in files and pipes

INDENT = 2
"""The blanks before a note."""

WIDTH_OF_FILES = 80
"""The width of lines where no standard stream is a terminal."""

LONGEST_WORD = 30
"""A longer word in a table may be broken in a terminal, an address first before the name of its model; files
and pipes hold every word whole."""


MOST_NOTES = 5
"""The notes of a table that are printed where not all are asked for."""


def show(
    tables: Iterable[ReportTable],
    file: IO[str] | None = None,
    width: int | None = None,
    *,
    is_brief: bool = False,
) -> int:
    """Print tables and their notes; returns how many notes were left out, as `is_brief` asks.

    A table that is too wide wraps its texts between words, then moves intervals and differences below their
    values, then is split into several. Numbers are never broken. In a terminal, the rows of a table that is
    still too wide are printed one below the other; elsewhere such a table is wider. A table without
    rows is its notes, which say why.

    Args:
        file: The output, in colour if it supports colour; None is standard output.
        width: The width in characters; None asks the terminal.
    """
    console = Console(file=file, width=width, highlight=False)
    console.width = console.width or WIDTH_OF_FILES  # COLUMNS may be 0.
    breaks = console.file.isatty()
    left_out = 0
    for table in map(visible_table, tables):
        notes = table.notes[:MOST_NOTES] if is_brief else table.all_notes
        left_out += len(table.all_notes) - len(notes)
        table = replace(
            table, notes=notes, legend=(), rows=_with_values(table.rows) if is_brief else table.rows
        )
        if is_brief:
            table = _with_room(table, console.width, breaks=breaks)
        for part in _fitted(table, console.width, breaks=breaks):
            _show_text(part.title, console, style="bold", breaks=breaks)
            if part.lead:
                _show_text(part.lead, console, style="", breaks=breaks)
                console.print()
            if part.rows or not part.notes:
                _show_rows(part, console, breaks=breaks)
                if part.notes:
                    console.print()
            for note in part.notes:
                _show_text(note, console, indent=INDENT, style="dim", breaks=breaks)
            console.print()
    return left_out


def show_paragraphs(paragraphs: Iterable[tuple[str, int]]) -> None:
    """Print paragraphs on standard output, a line each; a terminal wraps them with this hanging indent."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for text, indent in paragraphs:
        whole = hide_secrets(visible(text))
        for line in textwrap.wrap(whole, width, subsequent_indent=" " * indent) if width else [whole]:
            print_line(line)


def _show_rows(part: ReportTable, console: Console, *, breaks: bool) -> None:
    layout = _layout(part, console.width, breaks=breaks)
    if layout.width <= console.width or not breaks:
        console.print(WithoutPadding(_grid(part, layout, console.width)), crop=False)
        return
    for nth, row in enumerate(part.rows):
        console.print(*[""] * (nth > 0), WithoutPadding(_stacked(part.columns, row)), sep="\n")


def _show_text(text: str, console: Console, *, style: str, breaks: bool, indent: int = 0) -> None:
    room = console.width - indent
    if not breaks:
        room = max([room, *map(cell_len, text.split())])
    for line in Text(text, style).wrap(console, room):
        line.rstrip()
        console.print(Text(" " * indent) + line, soft_wrap=True)


class _Shown(NamedTuple):
    """A column as it is printed: its cells, the least width that breaks no word, and that of whole lines."""

    column: Column
    cells: Sequence[str]
    least: int
    most: int


class _Layout(NamedTuple):
    """The columns of a table, the blanks between them, and what separates a value from its interval."""

    columns: Sequence[_Shown]
    gap: int
    between: str

    @property
    def width(self) -> int:
        """The least width."""
        return sum(column.least for column in self.columns) + self.gap * (len(self.columns) - 1)


def _layout(table: ReportTable, width: int, *, breaks: bool) -> _Layout:
    """The first layout that fits: parts of numbers beside each other, below, and below with narrow gaps."""
    for between, gap in ((" ", 2), ("\n", 2), ("\n", 1)):
        columns = [
            _shown(column, [row[: nth + 1] for row in table.rows], between, breaks=breaks)
            for nth, column in enumerate(table.columns)
        ]
        layout = _Layout(columns, gap, between)
        if layout.width <= width:
            break
    return layout


NAMING = 2
"""The first columns of a table, in which texts that rows share are printed once."""


def _shown(column: Column, rows: Sequence[tuple[Cell, ...]], between: str, *, breaks: bool) -> _Shown:
    """The column at the end of `rows`; `between` separates the parts of numbers, which are never broken."""
    cells = [row[-1] for row in rows]
    words = _words(column.head, breaks=breaks) if between == "\n" else column.head.split("\n")
    if column.kind != "text":
        texts = aligned([parts(cell, column) for cell in cells], between)
        head = min(_widest(words), LONGEST_WORD) if breaks else _widest(words)
        width = max(head, _widest(line for text in texts for line in text.split("\n")))
        return _Shown(
            column,
            ["\n".join(line.rjust(width) for line in text.split("\n")) for text in texts],
            width,
            width,
        )
    texts = [str(cell or "") for cell in cells]
    if rows and len(rows[0]) <= NAMING:
        texts = ["" if nth and rows[nth] == rows[nth - 1] else text for nth, text in enumerate(texts)]
    everything = [column.head, *texts]
    least = _widest(word for text in everything for word in _words(text, breaks=breaks))
    most = _widest(line for text in everything for line in text.split("\n"))
    return _Shown(column, texts, min(least, LONGEST_WORD) if breaks else least, most)


def _grid(table: ReportTable, layout: _Layout, width: int) -> Table:
    """The table; what the least widths leave of the width goes to the narrowest columns of texts."""
    columns = layout.columns
    widths = [column.least for column in columns]
    for _ in range(width - layout.width):
        below = [nth for nth, column in enumerate(columns) if widths[nth] < column.most]
        if not below:
            break
        widths[min(below, key=widths.__getitem__)] += 1
    grid = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, layout.gap - 1, 0, 0),
        width=sum(widths) + layout.gap * (len(widths) - 1),
    )
    for shown, column_width in zip(columns, widths, strict=True):
        head = _broken(shown.column.head, column_width)
        head.justify = "left" if shown.column.kind == "text" else "right"
        grid.add_column(head, width=column_width, overflow="fold")
    for nth in range(len(table.rows)):
        grid.add_row(*(_broken(one.cells[nth], room) for one, room in zip(columns, widths, strict=True)))
    return grid


def _words(text: str, *, breaks: bool) -> list[str]:
    return (text.replace("#", "# ") if breaks else text).split()


def _broken(text: str, width: int) -> Text:
    """A text whose addresses are broken before their names if they do not fit: `http://host/v1#name`."""
    return Text(text if _widest(text.split()) <= width else text.replace("#", "#\n"))


def _with_values(rows: Sequence[tuple[Cell, ...]]) -> tuple[tuple[Cell, ...], ...]:
    """The rows with a value, and those that should have none; all rows if none has one."""
    values = [[cell.value for cell in row if isinstance(cell, Value)] for row in rows]
    kept = [row for row, found in zip(rows, values, strict=True) if not found or set(found) != {None}]
    return tuple(kept or rows)


def _with_room(table: ReportTable, width: int, *, breaks: bool) -> ReportTable:
    """A table without its asides, where it is too wide with them, or has a line a row only without them."""
    layout, kept = _layout(table, width, breaks=breaks), _without_asides(table)
    is_better = _layout(kept, width, breaks=breaks).between == " " != layout.between
    return kept if layout.width > width or is_better else table


def _without_asides(table: ReportTable) -> ReportTable:
    kept = [nth for nth, column in enumerate(table.columns) if not column.aside]
    rows = tuple(tuple(row[nth] for nth in kept) for row in table.rows)
    return replace(table, columns=tuple(table.columns[nth] for nth in kept), rows=rows)


def _stacked(columns: Sequence[Column], row: Sequence[Cell]) -> Table:
    """A row as lines: the name of each column that has a value, and the value."""
    grid = Table.grid("", "", padding=(0, 2, 0, 0))
    grid.columns[0].overflow = grid.columns[1].overflow = "fold"
    for column, cell in zip(columns, row, strict=True):
        if text := cell_text(cell, column):
            grid.add_row(Text(column.head.replace("\n", " ")), Text(text))
    return grid


def _fitted(table: ReportTable, width: int, *, breaks: bool) -> list[ReportTable]:
    """Split a table that is too wide into parts with as many columns of numbers as fit, if each part fits."""

    def fits(chosen: Sequence[int]) -> bool:
        return _layout(_select(table, texts, chosen), width, breaks=breaks).width <= width

    texts = sum(column.kind == "text" for column in table.columns)
    numbers = range(texts, len(table.columns))
    if fits(numbers):
        return [table]
    chosen: list[list[int]] = [[]]
    for _, block in groupby(numbers, lambda number: table.columns[number].head.split("\n")[:-1]):
        whole = list(block)
        for piece in [whole] if fits(whole) else [[number] for number in whole]:
            if chosen[-1] and not fits([*chosen[-1], *piece]):
                chosen.append([])
            chosen[-1] += piece
    if len(chosen) == 1 or not all(map(fits, chosen)):
        return [table]
    split = [_select(table, texts, piece) for piece in chosen]
    first, *others = (replace(one, notes=()) for one in split)
    others = [replace(one, title=f"{table.title} (continued)") for one in others]
    return [replace(first, lead=table.lead), *others[:-1], replace(others[-1], notes=table.notes)]


def _select(table: ReportTable, texts: int, chosen: Sequence[int]) -> ReportTable:
    """The columns of texts and these; rows without any of these are left out."""
    columns = tuple(table.columns[number] for number in (*range(texts), *chosen))
    rows = tuple(
        (*row[:texts], *(row[number] for number in chosen))
        for row in table.rows
        if any(row[number] is not None for number in chosen)
    )
    return ReportTable(table.title, columns, rows)


def aligned(cells: Sequence[tuple[str, ...]], between: str = " ") -> list[str]:
    """Align the parts of number cells, part below part and digit below digit; marks hang behind the digits.

    >>> aligned([("9.1*", "(-0.3)"), ("32.3", "(+10.0)"), ()])
    [' 9.1*  (-0.3)', '32.3  (+10.0)', '             ']
    """
    sides = []
    for nth in range(max(map(len, cells), default=0)):
        texts = [cell[nth] if nth < len(cell) else "" for cell in cells]
        if any(text.endswith(MARKS) for text in texts):
            texts = [text if text.endswith(MARKS) else f"{text} " for text in texts]
        width = _widest(texts)
        sides.append([text.rjust(width) for text in texts])
    return [between.join(line) for line in zip(*sides, strict=True)] if sides else [""] * len(cells)


def _widest(texts: Iterable[str]) -> int:
    """The width of the widest text; at least 1, as rich has no narrower column."""
    return max([1, *map(cell_len, texts)])


# -- The console that prints tables


class Console(RichConsole):
    """A rich console that raises BrokenPipeError for a broken pipe; rich itself exits with status 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class WithoutPadding:
    """A renderable without the spaces that rich adds at the ends of lines."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: RichConsole, options: ConsoleOptions) -> Iterator[Segment]:
        width = getattr(self._renderable, "width", None) or 0
        options = options.update(width=max(width, options.max_width))
        for line in console.render_lines(self._renderable, options, pad=False):
            while line and not line[-1].text.rstrip(" "):
                line.pop()
            if line:
                last = line.pop()
                line.append(Segment(last.text.rstrip(" "), last.style, last.control))
            yield from line
            yield Segment.line()
