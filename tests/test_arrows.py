"""Which package may import which. Whoever adds an arrow decides so, here."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import sightline

ROOT = Path(sightline.__file__).parent

ARROWS = {
    "cli": "adapter benchmarks build data engine evaluation formats models prompts published report scoring",
    "interop": "benchmarks engine evaluation formats models scoring",
    "evaluation": "benchmarks data engine formats metrics models published report scoring",
    "adapter": "build formats models scoring",
    "build": "benchmarks data engine formats metrics models prompts published scoring",
    "data": "benchmarks formats models scoring",
    "report": "formats metrics published",
    "engine": "models prompts",
    "models": "adapter formats prompts",
    "benchmarks": "formats metrics prompts scoring",
    "formats": "scoring",
    "metrics": "scoring",
    "scoring": "prompts",
    "prompts": "",
    "published": "",
}
"""Package -> those that it imports, anywhere in its modules; none imports one that comes earlier."""

UP = {("models", "adapter")}
"""Arrows to a package that comes earlier: a model is loaded with its adapter, which is trained on a model."""


def test_packages_import_what_the_table_says_and_no_other() -> None:
    found = {package: " ".join(sorted(others)) for package, others in imported().items()}
    assert found == ARROWS


def test_the_table_stands_in_the_order_of_its_arrows() -> None:
    order = list(ARROWS)
    arrows = {(one, other) for one, others in ARROWS.items() for other in others.split()}
    assert {(one, other) for one, other in arrows if order.index(one) > order.index(other)} == UP


def imported() -> dict[str, set[str]]:
    """What each package imports of the others; modules that belong to no package are not looked at."""
    packages = {file.parent.name for file in ROOT.glob("*/__init__.py")}
    found: dict[str, set[str]] = defaultdict(set)
    for package in packages:
        for file in (ROOT / package).rglob("*.py"):
            names = {name.split(".")[1] for name in modules(file) if name.startswith("sightline.")}
            found[package] |= names & packages - {package}
    return found


def modules(file: Path) -> Iterator[str]:
    """The modules, and the names in them, that a file imports."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}: imports are written in full"
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
