"""Tables: their cells and columns, and how a terminal shows them."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import groupby, zip_longest
from typing import IO, Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from sightline.errors import hide_secrets, visible, visible_lines
from sightline.text import for_csv, for_json, print_line
from sightline.types import IntervalMethod, MetricValue, PublishedValue, Unit, is_approximate


class Value(Struct, frozen=True):
    """A number of this run with its 95 % CI and the method of that; None if it is undefined, or has no
    interval."""

    value: float | None
    low: float | None = None
    high: float | None = None
    unit: Unit = "percent"
    interval: IntervalMethod | None = None


class PublishedCell(Struct, frozen=True):
    """A figure of a paper; `difference` is this run's value minus it."""

    figure: PublishedValue
    difference: float | None
    unit: Unit = "percent"


class Spread(Struct, frozen=True):
    """A number of one run among several, short enough for a wide table.

    `difference` is the distance from the number in the first half of the row; None if there is none.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    unit: Unit = "percent"
    interval: IntervalMethod | None = None
    difference: float | None = None


class PValue(Struct, frozen=True):
    """A p-value, 0-1; None if its test is undefined."""

    value: float | None


Cell = str | int | float | Value | PublishedCell | Spread | PValue | None
"""A bare number is a count, None an empty cell."""


class Column(Struct, frozen=True):
    """A column of cells of one kind."""

    kind: Literal["text", "count", "value", "published", "spread", "p_value"]
    head: str
    key: str
    differences: bool = True


class ReportTable(Struct, frozen=True):
    """A title, columns, rows of cells with unrounded numbers, and the notes below the table."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


def heading(*lines: str) -> str:
    """A heading of several lines, some of which come from data."""
    return "\n".join(map(visible, lines))


def visible_table(table: ReportTable) -> ReportTable:
    """A table for a display: all texts as a reader sees them."""
    return ReportTable(
        visible(table.title),
        tuple(replace(column, head=visible_lines(column.head)) for column in table.columns),
        tuple(tuple(visible(cell) if isinstance(cell, str) else cell for cell in row) for row in table.rows),
        tuple(map(visible, table.notes)),
    )


_Record = TypeVar("_Record")
Field = tuple[Column, Callable[[_Record], Cell]]
"""A column, and the function that makes its cell from a record."""


def build_table(
    title: str, fields: Sequence[Field[_Record]], rows: Iterable[_Record], notes: Sequence[str]
) -> ReportTable:
    columns = tuple(column for column, _ in fields)
    return ReportTable(
        title, columns, tuple(tuple(cell(row) for _, cell in fields) for row in rows), tuple(notes)
    )


def value_cell(metric: MetricValue | None) -> Cell:
    """The cell of a value with its interval; empty for None."""
    if metric is None:
        return None
    return Value(metric.value, metric.low, metric.high, metric.unit, metric.interval)


def n_cell(metric: MetricValue | None) -> Cell:
    """The cell of the number that a metric averages over; empty for None."""
    if metric is None:
        return None
    return int(metric.n) if metric.n == int(metric.n) else metric.n


def clusters_cell(metric: MetricValue | None) -> Cell:
    """The cell of the number of clusters; empty for None."""
    return None if metric is None else metric.clusters


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


def parts(cell: Cell, column: Column) -> tuple[str, ...]:
    """A cell as a reader sees it: rounded, in the parts that are aligned in a column.

    A value and its interval, with '~' if approximate; a published figure with its mark, and the difference; a
    spread, its interval and its difference; otherwise one part.

    Returns:
        The parts; none for an empty cell.
    """
    if isinstance(cell, PValue):
        return _p_value_parts(cell)
    if isinstance(cell, Value):
        return _value_parts(cell)
    if isinstance(cell, PublishedCell):
        return _published_parts(cell, column.differences)
    if isinstance(cell, Spread):
        return _spread_parts(cell)
    if cell is None:
        return ()
    return (cell if isinstance(cell, str) else f"{cell:,}",)


