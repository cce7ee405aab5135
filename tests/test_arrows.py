"""Which package may import which. Whoever adds an arrow decides so, here."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import sightline

ROOT = Path(sightline.__file__).parent

ORDER = [
    "cli",
    "interop",
    "viewer",
    "maintenance",
    "annotation",
    "evaluation",
    "reporting",
    "adapter",
    "builders",
    "data",
    "engine",
    "replicas",
    "store",
    "models",
    "benchmarks",
    "metrics",
    "formats",
    "scoring",
]
"""Packages from the top to the ground: a package imports only packages below it in this list."""

TOP = ("__main__", "api")
"""Single modules above all packages."""

GROUND = ("config", "errors", "images", "plugins", "progress", "text", "types")
"""Single modules below all packages: they import only each other."""

REGISTERED_ABOVE = {
    ("models/registry.py", "adapter"): "a local model takes the adapter of --model-arg adapter=FOLDER",
    (
        "evaluation/judges.py",
        "annotation",
    ): "--judge human:PROJECT takes the verdicts of an annotation project",
}
"""Strings 'module:name' that name a package above, and why: the only way up."""

IMPORTERS_BY_NAME = {
    "cli/main.py": "the module of a command",
    "models/registry.py": "the factories of models",
    "plugins.py": "plugin files and the packages that register something",
    "replicas/fleet.py": "the launchers of --on",
    "evaluation/judges.py": "the verdicts of an annotation project",
}
"""Files that import a module of a name in a variable, and what they register."""


@pytest.mark.slow
def test_every_package_stands_in_the_order() -> None:
    assert sorted(imported()) == sorted(ORDER)


@pytest.mark.slow
def test_packages_import_only_what_stands_below_them() -> None:
    upward = {
        (package, other)
        for package, others in imported().items()
        for other in others
        if other in TOP or ORDER.index(other) < ORDER.index(package)
    }
    assert upward == set()


@pytest.mark.slow
def test_only_the_listed_registries_name_a_package_above() -> None:
    above = {
        (file.relative_to(ROOT).as_posix(), _part(name))
        for file in ROOT.glob("*/**/*.py")
        for name in _strings(file)
        if (other := _part(name)) in ORDER and ORDER.index(other) < ORDER.index(_part(_module(file)))
    }
    assert above == set(REGISTERED_ABOVE)


@pytest.mark.slow
def test_only_registries_import_by_name() -> None:
    found = {
        file.relative_to(ROOT).as_posix()
        for file in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("importlib.import_module", "import_module")
        and not (
            isinstance(node.args[0], ast.Constant) and not str(node.args[0].value).startswith("sightline")
        )
    }
    assert found == set(IMPORTERS_BY_NAME)


def test_no_module_has_the_name_of_a_function_of_the_api() -> None:
    """An import of `sightline.x` would replace the function `sightline.x`."""
    assert not {*ORDER, *_paths()} & {*sightline.__all__}


@pytest.mark.slow
def test_benchmarks_and_models_do_not_import_each_other() -> None:
    packages = imported()
    assert "models" not in packages["benchmarks"]
    assert "benchmarks" not in packages["models"]


def test_single_modules_import_only_what_their_rank_allows() -> None:
    names = {name for name in _paths() if name != "__init__"}
    assert names == {*GROUND, *TOP}
    packages = set(ORDER)
    for name in GROUND:
        assert _first_parts(_paths()[name]) & {*packages, *TOP} == set(), name


@pytest.mark.slow
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


def _paths() -> dict[str, Path]:
    """The single modules next to the packages, by name."""
    return {file.stem: file for file in ROOT.glob("*.py")}


def imported() -> dict[str, set[str]]:
    """What each package imports of other packages and of TOP."""
    imports: dict[str, set[str]] = defaultdict(set)
    for file in ROOT.glob("*/**/*.py"):
        imports[_part(_module(file))] |= {
            _part(name) for name in modules(file) if name.startswith("sightline.")
        }
    return {package: others & {*ORDER, *TOP} - {package} for package, others in imports.items()}


def _first_parts(file: Path) -> set[str]:
    """The packages and single modules that a file imports, or names in a string such as 'sightline.a.b:C'."""
    return {_part(name) for name in (*modules(file), *_strings(file)) if name.startswith("sightline.")}


def _part(name: str) -> str:
    """The package of a module, or the single module: 'sightline.viewer.plots' -> 'viewer'."""
    return name.split(".")[1]


def _strings(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and re.fullmatch(r"sightline(\.\w+)+(:\w+)?", str(node.value)):
            yield str(node.value).partition(":")[0]


def modules(file: Path) -> Iterator[str]:
    """The modules, and the names in them, that a file imports."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}: imports are written in full"
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


PRINTING = {
    "text.py": "the functions that print",
    "models/process_supervisor.py": "a script of its own, which writes to the log of a server",
}
"""Files that may print by themselves, and why."""


@pytest.mark.slow
def test_one_module_prints_lines() -> None:
    prints = {
        str(file.relative_to(ROOT))
        for file in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("print", "sys.stdout.write", "sys.stderr.write")
    }
    assert prints == set(PRINTING)
