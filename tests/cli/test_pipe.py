"""Whoever reads standard output may leave: nothing is wrong then, and the course is told all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sightline.build.mini import draw_iibench

SIGHTLINE = [sys.executable, "-c", "import sys; from sightline.cli.main import main; sys.exit(main())"]


def left_alone(tmp_path: Path, *words: str) -> tuple[int, str]:
    """Exit status and standard error of a command whose output nobody reads."""
    process = subprocess.Popen(
        [*SIGHTLINE, *words], cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    error = process.stderr.read()
    return process.wait(), error


@pytest.mark.parametrize("form", ["table", "markdown", "csv", "json"])
def test_a_run_that_nobody_reads_ends_as_it_went_and_tells_its_course(tmp_path: Path, form: str) -> None:
    draw_iibench(tmp_path / "data", questions=1, dev=2)
    words = ["--model", "baseline/chance", "--data", "data", "--split", "dev", "--quiet", "--format", form]
    assert left_alone(tmp_path, "run", "iibench", *words) == (0, "run 1: asked 2, known 0, retries 0\n")
    status, error = left_alone(tmp_path, "run", "iibench", *words, "--fresh", "x", "--max-requests", "1")
    assert (status, "asking stopped at the budget" in error) == (4, True)


def test_a_report_that_nobody_reads_is_no_error(tmp_path: Path) -> None:
    draw_iibench(tmp_path / "data", questions=1, dev=2)
    left_alone(
        tmp_path,
        "run",
        "iibench",
        "--model",
        "baseline/chance",
        "--data",
        "data",
        "--split",
        "dev",
        "--quiet",
    )
    assert left_alone(tmp_path, "report") == (0, "")
    assert left_alone(tmp_path, "report", "--pivot") == (0, "")
