"""Fixtures of end-to-end tests: mock servers as separate processes, a synthetic data folder, the commands."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.main import main

SIGHTLINE = [sys.executable, "-m", "sightline"]


class Mock:
    """A running mock server. `model` is its name for --model."""

    def __init__(self, script: Path, *options: str) -> None:
        self.options = options
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._process = subprocess.Popen(
            [sys.executable, str(script), "--port", str(self.port), *options], stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        assert b"listening" in self._process.stdout.readline(), "the mock server did not start"
        self.address = f"http://127.0.0.1:{self.port}/v1"
        self.model = f"{self.address}#mock"

    def stats(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/stats") as reply:
            stats: dict[str, Any] = json.load(reply)
            return stats

    def reset(self) -> None:
        urllib.request.urlopen(f"http://127.0.0.1:{self.port}/reset", data=b"").close()

    @property
    def is_idle(self) -> bool:
        """Whether it runs, and no request of an earlier test is on its way."""
        return self._process.poll() is None and self.stats()["inflight"] == 0

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@pytest.fixture(scope="session")
def idle_mocks() -> Iterator[list[Mock]]:
    """Mock servers that earlier tests have left: to start one costs more than most tests."""
    idle: list[Mock] = []
    yield idle
    for server in idle:
        server.stop()


@pytest.fixture
def mock(shared: Path, idle_mocks: list[Mock]) -> Iterator[Callable[..., Mock]]:
    """Mock servers on free loopback ports with the options given, each used by one test at a time."""
    yield from _mocks(shared, idle_mocks)


@pytest.fixture(scope="module")
def module_mock(shared: Path, idle_mocks: list[Mock]) -> Iterator[Callable[..., Mock]]:
    """The same for all tests of a module."""
    yield from _mocks(shared, idle_mocks)


def _mocks(shared: Path, idle: list[Mock]) -> Iterator[Callable[..., Mock]]:
    pytest.importorskip("httptools", reason="the mock server needs httptools")
    used: list[Mock] = []

    def begin(*words: object) -> Mock:
        options = tuple(map(str, words))
        server = next((one for one in idle if one.options == options), None)
        if server is None:
            server = Mock(shared / "tools" / "mock_openai_server.py", *options)
        else:
            idle.remove(server)
            server.reset()
        used.append(server)
        return server

    yield begin
    for server in used:
        if server.is_idle:
            idle.append(server)
        else:
            server.stop()


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs `sightline` with the words given in this process, in the test's own folder.

    Returns:
        Its exit status, output and errors.
    """
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith(("SIGHTLINE_", "OPENAI_")):
            monkeypatch.delenv(name)

    def run(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([str(word) for word in words])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


class Process(subprocess.Popen[str]):
    """A `sightline` process; `output` is what it wrote, when it has ended."""

    def end(self, timeout: float = 60.0) -> tuple[int, str, str]:
        out, err = self.communicate(timeout=timeout)
        return self.returncode, out, err


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Starts `sightline` with the words given, in the test's own folder; none outlives the test."""
    started: list[Process] = []
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("SIGHTLINE_", "OPENAI_"))
    }

    def begin(*words: object, **environment: str) -> Process:
        process = Process(
            [*SIGHTLINE, *map(str, words)],
            cwd=tmp_path,
            env=clean | environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.communicate()


@pytest.fixture(scope="module")
def module_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all tests of a module."""
    return tmp_path_factory.mktemp("module")


@pytest.fixture
def iibench_folder(tmp_path: Path) -> Callable[..., Path]:
    """Writes an II-Bench folder with a number of questions, two about each noise image."""
    from PIL import Image

    def make(questions: int, name: str = "data") -> Path:
        folder = tmp_path / name
        (folder / "images").mkdir(parents=True)
        records = []
        for number in range(0, questions, 2):
            image = f"images/{number}.png"
            noise = random.Random(number).randbytes(12 * 9 * 3)
            Image.frombytes("RGB", (12, 9), noise).save(folder / image)
            asked = [_question(number + more) for more in range(min(2, questions - number))]
            meta = {"domain": "Life", "emotion": "Positive", "rhetoric": ["Symbolism"]}
            meta |= {"image_type": ["Painting"], "difficulty": "Easy"}
            records.append({"local_path": image, "questions": asked, "meta_data": meta})
        (folder / "test.json").write_text(json.dumps(records))
        return folder

    return make


def _question(number: int) -> dict[str, Any]:
    options = [f"meaning {letter} of {number}" for letter in "ABCDEF"]
    return {"id": f"test-{number}", "question": f"What does image {number} imply?", "options": options}
