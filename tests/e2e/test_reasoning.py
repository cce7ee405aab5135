"""Reasoning in replies of a server and in files, and answers that the token limit cut off, asked again."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

OPTIONS = ["a kite", "a drum", "a lamp", "a boot"]
Command = Callable[..., tuple[int, str, str]]


class Server:
    """A chat completions server; `reply` makes the content and the finish reason from a request's body."""

    def __init__(self, reply: Callable[[dict[str, Any]], tuple[str, str] | None]) -> None:
        self.bodies: list[dict[str, Any]] = []
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send({"data": [{"id": "m"}]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                served.bodies.append(body)
                replied = reply(body)
                if replied is None:
                    self._send({"error": {"message": "context_length_exceeded"}}, 400)
                    return
                content, reason = replied
                message = {"role": "assistant", "content": content}
                choice = {"index": 0, "message": message, "finish_reason": reason}
                self._send({"id": "x", "model": "m", "choices": [choice]})

            def _send(self, body: dict[str, Any], status: int = 200) -> None:
                raw = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *args: Any) -> None:
                """Write nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        self.model = f"http://127.0.0.1:{self._server.server_port}/v1#m"

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def begin(reply: Callable[[dict[str, Any]], tuple[str, str] | None]) -> Server:
        servers.append(Server(reply))
        return servers[-1]

    yield begin
    for server in servers:
        server.stop()


def groups(folder: Path, questions: list[str]) -> str:
    file = folder / "groups.jsonl"
    record = {"variant": "v", "options": OPTIONS, "references": ["B"]}
    lines = [json.dumps({"group": f"g{n}", "prompt": text, **record}) for n, text in enumerate(questions)]
    file.write_text("\n".join(lines))
    return f"groups:{file}"


def answers(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]


def test_replies_of_a_server_are_cut_as_in_files(
    command: Command, tmp_path: Path, serve: Callable[..., Server], shared: Path
) -> None:
    bodies = shared / "cases" / "replies-and-files" / "reasoning-bodies.jsonl"
    if not bodies.is_file():
        pytest.skip(f"{bodies} does not exist")
    contents = [
        json.loads(line)["body"]["choices"][0]["message"]["content"]
        for line in bodies.read_text().splitlines()
    ]
    questions = [f"Question {number}:" for number in range(len(contents))]

    def reply(body: dict[str, Any]) -> tuple[str, str]:
        asked = json.dumps(body["messages"])
        return next(
            text for text, question in zip(contents, questions, strict=True) if question in asked
        ), "stop"

    task = groups(tmp_path, questions)
    assert (
        command("run", task, "--model", serve(reply).model, "--set", "embedder=none", "--out", "live")[0] == 0
    )
    file = tmp_path / "file.jsonl"
    file.write_text(
        "\n".join(
            json.dumps({"group": f"g{n}", "variant": "v", "response": text})
            for n, text in enumerate(contents)
        )
    )
    assert command("score", task, file, "--set", "embedder=none", "--out", "scored")[0] == 0
    assert (
        command("run", task, "--model", f"replay/{file}", "--set", "embedder=none", "--out", "replayed")[0]
        == 0
    )
    for folder in ("live", "scored", "replayed"):
        found = answers(tmp_path / folder)
        assert [one["response"] for one in found] == ["B"] * len(contents)
        assert all("(A)" in one["reasoning"] for one in found)
        notes = json.loads((tmp_path / folder / "metrics.json").read_text())["notes"]
        assert any(note.startswith("9 of 9 responses held reasoning") for note in notes)


def test_a_name_of_a_tag_can_be_added_later_and_nothing_is_asked_again(
    command: Command, tmp_path: Path, serve: Callable[..., Server]
) -> None:
    server = serve(lambda body: ("<plan>(A)?</plan>B", "stop"))
    words = ["run", groups(tmp_path, ["Which?"]), "--model", server.model, "--set", "embedder=none"]
    assert command(*words, "--out", "before")[0] == 0
    assert command(*words, "--reasoning-tags", "outline,plan", "--out", "after")[0] == 0
    assert len(server.bodies) == 1
    (before,), (after,) = answers(tmp_path / "before"), answers(tmp_path / "after")
    assert (before["response"], after["response"]) == ("<plan>(A)?</plan>B", "B")
    assert after["reasoning"] == "(A)?"
    status, out, _ = command("report", "2", "--json")
    assert status == 0
    assert "1 of 1 responses held reasoning" in out
    assert "reasoning: (A)?" in command("show", "2")[1]


def test_responses_that_are_only_reasoning_are_counted_with_their_finish_reasons(
    command: Command, tmp_path: Path
) -> None:
    task = groups(tmp_path, ["One?", "Two?", "Three?"])
    file = tmp_path / "file.jsonl"
    reasons = ["length", "stop", "length"]
    responses = ["<think>(A)?", "(A)?</think>", "<think>(A)?</think>B"]
    file.write_text(
        "\n".join(
            json.dumps({"group": f"g{n}", "variant": "v", "response": text, "finish_reason": reason})
            for n, (text, reason) in enumerate(zip(responses, reasons, strict=True))
        )
    )
    assert command("score", task, file, "--set", "embedder=none", "--out", "out")[0] == 0
    (note,) = [
        note
        for note in json.loads((tmp_path / "out" / "metrics.json").read_text())["notes"]
        if "held reasoning" in note
    ]
    assert note.startswith("3 of 3 responses held reasoning")
    assert (
        "2 held only reasoning and no answer (finish reasons: 1 length, 1 stop; 1 reached the token" in note
    )
    _, _, said = command("import", file, "--task", task, "--out", "imported.jsonl")
    assert "3 of 3 responses held reasoning" in said
