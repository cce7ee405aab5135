"""docs/architecture.md names files that exist, and its data paths follow imports."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.test_arrows import ORDER

import sightline

ROOT = Path(sightline.__file__).parent
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "architecture.md").read_text()
PATHS = {
    title: re.findall(r"^\d+\. (.*?)(?=^\d+\. |\Z)", body, re.DOTALL | re.MULTILINE)
    for title, body in re.findall(
        r"^## (Data path \d[^\n]*)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE
    )
}


def named_files(text: str) -> list[str]:
    return re.findall(r"`([\w/]+\.py)`", text)


def tied_files(file: str) -> set[str]:
    """The files of the package that a file imports, or names as 'module:name' as the registry does."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, ast.ImportFrom):
            modules |= {f"{node.module}", *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Constant) and re.fullmatch(r"sightline[.\w]+:\w+", str(node.value)):
            modules.add(str(node.value).partition(":")[0])
    paths = {module.removeprefix("sightline.").replace(".", "/") + ".py" for module in modules}
    return {path for path in paths if (ROOT / path).is_file()}


def test_every_file_that_the_page_names_exists() -> None:
    assert [file for file in named_files(PAGE.replace("src/sightline/", "")) if not _exists(file)] == []


def _exists(file: str) -> bool:
    return (ROOT / file).is_file() or (ROOT.parents[1] / file).is_file()


def test_the_page_lists_the_packages_in_the_order_of_the_arrows() -> None:
    table = PAGE.split("\n## Packages")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == ORDER


@pytest.mark.parametrize("title", PATHS)
def test_the_files_of_a_data_path_are_connected_by_imports(title: str) -> None:
    steps = PATHS[title]
    assert len(steps) == 10
    files = [{file for file in named_files(step) if (ROOT / file).is_file()} for step in steps]
    assert all(files)
    named = set().union(*files)
    ties = {file: tied_files(file) & named for file in named}
    reached, ahead = set(), {next(iter(named))}
    while ahead:
        file = ahead.pop()
        reached.add(file)
        ahead |= {other for other in named if other in ties[file] or file in ties[other]} - reached
    assert reached == named