def cell_text(cell: Cell, column: Column) -> str:
    """A cell as a reader sees it, in one text.

    >>> cell_text(Value(2.0, 1.0, 4.1), Column("value", "value", ""))
    '2.0 [1.0, 4.1]'
    """
    shown = parts(cell, column)
    if isinstance(cell, Value | Spread) and cell.low is not None and cell.high is not None and len(shown) > 1:
        decimals, mark = DECIMALS[cell.unit], "~" if is_approximate(cell.interval) else ""
        interval = f"{mark}[{cell.low:z.{decimals}f}, {cell.high:z.{decimals}f}]"
        shown = (shown[0], interval, *shown[2:])
    return " ".join(shown)


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
    plain = [{"title": table.title, "rows": flat(table), "notes": table.notes} for table in tables]
    return for_json(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()) + "\n"


def _value_parts(cell: Value) -> tuple[str, ...]:
    decimals = DECIMALS[cell.unit]
    if cell.value is None:
        return ("-",)
    return f"{cell.value:z.{decimals}f}", *_interval_parts(cell)


def _published_parts(cell: PublishedCell, differences: bool) -> tuple[str, ...]:
    decimals = DECIMALS[cell.unit]
    figure = f"{cell.figure.value:z.{decimals}f}{cell.figure.mark}"
    if cell.difference is None or not differences:
        return (figure,)
    return figure, f"({cell.difference:+z.{decimals}f})"


def _spread_parts(cell: Spread) -> tuple[str, ...]:
    decimals = DECIMALS[cell.unit]
    if cell.value is None:
        return ("-",)
    return (
        f"{cell.value:z.{decimals}f}",
        *_interval_parts(cell),
        *(() if cell.difference is None else (f"({cell.difference:+z.{decimals}f})",)),
    )


def _interval_parts(cell: Value | Spread) -> tuple[str, ...]:
    if cell.low is None or cell.high is None:
        return ()
    mark = "~" if is_approximate(cell.interval) else ""
    to, decimals = "-" if cell.low >= 0 else " to ", DECIMALS[cell.unit]
    return (f"{mark}{cell.low:z.{decimals}f}{to}{cell.high:z.{decimals}f}",)


def _p_value_parts(cell: PValue) -> tuple[str, ...]:
    if cell.value is None:
        return ("-",)
    return (f"{cell.value:.3f}" if cell.value >= LEAST_P_VALUE else f"<{LEAST_P_VALUE}",)


def _flat(column: Column, cell: Cell) -> dict[str, Any]:
    """One cell under flat names, which depend on the column alone."""
    if column.kind == "value":
        value = cell if isinstance(cell, Value) else Value(None)
        names = [f"{column.key} {part}".strip() for part in ("value", "low", "high", "interval")]
        return dict(zip(names, (value.value, value.low, value.high, value.interval), strict=True))
    if column.kind == "published":
        names = [column.key, f"{column.key} difference", f"{column.key} comparable"]
        if not isinstance(cell, PublishedCell):
            return dict.fromkeys(names)
        found = cell.figure.value, cell.difference, cell.figure.comparable
        return dict(zip(names, found, strict=True))
    if column.kind == "spread":
        spread = cell if isinstance(cell, Spread) else Spread(None)
        plain = {
            column.key: spread.value,
            f"{column.key} low": spread.low,
            f"{column.key} high": spread.high,
            f"{column.key} interval": spread.interval,
        }
        return plain | ({f"{column.key} difference": spread.difference} if column.differences else {})
    return {column.key: cell.value if isinstance(cell, PValue) else cell}


# -- Report tables and paragraphs in a terminal, and in files and pipes

