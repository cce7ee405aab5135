"""--on processes: a run on this machine has the metrics of one process, also if a process is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.results import lasting_metrics

from sightline.errors import UserError
from sightline.models.registry import ModelOptions
from sightline.replicas.fleet import resolve_on
from training.scenes.build import generate_iibench

SIGHTLINE = [sys.executable, "-c", "import sys; from sightline.cli.main import entry; entry()"]
SECONDS = 120.0


def start(folder: Path, data: Path, name: str, *words: str) -> subprocess.Popen[str]:
    command = [*SIGHTLINE, "run", "iibench", "--model", "mini", "--concurrency", "4", "--data", str(data)]
    return subprocess.Popen(
        [*command, "--store", f"{name}.db", "--out", name, "--quiet", *words],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "CUDA_VISIBLE_DEVICES": ""},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def workers(folder: Path) -> list[int]:
    """The workers of the runs of a folder, without the scripts that guard them."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            environment = (process / "environ").read_bytes()
        except OSError:
            continue
        if words[1:4] == [b"-m", b"sightline", b"worker"] and str(folder / "cache").encode() in environment:
            found.append(int(process.name))
    return found


def answering(folder: Path) -> list[int]:
    """The workers whose log has an answer: others may still be loading the model."""
    found = []
    for worker in workers(folder):
        with suppress(OSError):
            if " answer\n" in Path(os.readlink(f"/proc/{worker}/fd/1")).read_text():
                found.append(worker)
    return found


@pytest.mark.slow
def test_a_run_with_a_killed_process_has_the_metrics_of_one_process(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="needs the extra local")
    data = generate_iibench(tmp_path / "data", questions=40)
    driver = start(tmp_path, data, "processes", "--on", "processes:2")
    began = time.monotonic()
    while not (found := answering(tmp_path)):
        assert driver.poll() is None, driver.communicate()
        assert time.monotonic() - began < SECONDS
        time.sleep(0.02)
    os.kill(found[0], signal.SIGKILL)
    _, errors = driver.communicate(timeout=SECONDS)
    assert driver.returncode == 0, errors
    assert "has ended" in errors
    assert workers(tmp_path) == []
    alone = start(tmp_path, data, "alone")
    assert alone.communicate(timeout=SECONDS)
    assert alone.returncode == 0
    assert lasting_metrics(tmp_path / "processes") == lasting_metrics(tmp_path / "alone")


@pytest.mark.parametrize(
    ("place", "model", "message"),
    [
        ("processes:0", "mini", "--on processes:N is wrong"),
        ("processes:two", "mini", "--on processes:N is wrong"),
        ("processes:2", "vllm/org/llava", "runs local models only"),
    ],
)
def test_a_wrong_place_is_refused(place: str, model: str, message: str) -> None:
    args = {"executable": sys.executable} if model.startswith("vllm") else {}
    with pytest.raises(UserError, match=message):
        resolve_on(place, model, ModelOptions(args=args))


def test_there_is_one_process_for_each_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="needs the extra local")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    [model] = resolve_on("processes", "mini", ModelOptions())
    assert model.capabilities.replicas == 3
