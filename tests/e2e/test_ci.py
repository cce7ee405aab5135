"""The script and the action of docs/ci.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import junitparser
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/ci.md").read_text()


def _block(language: str) -> str:
    (block,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(block)


def test_the_action_runs_the_script_of_the_page() -> None:
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    assert _block("shell") in [step.get("run") for step in steps]


@pytest.mark.parametrize("kind", ["action", "workflow"])
def test_action_and_workflow_are_valid_by_the_schemas_of_github(tmp_path: Path, kind: str) -> None:
    file = ROOT / "action.yml"
    if kind == "workflow":
        file = tmp_path / "evaluate.yml"
        file.write_text(_block("yaml"))
    words = ["-m", "check_jsonschema", "--builtin-schema", f"vendor.github-{kind}s", str(file)]
    checked = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_the_workflow_gives_the_action_inputs_that_it_has() -> None:
    steps = yaml.safe_load(_block("yaml"))["jobs"]["evaluate"]["steps"]
    (given,) = (step["with"] for step in steps if "sightline@" in step.get("uses", ""))
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    assert given.keys() <= inputs.keys()
    assert {name for name, one in inputs.items() if one.get("required")} <= given.keys()


@pytest.mark.slow
def test_the_script_compares_with_the_last_results_and_keeps_the_report(mock: Any, tmp_path: Path) -> None:
    right, wrong = mock("--words", "yes"), mock("--words", "no")
    lines = [
        {
            "group": f"{number // 2}",
            "variant": f"{number % 2}",
            "prompt": f"Is it {number}?",
            "references": ["yes"],
        }
        for number in range(60)
    ]
    (tmp_path / "groups.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (tmp_path / "policy.toml").write_text('[groups.acc]\ntest = "not-worse"\n')

    def status(model: str) -> int:
        (tmp_path / "sightline.db").unlink(missing_ok=True)  # each job has an empty store
        variables = {"TASK": "groups:groups.jsonl", "MODEL": model, "LIMIT": "20", "POLICY": "policy.toml"}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        summary = {"GITHUB_STEP_SUMMARY": str(tmp_path / "job.md")}
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", _block("shell")]
        return subprocess.run(
            words, cwd=tmp_path, env={**os.environ, "PATH": path, **variables, **summary}
        ).returncode

    def failures() -> tuple[int, int]:
        read = junitparser.JUnitXml.fromfile(str(tmp_path / "policy.xml"))
        return read.tests, read.failures

    assert status(right.model) == 0
    assert not (tmp_path / "policy.xml").exists()
    (tmp_path / "new").rename(tmp_path / "last")
    assert status(right.model) == 0
    assert failures() == (1, 0)
    shutil.rmtree(tmp_path / "new")
    assert status(wrong.model) == 5
    assert failures() == (1, 1)
    assert wrong.stats()["ok"] == 40
    assert "<!doctype html>" in (tmp_path / "report.html").read_text().lower()
    assert "1 not met" in (tmp_path / "job.md").read_text()
