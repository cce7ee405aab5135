"""A run over hostile texts, of data and of a server: every command prints them as text, in every format."""

from __future__ import annotations

import csv
import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from PIL import Image
from tests.hostile.readers import read_html, read_latex, read_markdown, unsafe
from tests.hostile.test_writers import FORMULA
from tests.hostile.texts import TEXTS

from sightline.cli.main import main

Capture = pytest.CaptureFixture[str]
FORMATS = ("table", "markdown", "csv", "latex", "html", "json")
MODEL = "\x1b[31m\u202e<b>|`$x$\\input{x} =cmd|'!A0"
LABEL = "[red]\x1b]0;x\x07 <b>|\n$y$"


class _Server(BaseHTTPRequestHandler):
    """Answers every request with a hostile text as its response and as its version, or as an error."""

    asked = 0

    def do_GET(self) -> None:
        self._reply(200, {"data": [{"id": MODEL, "root": TEXTS[0]}]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        _Server.asked += 1
        text = TEXTS[_Server.asked % len(TEXTS)]
        if _Server.asked % 7 == 0:
            self._reply(400, {"error": {"message": text, "type": text, "code": text}})
            return
        message = {"role": "assistant", "content": text}
        body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        self._reply(200, {**body, "model": text, "system_fingerprint": text})

    def _reply(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a groups file, its images, and a store with two runs; the second replays the first."""
    folder = tmp_path_factory.mktemp("hostile")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    lines = []
    for number, text in enumerate(TEXTS):
        images = []
        if not {"/", "\x00"} & set(text):
            Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / f"{text}.png", "PNG")
            images = [f"{text}.png"]
        kept = text.strip() or "text"
        for variant in (f"{kept} a", f"{kept} b"):
            line = {"group": f"{text} ", "variant": variant, "prompt": f"{text}?", "images": images}
            own = {LABEL: text, "part": TEXTS[number % 5]}
            lines.append({**line, "options": [kept, "(B)"], "references": [kept], "labels": own})
    (folder / "groups.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    address = f"http://127.0.0.1:{server.server_address[1]}/v1#{MODEL}"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["run", "groups:groups.jsonl", "--model", address, "--out", "first", "--quiet"]) == 1
        replay = ["--model", "replay/first/answers.jsonl", "--out", "second", "--quiet"]
        assert main(["run", "groups:groups.jsonl", *replay]) in (0, 1)
        yield folder
    server.shutdown()


def _check(out: str, form: str) -> None:
    assert not unsafe(out)
    assert out.strip()
    match form:
        case "markdown":
            assert read_markdown(out)
        case "latex":
            assert read_latex(out)
        case "html":
            assert read_html(out)
        case "json":
            json.loads(out)
        case "csv":
            for row in csv.reader(io.StringIO(out, newline=""), strict=True):
                assert not any(map(_is_formula, row)), row


def _is_formula(cell: str) -> bool:
    try:
        return float(cell) != float(cell)
    except ValueError:
        return cell.lstrip().startswith(FORMULA)


IN_ALL_FORMATS = (
    ("report", "1", "2", "--by", LABEL),
    ("compare", "1", "2", "--list", "different", "--by", LABEL),
)
COMMANDS = (
    ("report", "1"),
    ("report", "1", "2", "--pivot", "--by", "part"),
    ("report", "first", "second"),
    ("score", "groups:groups.jsonl", "first/answers.jsonl", "--quiet"),
    (
        "sweep",
        "groups:groups.jsonl",
        "--model",
        "baseline/chance",
        "--model",
        "replay/first/answers.jsonl",
        "--quiet",
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "form"),
    [
        *((command, form) for command in IN_ALL_FORMATS for form in FORMATS),
        *((command, form) for command in COMMANDS for form in ("table", "html")),
    ],
)
def test_a_command_prints_text_as_text(
    folder: Path, capsys: Capture, command: tuple[str, ...], form: str
) -> None:
    capsys.readouterr()
    status = main([*command, "--format", form])
    printed = capsys.readouterr()
    assert status in (0, 1), printed.err
    assert not unsafe(printed.err)
    _check(printed.out, form)


@pytest.mark.parametrize(
    "command",
    [
        ("runs", "list"),
        ("runs", "list", "--json"),
        ("export", "first", "--as", "jsonl", "--out", "\x1b[31m.jsonl"),
        ("annotate", "new", "rate", "first", "--name", "r", "--store", "new.db"),
        ("run", "groups:groups.jsonl", "--model", "baseline/chance", "--dry-run"),
        ("list",),
    ],
    ids=" ".join,
)
def test_other_commands_print_text_as_text(folder: Path, capsys: Capture, command: tuple[str, ...]) -> None:
    capsys.readouterr()
    main(list(command))
    printed = capsys.readouterr()
    assert not unsafe(printed.out + printed.err)
    assert printed.out + printed.err


@pytest.mark.parametrize("words", ["{}", "report {}", "report first --by {}", "run groups:{} --model mini"])
def test_a_wrong_word_is_repeated_in_one_safe_line(folder: Path, capsys: Capture, words: str) -> None:
    for text in TEXTS:
        main([word.replace("{}", text) for word in words.split()])
        printed = capsys.readouterr()
        assert not unsafe(printed.out + printed.err)
        assert "\nsightline: all right" not in printed.err


def test_the_files_for_readers_hold_text_and_the_data_files_hold_it_exactly(folder: Path) -> None:
    report = (folder / "first" / "report.md").read_text()
    assert not unsafe(report)
    assert read_markdown(report)
    answers = [json.loads(line) for line in (folder / "first" / "answers.jsonl").read_text().split("\n")[:-1]]
    assert {answer["sample"] for answer in answers} == {f"{text} " for text in TEXTS}
