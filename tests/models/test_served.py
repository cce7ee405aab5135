"""Models served from here, with a stand-in for the servers: what is started, asked, told, and left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sightline.errors import UserError
from sightline.models import served
from sightline.models.registry import ModelOptions, resolve
from sightline.types import Answer, Failure, Request, user

STAND_IN = Path(__file__).with_name("stand_in.py")
PROGRAM = f"{sys.executable} {STAND_IN}"
SIGHTLINE = [sys.executable, "-c", "import sys; from sightline.cli.main import entry; entry()"]


class Told:
    """What stand-ins wrote of themselves."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def _lines(self, name: str) -> list[Any]:
        if not self._file.exists():
            return []
        lines = [json.loads(line) for line in self._file.read_text().splitlines()]
        return [line for line in lines if name in line]

    @property
    def starts(self) -> list[dict[str, Any]]:
        return self._lines("pids")

    @property
    def asked(self) -> list[dict[str, Any]]:
        return self._lines("asked")

    @property
    def alive(self) -> list[int]:
        return [pid for start in self.starts for pid in start["pids"] if _lives(pid)]

    def none_lives(self) -> bool:
        """Whether none of their processes is left; what was killed may take a moment to go."""
        return _soon(lambda: not self.alive)


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def _soon(true: Callable[[], bool]) -> bool:
    for _ in range(500):
        if true():
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    """What stand-ins tell; logs go to the test's folder, and no process outlives the test."""
    monkeypatch.setenv("STAND_IN", str(tmp_path / "told.jsonl"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    told = Told(tmp_path / "told.jsonl")
    yield told
    for pid in told.alive:
        os.kill(pid, signal.SIGKILL)


def _model(spec: str = "vllm/org/llava", flags: str = "", **args: Any) -> Any:
    (model,) = resolve(spec, ModelOptions(args={"executable": PROGRAM, "flags": flags, **args}))
    return model


def _ask(model: Any, times: int = 1) -> list[Answer | Failure]:
    async def run() -> list[Answer | Failure]:
        async with model:
            request = Request("key", (user("Is it day?"),), {"max_tokens": 9})
            return [result for _ in range(times) async for _, result in model.answer([request])]

    return asyncio.run(run())


def _logs(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "sightline" / "logs").glob("*.log"))


# Started, asked, stopped


@pytest.mark.parametrize(
    ("spec", "first"),
    [
        ("vllm/org/llava", ["serve", "org/llava"]),
        ("sglang/org/llava", ["--model-path", "org/llava"]),
    ],
)
def test_a_server_is_started_with_the_users_flags_asked_and_stopped(
    told: Told, tmp_path: Path, spec: str, first: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    model = _model(spec, "--max-model-len 8192 --workers 2")
    assert not told.starts
    (result,) = _ask(model)
    assert isinstance(result, Answer)
    assert (result.text, result.version) == ("(B)", "org/llava")
    (start,) = told.starts
    words = start["arguments"]
    if words[0] == "-c":
        assert "run_module('sglang.launch_server'" in words[1]
        del words[:2]
    assert words[: len(first)] == first
    assert "--max-model-len 8192" in " ".join(start["arguments"])
    assert start["arguments"][start["arguments"].index("--host") + 1] == "127.0.0.1"
    assert told.none_lives()
    (log,) = _logs(tmp_path)
    assert "loading weights" in log.read_text()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"{spec}: loading; its log: {log}\n"


@pytest.mark.slow
def test_it_can_be_used_again_after_it_was_stopped(told: Told) -> None:
    model = _model()
    assert all(isinstance(result, Answer) for _ in range(2) for result in _ask(model))
    assert len(told.starts) == 2
    assert told.none_lives()


@pytest.mark.slow
def test_it_has_a_key_of_its_own_for_each_start(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "sk-1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-2")
    for _ in range(2):
        _ask(_model())
    first, second = (start["key"] for start in told.starts)
    assert len(first) >= 40
    assert first != second
    assert [asked["authorization"] for asked in told.asked] == [f"Bearer {first}", f"Bearer {second}"]
    assert first not in " ".join(told.starts[0]["arguments"])


def test_a_folder_of_weights_is_known_by_what_lies_in_it(told: Told, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "step-500"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    model = _model(f"vllm/{folder}")
    (result,) = _ask(model)
    assert isinstance(result, Answer)
    assert result.version == "step-500"
    assert str(folder) in told.starts[0]["arguments"]
    moved = folder.rename(tmp_path / "best")
    (moved / "optimizer.pt").write_bytes(b"no part of the model")
    assert _model(f"vllm/{moved}").identity == model.identity
    (moved / "model.safetensors").write_bytes(b"other weights")
    assert _model(f"vllm/{moved}").identity != model.identity


def test_logs_that_nothing_was_written_to_for_a_week_are_removed(told: Told, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "sightline" / "logs"
    folder.mkdir(parents=True)
    for name, days in {"old.log": 8, "recent.log": 6, "notes.txt": 8}.items():
        (folder / name).touch()
        when = time.time() - days * 24 * 3600
        os.utime(folder / name, (when, when))
    _ask(_model())
    left = {path.name for path in folder.iterdir()}
    assert left > {"recent.log", "notes.txt"}
    assert "old.log" not in left
    assert len(left) == 3


# What goes wrong


def test_a_server_that_dies_while_loading_is_told_with_the_end_of_its_log(told: Told, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        _ask(_model(flags="--fails --workers 1"))
    (log,) = _logs(tmp_path)
    first, *lines = str(error.value).splitlines()
    assert first == (
        f"vllm/org/llava: the server ended with status 1 before it was ready; the end of its log, {log}:"
    )
    # Without what would colour a terminal, and of a line that was overwritten the last state.
    assert lines[-2:] == ["  loading weights: 100%", "  ValueError: no such weights"]
    assert "\x1b" not in str(error.value)
    assert len(told.starts) == 1
    assert told.none_lives()


@pytest.mark.slow
@pytest.mark.parametrize("flags", ["--never", "--load 60"])
def test_a_server_that_is_never_healthy_is_waited_for_as_long_as_was_said(
    told: Told, tmp_path: Path, flags: str
) -> None:
    with pytest.raises(UserError, match=r"not ready within 1 s .*startup=SECONDS"):
        _ask(_model(flags=flags, startup=1))
    # It was started once; on a busy machine it may have had no time to say so itself.
    (log,) = _logs(tmp_path)
    assert sum(line.startswith("$ ") for line in log.read_text().splitlines()) == 1
    assert told.none_lives()


def test_a_word_that_no_flag_takes_is_no_second_model(told: Told) -> None:
    with pytest.raises(UserError, match=r"unrecognized arguments: other/model"):
        _ask(_model(flags="--never other/model"))


def test_a_program_that_cannot_be_run_is_told(told: Told, tmp_path: Path) -> None:
    program = tmp_path / "vllm"
    program.write_text("#!/no/such/python\n")
    program.chmod(0o755)
    with pytest.raises(UserError, match=r"status 127 before it was ready(.|\n)*vllm cannot be started"):
        _ask(_model(executable=str(program)))


class Another(BaseHTTPRequestHandler):
    """Somebody else's server, in the best of health."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"data": [{"id": "other"}]}')

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.slow
def test_a_port_that_another_took_costs_one_more_start(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Another) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        find, ports = served._free_port, [other.server_port]
        monkeypatch.setattr(served, "_free_port", lambda: ports.pop() if ports else find())
        (result,) = _ask(_model())
        other.shutdown()
    assert isinstance(result, Answer)
    assert [str(other.server_port) in start["arguments"] for start in told.starts] == [True, False]


def test_calls_to_a_server_that_died_fail_with_the_place_of_its_log(told: Told, tmp_path: Path) -> None:
    model = _model(flags="--answers 2 --workers 1")

    async def run() -> list[Answer | Failure]:
        results = []
        async with model:
            for _ in range(4):
                async for _, result in model.answer([Request("key", (user("?"),), {})]):
                    results.append(result)
                while len(results) == 2 and not model._server.ended:
                    await asyncio.sleep(0.02)
            # What it left behind is gone before the end of the run: it holds the GPU's memory.
            assert told.none_lives()
        return results

    *answers, one, other = asyncio.run(run())
    assert all(isinstance(answer, Answer) for answer in answers)
    (log,) = _logs(tmp_path)
    for failure in (one, other):
        assert isinstance(failure, Failure)
        assert failure.kind == "transient"
        assert failure.message == f"vllm/org/llava: the server was killed by SIGKILL; its log: {log}"
    assert "out of memory" in log.read_text()


@pytest.mark.slow
def test_a_server_that_ignores_sigterm_is_killed(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "STOP_SECONDS", 0.5)
    _ask(_model(flags="--deaf --workers 1"))
    assert told.none_lives()


@pytest.mark.slow
def test_cancelled_while_it_loads_it_is_stopped(told: Told) -> None:
    async def run() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0), _model(flags="--load 60 --workers 1"):
                pass

    asyncio.run(run())
    assert len(told.starts) == 1
    assert told.none_lives()


# The programs of this environment


def test_the_vllm_on_the_path_is_taken(told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "vllm"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {PROGRAM} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    (model,) = resolve("vllm/org/llava", ModelOptions())
    (result,) = _ask(model)
    assert isinstance(result, Answer)
    assert told.none_lives()


@pytest.mark.parametrize("key", ["a-key", "-a-key"])
def test_the_sglang_of_this_environment_is_taken(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """One in 64 random keys begins with '-', which is the sign of an option."""
    monkeypatch.setattr("sightline.models.served.secrets.token_urlsafe", lambda _: key)
    package = tmp_path / "lib" / "sglang"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "launch_server.py").write_text(
        "import sys, runpy\nsys.argv.remove('--model-path')\n"
        f"runpy.run_path({str(STAND_IN)!r}, run_name='__main__')\n"
    )
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    (model,) = resolve("sglang/org/llava", ModelOptions())
    (result,) = _ask(model)
    assert isinstance(result, Answer)
    assert told.none_lives()


# As a command


@pytest.fixture
def command(told: Told, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `sightline run` on a drawn set of questions, with these flags for the server."""
    folder = tmp_path / "data"
    (folder / "images").mkdir(parents=True)
    records = []
    for number in range(20):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / "images" / f"{number}.png")
        options = [f"meaning {letter} of {number}" for letter in "ABCDEF"]
        question = {"id": f"test-{number}", "question": "What does it imply?", "options": options}
        meta = {"domain": "Life", "emotion": "Positive", "rhetoric": ["Symbolism"]}
        meta |= {"image_type": ["Painting"], "difficulty": "Easy"}
        records.append({"local_path": f"images/{number}.png", "questions": [question], "meta_data": meta})
    (folder / "test.json").write_text(json.dumps(records))
    started: list[subprocess.Popen[str]] = []

    def start(flags: str) -> subprocess.Popen[str]:
        words = [
            "run",
            "iibench:none",
            "--model",
            "vllm/org/llava",
            "--data",
            str(folder),
            "--quiet",
            "--json",
        ]
        words += ["--model-arg", f"executable={PROGRAM}", "--model-arg", f"flags={flags}"]
        words += ["--concurrency", "2"]
        process = subprocess.Popen(
            [*SIGHTLINE, *words], cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_the_same_command_again_asks_nothing_and_starts_no_server(told: Told, command: Any) -> None:
    first = command("--workers 1")
    out, err = first.communicate()
    assert (first.returncode, json.loads(out)["errors"]) == (0, 0), err
    assert (len(told.starts), len(told.asked)) == (1, 20)
    # Images go as data.
    (shown,) = [part for part in told.asked[0]["asked"][0]["content"] if part["type"] == "image_url"]
    assert shown["image_url"]["url"].startswith("data:image/png;base64,")
    assert told.none_lives()
    again = command("--workers 1 --tensor-parallel-size 2")
    out, err = again.communicate()
    assert (again.returncode, json.loads(out)["errors"]) == (0, 0), err
    assert (len(told.starts), len(told.asked)) == (1, 20)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("when", "signals"),
    [
        ("loading", [signal.SIGTERM]),
        ("loading", [signal.SIGINT, signal.SIGINT]),
        ("asking", [signal.SIGINT]),
    ],
)
def test_interrupted_it_leaves_no_process_behind(
    told: Told, command: Any, signals: list[signal.Signals], when: str
) -> None:
    process = command("--workers 1 --seconds 0.2" + (" --load 60" if when == "loading" else ""))
    assert _soon(lambda: bool(told.asked if when == "asking" else told.starts))
    for number in signals:
        process.send_signal(number)
        time.sleep(0.05)
    _, err = process.communicate()
    assert process.returncode == 130
    assert "interrupted; all answers so far are kept" in err
    assert told.none_lives()


@pytest.mark.slow
def test_killed_it_leaves_no_process_behind(told: Told, command: Any) -> None:
    process = command("--workers 1 --seconds 0.2")
    assert _soon(lambda: bool(told.asked))
    process.kill()
    process.communicate()
    assert told.none_lives()


@pytest.mark.slow
def test_a_server_that_dies_on_the_way_costs_the_rest_which_the_next_run_asks(
    told: Told, command: Any, tmp_path: Path
) -> None:
    process = command("--answers 15")
    out, err = process.communicate()
    assert process.returncode == 1, err
    # A second call was on its way when the fifteenth was answered.
    assert json.loads(out)["errors"] in (4, 5)
    (log,) = _logs(tmp_path)
    assert f"the server was killed by SIGKILL; its log: {log}" in err
    assert told.none_lives()
    again = command("--answers 15")
    out, err = again.communicate()
    assert (again.returncode, json.loads(out)["errors"]) == (0, 0), err
    assert len(told.asked) <= 21
