"""The quickstart: from nothing to a table, and its printed commands find everything known."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

SIGHTLINE = [sys.executable, "-m", "sightline"]

pytestmark = pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="needs the extra local")


def value(folder: Path, metric: str) -> dict[str, Any]:
    metrics = json.loads((folder / "metrics.json").read_text())["metrics"]
    found: dict[str, Any] = next(m for m in metrics if m["metric"] == metric and m["subset"] == "all")
    return found


@pytest.mark.slow
def test_the_quickstart_runs_every_benchmark_with_mini_and_with_chance(tmp_path: Path) -> None:
    def quickstart() -> subprocess.CompletedProcess[str]:
        command = [*SIGHTLINE, "quickstart", "--out", "my q"]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)

    run = quickstart()
    opening, *told = run.stderr.splitlines()
    assert "not their images" in opening
    commands = [line[2:] for line in told if line.startswith("$ ")]
    assert len(commands) == 15
    assert [shlex.split(command)[1] for command in commands[12:14]] == ["serve", "show"]
    assert (tmp_path / "my q" / "report.html").is_file()
    assert told[-1] == f"$ {commands[-1]}"
    for task, metric in (("codis", "acc_p"), ("mmr3-rephrasing", "acc")):
        mini = value(tmp_path / "my q" / "results" / f"{task}-mini", metric)
        chance = value(tmp_path / "my q" / "results" / f"{task}-baseline-chance", metric)
        assert mini["low"] > chance["high"], task
    assert run.stdout.splitlines()[1].split() == ["mini", "chance"]
    assert len(run.stdout.splitlines()) < 70
    assert "Human" not in run.stdout

    again = subprocess.run(
        [*SIGHTLINE, *shlex.split(commands[0])[1:]], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert "sent 0" in again.stderr
