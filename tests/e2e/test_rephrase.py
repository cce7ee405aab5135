"""`build rephrase` and `build equivalence` from the command line, against a local server in many moods."""

from __future__ import annotations

import json
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sightline.builders.equivalence import read_pairs
from sightline.cli.main import main
from sightline.formats.groups import read_groups

FORMS = {
    "numbered": "1. {a}\n2. {b}\n3. {c}",
    "bulleted": "- {a}\n- {b}\n- {c}",
    "json": 'Sure!\n```json\n{{"questions": ["{a}", "{b}", "{c}"]}}\n```',
    "prose": "Of course! Here are three other ways to ask it:\n\n{a}\n\n{b}\n\n{c}\n\nShall I go on?",
    "few": "1. {a}\n2. {b}",
}
TELLING = "1. {a}\n2. Is it copper that the {form} vessels are made of?\n3. {c}"


class Server:
    """Replies to each question in the form that it names; `moods` replace a form's replies, by chance."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.moods: dict[str, list[str]] = {}
        self.judge = "same"
        self.failing: set[str] = set()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._send(200, {"data": [{"id": "mock"}]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self._send(*owner.reply(body))

            def _send(self, status: int, reply: Any) -> None:
                content = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *words: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.model = f"http://127.0.0.1:{self._http.server_port}/v1#mock"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def reply(self, body: dict[str, Any]) -> tuple[int, Any]:
        text = json.dumps(body["messages"])
        self.bodies.append(body)
        form = next((form for form in FORMS if f"{form} vessels" in text), "")
        if form in self.failing:
            return 400, {"error": {"message": "not today"}}
        self.asked[form] += 1
        said = self.moods.get(form, [FORMS[form]])
        reply = said[min(self.asked[form], len(said)) - 1].format(
            a=f"What substance was used to make the {form} vessels?",
            b=f"Which material do the {form} vessels consist of?",
            c=f"Of what are the {form} vessels in the image made?",
            form=form,
        )
        if "Two questions" in text:
            reply = self.judge
        message = {"role": "assistant", "content": reply}
        return 200, {"choices": [{"message": message, "finish_reason": "stop"}], "model": "mock"}

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.stop()


@pytest.fixture
def build(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs `build rephrase` over one question for each form, about two images, with more words."""
    monkeypatch.chdir(tmp_path)
    for name, colour in {"a.png": "red", "b.png": "blue"}.items():
        Image.new("RGB", (8, 8), colour).save(tmp_path / name)
    records = [
        {
            "id": form,
            "image": "ab"[number % 2] + ".png",
            "question": f"What is the material that was used to make these old {form} vessels?",
            "answers": ["copper", "a metal"],
        }
        for number, form in enumerate(FORMS)
    ]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    given = ["build", "rephrase", "q.jsonl", "--model", server.model, "--quiet"]
    return lambda *more: main([*given, *(() if "--out" in more else ("--out", "out")), *map(str, more)])


def manifest(folder: str = "out") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(folder, "manifest.json").read_text())
    return found


def questions(folder: str = "out") -> dict[str, list[str]]:
    """The questions of each group, the original first."""
    found: dict[str, list[str]] = {}
    for line in map(json.loads, Path(folder, "groups.jsonl").read_text().splitlines()):
        found.setdefault(line["group"], []).append(line["question"])
    return found


def test_every_form_is_read_and_a_second_run_sends_nothing(build: Callable[..., int], server: Server) -> None:
    server.moods["few"] = [FORMS["few"], FORMS["numbered"]]
    assert build() == 0
    assert server.asked == {"numbered": 1, "bulleted": 1, "json": 1, "prose": 1, "few": 2}
    for form, (original, *three) in questions().items():
        assert original == f"What is the material that was used to make these old {form} vessels?"
        assert three == [
            f"What substance was used to make the {form} vessels?",
            f"Which material do the {form} vessels consist of?",
            f"Of what are the {form} vessels in the image made?",
        ]
    assert (manifest()["groups"], manifest()["probes"], manifest()["images"]) == (5, 20, 2)
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    server.asked.clear()
    assert build() == 0
    assert not server.asked
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before


def test_the_request_is_the_papers_text_without_any_image(build: Callable[..., int], server: Server) -> None:
    build("--limit", 1, "--gen", "temperature=0.5")
    (body,) = server.bodies
    (message,) = body["messages"]
    assert message["content"] == (
        "I have a question: What is the material that was used to make these old numbered vessels? Please "
        "give me three different types of rephrased questions to which the answer would be copper."
    )
    assert body["temperature"] == 0.5


