"""Readers of the outputs, made of other people's parsers; each refuses what the writers do not write.

All of them return the tables of a document: the title, the lines of the headings and of the rows, the notes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

BIDIRECTIONAL = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
ADDRESS = re.compile(r"(https?://|ftp://|www\.)\S*$|[\w.+-]*@[\w.-]+$", re.IGNORECASE)
STYLE = re.compile(r"\x1b\[[0-9;]*m")


class ReadTable(NamedTuple):
    title: str
    rows: list[list[str]]
    notes: list[str]


BLOCKS = {
    "heading",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "bullet_list",
    "list_item",
    "paragraph",
    "inline",
}


def unsafe(text: str) -> set[str]:
    """The characters that no output may contain, by the Unicode data of Python; line feeds are allowed."""
    return {
        sign
        for sign in text.replace("\n", "")
        if unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp")
        or unicodedata.bidirectional(sign) in BIDIRECTIONAL
        or sign in "\u200e\u200f\u061c\ufeff"
    }


def read_markdown(text: str) -> list[ReadTable]:
    tables: list[ReadTable] = []
    where = ""
    for token in MarkdownIt("gfm-like").parse(text):
        assert token.type.removesuffix("_open").removesuffix("_close") in BLOCKS, token.type
        if token.type == "heading_open":
            tables.append(ReadTable("", [], []))
        elif token.type == "tr_open":
            tables[-1].rows.append([])
        if token.type.endswith("_open") and token.type != "paragraph_open":
            where = token.type.removesuffix("_open")
        elif token.type == "inline":
            content = _inline(token.children or [])
            if where == "heading":
                tables[-1] = tables[-1]._replace(title=content)
            elif where == "list_item":
                tables[-1].notes.append(content)
            else:
                assert where in ("th", "td"), where
                tables[-1].rows[-1].append(content)
    return tables


def _inline(children: list[Token]) -> str:
    for child in children:
        assert (
            child.type == "text"
            or (child.type, child.content) == ("html_inline", "<br>")
            or (child.type == "code_inline" and ADDRESS.match(child.content))
        ), child
    return "".join("\n" if child.type == "html_inline" else child.content for child in children)


def read_html(text: str) -> list[ReadTable]:
    reader = _HtmlReader()
    reader.feed(text)
    reader.close()
    assert not reader.open
    return reader.tables


class _HtmlReader(HTMLParser):
    """Accepts the tags of our tables, with the one style of numbers."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: list[ReadTable] = []
        self.open: list[str] = []
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li", "br", "p")
        assert attrs in ([], [("style", "text-align: right")])
        if tag == "br":
            self._text += "\n"
            return
        if tag == "table":
            self.tables.append(ReadTable("", [], []))
        elif tag == "tr":
            self.tables[-1].rows.append([])
        self.open.append(tag)
        self._text = ""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "caption":
            self.tables[-1] = self.tables[-1]._replace(title=self._text)
        elif tag in ("th", "td"):
            self.tables[-1].rows[-1].append(self._text)
        elif tag == "li":
            self.tables[-1].notes.append(self._text)
        self._text = ""

    def handle_data(self, data: str) -> None:
        self._text += data
        assert data.isspace() or self.open[-1] in ("caption", "th", "td", "li", "p")

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)


LATEX_CHARACTERS = {
    r"\textbackslash": "\\",
    r"\textasciicircum": "^",
    r"\textasciitilde": "~",
    r"\textless": "<",
    r"\textgreater": ">",
    r"\textbar": "|",
    r"\textasciigrave": "`",
    r"\char34": '"',
    r"\kern0pt": "",
}
LATEX_TOKEN = re.compile(r"\\(?:char34|kern0pt|[A-Za-z]+)|\\.|.", re.DOTALL)

PARTIAL_RULES = re.compile(r"\\cmidrule\(lr\)\{\d+-\d+\}(?: \\cmidrule\(lr\)\{\d+-\d+\})*")
SPANNING_CELL = re.compile(r"\\multicolumn\{(?P<columns>\d+)\}\{c\}\{(?P<text>.*)\}", re.DOTALL)


def read_latex(text: str) -> list[ReadTable]:
    """Read tables by the rules of TeX's tokens: no active character, comment or unknown command is left."""
    tables = []
    for block in text.split("\\begin{table}\n")[1:]:
        head, _, rest = block.partition("\n\\begin{tabular}")
        body, _, below = rest.partition("\\end{tabular}\n")
        rules = [line for line in body.split("\n") if line in (r"\toprule", r"\midrule", r"\bottomrule")]
        assert rules == [r"\toprule", r"\midrule", r"\bottomrule"]
        lines = [line for line in body.split("\n")[1:] if line not in rules and line]
        lines = [line for line in lines if not PARTIAL_RULES.fullmatch(line)]
        caption, label = head.split("\n")[-2:]
        title = "\n".join(head.split("\n")[:-1]).removeprefix("\\centering\n\\caption{")
        assert caption.endswith("}")
        assert re.fullmatch(r"\\label\{tab:[a-z0-9-]*\}", label)
        end, *comments = below.rstrip("\n").split("\n")
        assert end == "\\end{table}"
        assert all(comment.startswith("% ") for comment in comments)
        notes = [_latex_text(comment.removeprefix("% ")) for comment in comments]
        cells = [list(_latex_cells(line)) for line in lines]
        tables.append(ReadTable(_latex_text(title[:-1]), cells, notes))
    return tables


def _latex_cells(line: str) -> Iterator[str]:
    assert line.endswith(r" \\")
    depth, cell = 0, ""
    for token in LATEX_TOKEN.findall(line.removesuffix(r" \\")):
        depth += (token == "{") - (token == "}")
        assert token != r"\\"
        if token == "&" and not depth:
            yield from _latex_columns(cell.strip(" "))
            cell = ""
        else:
            cell += token
    yield from _latex_columns(cell.strip(" "))


def _latex_columns(cell: str) -> Iterator[str]:
    """The text of a cell, and an empty one for each further column that it spans."""
    spanning = SPANNING_CELL.fullmatch(cell)
    yield _latex_text(spanning["text"] if spanning else cell)
    yield from [""] * (int(spanning["columns"]) - 1 if spanning else 0)


def _latex_text(text: str) -> str:
    text = text.replace("$-$", "-")  # how numbers are written
    for ligature in ("--", "''", ",,", "``", "^^"):
        assert ligature not in text, text
    depth, shown = 0, []
    for token in LATEX_TOKEN.findall(text):
        depth += (token == "{") - (token == "}")
        assert depth >= 0
        if token[0] == "\\":
            shown.append(LATEX_CHARACTERS.get(token) if token in LATEX_CHARACTERS else token[1:])
            assert token in LATEX_CHARACTERS or token[1:] in "{}$&#%_", token
        elif token not in "{}":
            assert token not in '$&#%_^~"`<>|\n', text
            shown.append(token)
    assert not depth
    return "".join(filter(None, shown))
