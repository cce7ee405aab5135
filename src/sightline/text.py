"""Texts in and out: escapes for each format, counts, times, prompts, JSON and TOML of users, printed lines.

A text from a model or from data stays text in all formats. Every escape takes any text, shows what a reader
would not see (`visible`), and returns one line. Line breaks, tables, headings and styles are the business of
the writers.
"""

from __future__ import annotations

import html
import json
import math
import os
import re
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any, TextIO, TypeVar

import msgspec

from sightline.errors import UserError, did_you_mean, hide_secrets, replace_unsafe, visible, visible_lines

_FORMULA = re.compile(r"'*\s*[=+\-@\t\r\n＝＋－＠]")
"""The beginning of a formula in a spreadsheet (OWASP, CSV Injection), with or without apostrophes."""

_MARKDOWN_INLINE = r"""
    (?P<address>                       # GitHub makes links of them, also of users' names and behind escapes
        (?: https?:// | ftp:// | www\. ) (?: [^\s`|\\<>$]* [^\s`|\\<>$?!.,:*_~'"] )?
        | (?<![\w.+-])[\w.+-]*@[\w.-]*\w )
    | [\\`]                            # escapes, code; commands of LaTeX in pandoc
    | \](?=[(\[:]) | \[(?=\^)          # links, images, references, footnotes and their definitions
    | <(?=\S) | &(?=\#?\w+;)           # HTML, entities
    """
_MARKDOWN_BLOCK = r"""
    | ^>                               # quotes
    | ^\#(?=\#{0,5}(?:\s|$))           # headings
    | (?<=\s)\#(?=\#*$)                # the closing of a heading
    | ^[*+-](?=\s|$)                   # list items
    | ^\d{1,9}[.)](?=\s|$)             # numbered list items
    | ^\[(?=[\sxX]\])                  # boxes of tasks
    | ^(?P<rule>[*_])(?=(?:\s*(?P=rule)){2,}\s*$) | ^[-=](?=[-=\s]*$)  # rules, underlines of headings
    | ^~(?=~~)                         # code
    """
_MARKDOWN_PAIRED = r"""
    | (?P<paired> [*~$] | (?<![^\W_])_ | _(?![^\W_]) )
    """
_IN_CELL = re.compile(_MARKDOWN_INLINE + r"| \|" + _MARKDOWN_PAIRED, re.VERBOSE | re.IGNORECASE)
_IN_BLOCK = re.compile(_MARKDOWN_INLINE + _MARKDOWN_BLOCK + _MARKDOWN_PAIRED, re.VERBOSE | re.IGNORECASE)
_PAIRS = {
    "*": (re.compile(r"\*(?=[^\s*])"), re.compile(r"(?<=[^\s*])\*")),  # emphasis
    "_": (re.compile(r"(?<![^\W_])_(?=[^\s_])"), re.compile(r"(?<=[^\s_])_(?![^\W_])")),  # not within acc_p
    "~": (re.compile(r"~(?=[^\s~])"), re.compile(r"(?<=[^\s~])~")),  # struck text
    "$": (re.compile(r"\$(?=[^\s$])"), re.compile(r"(?<=[^\s$])\$")),  # formulas
}
"""The signs that mean something only in pairs, with a text between them: how they open and how they close."""

_ENTITIES = {"<": "&lt;", "&": "&amp;"}

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    '"': r"\char34{}",  # Some languages of babel give the bare character a meaning.
    "[": "{[}",  # An optional argument, if it follows the end of a row; so would be the star.
    "]": "{]}",
    "*": "{*}",
}
_LIGATURE = re.compile(r"(?<=-)(?=-)|(?<=')(?=')|(?<=,)(?=,)")


def for_csv(text: str) -> str:
    r"""Escape a text for a cell of a CSV file that a reader opens; the csv module adds the quotes.

    >>> for_csv("=1+1"), for_csv("-5"), for_csv("two\nlines")
    ("'=1+1", "'-5", 'two\\nlines')
    """
    return escape_formula(visible(text))


