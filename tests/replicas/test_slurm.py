"""--on slurm with a real Slurm: what runs, what survives, what is left behind."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.models.test_served import PROGRAM, SIGHTLINE
from tests.replicas.slurm_cluster import SlurmCluster, soon, why_not
from tests.results import lasting_metrics

from training.scenes.build import generate_iibench

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
SECONDS = 240


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    started = SlurmCluster()
    try:
        started.start()
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate_iibench(tmp_path_factory.mktemp("drawn") / "iibench", questions=40)


class Lab:
    """A folder with sightline.toml, a cluster, and commands that run there."""

    def __init__(self, folder: Path, cluster: SlurmCluster, data: Path) -> None:
        self.folder = folder
        self.cluster = cluster
        self.data = data
        self.log = folder / "log"
        self.log.mkdir()
        self.told = folder / "told.jsonl"
        self.profile()

    def profile(self, **more: Any) -> None:
        """Write the profile; jobs keep what they print, which the driver removes at its end."""
        fields: dict[str, Any] = {
            "replicas": 2,
            "address": "127.0.0.1",
            # Text that means something to sbatch.
            "folder": str(self.folder / "shared 100%j"),
            "poll": 0.3,
            "setup": [f"exec >> {self.log}/$task.log 2>&1"],
            **more,
        }
        lines = [f"{name} = {json.dumps(value)}" for name, value in fields.items()]
        named = '[models.plain]\nspec = "mini"\nargs = {template = "plain"}\n'
        (self.folder / "sightline.toml").write_text("\n".join(["[slurm.test]", *lines, named]))

    def start(self, *words: str) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            **self.cluster.environment,
            "STAND_IN": str(self.told),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
        }
        return subprocess.Popen(
            [*SIGHTLINE, *words, "--data", str(self.data), "--quiet"],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> tuple[int, str]:
        """The exit status of a command, and what it printed."""
        done = self.start(*words)
        out, errors = done.communicate(timeout=SECONDS)
        return done.returncode, out + errors

    def served(self, *flags: str) -> list[str]:
        """A run whose model a stand-in for vLLM serves.

        Few requests are in flight: most are still to be asked when a driver is killed, and they are fewer
        than a server answers, so that none of them can end two servers.
        """
        words = ["run", "iibench", "--model", "vllm/org/llava", "--on", "slurm:test", "--store", "s.db"]
        words += ["--concurrency", "4"]
        return [*words, "--model-arg", f"executable={PROGRAM}", "--model-arg", f"flags={' '.join(flags)}"]

    def lines(self, kind: str) -> list[Any]:
        """What the stand-ins told."""
        found = map(json.loads, self.told.read_text().splitlines()) if self.told.exists() else []
        return [line for line in found if kind in line]

    def answered(self, task: str = "*") -> list[str]:
        """The keys that the workers of a job answered."""
        lines = [line for file in self.log.glob(f"{task}.log") for line in file.read_text().splitlines()]
        return [line.removesuffix(" answer") for line in lines if line.endswith(" answer")]

    def busy(self) -> list[str]:
        """The jobs that run and have answered."""
        return [job for job in self.cluster.jobs("RUNNING") if self.answered(job)]

    def attempts(self, store: str) -> Counter[str]:
        """The keys of the attempts in a store."""
        rows = "SELECT hex(key) FROM answers"
        with closing(sqlite3.connect(self.folder / store)) as database:
            return Counter(key for (key,) in database.execute(rows))


@pytest.fixture
def lab(tmp_path: Path, cluster: SlurmCluster, data: Path) -> Iterator[Lab]:
    yield Lab(tmp_path, cluster, data)
    cluster.run("scancel", "--user=root")
    soon(lambda: not cluster.jobs())


def _metrics(folder: Path) -> list[Any]:
    """The metrics of all points of a sweep."""
    files = sorted(folder.rglob("metrics.json"))
    assert len(files) == 4
    return [lasting_metrics(file.parent) for file in files]


def test_a_sweep_survives_a_killed_and_a_requeued_job_with_the_metrics_of_one_process(lab: Lab) -> None:
    pytest.importorskip("transformers", reason="needs the extra local")
    # One node for each of two jobs; the killed one is not replaced.
    lab.profile(cpus=2, resubmits=0)
    sweep = ["sweep", "iibench", "--model", "mini", "--model", "plain", "--gen", "temperature=0,1"]
    sweep += ["--concurrency", "4"]
    alone = lab.start(*sweep, "--store", "alone.db", "--out", "alone")
    driver = lab.start(*sweep, "--store", "slurm.db", "--out", "slurm", "--on", "slurm:test")
    soon(lab.busy, SECONDS)
    first = {*lab.cluster.jobs()}
    killed = lab.busy()[0]
    lab.cluster.run("scancel", killed)
    soon(lambda: {*lab.busy()} - first, SECONDS)
    requeued = min({*lab.busy()} - first)
    lab.cluster.run("scontrol", "requeue", requeued)
    assert alone.wait(SECONDS) == 0
    out, errors = driver.communicate(timeout=SECONDS)
    assert driver.returncode == 0, out + errors
    assert _metrics(lab.folder / "slurm") == _metrics(lab.folder / "alone")
    assert killed in errors
    assert f"{requeued} on" in errors
    soon(lambda: not lab.cluster.jobs())
    assert not list((lab.folder / "shared 100%j").iterdir())
    attempts = lab.attempts("slurm.db")
    assert attempts == lab.attempts("alone.db")
    assert set(attempts.values()) == {1}
    # A killed server may have computed an answer that it could not send; nobody else repeats one.
    asked = Counter(lab.answered())
    lost = {key for task in (killed, requeued) for key in lab.answered(task)}
    assert {key for key, times in asked.items() if times > 1} <= lost
    assert sum(asked.values()) <= len(attempts) + 4
    print(f"{len(attempts)} requests, {sum(asked.values())} answers of workers\n{errors}")


def test_a_restarted_driver_uses_the_servers_that_still_live(lab: Lab) -> None:
    driver = lab.start(*lab.served("--seconds 0.5"))
    soon(lambda: len(lab.lines("asked")) >= 10)
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    assert len(lab.cluster.jobs("RUNNING")) == 2
    status, said = lab.run(*lab.served("--seconds 0.5"))
    assert status == 0, said
    assert "uses the jobs of an earlier run (2)" in said
    assert "submitted" not in said
    assert len(lab.lines("pids")) == 2
    soon(lambda: not lab.cluster.jobs())
    assert len(lab.attempts("s.db")) == 40
    headers = {line["authorization"] for line in lab.lines("asked")}
    [header] = headers
    assert header.startswith("Bearer ")
    key = header.removeprefix("Bearer ")
    written = [file for file in lab.folder.rglob("*") if file.is_file() and file != lab.told]
    assert all(key.encode() not in file.read_bytes() for file in written)


def test_ctrl_c_cancels_the_jobs_and_keeps_the_answers(lab: Lab) -> None:
    driver = lab.start(*lab.served("--seconds 0.6"))
    soon(lambda: len(lab.lines("asked")) >= 10)
    driver.send_signal(signal.SIGINT)
    out, errors = driver.communicate(timeout=60)
    assert driver.returncode == 130, out + errors
    soon(lambda: not lab.cluster.jobs())
    assert not list((lab.folder / "shared 100%j").iterdir())


def test_jobs_that_end_are_submitted_again_and_their_requests_answered(lab: Lab) -> None:
    lab.profile(replicas=1)
    status, said = lab.run(*lab.served("--answers 15"))
    assert status == 0, said
    assert said.count("in place of those that ended") == 2
    assert len(lab.attempts("s.db")) == 40
    # The job of the first command is still ending.
    status, said = lab.run(*lab.served("--answers 15"), "--limit", "10", "--gen", "temperature=0.5")
    assert status == 0, said
    assert said.count("submitted") == 1


def test_a_requeued_job_is_used_again_when_it_is_back(lab: Lab) -> None:
    lab.profile(replicas=1)
    driver = lab.start(*lab.served("--seconds 0.6"))
    soon(lambda: len(lab.lines("asked")) >= 5)
    [job] = lab.cluster.jobs("RUNNING")
    lab.cluster.run("scontrol", "requeue", job)
    out, errors = driver.communicate(timeout=SECONDS)
    assert driver.returncode == 0, out + errors
    assert errors.count(f"job {job} on") >= 3
    assert errors.count("is ready") == 2
    assert errors.count("submitted") == 1
    assert len(lab.lines("pids")) == 2
    assert set(lab.attempts("s.db").values()) == {1}
    assert len(lab.attempts("s.db")) == 40


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"partition": "nowhere"}, "invalid partition"),
        ({"time": "2-00:00:00"}, "partitiontimelimit"),
        ({"gres": "gpu:1"}, "gres"),
    ],
)
def test_what_slurm_refuses_is_an_error_before_the_first_request(
    lab: Lab, fields: dict[str, str], message: str
) -> None:
    lab.profile(**fields)
    status, said = lab.run(*lab.served())
    assert status == 2, said
    assert message in said.lower()
    assert not lab.cluster.jobs()
    assert not lab.lines("pids")


def test_servers_that_never_start_are_an_error_with_the_end_of_their_log(lab: Lab) -> None:
    lab.profile(setup=[])
    status, said = lab.run(*lab.served("--fails"))
    assert status == 2, said
    assert "every job has ended" in said
    assert "the end of the log" in said
    assert "Traceback" not in said
    soon(lambda: not lab.cluster.jobs())


def test_a_driver_can_be_a_job_itself(lab: Lab) -> None:
    words = [*SIGHTLINE, *lab.served(), "--data", str(lab.data), "--quiet", "--out", "out"]
    script = lab.folder / "driver.sh"
    lab.profile(replicas=1)
    script.write_text(f"#!/bin/bash\ncd {lab.folder}\nexport STAND_IN={lab.told}\nexec {shlex.join(words)}\n")
    lab.cluster.run("sbatch", f"--output={lab.folder}/driver.log", "--cpus-per-task=2", str(script))
    soon((lab.folder / "out/metrics.json").exists, SECONDS)
    soon(lambda: not lab.cluster.jobs())
