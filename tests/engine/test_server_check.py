from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import random
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import pytest
from PIL import Image

from sightline.cli.main import main
from sightline.engine.server_check import (
    COLOURS,
    NUMBERS,
    SIDE,
    Finding,
    Questions,
    check_images,
    check_server,
    drawn_images,
)
from sightline.images import read_image
from sightline.models.base import Capabilities
from sightline.types import Answer, Failure, ImageFile, Request, Text

RUNS = 100


class Server:
    """A server with one fault: it looks at pixels, and answers as a model of a given skill would."""

    def __init__(self, fault: str = "", skill: float = 1.0, seed: int = 0) -> None:
        self.fault, self.skill, self.random = fault, skill, random.Random(seed)
        self.kept: dict[str, list[Image.Image]] = {}
        self.in_flight = self.answers = 0
        self.lock = Lock()

    def reply(self, text: str, image: Image.Image | None, options: Mapping[str, Any]) -> tuple[str, str]:
        """The answer, and its finish reason."""
        with self.lock:
            self.answers += 1
            if image is not None:
                return self._look(text, self._seen(text, image)), "stop"
            if "Count" in text:
                return self._count(options)
            if options["temperature"] and not (self.fault == "seed" or "seed" not in options):
                drawn = f"drawn with {options['seed']}"
            elif options["temperature"] or self.fault == "drift":
                drawn = f"drawn {self.answers}"
            else:
                drawn = f"with {self.in_flight} others" if self.fault == "parallel" else "always"
            return f"lion, {hashlib.sha256(drawn.encode()).hexdigest()}", "stop"

    def _seen(self, text: str, image: Image.Image) -> Image.Image:
        """What the model is shown; a cache that looks at the text alone holds other images."""
        kept = self.kept.setdefault(text, [])
        if self.fault == "prefix" and kept:
            return kept[0]
        if self.fault == "prefix warm" and len(kept) >= len(COLOURS):
            return kept[len(COLOURS) - 1]
        kept.append(image)
        return image.transpose(Image.Transpose.ROTATE_180) if self.fault == "turned" else image

    def _look(self, text: str, image: Image.Image) -> str:
        if self.fault == "blind":
            return "I cannot see images."
        if "number" in text:
            dark = image.convert("L").point(lambda level: 255 * (level < 128)).getbbox()
            height = (dark[3] - dark[1]) if dark else 0
            size = min(NUMBERS, key=lambda one: abs(0.72 * one - height))
            return NUMBERS[size] if height >= 8 else "0000"
        image = image.resize((SIDE, SIDE))
        place = (10, 200) if "left" in text else (200, 10)
        shown = min(COLOURS, key=lambda name: _distance(COLOURS[name], image.getpixel(place)))
        wrong = self.random.random() >= self.skill
        return f"It is {self.random.choice(sorted(set(COLOURS) - {shown})) if wrong else shown}."

    def _count(self, options: Mapping[str, Any]) -> tuple[str, str]:
        numbers = [str(number) for number in range(1, 41)]
        if "stop" in options and self.fault != "stop":
            numbers = numbers[: numbers.index(options["stop"][0])]
        if options["max_tokens"] == 8 and self.fault != "limit":
            return ", ".join(numbers[:3]), "stop" if self.fault == "finish reason" else "length"
        return ", ".join(numbers), "stop"


def _distance(colour: str, pixel: Any) -> int:
    wanted = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return sum(abs(a - b) for a, b in zip(wanted, pixel[:3], strict=True))


@lru_cache(maxsize=32)
def _pixels(file: ImageFile) -> Image.Image:
    return read_image(file)


class SeeingModel:
    capabilities = Capabilities(endpoint=True)
    name = identity = host = "server"
    batch_size, parallel = 1, None

    def __init__(self, server: Server) -> None:
        self.server = server

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        return dict(sampling)

    async def __aenter__(self) -> SeeingModel:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        for index, request in enumerate(requests):
            text = " ".join(part.text for part in request.messages[0].parts if isinstance(part, Text))
            image = next(map(_pixels, request.images.values()), None)
            self.server.in_flight += 1
            await asyncio.sleep(0)
            reply, reason = self.server.reply(text, image, request.sampling)
            self.server.in_flight -= 1
            yield index, Answer(reply, finish_reason=reason)


def _states(findings: Sequence[Finding]) -> dict[str, str]:
    return {one.what: one.state for one in findings}


def _checked(fault: str = "") -> list[Finding]:
    return asyncio.run(check_server(SeeingModel(Server(fault)))).findings  # type: ignore[arg-type]


def test_a_sound_server_does_everything() -> None:
    findings = _checked()
    assert set(_states(findings).values()) == {"yes"}
    assert not any(one.is_fault for one in findings)


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        ("blind", "sees images"),
        ("prefix", "keeps images under equal text apart"),
        ("turned", "sees images upright"),
        ("drift", "repeats answers at temperature 0"),
        ("parallel", "answers in parallel as alone"),
        ("seed", "keeps seeds"),
        ("finish reason", "reports the token limit"),
        ("limit", "reports the token limit"),
        ("stop", "keeps stop"),
    ],
)
def test_each_fault_is_found_and_nothing_else(fault: str, what: str) -> None:
    states = _states(_checked(fault))
    assert states.pop(what) == "no"
    if fault != "blind":
        assert "no" not in states.values()


@pytest.fixture
def colours() -> Iterator[Any]:
    with drawn_images() as drawn:
        yield drawn.colours


