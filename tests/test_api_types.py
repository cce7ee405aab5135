"""A type checker knows the options of the Python API."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sightline import api
from sightline.evaluation.spec import RunOptions, ScoreOptions, SweepOptions

ROOT = Path(__file__).resolve().parents[1]

CALLS = """\
import sightline
from pathlib import Path

sightline.run("codis", model="mini", limit=3, data=Path("d"), judge=["rules"], show_progress=True)
sightline.sweep("codis", model=["a", "b"], gen={"temperature": [0, 1]}, augment=["ocr"])
sightline.score("codis", "answers.jsonl", allow_missing=True)
sightline.score("groups:mine.jsonl")
sightline.run("codis", model="mini", limt=3)
sightline.run("codis", model="mini", limit="3")
sightline.run("codis", limit=3)
sightline.score("codis", "answers.jsonl", repeats=3)
sightline.sweep("codis", model=["a"], augment=["words"])
"""

ERRORS = {
    8: 'Unexpected keyword argument "limt" for "run"',
    9: 'Argument "limit" to "run" has incompatible type "str"; expected "int | None"',
    10: 'Missing named argument "model" for "run"',
    11: 'Unexpected keyword argument "repeats" for "score"',
    12: "List item 0 has incompatible type",
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


@pytest.mark.parametrize(
    ("function", "typed", "options"),
    [
        (api.run, api._Run, RunOptions),
        (api.arun, api._Run, RunOptions),
        (api.score, api._Score, ScoreOptions),
        (api.sweep, api._Sweep, SweepOptions),
    ],
)
def test_a_typed_call_has_the_parameters_of_the_function(
    function: Callable[..., Any], typed: type, options: type
) -> None:
    """Type checkers see the class, Python calls the function: names, order, kinds and defaults are equal."""
    own = list(inspect.signature(function).parameters.values())
    seen = inspect.signature(typed).parameters
    *named, rest = own
    assert rest.kind is inspect.Parameter.VAR_KEYWORD
    inherited = inspect.signature(options).parameters.keys() - {"task"}
    others = [one for name, one in seen.items() if name not in inherited]
    assert [(one.name, one.kind, one.default) for one in others] == [
        (one.name, one.kind, one.default) for one in named
    ]
