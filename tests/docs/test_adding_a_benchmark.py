"""The changes of docs/adding-a-benchmark.md, applied to a copy of the package."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.docs.page_diffs import apply, diffs
from tests.docs.test_examples import arrow_images

import sightline
from sightline.benchmarks.base import Benchmark

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adding-a-benchmark.md"


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Runs a command of the changed package; returns what it prints."""
    root = tmp_path_factory.mktemp("changed")
    shutil.copytree(Path(sightline.__file__).parent, root / "src" / "sightline")
    folder = root / "src" / "sightline" / "benchmarks" / "arrows"
    folder.mkdir()
    (folder / "__init__.py").touch()
    page = PAGE.read_text()
    (example,) = [block for block in blocks(page, "python") if "class Arrows" in block]
    (folder / "benchmark.py").write_text(example.partition("\nbenchmarks = ")[0])
    ((file, hunks),) = diffs(page)
    assert file == "src/sightline/benchmarks/registry.py"
    apply(root / file, hunks)

    def command(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "sightline", *words],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(root / "src")},
            cwd=root,
        )
        return done.stdout + done.stderr

    return command


def test_a_benchmark_is_one_folder_and_one_line_of_the_registry(
    call: Callable[..., str], tmp_path: Path
) -> None:
    assert "arrows  Arrows: which way do they point?" in call("list", "arrows")
    listed = call("list", "arrows")
    assert "accuracy" in listed
    assert "agreement" in listed
    assert "CODIS" not in listed
    said = call("run", "arrows", "--model", "baseline/chance")
    assert "no data folder for arrows" in said
    data = ["--data", str(arrow_images(tmp_path / "images")), "--store", str(tmp_path / "s.db")]
    for selection, answers in ((["--limit", "2"], 2), (["--limit", "2", "--shuffle", "--repeats", "2"], 4)):
        printed = call("run", "arrows", "--model", "baseline/chance", *data, *selection, "--json")
        result, _ = json.JSONDecoder().raw_decode(printed[printed.index("{") :])
        assert result["metrics"][0]["n"] == answers


def test_the_types_of_the_methods_are_those_of_the_interface() -> None:
    (block,) = [
        one for one in blocks(PAGE.read_text(), "python") if one.startswith("def samples(self, folder:")
    ]
    for function in ast.parse(block).body:
        assert isinstance(function, ast.FunctionDef)
        written = {one.arg: ast.unparse(one.annotation) for one in function.args.args if one.annotation}
        declared = dict(getattr(Benchmark, function.name).__annotations__)
        declared.pop("return")
        assert written == declared


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a language, in the order of the page."""
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
