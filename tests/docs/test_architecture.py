"""docs/architecture.md names files that exist, and its data paths follow imports."""

from __future__ import annotations

import ast
import re
from functools import cache
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


@cache
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
    assert re.findall(r"^\| `([\w.]+)` \|", table, re.MULTILINE) == ORDER


@pytest.mark.parametrize("title", PATHS)
def test_each_step_of_a_data_path_is_tied_by_an_import_to_an_earlier_step(title: str) -> None:
    steps = [[file for file in named_files(step) if (ROOT / file).is_file()] for step in PATHS[title]]
    assert len(steps) <= 8
    assert all(steps)
    reached = {steps[0][0]}
    for number, step in enumerate(steps, start=1):
        # Every file of a step is tied to an earlier step, at most over other files of its own step.
        left = set(step) - reached
        while tied := {file for file in left if any(are_tied(file, other) for other in reached)}:
            reached |= tied
            left -= tied
        assert left == set(), f"step {number}"


def are_tied(file: str, other: str) -> bool:
    """Whether one of two files imports the other."""
    return other in tied_files(file) or file in tied_files(other)
