"""Every example of docs/extending.md works on a copy of the package, in the stated number of files."""

from __future__ import annotations

import csv
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

import sightline
from training.scenes.build import generate_codis

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending.md"
TOUCHED_FILES = {
    "Add a metric": 2,
    "Add a judge prompt": 2,
    "Add an export format": 2,
    "Add a command": 2,
    "Add an option of `run`": 2,
}

Call = Callable[..., str]


def section_of(title: str) -> str:
    """The text of a section of the page."""
    return PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.fixture
def changed(tmp_path: Path) -> Callable[[str], Call]:
    """Apply a section's changes to a copy of the package; returns what runs a Python process on the copy."""

    def change(section: str) -> Call:
        shutil.copytree(Path(sightline.__file__).parent, tmp_path / "src" / "sightline")
        changes = diffs(section_of(section))
        assert len({file for file, _ in changes}) == TOUCHED_FILES[section]
        for file, hunks in changes:
            apply(tmp_path / file, hunks)

        def call(*words: str) -> str:
            done = subprocess.run(
                [sys.executable, *words],
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
                cwd=tmp_path,
            )
            return done.stdout + done.stderr

        return call

    return change


@pytest.fixture
def codis(tmp_path: Path) -> str:
    """A small synthetic data folder of CODIS."""
    return str(generate_codis(tmp_path / "codis", pairs=2))


def test_the_table_states_how_many_files_each_example_touches() -> None:
    table = PAGE.read_text().split("\n## ")[0]
    stated = re.findall(r"\| an? ([^|]*) \| (\d) \| \[below\]", table)
    assert {
        f"Add an {what}" if what[0] in "aeo" else f"Add a {what}": int(n) for what, n in stated
    } == TOUCHED_FILES


def test_a_metric_of_the_page_is_listed_and_has_a_value(changed: Callable[[str], Call], codis: str) -> None:
    call = changed("Add a metric")
    assert "pairs of which exactly one answer is right" in call("-m", "sightline", "list", "codis")
    words = (
        "run",
        "codis",
        "--model",
        "baseline/chance",
        "--data",
        codis,
        "--quiet",
        "--json",
        "--out",
        "results",
    )
    call("-m", "sightline", *words)
    metrics = json.loads((Path(codis).parent / "results" / "metrics.json").read_text())["metrics"]
    (value,) = [one for one in metrics if one["metric"] == "one_right" and one["subset"] == "all"]
    assert value["n"] == 2


def test_a_judge_prompt_of_the_page_is_an_option(changed: Callable[[str], Call], codis: str) -> None:
    call = changed("Add a judge prompt")
    words = ("run", "codis", "--model", "baseline/chance", "--judge", "baseline/chance", "--data", codis)
    printed = call("-m", "sightline", *words, "--set", "judge_prompt=strict", "--out", "results")
    assert "results: results" in printed
    code = (
        "from sightline.benchmarks.registry import benchmark\nfrom sightline.types import Case\n"
        "from sightline.scoring.scorer import ModelScorer, by_question\n"
        "scorers = benchmark('codis').scorers({'judge_prompt': 'strict', 'judge_image': False})\n"
        "scorer = by_question(scorers, ModelScorer)['correct']\n"
        "case = Case(('k',), 'correct', 'Up?', ('up',), ('down',))\n"
        "print(scorer.ask(case)[0].parts[0].text, scorer.read(case, 'Wrong.').verdict)"
    )
    printed = call("-c", code)
    assert "Question: Up?\nReference: down\nOutput: up\n" in printed
    assert printed.endswith("nothing else. wrong\n")


def test_an_export_format_of_the_page_writes_its_file(changed: Callable[[str], Call], codis: str) -> None:
    call = changed("Add an export format")
    call("-m", "sightline", "run", "codis", "--model", "baseline/chance", "--data", codis, "--out", "results")
    printed = call("-m", "sightline", "export", "results", "--as", "tsv", "--out", "answers.tsv")
    assert "labels and usage are left out" in printed
    with (Path(codis).parent / "answers.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert [row["variant"] for row in rows] == ["context_1", "context_2"] * 2


def test_a_command_of_the_page_runs_and_is_in_the_help(changed: Callable[[str], Call], codis: str) -> None:
    call = changed("Add a command")
    assert call("-m", "sightline", "count", "codis", "--data", codis) == "2\n"
    assert "count the samples of a benchmark" in call("-m", "sightline", "--help")


def test_an_option_of_the_page_reaches_every_interface(changed: Callable[[str], Call], codis: str) -> None:
    call = changed("Add an option of `run`")
    command = ("-m", "sightline", "run", "codis", "--model", "baseline/chance", "--data", codis)
    assert "run 1:" in call(*command, "--skip", "1", "--out", "results")
    result = json.loads((Path(codis).parent / "results" / "metrics.json").read_text())
    assert (result["samples"], result["options"]["skip"]) == (1, 1)
    assert "--skip N" in call("-m", "sightline", "sweep", "--help-all")
    code = "import sightline; sightline.run('codis', model='baseline/chance', skip='7')"
    assert "wrong value of the option skip (found '7'); expected int" in call("-c", code)
