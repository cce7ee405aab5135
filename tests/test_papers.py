"""What belongs to a paper lies in its folder: no other module tests for its name or imports from it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

import sightline
from sightline.benchmarks.registry import BENCHMARKS

ROOT = Path(sightline.__file__).parent
PAPERS = {"codis", "iibench", "contextual", "mmr3"}

IMPORTS = {
    "annotation/record_tables.py": "reads and writes the records of CODIS and ConTextual",
    "annotation/iibench_records.py": "II-Bench's records, and tables in ConTextual's columns",
    "annotation/other_items.py": "reads ConTextual's tables",
    "builders/mask.py": "writes MM-R3's prompt into groups files",
    "builders/rephrase.py": "writes MM-R3's prompt into groups files",
    "builders/restyle.py": "writes MM-R3's prompt into groups files",
    "builders/split.py": "writes ConTextual's tables",
    "builders/synthesize.py": "writes ConTextual's tables",
    "cli/build_images.py": "the default prompt of perturb is MM-R3's",
}
"""Modules that may import from a paper's folder, or name it, and why: most of them make a paper's data."""

NAMES = {
    "annotation/creation.py": "authors of CODIS write several pairs about an image",
    "annotation/export.py": "the writer of each kind of records",
    "annotation/iibench_records.py": "what its kind of records does before it is written",
    "annotation/task.py": "the kinds of records that a declaration may name",
    "cli/quickstart.py": "runs the benchmarks on synthetic data",
    "data/pull.py": "the label files of MM-R3's authors, from which no samples are read",
    "interop/inspect_tasks.py": "inspect_ai finds a task for each benchmark by its function's name",
}
"""Modules that may hold a paper's name as a string, and why."""


@pytest.mark.slow
def test_only_the_listed_modules_import_from_a_papers_folder() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for name, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                found[name] |= folders(f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Import):
                found[name] |= folders(alias.name for alias in node.names)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found[name] |= folders([node.value])
    assert {name for name, papers in found.items() if papers} == set(IMPORTS)


def test_a_paper_imports_from_another_only_where_its_records_and_metrics_are_the_same() -> None:
    crossing = {
        (file.relative_to(ROOT).as_posix(), paper)
        for file in (ROOT / "benchmarks").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom)
        for paper in folders([str(node.module)])
        if paper not in file.parts
    }
    assert crossing == {("benchmarks/ciibench/benchmark.py", "iibench")}


@pytest.mark.slow
def test_only_the_listed_modules_name_a_paper() -> None:
    found = {
        name
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in PAPERS
    }
    assert found == set(NAMES)


def test_every_paper_has_a_folder_and_a_line_in_the_registry() -> None:
    assert all((ROOT / "benchmarks" / paper / "published.json").is_file() for paper in PAPERS)
    assert set(BENCHMARKS) >= PAPERS


def modules() -> list[tuple[str, ast.Module]]:
    """The modules outside of sightline.benchmarks, by their path."""
    files = [file for file in ROOT.rglob("*.py") if ROOT / "benchmarks" not in file.parents]
    return [(file.relative_to(ROOT).as_posix(), ast.parse(file.read_text())) for file in files]


def folders(names: Iterable[str]) -> set[str]:
    """The papers whose folders these dotted names lie in."""
    return {paper for name in names for paper in PAPERS if name.startswith(f"sightline.benchmarks.{paper}")}
