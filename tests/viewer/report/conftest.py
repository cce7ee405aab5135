"""HTML of templates, checked by an HTML5 parser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from html5lib import HTMLParser
from tests.reporting.conftest import codis, iibench, mmr3  # noqa: F401

from sightline.viewer.environment import environment

Render = Callable[..., str]


@pytest.fixture(scope="session")
def render() -> Render:
    """Render the source of a template that imports macros; keyword arguments are its names."""
    return lambda source, **names: environment().from_string(source).render(**names)


def parse_errors(page: str) -> list[str]:
    """What an HTML5 parser finds wrong with a whole page."""
    parser = HTMLParser(namespaceHTMLElements=False)
    parser.parse(page)
    return [f"{code} {data} at {place}" for place, code, data in parser.errors]
