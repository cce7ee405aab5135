"""Escapes text for each format of the output: a text from a model or from data stays text in all of them.

Every function takes any text, shows what a reader would not see (`visible`), and returns one line. Line
breaks, tables, headings and styles are the business of the writers.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence

from sightline.visible import replace_unsafe, visible, visible_lines

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
    """Undo `escape_formula`."""
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
