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


# -- --retry-truncated


def thinking(body: dict[str, Any]) -> tuple[str, str] | None:
    """Question n needs 10 n tokens; with fewer, only thoughts about A come. A limit of 999 is too long."""
    limit = body["max_tokens"]
    needed = 10 * int(json.dumps(body["messages"]).split("Question ")[1].split(":")[0])
    if limit == 999 and needed == 70:
        return None
    return ("<think>(A)?", "length") if needed > limit else ("<think>(A)?</think>B", "stop")


def values(folder: Path) -> dict[tuple[str, str], float]:
    result = json.loads((folder / "metrics.json").read_text())
    return {(one["metric"], one["subset"]): one["value"] for one in result["metrics"]}


@pytest.fixture
def questions(tmp_path: Path) -> str:
    return groups(tmp_path, [f"Question {number}:" for number in range(1, 9)])


def test_truncated_answers_are_asked_again_and_both_values_are_reported(
    command: Command, tmp_path: Path, serve: Callable[..., Server], questions: str
) -> None:
    server = serve(thinking)
    words = ["run", questions, "--model", server.model, "--set", "embedder=none", "--gen", "max_tokens=40"]
    assert command(*words, "--out", "first")[0] == 0
    assert len(server.bodies) == 8
    told = json.loads(command(*words, "--retry-truncated", "60", "--dry-run", "--json")[1])
    assert (told["requests"], told["cached"], told["to_ask"]) == (12, 8, 4)
    status, out, _ = command(*words, "--retry-truncated", "60", "--out", "second")
    assert status == 0
    table = out.split("\n\n")[0]
    assert [" ".join(line.split()[:2]) for line in table.splitlines() if "first answers" in line]
    assert "acc, first answers" in table
    # Those that the limit cut off, once more, with the higher limit only.
    assert [body["max_tokens"] for body in server.bodies[8:]].count(60) == 4
    first, second = values(tmp_path / "first"), values(tmp_path / "second")
    assert (first["acc", "all"], second["acc", "all"], second["acc", "answers=first"]) == (50, 75, 50)
    assert second["truncated_answers", "all"] == 25
    assert second["truncated_answers", "answers=first"] == 50
    assert ("truncated_answers", "all") not in first
    result = json.loads((tmp_path / "second" / "metrics.json").read_text())
    assert (result["truncated"], result["options"]["retry_truncated"]) == (2, 60)
    assert (
        "4 of 8 answers reached the token limit (40); 4 were asked again with at most 60 tokens, which 2 of"
        " them reached. `answers=first` are the values before"
    ) in result["notes"]
    found = answers(tmp_path / "second")
    assert [one["response"] for one in found] == ["B"] * 6 + [""] * 2
    assert ["first" in one for one in found] == [False] * 4 + [True] * 4
    before = {one["sample"]: one for one in answers(tmp_path / "first")}
    for one in found[4:]:
        assert one["first"]["key"] == before[one["sample"]]["key"] != one["key"]
        assert one["first"]["finish_reason"] == "length"


def test_a_repeated_run_and_a_report_send_nothing_and_give_the_same_values(
    command: Command, tmp_path: Path, serve: Callable[..., Server], questions: str
) -> None:
    server = serve(thinking)
    words = ["run", questions, "--model", server.model, "--set", "embedder=none", "--gen", "max_tokens=40"]
    words += ["--retry-truncated", "60"]
    assert command(*words, "--out", "one")[0] == 0
    asked = len(server.bodies)
    assert asked == 12
    assert command(*words, "--out", "two")[0] == 0
    assert len(server.bodies) == asked
    assert values(tmp_path / "one") == values(tmp_path / "two")
    assert json.loads(command(*words, "--dry-run", "--json")[1])["to_ask"] == 0
    status, out, _ = command("report", "2", "--json")
    assert status == 0
    (reported,) = json.loads(out) if out.startswith("[") else [json.loads(out)]
    assert reported["metrics"] == json.loads((tmp_path / "two" / "metrics.json").read_text())["metrics"]
    # The answers of both limits belong to the run: cleaning the store keeps them.
    assert command("store", "gc", "--unreferenced-answers", "--store", "sightline.db")[0] == 0
    assert command(*words, "--out", "three")[0] == 0
    assert len(server.bodies) == asked
    # A run with the higher limit shares the second answers; --fingerprint off: no check of the endpoint.
    higher = [word.replace("=40", "=60") for word in words[:-2]]
    assert command(*higher, "--fingerprint", "off", "--out", "four")[0] == 0
    assert len(server.bodies) == asked + 4
    assert values(tmp_path / "four")["acc", "all"] == values(tmp_path / "one")["acc", "all"]


