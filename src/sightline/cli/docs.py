"""`sightline docs`: print a page of the documentation, which is installed with the package."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import sightline
from sightline.errors import unknown_name
from sightline.text import print_document, print_note

EXAMPLE = """examples:
  sightline docs                 the names and titles of all pages
  sightline docs models          also: docs/models.md
  sightline docs models | less   plain Markdown in a pipe
"""

FOLDER = Path(sightline.__file__).with_name("docs")
"""The pages: a link to docs/ in a checkout, its files in an installed package."""


def register(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument(
        "page", nargs="?", metavar="PAGE", help="name of the page (default: list the names and titles)"
    )
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    contents = (FOLDER / "README.md").read_text(encoding="utf-8")
    titles = {name: title for title, name in re.findall(r"\[([^]]+)\]\(([\w-]+)\.md\)", contents)}
    if options.page is None:
        width = max(map(len, titles))
        print_document("".join(f"{name:<{width}}  {title}\n" for name, title in titles.items()))
        print_note("print one: sightline docs PAGE")
        return 0
    name = Path(options.page.partition("#")[0]).name.removesuffix(".md")
    if name not in titles:
        raise unknown_name("page", name, titles)
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        console = Console()
        console.print(Markdown(text, hyperlinks=False), width=min(console.width, 110))
    else:
        print_document(text)
    return 0