def for_csv_lines(text: str) -> str:
    """Escape a text of several lines for a cell of a CSV file that a reader opens."""
    return escape_formula(visible_lines(text))


def escape_formula(cell: str) -> str:
    """Protect a cell of a form, which is read back, from being run as a formula.

    >>> escape_formula("=1+1"), escape_formula("'tis"), unescape_formula(escape_formula("'=1"))
    ("'=1+1", "'tis", "'=1")
    """
    return f"'{cell}" if _FORMULA.match(cell) else cell


def unescape_formula(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def for_markdown(text: str) -> str:
    """Escape a text for Markdown (CommonMark, GitHub): for a heading, an item of a list, a paragraph.

    Only what Markdown would interpret is escaped, so that the source stays readable. An address becomes code,
    which is no link.

    >>> print(for_markdown("# ![x](http://a.b) *x* | <b> acc_p ~0.9 [] {} 5*"))
    \\# ![x\\](`http://a.b)` \\*x\\* | &lt;b> acc_p ~0.9 [] {} 5\\*
    """
    return _markdown([text], _IN_BLOCK)


def for_markdown_cell(*lines: str) -> str:
    """Escape lines for a cell of a table in Markdown, where nothing is a heading or an item of a list.

    >>> print(for_markdown_cell("-"), for_markdown_cell("a|b", "c*"))
    - a\\|b<br>c*
    """
    return _markdown(lines, _IN_CELL)


def for_latex(text: str) -> str:
    r"""Escape a text for LaTeX in horizontal mode, as in a cell of a table.

    >>> print(for_latex("100 % of \\input{x} -- ^^M"))
    100 \% of \textbackslash{}input\{x\} -{\kern0pt}- \textasciicircum{}\textasciicircum{}M
    """
    return _LIGATURE.sub(r"{\\kern0pt}", "".join(_LATEX.get(sign, sign) for sign in visible(text)))


def for_html(text: str) -> str:
    """Escape a text for HTML: between tags, or in an attribute in quotes that is not an address.

    >>> for_html("<b title='x'>")
    '&lt;b title=&#x27;x&#x27;&gt;'
    """
    return html.escape(visible(text))


def for_json(document: str) -> str:
    r"""Escape a JSON document for a terminal: its content stays the same.

    >>> print(for_json('["\x7f"]'))
    ["\u007f"]
    """
    return "\n".join(
        replace_unsafe(line, lambda sign: json.dumps(sign)[1:-1]) for line in document.split("\n")
    )


def for_plot(text: str) -> str:
    r"""Escape a text for matplotlib, which takes dollar signs for the limits of formulas.

    >>> print(for_plot("$x$"))
    \$x\$
    """
    return visible(text).replace("$", r"\$")


def _markdown(lines: Sequence[str], special: re.Pattern[str]) -> str:
    shown = [visible(line).strip() for line in lines]
    whole = "<br>".join(shown)
    paired = {sign for sign in _PAIRS if _has_pair(whole, sign)}

    def escaped(found: re.Match[str]) -> str:
        if found["address"]:
            return f"`{found[0]}`"
        if found["paired"] and found[0] not in paired:
            return found[0]
        return found[0][:-1] + _ENTITIES.get(found[0][-1], f"\\{found[0][-1]}")

    return "<br>".join(special.sub(escaped, line) for line in shown)


def _has_pair(text: str, sign: str) -> bool:
    """Whether a sign opens somewhere and closes behind that place."""
    opening, closing = _PAIRS[sign]
    first = opening.search(text)
    return first is not None and any(closing.finditer(text, first.end()))


# -- Counts in messages: a number with its noun in the singular or the plural


def counted(number: int, noun: str, plural: str = "") -> str:
    """Write a count.

    >>> counted(1, "fault"), counted(1200, "fault"), counted(2, "reply", "replies")
    ('1 fault', '1,200 faults', '2 replies')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


# -- Times as lists show them


def local_time(seconds: float) -> str:
    """Format a time.

    Args:
        seconds: The time, in seconds since 1970.

    Raises:
        ValueError: No calendar reaches that far.
        OverflowError: The same, much farther.
    """
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except OSError as error:
        # No file is at fault, as which an OSError would be reported.
        raise ValueError(f"{seconds} is no time") from error


# -- Loads prompts, which are data: a `prompts.toml` in the package that sends them, each with its source


@cache
def load(package: str) -> dict[str, Any]:
    """Read a package's prompts. TOML drops a line break after an opening triple quote: no prompt has it."""
    return tomllib.loads((files(package) / "prompts.toml").read_text(encoding="utf-8"))


def fill(template: str, **values: str) -> str:
    """Replace each {name} of a template once; braces inside the values stay as they are.

    >>> fill("{a} and {b}", a="{b}", b="x")
    '{b} and x'
    """
    pieces = template.split("{")
    out = [pieces[0]]
    for piece in pieces[1:]:
        name, brace, rest = piece.partition("}")
        out.append(values[name] + rest if brace and name in values else "{" + piece)
    return "".join(out)


# -- Decodes JSON and TOML of users and other programs: errors name the file, the line and the field

T = TypeVar("T")

UNDECODABLE = (ValueError, RecursionError)
"""What decoders raise: errors of msgspec, json and tomllib, bad UTF-8, too many digits, too deep nesting."""

MAX_DIGITS = 18
"""Whole numbers up to this length fit into 64 bits."""

Records = list[tuple[str, dict[str, Any]]]
"""Records with their position in the file, such as 'line 3' or 'entry 3'."""

_UNKNOWN_FIELD = re.compile("Object contains unknown field `(.*)`")


def decode_json(content: bytes, kind: type[T], file: object, what: str, *, expected: str | None = None) -> T:
    with _naming(file, what, expected):
        return msgspec.json.decode(content, type=kind)


def decode_toml(
    content: str | bytes, kind: type[T], file: object, what: str, *, expected: str | None = None
) -> T:
    with _naming(file, what, expected):
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
        return msgspec.convert(tomllib.loads(text), kind)


def json_records(content: bytes, path: Path, *, keys_once: bool = False) -> Records:
    """Decode a JSON list, JSON Lines, or one JSON object; with `keys_once`, refuse doubled keys."""
    if content.lstrip().startswith(b"["):
        if keys_once:
            _refuse_doubled_keys_of_entries(content, path)
        return [_object(f"entry {n}", entry, path) for n, entry in enumerate(_whole(content, path), 1)]
    rows: Records = []
    texts: dict[str, str] = {}
    for number, line in enumerate(BytesIO(content) if b"\r" not in content else content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            rows.append(_object(f"line {number}", _with_shared_texts(_decode(line), texts), path))
        except ValueError:
            if rows:
                raise _broken(line, path, number) from None
            entry = _object("entry 1", _whole(content, path), path)
            if keys_once:
                refuse_doubled_keys(content, "entry 1", path)
            return [entry]
        if keys_once and not _has_each_key_once(line, rows[-1][1]):
            refuse_doubled_keys(line, f"line {number}", path)
    return rows


def _with_shared_texts(record: Any, texts: dict[str, str]) -> Any:
    """A record whose texts are those of earlier records, where they are equal: draws repeat their prompts."""
    if not isinstance(record, dict):
        return record
    for name, value in record.items():
        if isinstance(value, str):
            record[name] = texts.setdefault(value, value)
        elif isinstance(value, list):
            record[name] = [texts.setdefault(one, one) if isinstance(one, str) else one for one in value]
    return record


def decode_line(decode: Callable[[bytes], T], line: bytes, number: int, path: Path, kind: type[Any]) -> T:
    try:
        return decode(line)
    except msgspec.ValidationError as error:
        text, _, location = str(error).partition(" - at `$")
        field = re.sub(r"^\.|`$", "", location) or None
        if (unknown := _UNKNOWN_FIELD.fullmatch(text)) and field is None:
            known = [one.encode_name for one in msgspec.structs.fields(kind)]
            raise unknown_field(unknown[1], known, path, f"line {number}") from None
        raise UserError(text, file=path, record=f"line {number}", field=field) from None
    except (ValueError, RecursionError):
        raise _broken(line, path, number) from None


_SPACED_COLON = re.compile(rb'"\s+:')


def _has_each_key_once(content: bytes, decoded: object) -> bool:
    """Whether the colons behind quotes are as many as the keys; False where something else may be one."""
    return content.count(b'":') == _count_keys(decoded) and not _SPACED_COLON.search(content)


def _count_keys(decoded: object) -> int:
    if isinstance(decoded, dict):
        return len(decoded) + sum(_count_keys(one) for one in decoded.values() if type(one) in _NESTED)
    if isinstance(decoded, list):
        return sum(_count_keys(one) for one in decoded if type(one) in _NESTED)
    return 0


_NESTED = (dict, list)

_STRINGS = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?', re.DOTALL)
"""The strings of JSON, and the colon behind a key. Each is passed once, whatever quotes it holds."""


def refuse_doubled_keys(content: bytes, record: str | None, path: Path) -> None:
    """Refuse JSON in which an object has one key twice, at any depth: a reader takes one of its values."""

    def check(pairs: list[tuple[str, object]]) -> None:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            doubled = next(name for name in names if names.count(name) > 1)
            raise UserError("occurs twice", file=path, record=record, field=doubled, expected="each key once")

    names = [name for name, colon in _STRINGS.findall(content) if colon]
    if len(set(names)) < len(names) or any(b"\\" in name for name in names):
        json.loads(content, object_pairs_hook=check, parse_int=_integer)


def _refuse_doubled_keys_of_entries(content: bytes, path: Path) -> None:
    try:
        entries = msgspec.json.decode(content, type=list[msgspec.Raw])
    except UNDECODABLE:
        # It has NaN or a number that is too large, or is no JSON, which is said where it is read.
        with suppress(*UNDECODABLE):
            refuse_doubled_keys(content, None, path)
        return
    for number, entry in enumerate(entries, 1):
        refuse_doubled_keys(bytes(entry), f"entry {number}", path)


def unknown_field(name: str, known: Iterable[str], path: Path, record: str) -> UserError:
    """Make the error for a field or a column that a file should not have."""
    known = list(known)
    return UserError(
        f"is an unknown field{did_you_mean(name, known)}",
        file=path,
        record=record,
        field=name,
        expected=f"only {', '.join(known)}",
    )


def lenient_json(text: str | bytes, constant: Callable[[str], Any] = float) -> Any:
    """Decode JSON. A number that 64 bits cannot hold (1e999, 10,000 digits) becomes a text.

    >>> lenient_json('{"a": 1e999, "b": 9999999999999999999, "c": 7}')
    {'a': '1e999', 'b': '9999999999999999999', 'c': 7}

    Args:
        constant: Makes the value of NaN, Infinity and -Infinity from their name.

    Raises:
        ValueError: The text is not JSON.
    """
    return json.loads(text, parse_constant=constant, parse_float=_float, parse_int=_integer)


def fault(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 text: {error.reason}"
    return str(error)


@contextmanager
def _naming(file: object, what: str, expected: str | None) -> Iterator[None]:
    try:
        yield
    except UNDECODABLE as error:
        raise UserError(f"is not {what} ({fault(error)})", file=file, expected=expected) from None


def _whole(content: bytes, path: Path) -> Any:
    try:
        return _decode(content)
    except ValueError:
        raise _broken(content, path) from None


def _decode(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content)
    except msgspec.ValidationError:
        # A number is too large.
        return lenient_json(content)
    except ValueError:
        # Python's json module writes a missing cell or an undefined score as NaN, which is not JSON.
        if b"NaN" in content or b"Infinity" in content:
            return lenient_json(content)
        raise
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _broken(content: bytes, path: Path, first: int = 1) -> UserError:
    """The error for content that is not JSON; `first` is the line number of its first line."""
    line, text, field = first, "holds half of a surrogate pair, which is not a character", None
    expected = "complete JSON (a list, or one object a line); is the file truncated?"
    try:
        if found := _constant_in(lenient_json(content, constant=_Constant)):
            field, text = found[0], f"is {found[1]}, which is no number of JSON"
            expected = "a number, or null or no field for a missing value"
    except json.JSONDecodeError as error:
        line, text = first + error.lineno - 1, f"is not valid JSON: {error.msg}"
    except UnicodeDecodeError as error:
        line, text = first + content.count(b"\n", 0, error.start), f"is not UTF-8 text: {error.reason}"
    except RecursionError:
        text, expected = "is nested too deeply", f"at most {sys.getrecursionlimit():,} levels"
    return UserError(text, file=path, record=f"line {line}", field=field, expected=expected)


class _Constant(str):
    """NaN, Infinity or -Infinity where JSON has a value."""


def _constant_in(value: Any, name: str = "") -> tuple[str, str] | None:
    """The first of these within a value, with the name of its field."""
    if isinstance(value, _Constant):
        return name, str(value)
    if isinstance(value, dict):
        inner = ((one, f"{name}.{key}".lstrip(".")) for key, one in value.items())
    else:
        inner = ((one, f"{name}[{n}]") for n, one in enumerate(value if isinstance(value, list) else ()))
    return next(filter(None, (_constant_in(one, where) for one, where in inner)), None)


def _object(where: str, entry: Any, path: Path) -> tuple[str, dict[str, Any]]:
    if not isinstance(entry, dict):
        raise UserError("is not a record", file=path, record=where, found=entry, expected="a JSON object")
    return where, entry


def _float(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else digits


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= MAX_DIGITS else digits


def indented_json(content: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


WHOLE = 2.0**53
"""Floats below this hold every whole number."""


def cell_text(cell: object) -> str:
    """A cell of a table, or a value of JSON, as text: the same data are the same text in every kind of file.

    >>> [cell_text(cell) for cell in (3, 3.0, "3", 0.5, None, float("nan"), True)]
    ['3', '3', '3', '0.5', '', '', 'True']
    """
    if isinstance(cell, float):
        # pandas makes floats of the whole numbers of a column with an empty cell, and NaN of the empty cell.
        if math.isnan(cell):
            return ""
        return str(int(cell)) if cell.is_integer() and abs(cell) < WHOLE else repr(cell)
    return "" if cell is None else str(cell)


# -- Lines on standard output and standard error: no other module prints a text that it has not escaped


def print_line(text: str = "") -> None:
    """Print one line on standard output; a line break within the text is shown as an escape."""
    print_document(f"{hide_secrets(visible(text))}\n")


def print_url(name: str, url: str) -> None:
    """Print a URL with its token, which other lines hide: whoever started the command needs it."""
    print_document(f"{hide_secrets(visible(name))}: {visible(url)}\n")


def print_note(text: str) -> None:
    """Print one line on standard error; a line break within the text is shown as an escape.

    Where nobody can be told, the work goes on.
    """
    try:
        print(hide_secrets(visible(text)), file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def print_document(text: str) -> None:
    """Print a document on standard output whose writer has escaped the texts in it.

    The reader may leave: what the command does goes on.
    """
    try:
        print(text, end="")
    except BrokenPipeError:
        discard(sys.stdout)


def flush_lines() -> None:
    """Let a reader have the lines that were printed so far."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)


def discard(stream: TextIO) -> None:
    """Discard everything that is written to a standard stream from now on."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    if nothing != stream.fileno():
        os.close(nothing)
