"""Which package may import which. Whoever adds an arrow decides so, here."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import sightline

ROOT = Path(sightline.__file__).parent

ORDER = [
    "cli",
    "interop",
    "evaluation",
    "report",
    "results",
    "judging",
    "plan",
    "adapter",
    "builders",
    "data",
    "engine",
    "models",
    "benchmarks",
    "metrics",
    "formats",
    "scoring",
]
"""Packages from the top to the ground: a package imports only packages to its right."""


def test_every_package_stands_in_the_order() -> None:
    assert sorted(imported()) == sorted(ORDER)


def test_packages_import_only_what_stands_below_them() -> None:
    upward = {
        (package, other)
        for package, others in imported().items()
        for other in others
        if ORDER.index(other) < ORDER.index(package)
    }
    assert upward == set()


def test_no_files_import_each_other_in_a_circle() -> None:
    files = {_module(file): file for file in ROOT.rglob("*.py") if file.name != "__init__.py"}
    imports = {
        module: {
            other for name in modules(file) for other in (name, name.rpartition(".")[0]) if other in files
        }
        for module, file in files.items()
    }
    TopologicalSorter(imports).prepare()  # raises CycleError with the circle


def _module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT.parent).with_suffix("").parts)


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