def _alarms(colours: Any, fault: str, skill: float) -> int:
    """In how many of 100 checks images count as mixed up."""

    async def check(seed: int) -> bool:
        model: Any = SeeingModel(Server(fault, skill, seed))

        async def ask(request: Request) -> Answer | Failure:
            async for _, result in model.answer([request]):
                found: Answer | Failure = result
            return found

        findings = await check_images(Questions(model, ask), colours)
        return _states(findings)["keeps images under equal text apart"] == "no"

    return sum(asyncio.run(check(seed)) for seed in range(RUNS))


@pytest.mark.parametrize("skill", [1.0, 0.9, 0.8, 1 / 3])
def test_no_sound_server_mixes_images_up(colours: Any, skill: float) -> None:
    assert _alarms(colours, "", skill) == 0


@pytest.mark.parametrize("fault", ["prefix", "prefix warm"])
def test_a_server_that_mixes_images_up_is_found(colours: Any, fault: str) -> None:
    assert _alarms(colours, fault, 1.0) >= RUNS - 2


class FailingModel(SeeingModel):
    """A server that refuses requests, those with images or all, as its error says."""

    def __init__(self, failure: Failure, only_images: bool = False, works: int = 0) -> None:
        super().__init__(Server("blind" if works else ""))
        self.failure, self.only_images, self.works = failure, only_images, works

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        self.works -= 1
        if self.works >= 0 or (self.only_images and not requests[0].images):
            async for answer in super().answer(requests):
                yield answer
        else:
            yield 0, self.failure


@pytest.mark.parametrize("said", ["HTTP 402: You exceeded your current quota", "HTTP 200: <!DOCTYPE html>"])
def test_a_server_that_answers_nothing_says_nothing_about_images_and_is_left_at_once(said: str) -> None:
    model: Any = FailingModel(Failure("permanent", said))
    check = asyncio.run(check_server(model))
    (found,) = check.findings
    assert (found.what, found.state, found.is_fault) == ("sees images", "unknown", True)
    assert said in found.evidence
    assert check.asked == len(COLOURS) + 1


@pytest.mark.parametrize(
    ("failure", "works", "state"),
    [
        (Failure("permanent", "This is not a multimodal model"), 0, "no"),
        (Failure("permanent", "image input is not supported"), 0, "no"),
        (Failure("permanent", "cannot decode the image"), 0, "unknown"),
        (Failure("permanent", "HTTP 500"), 1, "unknown"),
        (Failure("permanent", "HTTP 500"), 2, "no"),
    ],
)
def test_only_wrong_answers_or_the_servers_word_say_that_images_are_not_seen(
    failure: Failure, works: int, state: str
) -> None:
    model: Any = FailingModel(failure, only_images=True, works=works)
    findings = asyncio.run(check_server(model)).findings
    states = _states(findings)
    assert states["sees images"] == state
    assert states.get("reads small text", "unknown") == "unknown"
    assert states["keeps stop"] == "yes" or works


@contextmanager
def _served(server: Server) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            parts = body["messages"][0]["content"]
            parts = [{"type": "text", "text": parts}] if isinstance(parts, str) else parts
            text = " ".join(part["text"] for part in parts if part["type"] == "text")
            urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
            sent = [base64.b64decode(re.sub("^data:[^,]*,", "", url)) for url in urls]
            images = [Image.open(io.BytesIO(data)).convert("RGB") for data in sent]
            reply, reason = server.reply(text, images[0] if images else None, body)
            message = {"role": "assistant", "content": reply}
            content = json.dumps({"choices": [{"message": message, "finish_reason": reason}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}/v1#seeing"
        finally:
            listening.shutdown()
            thread.join()


@pytest.mark.parametrize(("fault", "status"), [("", 0), ("stop", 0), ("prefix", 1), ("blind", 1)])
def test_the_exit_status_says_whether_images_are_seen_and_kept_apart(
    fault: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with _served(Server(fault)) as model:
        assert main(["check", model, "--json"]) == status
    tables = json.loads(capsys.readouterr().out)
    assert "was called" in json.dumps(tables) or fault != "prefix"


PROBES = 200


@pytest.fixture
def many(tmp_path: Path) -> str:
    """A groups file of as many probes as are checked, about one image each."""
    lines = []
    for number in range(PROBES):
        Image.new("RGB", (32, 32), (number, 90, 30)).save(tmp_path / f"{number}.png")
        line = {"group": f"g{number}", "variant": "a", "images": [f"{number}.png"], "prompt": "Red?"}
        lines.append({**line, "references": ["red"]})
    file = tmp_path / "many.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return f"groups:{file}"


@pytest.mark.parametrize(
    ("fault", "words", "asked", "status"),
    [
        ("", [], PROBES + 9, 0),
        ("", ["--canary", "off"], PROBES, 0),
        ("", ["--limit", "150"], 150, 0),
        ("prefix", [], 33, 2),
        ("prefix", ["--canary", "note"], PROBES + 33, 0),
        ("blind", [], PROBES + 3, 0),
    ],
)
def test_a_run_asks_first_whether_images_are_kept_apart(
    fault: str,
    words: list[str],
    asked: int,
    status: int,
    many: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = Server(fault)
    with _served(server) as model:
        run = ["run", many, "--model", model, "--store", str(tmp_path / "s.db"), "--quiet", "--all", *words]
        run += ["--set", "embedder=none"]
        assert main(run) == status
        assert server.answers == asked
        printed = " ".join("".join(capsys.readouterr()).split())
        assert ("takes images under equal text for one another" in printed) == (fault == "prefix")
        assert ("was not shown to keep images under equal text apart" in printed) == (fault == "blind")
        if status == 0:
            assert main(run) == 0
            assert server.answers == asked, "a fully cached run sends nothing"
