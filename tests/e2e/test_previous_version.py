"""Results folders and files of answers of the previous version are read as before.

Commit d4bb909 wrote the folders in `previous_version`, with `run groups:groups.jsonl --model baseline/chance
--set embedder=none`: `finished` with `--judge baseline/chance --judge rules`, `stopped` with
`--max-requests 7`.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

import sightline
from sightline.cli.main import main

Capture = pytest.CaptureFixture[str]
TASK = "groups:groups.jsonl"
RUN = ("run", TASK, "--model", "baseline/chance", "--set", "embedder=none", "--quiet")
JUDGES = {"finished": ("--judge", "baseline/chance", "--judge", "rules"), "stopped": ("--max-requests", "7")}
SENT = {"finished": 12, "stopped": 7}
"""Requests of the previous version's runs: of 12."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folders, as the working directory."""
    copy = shutil.copytree(Path(__file__).parent / "previous_version", tmp_path / "previous_version")
    monkeypatch.chdir(copy)
    return copy


@pytest.mark.parametrize("name", SENT)
def test_report_prints_the_stored_values(name: str, capsys: Capture) -> None:
    assert main(["report", name, "--format", "csv"]) == 0
    printed = {row["metric"]: row for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    stored = json.loads(Path(name, "metrics.json").read_text())["metrics"]
    for row in stored:
        if row["subset"] == "all" and row["value"] is not None:
            shown = printed[row["metric"]]
            assert (float(shown["value"]), int(shown["n"])) == (row["value"], row["n"])


def test_answers_are_scored_as_before() -> None:
    result = sightline.score(TASK, "finished/answers.jsonl", set={"embedder": "none"}).result
    stored = {
        (row["metric"], row["subset"]): row["value"]
        for row in json.loads(Path("finished/metrics.json").read_text())["metrics"]
    }
    scored = {(one.metric, one.subset): one.value for one in result.metrics}
    assert {name: scored[name] for name in stored if name in scored} == {
        name: value for name, value in stored.items() if name in scored
    }
    assert {("acc", "all"), ("agree", "all"), ("failures", "all")} <= scored.keys() & stored.keys()


@pytest.mark.parametrize("name", SENT)
def test_probes_that_were_not_sent_are_no_errors(name: str) -> None:
    """The previous version called them errors with the message "not asked"."""
    result = sightline.score(TASK, f"{name}/answers.jsonl", set={"embedder": "none"}).result
    assert (result.errors, result.not_sent) == (0, result.probes - SENT[name])
    assert result.metrics[0].n == SENT[name] // 3 * 3  # the groups that were sent whole


@pytest.mark.parametrize("name", SENT)
def test_the_same_command_writes_the_folder_again(name: str, capsys: Capture) -> None:
    arguments = [*RUN, *JUDGES[name], "--store", "s.db", "--out", name]
    assert main(arguments) == (4 if name == "stopped" else 0), capsys.readouterr().err
    again = json.loads(Path(name, "metrics.json").read_text())
    assert again["not_sent"] == 12 - SENT[name]


def test_another_command_is_refused_with_the_difference(capsys: Capture) -> None:
    arguments = [*RUN, *JUDGES["finished"], "--store", "s.db", "--out", "finished", "--seed", "1"]
    assert main(arguments) == 2
    assert "seed 0" in (message := capsys.readouterr().err)
    assert "judge_repeats" not in message


def test_a_run_of_this_version_is_compared_without_a_difference_of_options(capsys: Capture) -> None:
    assert main([*RUN, *JUDGES["finished"], "--store", "s.db", "--out", "new"]) == 0
    capsys.readouterr()
    assert main(["compare", "finished", "new"]) == 0
    printed = capsys.readouterr()
    assert "judge_repeats" not in printed.out + printed.err


def test_the_judge_report_reads_its_verdicts(capsys: Capture) -> None:
    keys = {json.loads(line)["key"] for line in Path("finished/answers.jsonl").read_text().splitlines()}
    lines = [
        {"targets": [key], "question": "correct", "verdict": "right", "judge": "ann"} for key in sorted(keys)
    ]
    Path("ann.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["judge-report", "finished", "--human", "ann.jsonl", "--format", "csv"]) == 0
    assert "rules" in capsys.readouterr().out
