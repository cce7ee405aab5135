"""answers.jsonl against the requests that a server received: equal text, equal images in equal order."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.annotation.store import AnnotationStore
from sightline.cli.main import main
from sightline.formats.jsonl import read_outcomes
from sightline.models.ocr import Word
from sightline.store.store import Store
from sightline.types import ImageFile, Outcome
from training.scenes.build import generate_codis, generate_contextual, generate_mmr3


class Recorder:
    """A server that answers the n-th request with its number n, and keeps the messages of every request."""

    def __init__(self) -> None:
        self.requests: list[list[dict[str, Any]]] = []
        recorder, lock = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    number = len(recorder.requests)
                    recorder.requests.append(body["messages"])
                message = {"role": "assistant", "content": str(number)}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                self._reply({"model": "m", "choices": [choice], "usage": {}})

            def do_GET(self) -> None:
                self._reply({"data": [{"id": "m"}]})

            def _reply(self, body: dict[str, Any]) -> None:
                content = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *words: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.model = f"http://127.0.0.1:{self.server.server_port}/v1#m"

    def sent(self, outcome: Outcome) -> tuple[list[tuple[str, str]], list[bytes]]:
        """Role and text of each message, and the bytes of all images, of the request behind an answer."""
        texts: list[tuple[str, str]] = []
        images: list[bytes] = []
        for message in self.requests[int(outcome.response)]:
            content = message["content"]
            parts: list[dict[str, Any]] = (
                [{"type": "text", "text": content}] if isinstance(content, str) else content
            )
            texts.append((message["role"], "\n".join(p["text"] for p in parts if p["type"] == "text")))
            urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
            images += [base64.b64decode(url.partition(",")[2]) for url in urls]
        return texts, images


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    thread = threading.Thread(target=recorder.server.serve_forever, args=(0.02,))
    thread.start()
    yield recorder
    recorder.server.shutdown()
    thread.join()
    recorder.server.server_close()


class Reader:
    """An OCR reader that reads the name of each image's file."""

    name = "names"
    identity = "names 1"

    def __init__(self, threads: int = 0) -> None:
        self.threads = threads

    def read(self, image: ImageFile) -> tuple[Word, ...]:
        return (Word(Path(image.path).name, (0.0, 0.0, 90.0, 10.0), 1.0),)


def run(task: str, recorder: Recorder, data: Path, out: Path, **more: Any) -> list[Outcome]:
    sightline.run(task, model=recorder.model, data=data, out=out, store=out.with_suffix(".db"), **more)
    return list(read_outcomes(out / "answers.jsonl"))


def check(outcomes: list[Outcome], recorder: Recorder, root: Path) -> None:
    assert outcomes
    for outcome in outcomes:
        messages, images = recorder.sent(outcome)
        texts = [text if len(messages) == 1 else f"[{role}]\n{text}" for role, text in messages]
        assert outcome.prompt == "\n".join(texts)
        assert [(root / path).read_bytes() for path in outcome.images] == images


@pytest.mark.parametrize(("task", "images"), [("codis", 1), ("codis:no-image", 0), ("codis:no-context", 1)])
def test_answers_of_codis_hold_what_was_sent(
    recorder: Recorder, tmp_path: Path, task: str, images: int
) -> None:
    generate_codis(tmp_path / "codis", pairs=2)
    outcomes = run(task, recorder, tmp_path / "codis", tmp_path / "out")
    check(outcomes, recorder, tmp_path / "codis")
    assert {len(outcome.images) for outcome in outcomes} == {images}
    for outcome in outcomes:
        assert bool(outcome.context) == (task != "codis:no-context")
        assert outcome.context in outcome.prompt


def test_answers_with_examples_hold_every_image_in_its_order(
    recorder: Recorder, shared: Path, tmp_path: Path
) -> None:
    data = shared / "data" / "iibench"
    outcomes = run("iibench:2-shot", recorder, data, tmp_path / "out", split="dev", limit=2)
    check(outcomes, recorder, data)
    assert {len(outcome.images) for outcome in outcomes} == {3}


def test_answers_of_several_messages_name_the_role_of_each(recorder: Recorder, tmp_path: Path) -> None:
    generate_contextual(tmp_path / "contextual", questions=12, val=12)
    data = tmp_path / "contextual"
    outcomes = run("contextual:2-shot", recorder, data, tmp_path / "out", split="val", limit=2)
    check(outcomes, recorder, data)
    assert outcomes[0].prompt.count("[user]\n") == 3
    assert len(outcomes[0].images) == 3


def test_answers_with_text_for_images_hold_that_text_and_no_image(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.evaluation.image_texts.RapidOcr", Reader)
    generate_codis(tmp_path / "codis", pairs=2)
    outcomes = run("codis", recorder, tmp_path / "codis", tmp_path / "out", augment="ocr")
    check(outcomes, recorder, tmp_path / "codis")
    assert all(".png" in outcome.prompt and not outcome.images for outcome in outcomes)


def test_what_was_asked_survives_scoring_replay_and_export(recorder: Recorder, tmp_path: Path) -> None:
    generate_codis(data := tmp_path / "codis", pairs=2)
    first = run("codis", recorder, data, tmp_path / "out")
    answers = tmp_path / "out" / "answers.jsonl"
    exported = tmp_path / "plain.jsonl"
    assert main(["export", str(answers), "--as", "jsonl", "--out", str(exported)]) == 0
    for file in (answers, exported):
        sightline.score("codis", file, data=data, out=tmp_path / "scored", force=True)
        sightline.run(
            "codis",
            model=f"replay/{file}",
            data=data,
            out=tmp_path / "again",
            force=True,
            store=tmp_path / "r.db",
        )
        for folder in ("scored", "again"):
            found = read_outcomes(tmp_path / folder / "answers.jsonl")
            assert [(one.context, one.images, one.prompt) for one in found] == [
                (one.context, one.images, one.prompt) for one in first
            ]


def test_a_broken_image_was_not_sent(recorder: Recorder, tmp_path: Path) -> None:
    generate_codis(data := tmp_path / "codis", pairs=1)
    for image in (data / "images").iterdir():
        image.write_bytes(b"no image")
    outcomes = run("codis", recorder, data, tmp_path / "out")
    assert [(one.status, one.images, one.prompt) for one in outcomes] == [("error", (), "")] * 2


@pytest.mark.slow
@pytest.mark.parametrize("old", [False, True])
def test_raters_see_the_image_of_the_variant(recorder: Recorder, tmp_path: Path, old: bool) -> None:
    generate_mmr3(tmp_path / "mmr3", groups=2)
    data, out = tmp_path / "mmr3", tmp_path / "out"
    outcomes = run("mmr3:restyling", recorder, data, out, set={"embedder": "none"})
    check(outcomes, recorder, data / "restyling")
    if old:  # An answers.jsonl of a version without these fields.
        lines = [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]
        rest = [{k: v for k, v in line.items() if k not in ("images", "prompt")} for line in lines]
        (out / "answers.jsonl").write_text("\n".join(map(json.dumps, rest)))
        metrics = json.loads((out / "metrics.json").read_text())
        (out / "metrics.json").write_text(json.dumps({**metrics, "files": {}}))  # as earlier versions
    store = str(tmp_path / "annotations.db")
    words = ["annotate", "new", "errors", str(out), "--name", "e", "--data", str(data), "--store", store]
    assert main(words) == 0
    annotations = AnnotationStore(Store.open(store), time.time)
    shown = {one.path for item in annotations.items(1) for images in item.images.values() for one in images}
    assert shown == {f"restyling/{path}" for one in outcomes for path in one.images}
