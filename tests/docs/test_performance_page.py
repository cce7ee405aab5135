"""docs/performance.md is what `python perf` writes from the results that are in the repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from sightline.benchmarks.iibench.benchmark import prompt_text

ROOT = Path(__file__).resolve().parents[2]
PERF = ROOT / "perf"


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts import each other by name, because they run by path."""
    monkeypatch.syspath_prepend(str(PERF))


def test_the_page_is_what_the_command_writes_from_the_results() -> None:
    from page import PAGE, page

    assert PAGE.read_text(encoding="utf-8") == page(PERF / "results")


@pytest.mark.slow
def test_each_part_is_a_script_that_takes_its_arguments() -> None:
    from parts import PARTS

    assert len({part.name for part in PARTS}) == len(PARTS)
    for part in PARTS:
        # argparse knows all options and their types, and --help then ends the script before it measures.
        command = [sys.executable, str(PERF / part.script), *part.arguments, "--help"]
        shown = subprocess.run(command, capture_output=True, text=True, check=False)
        assert shown.returncode == 0, shown.stderr
        assert "--json FILE" in shown.stdout


def test_the_bare_client_sends_the_prompts_of_the_engine() -> None:
    """The test server derives latencies and failures from the prompt: other prompts, other times."""
    import floor

    options = ["a ceiling", "a floor", "a wall"]
    assert floor.prompt("What is measured?", options) == prompt_text("What is measured?", options)


def test_a_part_that_was_not_measured_says_so_and_repeats_no_figures(tmp_path: Path) -> None:
    from measurement import Measurement
    from page import page
    from parts import PARTS
    from report import Report, Table

    table = Table("Times", ["tool", "wall"], [["sightline", "1.0 s"]])
    measured = Measurement(
        date="2026-01-02",
        commit="abc",
        machine="2 cores",
        minutes=1.0,
        additions=(0.4, 0.5),
        command="python perf/engine.py",
        report=Report([table], ["A note."]),
    )
    absent = msgspec.structs.replace(measured, report=Report(), missing="no rapidocr")
    for name, one in (("engine", measured), ("ocr", absent)):
        (tmp_path / f"{name}.json").write_bytes(msgspec.json.encode(one))
    text = page(tmp_path)
    assert "| sightline | 1.0 s |" in text
    assert "Not measured: no rapidocr." in text
    assert text.count("Not measured yet.") == len(PARTS) - 2


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("lmms_eval", "--peer lmms_eval is wrong; expected inspect_ai=PYTHON or lmms_eval=PYTHON"),
        ("other=/usr/bin/python3", "--peer other=/usr/bin/python3 is wrong; expected inspect_ai=PYTHON or"),
        ("lmms_eval=/no/python", "there is no program /no/python; expected the Python of lmms_eval"),
    ],
)
@pytest.mark.parametrize("command", [".", "peers.py"])
def test_a_wrong_peer_ends_the_command_before_anything_is_measured(
    command: str, word: str, message: str
) -> None:
    words = [sys.executable, str(PERF / command), "--peer", word]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert message in line


@pytest.mark.parametrize(("name", "says"), [("0123abcde", True), ("0123abcde+", False), ("unknown", False)])
def test_a_checkout_with_changes_is_measured_again(name: str, says: bool) -> None:
    from measurement import is_commit

    assert is_commit(name) is says


@pytest.mark.parametrize(
    ("count", "left_out", "probability"),
    [(1, 0, 0), (3, 0, 0.75), (5, 0, 0.9375), (6, 0, 0.96875), (9, 1, 0.9609375), (15, 3, 0.96484375)],
)
def test_the_interval_of_a_median_is_that_of_the_tables(
    count: int, left_out: int, probability: float
) -> None:
    """The tables of the sign test, as in Conover, Practical Nonparametric Statistics."""
    from engine import median_interval

    values = [float(number) for number in range(count)]
    assert median_interval(values[::-1]) == (values[left_out], values[-1 - left_out], probability)


@pytest.mark.parametrize(
    ("python", "message"),
    [
        (sys.executable, "it has the same code"),
        ("/no/python", "there is no program /no/python; expected the Python of an environment"),
    ],
)
def test_a_wrong_second_version_ends_the_command_before_anything_is_measured(
    python: str, message: str
) -> None:
    words = [sys.executable, str(PERF / "engine.py"), "--against", python]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
