"""Trackers get the numbers of runs and trainings, and cannot harm what they track."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.docs.test_examples import python_blocks

from sightline.cli.main import main
from sightline.plugins import plug_in
from training.scenes.build import generate_codis

TRACKER = """
from sightline.interop.tracking import Tracker


class Fragile(Tracker):
    name = "fragile"

    def start(self, run):
        self.told = open(run.arguments["file"], "a")
        self.say("start", run.name, run.settings["model"])

    def say(self, *words):
        print(*words, file=self.told, flush=True)
        if words[0] == "FAILS":
            raise ConnectionError("the server left")

    def log(self, values, step):
        self.say("log", step)

    def finish(self, files, exit_status):
        self.say("finish", *sorted(file.name for file in files), exit_status)


trackers = {"fragile": Fragile}
"""


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A run of a small benchmark, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    data = str(generate_codis(tmp_path / "codis", pairs=8))
    return ["run", "codis", "--model", "baseline/chance", "--data", data, "--quiet"]


def fragile(tmp_path: Path, fails: str = "") -> list[str]:
    """The words that name the tracker of above; its method `fails` raises an error."""
    (tmp_path / "fragile.py").write_text(TRACKER.replace('"FAILS"', f'"{fails}"'))
    return ["--plugin", "fragile.py", "--track", "fragile", "--track-arg", "file=told.txt"]


@pytest.mark.parametrize("fails", ["", "log", "finish"])
def test_a_failing_tracker_is_noted_and_changes_no_run(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], fails: str
) -> None:
    assert main([*words, *fragile(tmp_path, fails), "--track-arg", "step=7"]) == 0
    told = ["start codis:default baseline/chance baseline/chance", "log 7"]
    assert (tmp_path / "told.txt").read_text().splitlines() == [*told, "finish metrics.json report.html 0"]
    noted = capsys.readouterr().err
    error = (
        "the tracker 'fragile' failed and lacks values: ConnectionError: the server left (fragile.py, line"
    )
    assert noted.count(error) == bool(fails)
    assert main(["report", "1"]) == 0


def test_a_tracker_that_does_not_start_refuses_the_run_before_its_first_request(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, *fragile(tmp_path, "start")]) == 2
    assert "the tracker 'fragile' does not start: ConnectionError" in capsys.readouterr().err
    assert main(["runs", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_run_that_is_refused_or_interrupted_ends_with_its_exit_status(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sightline.evaluation.run.judge_and_write", interrupted)
    assert main([*words, *fragile(tmp_path)]) == 130
    assert (tmp_path / "told.txt").read_text().splitlines()[1:] == ["finish 130"]


@pytest.mark.parametrize(
    ("argument", "message"),
    [("step=-1", "step is no step"), ("step=last", "step is no step"), ("report=no", "neither on nor off")],
)
def test_a_wrong_argument_is_refused(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], argument: str, message: str
) -> None:
    assert main([*words, *fragile(tmp_path), "--track-arg", argument]) == 2
    assert message in capsys.readouterr().err


def test_arguments_of_no_tracker_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--track-arg", "project=vlm"]) == 2
    assert "--track-arg has no effect without --track" in capsys.readouterr().err


def test_each_combination_of_a_sweep_is_tracked(words: list[str], tmp_path: Path) -> None:
    sweep = ["sweep", *words[1:], "--set", "cot=on,off", "--track-arg", "report=off"]
    assert main([*sweep, *fragile(tmp_path)]) == 0
    told = (tmp_path / "told.txt").read_text().splitlines()
    assert (
        told
        == ["start codis:default baseline/chance baseline/chance", "log None", "finish metrics.json 0"] * 2
    )


# -- Weights & Biases, offline: what its client wrote, by its own records


def wandb_records(folder: Path) -> Iterator[Any]:
    """The records of a run's file: blocks of 32 KiB with pieces of records, as LevelDB's logs have them."""
    from wandb.proto import wandb_internal_pb2

    (file,) = folder.glob("wandb/offline-run-*/*.wandb")
    content, at, piece = file.read_bytes(), 7, b""
    while at < len(content):
        if (left := 32768 - at % 32768) < 7:
            at += left
            continue
        _, length, kind = struct.unpack("<IHB", content[at : at + 7])
        piece += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # A whole record, or its last piece.
            record, piece = wandb_internal_pb2.Record.FromString(piece), b""  # type: ignore[attr-defined]
            yield record


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not find_spec("wandb"):
        pytest.skip("needs the extra 'wandb'")
    for name, value in {"MODE": "offline", "DIR": str(tmp_path), "SILENT": "true"}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    (tmp_path / "wandb").mkdir()


@pytest.mark.slow
@pytest.mark.usefixtures("offline")
def test_wandb_has_the_values_of_a_run_with_their_intervals(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["sightline", "a-word-of-the-command"])
    track = ["--track", "wandb", "--track-arg", "project=vlm", "--track-arg", "step=500"]
    assert main([*words, *track, "--name", "base", "--out", "results"]) == 0
    metrics = json.loads((tmp_path / "results" / "metrics.json").read_text())["metrics"]
    expected = {
        f"codis/default/{one['metric']}{suffix}": one[field]
        for one in metrics
        for field, suffix in (("value", ""), ("low", "_low"), ("high", "_high"))
        if one["subset"] == "all" and one[field] is not None
    }
    assert len(expected) > 10
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and b"a-word-of" in file.read_bytes()]
    records = list(wandb_records(tmp_path))
    (logged,) = [record.history.item for record in records if record.WhichOneof("record_type") == "history"]
    values = {"".join(item.nested_key) or item.key: json.loads(item.value_json) for item in logged}
    assert {name: values[name] for name in expected} == expected
    assert values["sightline/step"] == 500
    steps = {record.metric.name for record in records if record.metric.step_metric == "sightline/step"}
    assert steps >= set(expected)
    (run,) = [record.run for record in records if record.run.run_id]
    assert (run.display_name, run.project, run.job_type) == ("base", "vlm", "run")
    (artifact,) = [record.artifact for record in records if record.artifact.name]
    assert [one.path for one in artifact.manifest.contents] == ["metrics.json", "report.html"]


# -- MLflow: the example of docs/extending.md, read by its own client


@pytest.mark.slow
def test_the_tracker_of_the_page_has_the_values_of_a_run(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    (tmp_path / "mlflow_tracker.py").write_text(python_blocks("extending.md")[0])
    plug_in(str(tmp_path / "mlflow_tracker.py"))
    track = ["--track", "mlflow", "--track-arg", "step=500", "--track-arg", "experiment=vlm"]
    assert main([*words, *track, "--out", "results", "--name", "base"]) == 0
    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("vlm").experiment_id])
    metrics = json.loads((tmp_path / "results" / "metrics.json").read_text())["metrics"]
    (acc_p,) = [one for one in metrics if (one["metric"], one["subset"]) == ("acc_p", "all")]
    assert run.data.metrics["codis/default/acc_p"] == acc_p["value"]
    assert run.data.metrics["codis/default/acc_p_high"] == acc_p["high"]
    assert client.get_metric_history(run.info.run_id, "codis/default/acc_p")[0].step == 500
    assert (run.info.run_name, run.info.status, run.data.params["task"]) == (
        "base",
        "FINISHED",
        "codis:default",
    )
    assert [one.path for one in client.list_artifacts(run.info.run_id)] == ["metrics.json", "report.html"]
