"""A type checker knows the options of the Python API."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

CALLS = """\
import sightline
from pathlib import Path

sightline.run("codis", model="mini", limit=3, data=Path("d"), judge=["rules"], show_progress=True)
sightline.sweep("codis", model=["a", "b"], gen={"temperature": [0, 1]}, augment=["ocr"])
sightline.score("codis", "answers.jsonl", allow_missing=True)
sightline.run("codis", model="mini", limt=3)
sightline.run("codis", model="mini", limit="3")
sightline.run("codis", limit=3)
sightline.score("codis", "answers.jsonl", repeats=3)
sightline.sweep("codis", model=["a"], augment=["words"])
"""

ERRORS = {
    7: 'Unexpected keyword argument "limt" for "run"',
    8: 'Argument "limit" to "run" has incompatible type "str"; expected "int | None"',
    9: 'Missing named argument "model" for "run"',
    10: 'Unexpected keyword argument "repeats" for "score"',
    11: "List item 0 has incompatible type",
}


@pytest.mark.slow
def test_mypy_accepts_right_calls_and_refuses_wrong_ones(tmp_path: Path) -> None:
    file = tmp_path / "calls.py"
    file.write_text(CALLS)
    words = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--follow-imports", "silent"]
    done = subprocess.run([*words, str(file)], capture_output=True, text=True, cwd=ROOT)
    # mypy's cache may name the folder of an earlier run.
    errors = dict(re.findall(r"calls\.py:(\d+): error: (.*)", done.stdout))
    assert {int(number) for number in errors} == {*ERRORS}, done.stdout
    assert all(message in errors[str(number)] for number, message in ERRORS.items())