def test_where_the_second_call_fails_the_truncated_answer_counts_and_is_named(
    command: Command, tmp_path: Path, serve: Callable[..., Server], questions: str
) -> None:
    server = serve(thinking)
    words = ["run", questions, "--model", server.model, "--set", "embedder=none", "--gen", "max_tokens=40"]
    assert command(*words, "--retry-truncated", "999", "--out", "out")[0] == 0
    notes = json.loads((tmp_path / "out" / "metrics.json").read_text())["notes"]
    assert any("1 have no second answer, and the truncated one counts" in note for note in notes)
    assert values(tmp_path / "out")["acc", "all"] == 87.5


def test_the_budget_counts_second_requests(
    command: Command, tmp_path: Path, serve: Callable[..., Server], questions: str
) -> None:
    server = serve(thinking)
    words = ["run", questions, "--model", server.model, "--set", "embedder=none", "--gen", "max_tokens=40"]
    assert command(*words, "--retry-truncated", "60", "--max-requests", "10", "--out", "out")[0] == 4
    assert len(server.bodies) == 10


def test_a_judge_reads_first_and_second_answers(
    command: Command, tmp_path: Path, serve: Callable[..., Server], questions: str
) -> None:
    def partly(body: dict[str, Any]) -> tuple[str, str]:
        _, reason = thinking(body) or ("", "stop")
        return ("It is", "length") if reason == "length" else ("It is a drum", reason)

    judge = serve(
        lambda body: (
            "right" if "a drum" in json.dumps(body["messages"][-1]).split("It is")[-1] else "wrong",
            "stop",
        )
    )
    server = serve(partly)
    words = ["run", questions, "--model", server.model, "--set", "embedder=none", "--gen", "max_tokens=40"]
    words += ["--judge", judge.model, "--retry-truncated", "60", "--out", "out"]
    status, _, said = command(*words)
    assert status == 0, said
    found = values(tmp_path / "out")
    assert ("acc", "answers=first") in found
    result = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert result["judge_errors"] == 0


@pytest.mark.parametrize("longer", [[], ["--retry-truncated", "60"]])
def test_the_bounds_of_a_dry_run_hold_where_all_is_truncated_and_every_judge_is_undecided(
    command: Command, tmp_path: Path, serve: Callable[..., Server], longer: list[str]
) -> None:
    asked = [
        {"group": str(group), "variant": variant, "prompt": f"{group}{variant}?", "references": ["a drum"]}
        for group in range(4)
        for variant in "ab"
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in asked))
    server = serve(lambda body: (f"{json.dumps(body['messages'])} {body['max_tokens']}", "length"))
    judge = serve(lambda body: ("Hard to say.", "stop"))
    words = ["run", f"groups:{tmp_path / 'pairs.jsonl'}", "--model", server.model, "--judge", judge.model]
    words += ["--set", "embedder=none", "--gen", "max_tokens=40", *longer]
    told = json.loads(command(*words, "--dry-run", "--json")[1])
    (of_judge,) = told["judges"]
    assert told["to_ask"] == 8
    assert told["to_ask_at_most"] == told["to_ask"] * (2 if longer else 1)
    assert told["completion_tokens_at_most"] == 8 * 40 + (8 * 60 if longer else 0)
    assert command(*words, "--out", "out")[0] in (0, 1)
    assert len(server.bodies) == told["to_ask_at_most"]
    assert of_judge["to_ask"] < len(judge.bodies) == of_judge["to_ask_at_most"]
    assert any("at most: again for each undecided reply" in note for note in told["notes"])


@pytest.mark.parametrize(
    ("limit", "model", "said"),
    [
        ("40", "", "more than 40, which is max_tokens of --gen"),
        ("0", "", "too small"),
        ("90", "baseline/chance", "takes no token limit"),
    ],
)
def test_a_limit_without_effect_is_refused_before_anything_is_sent(
    command: Command, serve: Callable[..., Server], questions: str, limit: str, model: str, said: str
) -> None:
    server = serve(thinking)
    words = ["run", questions, "--model", model or server.model, "--set", "embedder=none"]
    status, _, error = command(*words, "--gen", "max_tokens=40", "--retry-truncated", limit)
    assert status == 2
    assert said in error
    assert not server.bodies