def test_what_stays_useless_is_dropped_with_its_reason_after_three_requests(
    build: Callable[..., int], server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.moods["json"] = [TELLING]
    assert build() == 0
    assert (server.asked["few"], server.asked["json"]) == (3, 3)
    reasons = {
        "few": "fewer than three distinct rephrasings (2)",
        "json": "a rephrasing contains the answer ('copper')",
    }
    assert manifest()["dropped"] == reasons
    told = capsys.readouterr().err
    assert all(reason in told for reason in reasons.values())
    assert sorted(questions()) == ["bulleted", "numbered", "prose"]
    server.asked.clear()
    assert build() == 0
    assert not server.asked


def test_a_call_that_failed_is_no_drop_and_is_asked_again_by_the_same_command(
    build: Callable[..., int], server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.moods["few"] = [FORMS["numbered"]]
    server.failing = {"prose"}
    assert build() == 1
    assert list(manifest()["unanswered"]) == ["prose"]
    assert manifest()["dropped"] == {}
    assert "1 of 5 questions have no answer" in capsys.readouterr().err
    server.failing.clear()
    server.asked.clear()
    assert build("--retry-errors") == 0
    assert server.asked == {"prose": 1}
    assert (manifest()["unanswered"], manifest()["groups"]) == ({}, 5)
    built = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    assert build("--store", "other.db", "--out", "fresh") == 0
    assert Path("fresh/groups.jsonl").read_bytes() == built[Path("out/groups.jsonl")]
    assert Path("fresh/manifest.json").read_bytes() == built[Path("out/manifest.json")]


def test_nothing_is_built_where_every_call_failed(build: Callable[..., int], server: Server) -> None:
    server.failing = set(FORMS)
    assert build() == 1
    assert not Path("out").exists()


def test_the_budget_ends_asking_and_a_larger_one_goes_on(build: Callable[..., int], server: Server) -> None:
    server.moods["few"] = [FORMS["numbered"]]
    assert build("--max-requests", 2, "--concurrency", 1) == 4
    assert sum(server.asked.values()) == 2
    assert (manifest()["groups"], len(manifest()["unanswered"])) == (2, 3)
    assert build("--max-requests", 3) == 0
    assert sum(server.asked.values()) == 5
    assert manifest()["groups"] == 5


def test_a_dry_run_says_how_many_requests_and_leaves_nothing(
    build: Callable[..., int], server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build("--dry-run") == 0
    assert "requests to send            5 to 15" in capsys.readouterr().out
    assert not server.bodies
    assert sorted(path.name for path in Path().iterdir()) == ["a.png", "b.png", "q.jsonl"]
    build("--limit", 4)
    assert build("--dry-run", "--out", "other") == 0
    told = capsys.readouterr().out
    assert "cached requests             4" in told
    assert "requests to send            1 to 3" in told


def test_another_seed_asks_anew_and_is_refused_in_the_same_folder(
    build: Callable[..., int], server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    build("--limit", 1)
    assert build("--limit", 1, "--seed", 7) == 2
    assert "seed 0 instead of 7" in capsys.readouterr().err
    assert build("--limit", 1, "--seed", 7, "--out", "seven") == 0
    assert server.asked["numbered"] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--limit", "0"], "--limit"),
        (["--concurrency", "0"], "--concurrency 0 is too small"),
        (["--max-requests", "-1"], "negative"),
        (["--gen", "messages=[]"], "is not a sampling option"),
        (["--min-words", "99"], "no question is left (the question is too short: 5)"),
        (["--max-cost", "1"], "without a price"),
        (["--out", "q.jsonl"], "is not a folder"),
        (["--annotation", "x"], "did you mean '--annotations'"),
    ],
)
def test_a_wrong_call_is_told_before_anything_is_asked_or_written(
    build: Callable[..., int],
    server: Server,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    assert build(*words) == 2
    assert message in capsys.readouterr().err
    assert not server.bodies
    assert not Path("sightline.db").exists()
    assert not Path("out").exists()


@pytest.mark.slow
def test_equivalence_is_written_for_humans_judged_by_a_model_and_remembered(
    build: Callable[..., int], server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.moods["few"] = [FORMS["numbered"]]
    build()
    server.bodies.clear()
    capsys.readouterr()
    judging = ["build", "equivalence", "out", "--judge", server.model, "--json", "--quiet"]
    assert main(judging) == 0
    assert len(server.bodies) == 15
    report = json.loads(capsys.readouterr().out)
    values = {metric["metric"]: metric for metric in report["metrics"]}
    assert (values["judge"]["value"], values["judge"]["n"], values["judge"]["clusters"]) == (100, 15, 2)
    assert values["human"]["reason"] == "not requested: --human FILE, of `annotate new equivalence`"
    assert values["similarity"]["value"] is None
    server.judge = "different"
    assert main(judging) == 0
    assert len(server.bodies) == 15
    about = {"question": "equivalent", "kind": "human", "judge": "ann", "verdict": "right"}
    lines = [{"targets": pair.targets, **about} for pair in read_pairs(Path("out"))[:4]]
    Path("pairs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    capsys.readouterr()
    assert main(["build", "equivalence", "out", "--human", "pairs.jsonl"]) == 0
    assert "92.0† (+8.0)" in capsys.readouterr().out


def test_a_changed_judge_of_equivalence_is_refused_where_it_is_asked_about_more_pairs(
    build: Callable[..., int], server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    judging = ["build", "equivalence", "out", "--judge", server.model, "--quiet"]
    assert build("--limit", 2) == 0
    assert main(judging) == 0
    assert build("--force") == 0
    server.bodies.clear()
    server.judge = "different"
    capsys.readouterr()
    assert main(judging) == 2
    assert "is not the model that gave its cached answers" in capsys.readouterr().err
    assert 0 < len(server.bodies) <= 8
    assert main([*judging, "--fingerprint", "off"]) == 0


def test_similarity_takes_no_folder_for_its_embedder(
    build: Callable[..., int],
    server: Server,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named: list[str] = []

    def embedder(name: str) -> None:
        named.append(name)

    monkeypatch.setattr("sightline.models.embedder.embedder", embedder)
    build("--limit", 1)
    assert main(["build", "equivalence", "--similarity", "out"]) == 0
    assert main(["build", "equivalence", "--similarity", "--embedder", "my/model", "out"]) == 0
    assert named == ["all-MiniLM-L6-v2", "my/model"]
    capsys.readouterr()
    assert main(["build", "equivalence", "out", "--embedder", "my/model"]) == 2
    assert "--similarity with it" in capsys.readouterr().err


def test_a_folder_that_another_job_finished_while_this_one_asked_is_left_alone(
    build: Callable[..., int], server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    build("--limit", 1)
    finished = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    shutil.rmtree("out")
    reply = server.reply

    def meanwhile(body: dict[str, Any]) -> tuple[int, Any]:
        for path, content in finished.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return reply(body)

    server.reply = meanwhile  # type: ignore[method-assign]
    assert build("--limit", 1, "--seed", 7) == 2
    assert "seed 0 instead of 7" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == finished
    assert build("--limit", 1, "--seed", 7, "--force") == 0
    assert manifest()["settings"]["seed"] == 7


@pytest.mark.slow
def test_a_judge_that_fails_leaves_its_pairs_out_and_is_asked_again(
    build: Callable[..., int], server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.moods["few"] = [FORMS["numbered"]]
    build()
    server.failing = {"json"}
    judging = ["build", "equivalence", "out", "--judge", server.model, "--quiet"]
    assert main(judging) == 1
    assert "the judge has not answered: 3" in capsys.readouterr().out
    assert main([*judging, "--max-requests", "0"]) == 1  # what failed for good is not asked again
    server.failing = set()
    assert main([*judging, "--retry-errors", "--max-requests", "1"]) == 4
    assert main([*judging, "--retry-errors"]) == 0


def test_a_model_translates_questions_and_the_options_stay(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    replies = {
        "Is it a bus?": ["Ist es ein Bus?"],
        "Which is it?": ["Here you are:\nWelches?", "Welches ist es?"],
        "Where is bus 12?": ["Wo ist der Bus?"],
    }

    def reply(body: dict[str, Any]) -> tuple[int, Any]:
        server.bodies.append(body)
        question = next(one for one in replies if one in json.dumps(body["messages"]))
        said = replies[question]
        text = said.pop(0) if len(said) > 1 else said[0]
        return 200, {
            "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
        }

    monkeypatch.setattr(server, "reply", reply)
    options = "\n(A) a bus\n(B) a car"
    lines = [
        {"group": "1", "variant": "a", "prompt": "Is it a bus?", "references": ["yes"]},
        {"group": "2", "variant": "a", "prompt": f"Which is it?{options}", "options": ["a bus", "a car"]},
        {"group": "3", "variant": "a", "prompt": "Where is bus 12?"},
        {"group": "4", "variant": "a", "prompt": "Ist es ein Bus? Is it a bus?", "question": "Is it a bus?"},
    ]
    Path("mine.jsonl").write_text("\n".join(map(json.dumps, lines)))
    command = ["build", "reword", "mine.jsonl", "--language", "German", "--model", server.model, "--quiet"]
    assert main([*command, "--out", "a.jsonl"]) == 0
    made = {line.group: line for line in read_groups(Path("a.jsonl")) if line.variant == "a-German"}
    assert {group: line.prompt for group, line in made.items()} == {
        "1": "Ist es ein Bus?\nAnswer in English.",
        "2": f"Welches ist es?{options}",
        "4": "Ist es ein Bus? Ist es ein Bus?\nAnswer in English.",
    }
    assert made["2"].labels["wording"] == "in German"
    assert made["2"].facts["draw"] == 1
    assert "left out: 1, the translation lost '12'" in capsys.readouterr().err
    asked = len(server.bodies)
    assert asked == 1 + 2 + 3  # three attempts at most
    assert main([*command, "--out", "b.jsonl"]) == 0
    assert len(server.bodies) == asked
    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()