_STYLE_VARIABLES = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""The variables by which rich styles text that goes to no terminal."""

_WIDTH_OF_FILES = 80
"""The width of lines where no standard stream is a terminal."""


def show(tables: Iterable[ReportTable], file: IO[str] | None = None, width: int | None = None) -> None:
    """Print tables and their notes.

    A table that is too wide wraps its texts between words, then moves intervals and differences below their
    values, then is split into several. Words and numbers are never broken. In a terminal, addresses and very
    long words lose their middle where they do not fit, and the rows of a table that is still too wide are
    printed one below the other. Elsewhere every text is whole, and such a table is wider.

    Args:
        file: The output, in colour if it supports colour; None is standard output.
        width: The width in characters; None asks the terminal.
    """
    out = file or sys.stdout
    if out.isatty() or any(os.environ.get(name) for name in _STYLE_VARIABLES):
        _show_with_styles(tables, file, width)
        return
    # Files and pipes do without rich, whose import takes longer than writing the tables.
    page = Page(width or _terminal_width(), shorten=False)
    for table in map(visible_table, tables):
        out.writelines(f"{line.text}\n" for line in _table_lines(table, page))


def show_paragraphs(paragraphs: Iterable[tuple[str, int]]) -> None:
    """Print paragraphs on standard output: a line each; in a terminal, wrapped between words."""
    in_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns
    for text, indent in paragraphs:
        whole = hide_secrets(visible(text))
        for line in wrapped(whole, width, shorten=True, indent=indent) if in_terminal else [whole]:
            print_line(line)


def fitted(table: ReportTable, page: Page) -> list[ReportTable]:
    """Split a table that is too wide, if each of its parts fits."""
    if _layout(table, page):
        return [table]
    parts = _split(table, page)
    return parts if all(_layout(part, page) for part in parts) else [table]


def _show_with_styles(tables: Iterable[ReportTable], file: IO[str] | None, width: int | None) -> None:
    from rich.text import Text

    console = Console(file=file, width=width)
    page = Page(console.width, shorten=console.file.isatty())
    for table in map(visible_table, tables):
        for line in _table_lines(table, page):
            console.print(Text(line.text, line.style), soft_wrap=True)


def _terminal_width() -> int:
    """The width that COLUMNS gives, or that of the terminal of any standard stream: a pager may be there."""
    if (columns := os.environ.get("COLUMNS", "")).isdigit():
        return int(columns) or _WIDTH_OF_FILES
    for stream in (0, 1, 2):
        with suppress(OSError):
            return os.get_terminal_size(stream).columns or _WIDTH_OF_FILES
    return _WIDTH_OF_FILES


def _table_lines(table: ReportTable, page: Page) -> Iterator[Line]:
    for part in fitted(table, page):
        yield from (Line(line, "bold") for line in wrapped(part.title, page.width, shorten=page.shorten))
        columns = _layout(part, page)
        if columns is None and page.shorten:
            yield from stacked_lines(part, page)
        else:
            yield from grid_lines(part, columns or text_columns(part, page, narrow=True), page)
        yield Line("")
        for note in part.notes:
            for line in wrapped(note, page.width - len(GAP), shorten=page.shorten):
                yield Line(GAP + line, "dim")
        yield Line("")


def _layout(table: ReportTable, page: Page) -> list[TextColumn] | None:
    """The columns of the table as wide as they fit; None if they do not."""
    for narrow in (False, True):
        columns = text_columns(table, page, narrow=narrow)
        if least_table_width(columns) <= page.width:
            return columns
    return None


def _split(table: ReportTable, page: Page) -> list[ReportTable]:
    """The table in parts: as many of the columns of numbers as fit, in each."""
    texts = sum(column.kind == "text" for column in table.columns)
    numbers = range(texts, len(table.columns))
    parts: list[list[int]] = [[]]
    for _, block in groupby(numbers, lambda number: table.columns[number].head.split("\n")[:-1]):
        whole_block = list(block)
        fits = _layout(_select_columns(table, texts, whole_block), page)
        for piece in [whole_block] if fits else [[number] for number in whole_block]:
            if parts[-1] and not _layout(_select_columns(table, texts, [*parts[-1], *piece]), page):
                parts.append([])
            parts[-1] += piece
    if len(parts) == 1:
        return [table]
    first, *middle, last = [_select_columns(table, texts, part) for part in parts]
    continued = [*middle, replace(last, notes=table.notes)]
    return [first, *(replace(part, title=f"{part.title} (continued)") for part in continued)]


def _select_columns(table: ReportTable, texts: int, chosen: Sequence[int]) -> ReportTable:
    columns = tuple(table.columns[number] for number in (*range(texts), *chosen))
    rows = tuple(
        (*row[:texts], *(row[number] for number in chosen))
        for row in table.rows
        if any(row[number] is not None for number in chosen)
    )
    return ReportTable(table.title, columns, rows)


# -- The columns of a report table as lines of text: how wide each column is, and where texts are broken

GAP = "  "
"""What separates two columns."""

NARROWEST_HEAD = 8
"""Headings of numbers are broken into lines of at least this width."""


class Page(NamedTuple):
    """Where a table is printed."""

    width: int
    shorten: bool


class Line(NamedTuple):
    """A line and its style."""

    text: str
    style: str = ""


class TextColumn(Struct, frozen=True):
    """A column as it is printed."""

    head: str
    cells: Sequence[str]
    least: int
    whole: int
    most: int
    is_text: bool = False
    indent: int = 0
    hanging: int = 0


def text_columns(table: ReportTable, page: Page, *, narrow: bool) -> list[TextColumn]:
    """The columns of a table, without the one that becomes the headings of groups."""
    first = 1 if _groups(table) else 0
    return [
        _number_column(column.head, [parts(row[nth], column) for row in table.rows], page, narrow)
        if column.kind != "text"
        else _text_column(column, [row[nth] for row in table.rows], page, nth == first, 2 * first)
        for nth, column in enumerate(table.columns)
        if nth >= first
    ]


def least_table_width(columns: Sequence[TextColumn]) -> int:
    return sum(column.least for column in columns) + len(GAP) * (len(columns) - 1)


def grid_lines(table: ReportTable, columns: Sequence[TextColumn], page: Page) -> Iterator[Line]:
    """The heading and the rows of a table; a first cell that rows share stands once above them."""
    widths = _widths(columns, page.width - len(GAP) * (len(columns) - 1))
    heads = [_lines(one, one.head, width, page) for one, width in zip(columns, widths, strict=True)]
    height = max(map(len, heads))
    for line in _beside([[""] * (height - len(head)) + head for head in heads], widths):
        yield Line(line, "bold")
    yield Line("─" * (sum(widths) + len(GAP) * (len(columns) - 1)))
    groups = _groups(table)
    first_rows = {name: nth for nth, name in reversed(list(enumerate(groups)))}
    for nth in range(len(table.rows)):
        if groups and first_rows[groups[nth]] == nth:
            yield from (Line(line, "bold") for line in wrapped(groups[nth], page.width, shorten=page.shorten))
        cells = [_lines(one, one.cells[nth], width, page) for one, width in zip(columns, widths, strict=True)]
        yield from map(Line, _beside(cells, widths))


def stacked_lines(table: ReportTable, page: Page) -> Iterator[Line]:
    heads = [column.head.replace("\n", " ") for column in table.columns]
    left = min(max(map(cells_of, heads)), page.width // 2)
    widths = [left, page.width - left - len(GAP)]
    for nth, row in enumerate(table.rows):
        if nth:
            yield Line("")
        for head, column, cell in zip(heads, table.columns, row, strict=True):
            if text := " ".join(parts(cell, column)):
                texts = zip((head, text), widths, strict=True)
                sides = [wrapped(side, width, shorten=page.shorten) for side, width in texts]
                yield from map(Line, _beside(sides, widths))


def aligned(cells: Sequence[tuple[str, ...]], between: str = " ") -> list[str]:
    """Align the parts of number cells, part below part and digit below digit.

    >>> aligned([("9.1*", "(-0.3)"), ("32.3", "(+10.0)"), ()])
    [' 9.1*  (-0.3)', '32.3  (+10.0)', '             ']
    """
    count = max(map(len, cells), default=0)
    columns = [_flush([cell[nth] if nth < len(cell) else "" for cell in cells]) for nth in range(count)]
    return [between.join(texts) for texts in zip(*columns, strict=True)] if count else [""] * len(cells)


def _groups(table: ReportTable) -> list[str]:
    """The first cell of each row if rows share it, to print it once above them; otherwise an empty list."""
    names = [str(row[0]) for row in table.rows]
    return names if len(set(names)) < len(names) and len(table.columns) > 1 else []


def _text_column(
    column: Column, cells: Sequence[Cell], page: Page, names_rows: bool, indent: int
) -> TextColumn:
    """A column of texts; the one that names the rows is indented, and its further lines are so again."""
    texts = [str(cell or "") for cell in cells]
    everything = [column.head, *texts]
    indent = indent if names_rows else 0
    hanging = 2 if names_rows and any(" " in text for text in texts) else 0
    before = indent + hanging
    most = indent + _width(everything)
    return TextColumn(
        column.head,
        texts,
        min(most, before + max(least_width(text, shorten=page.shorten) for text in everything)),
        min(most, before + max(map(longest_word, everything))),
        most,
        is_text=True,
        indent=indent,
        hanging=hanging,
    )


def _number_column(head: str, cells: Sequence[tuple[str, ...]], page: Page, narrow: bool) -> TextColumn:
    """Every line has the same width, so that digits align; in a narrow table parts are on lines of their
    own, and so are the words of the heading."""
    texts = aligned(cells, "\n" if narrow else " ")
    if narrow:
        room = max(NARROWEST_HEAD, _width(texts), least_width(head, shorten=page.shorten))
        head = "\n".join(wrapped(head, room, shorten=page.shorten))
    width = _width([head, *texts])
    head, *texts = ("\n".join(_right(line, width) for line in text.split("\n")) for text in (head, *texts))
    return TextColumn(head, texts, width, width, width)


def _widths(columns: Sequence[TextColumn], room: int) -> list[int]:
    """The width of each column: the least, then what whole words need, then what whole lines need."""
    widths = [column.least for column in columns]
    for goals in ([column.whole for column in columns], [column.most for column in columns]):
        for _ in range(room - sum(widths)):
            below = [nth for nth, goal in enumerate(goals) if widths[nth] < goal]
            if not below:
                break
            widths[min(below, key=widths.__getitem__)] += 1
    return widths


def _lines(column: TextColumn, text: str, width: int, page: Page) -> list[str]:
    if not column.is_text:
        return text.split("\n")
    before = " " * column.indent
    room = width - column.indent
    return [before + line for line in wrapped(text, room, shorten=page.shorten, indent=column.hanging)]


def _beside(cells: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    for lines in zip_longest(*cells, fillvalue=""):
        padded = (line + " " * (width - cells_of(line)) for line, width in zip(lines, widths, strict=True))
        yield GAP.join(padded).rstrip()


def _flush(texts: Sequence[str]) -> list[str]:
    """Right-aligned texts of one width; a '*' hangs behind the digits."""
    hanging = any(text.endswith("*") for text in texts)
    texts = [text if text.endswith("*") or not hanging else f"{text} " for text in texts]
    width = _width(texts)
    return [_right(text, width) for text in texts]


def _right(line: str, width: int) -> str:
    return " " * (width - cells_of(line)) + line


def _width(texts: Sequence[str]) -> int:
    return max((cells_of(line) for text in texts for line in text.split("\n")), default=0)


# -- Lines of a limited width: words stay whole, and an address that does not fit loses its middle

SHORTEST_WORD, LONGEST_WORD = 16, 40
"""In a table, words up to the first width stay whole, and words above the second one may be shortened to it.
Words between them are shortened only if they are addresses, to the name at the end."""

_WIDE = "\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff01-\uff60"
_ASCII_PIECE = re.compile(r" *(?:[^ ]+|$)")

LEAST_REST = 12
"""If less than this is left of an address before its name, all of that is left out."""


def cells_of(text: str) -> int:
    """The width of a text in a terminal, where a Chinese character is as wide as two Latin ones."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def least_width(text: str, *, shorten: bool) -> int:
    """The least width in which `wrapped` keeps every line within the width."""
    return max((_least(word) if shorten else cells_of(word) for word in _words(text)), default=0)


