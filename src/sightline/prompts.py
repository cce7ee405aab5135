"""Loads prompts, which are data: a `prompts.toml` in the package that sends them, each with its source."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def load(package: str) -> dict[str, Any]:
    """Read the prompts of a package.

    TOML drops a line break right after an opening triple quote, so it is not part of a prompt.
    """
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
