"""The changes of docs/adding-a-benchmark.md, applied to a copy of the package."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import sightline

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
    (example,) = [block for block in blocks(page, "python") if "import" in block]
    (folder / "benchmark.py").write_text(example.partition("\nbenchmarks = ")[0])
    changes = [change for block in blocks(page, "diff") for change in block.split("--- a/")[1:]]
    assert [change.partition("\n")[0] for change in changes] == [
        "src/sightline/registry.py",
        "src/sightline/formats/export.py",
        "src/sightline/registry.py",
    ]
    for change in changes:
        apply(change, root)

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


def test_a_benchmark_is_one_folder_and_one_line_of_the_registry(call: Callable[..., str]) -> None:
    assert "arrows  Arrows: which way do they point?" in call("list", "arrows")
    assert "accuracy" in call("list", "arrows")
    said = call("run", "arrows", "--model", "baseline/chance")
    assert "no data folder for arrows" in said


def test_an_export_format_touches_two_files(call: Callable[..., str], tmp_path: Path) -> None:
    line = {"sample": "a", "variant": "v", "response": "Left.", "status": "ok", "verdict": "right"}
    rest = {"draw": 0, "key": "k", "labels": {}, "finish_reason": "stop", "usage": {}}
    (tmp_path / "answers.jsonl").write_text(json.dumps({**line, **rest, "group": "a"}) + "\n")
    out = tmp_path / "responses.txt"
    said = call("export", str(tmp_path / "answers.jsonl"), "--as", "responses", "--out", str(out))
    assert f"written: {out}" in said
    assert out.read_text() == "Left.\n"
    assert "responses: one response a line" in call("export", "--help")


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a language, in the order of the page."""
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def apply(change: str, root: Path) -> None:
    """Apply the hunks of one file's diff."""
    path = root / change.partition("\n")[0]
    text = path.read_text()
    for hunk in change.split("@@\n")[1:]:
        lines = hunk.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if not line.startswith("+"))
        assert text.count(before) == 1, before
        text = text.replace(before, "".join(line[1:] for line in lines if not line.startswith("-")))
    path.write_text(text)