def longest_word(text: str) -> int:
    return max(map(cells_of, _words(text)), default=0)


def wrapped(text: str, width: int, *, shorten: bool, indent: int = 0) -> list[str]:
    """Break a text into lines between words."""
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for piece in _pieces(paragraph):
            if cells_of(line + piece) <= width:
                line += piece
                continue
            if line.strip():
                lines.append(line.rstrip())
                line = " " * indent
            word = piece.lstrip()
            line += shortened(word, width - len(line)) if shorten else word
        lines.append(line.rstrip())
    return lines


def shortened(word: str, width: int) -> str:
    """Put an ellipsis in the middle of a word that is too wide.

    The name at the end of an address, behind '#' or the last '/', stays whole if it fits.

    >>> shortened("http://localhost:8000/v1#Qwen/Qwen2.5-VL-72B-Instruct", 44)
    'http://l…000/v1#Qwen/Qwen2.5-VL-72B-Instruct'
    >>> shortened("http://localhost:8000/v1#Qwen/Qwen2.5-VL-72B-Instruct", 30)
    '…Qwen/Qwen2.5-VL-72B-Instruct'
    >>> shortened("0123456789abcdef", 7)
    '012…def'
    """
    if cells_of(word) <= width:
        return word
    name = next((name for name in _names(word) if cells_of(name) < width), "")
    rest = word.removesuffix(name)
    kept = width - 1 - cells_of(name)
    if name and kept < LEAST_REST:
        return f"…{name}"
    return _start(rest, kept - kept // 2) + "…" + _start(rest[::-1], kept // 2)[::-1] + name


def _pieces(line: str) -> list[str]:
    """Each word with the spaces before it: an address, one character of a script without spaces, or another
    word."""
    # Most texts are ASCII, and the other pattern takes 5 ms to compile.
    return (_ASCII_PIECE if line.isascii() else _piece()).findall(line)


@cache
def _piece() -> re.Pattern[str]:
    return re.compile(rf" *(?:[^ ]*://[^ ]*|[{_WIDE}]|[^ {_WIDE}]+|$)")


def _words(text: str) -> list[str]:
    return [word.lstrip() for line in text.split("\n") for word in _pieces(line)]


def _least(word: str) -> int:
    width = cells_of(word)
    named = min((1 + cells_of(name) for name in _names(word)), default=width)
    return min(width, LONGEST_WORD, max(SHORTEST_WORD, named))


def _names(word: str) -> list[str]:
    """What names the thing at an address, the longest first: 'http://host/v1#Qwen/VL' -> 'Qwen/VL', 'VL'."""
    fragment = word.rpartition("#")[2]
    names = dict.fromkeys((fragment, fragment.rpartition("/")[2]))
    return [name for name in names if 0 < len(name) < len(word)]


def _start(text: str, width: int) -> str:
    while cells_of(text) > width:
        text = text[:-1] if len(text) <= width else text[:width]
    return text


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
        for line in console.render_lines(self._renderable, options, pad=False):
            while line and not line[-1].text.rstrip(" "):
                line.pop()
            if line:
                last = line.pop()
                line.append(Segment(last.text.rstrip(" "), last.style, last.control))
            yield from line
            yield Segment.line()
