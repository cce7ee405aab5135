"""No secret of a user, also in a wrong place, reaches a store, a file, a message or a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import sightline
from sightline.cli.main import main
from sightline.errors import hide_key

SECRET = "Zq7wRm2xKp9vTn4bLs8dHf3c"
"""It is planted in every input; a key has it in its middle."""
KEY = f"sk-proj-{SECRET}yJ6g"
MOST = KEY[:-6]


class Echo(BaseHTTPRequestHandler):
    """A server that repeats the key, or most of it, in answers, errors, headers and its list of models."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._reply(200, {"data": [{"id": "m", "owned_by": KEY, "root": MOST}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = json.dumps(body["messages"])
        if "fail" in prompt:
            self._reply(400, {"error": {"message": f"Incorrect API key provided: {MOST}****. ({KEY})"}})
            return
        message = {"role": "assistant", "content": f"yes {KEY} {MOST}", "reasoning_content": f"{MOST}..."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": MOST, "completion_tokens": 1}
        self._reply(200, {"model": f"m {MOST}", "choices": [choice], "usage": usage})

    def _reply(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Be silent."""


@pytest.fixture
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> Path:
    """A folder with a groups file and a sightline.toml that names the variable of the key."""
    lines = [
        {"group": f"g{n}", "variant": v, "prompt": f"{word} {n} {v}?", "references": ["yes"]}
        for n, word in enumerate(("ask", "fail"))
        for v in ("a", "b")
    ]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "sightline.toml").write_text(
        f'[models.m]\nspec = "http://{address}/v1#m"\n[hosts."{address}"]\nkey = "PLANTED_KEY"\n'
    )
    monkeypatch.setenv("PLANTED_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


RUN = ("run", "groups:mine.jsonl", "--set", "embedder=none", "--quiet", "--model")


def leaks(text: str | bytes) -> bool:
    half = len(SECRET) // 2
    content = text.encode() if isinstance(text, str) else text
    return any(SECRET[at : at + half].encode() in content for at in range(half + 1))


def leaking_files(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and leaks(path.read_bytes())]


def test_a_key_that_a_server_repeats_reaches_no_store_no_report_and_no_page(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main([*RUN, "m", "--judge", "m", "--out", "out", "--store", "s.db"])
    assert status == 1
    for words in (
        ("report", "1", "--html", "report.html"),
        ("show", "1"),
        ("runs", "show", "1", "--json"),
        *(("store", "export", what, "--out", f"{what}.jsonl") for what in ("answers", "endpoints")),
    ):
        assert main([*words, "--store", "s.db"]) == 0
    said = capsys.readouterr()
    assert not leaks(said.out + said.err)
    assert leaking_files(folder) == []
    from sightline.store.store import Store

    store = Store.open("s.db")
    with store.database.read() as connection:
        keys = [
            bytes(row[0]).hex() for row in connection.core.exec_driver_sql("SELECT DISTINCT key FROM answers")
        ]
    assert len(keys) >= 4
    results = store.answers.look_up(keys)  # the store compresses them
    store.close()
    assert not leaks(repr(results))
    assert "[key]" in repr(results)


WRONG = {
    "a key in the place of its variable": (
        f'[hosts."127.0.0.1"]\nkey = "{KEY}"\n',
        (*RUN, "http://127.0.0.1:9/v1#m"),
    ),
    "a key that could be a variable": (
        f'[hosts."127.0.0.1"]\nkey = "hf_{SECRET}"\n',
        (*RUN, "http://127.0.0.1:9/v1#m"),
    ),
    "another key that could be a variable": (
        f'[hosts."127.0.0.1"]\nkey = "k{SECRET}"\n',
        (*RUN, "http://127.0.0.1:9/v1#m"),
    ),
    "a key as a value of another type": (f'[models.x]\nspec = "mini"\nargs = "{KEY}"\n', (*RUN, "x")),
    "a key as an argument": (
        f'[models.x]\nspec = "http://127.0.0.1:9/v1#m"\nargs = {{timeout = "{KEY}"}}\n',
        (*RUN, "x"),
    ),
    "invalid TOML": (f"[hosts.x]\nkey = {KEY}\n", (*RUN, "x")),
    "--gen": ("", (*RUN, "http://127.0.0.1:9/v1#m", "--gen", f"api_key={SECRET}")),
    "--gen-any": ("", (*RUN, "http://127.0.0.1:9/v1#m", "--gen", f"api_key={SECRET}", "--gen-any")),
    "--judge-gen": ("", (*RUN, "baseline/chance", "--judge-gen", f"authorization={SECRET}", "--gen-any")),
    "--gen with a key as a value": (
        "",
        (*RUN, "http://127.0.0.1:9/v1#m", "--gen", f"user={KEY}", "--gen-any"),
    ),
    "--gen with a password in a URL": (
        "",
        (*RUN, "http://127.0.0.1:9/v1#m", "--gen", f"callback=https://me:{SECRET}@host", "--gen-any"),
    ),
    "--gen with a secret inside": (
        "",
        (*RUN, "http://127.0.0.1:9/v1#m", "--gen", f'metadata={{"api_key": "{SECRET}"}}', "--gen-any"),
    ),
    "--judge-gen with a key as a value": (
        "",
        (
            *RUN,
            "baseline/chance",
            "--judge",
            "http://127.0.0.1:9/v1#m",
            "--judge-gen",
            f"user={KEY}",
            "--gen-any",
        ),
    ),
    "--model-arg with a key as a value": (
        "",
        (*RUN, "http://127.0.0.1:9/v1#m", "--model-arg", f"header={KEY}"),
    ),
    "--model-id with a key": ("", (*RUN, "baseline/chance", "--model-id", f"me {KEY}")),
    "--model of a file with a password": (
        "",
        ("score", "groups:mine.jsonl", "mine.jsonl", "--model", f"http://me:{SECRET}@host/v1#m"),
    ),
    "--reasoning-tags with a key": ("", (*RUN, "baseline/chance", "--reasoning-tags", KEY)),
    "--judge of a file with a password": (
        "",
        (*RUN, "baseline/chance", "--judge", f"human:https://me:{SECRET}@host/a.jsonl"),
    ),
    "--tag with a key": ("", (*RUN, "baseline/chance", "--tag", KEY)),
    "--set with a key": ("", (*RUN, "baseline/chance", "--set", f"text_metrics={KEY}")),
    "--model-arg": ("", (*RUN, "http://127.0.0.1:9/v1#m", "--model-arg", f"api_key={SECRET}")),
    "--model-arg executable": (
        "",
        (*RUN, "vllm/ORG/NAME", "--model-arg", f"executable=env HF_TOKEN={SECRET} vllm"),
    ),
    "--model-arg flags": ("", (*RUN, "vllm/ORG/NAME", "--model-arg", f"flags=--x API_KEY={SECRET}")),
    "a password in the URL of a model": ("", (*RUN, f"http://me:{SECRET}@127.0.0.1:9/v1#m")),
    "a token in the URL of a model": ("", (*RUN, f"http://127.0.0.1:9/v1?token={SECRET}#m")),
    **{
        f"--store {url}": ("", (*RUN, "baseline/chance", "--store", url.replace("PW", SECRET)))
        for url in (
            "postgresql://me:PW@127.0.0.1:9/name",
            "POSTGRESQL://me:PW@127.0.0.1:9/name",
            "postgresql://me:a@PW@127.0.0.1:9/name",
            "postgresql://127.0.0.1:9/name?user=me&password=PW",
            "postgresql://127.0.0.1:9/name?user=me&sslpassword=PW&pass%77ord=PW",
            "postgresql://127.0.0.1:9/name?passwrd=PW",
            "mysql://me:PW@127.0.0.1/name",
            "sqlite://me:PW@127.0.0.1/name",
            "sqlite:///me:PW@127.0.0.1/name",
            "sqlite:me:PW@127.0.0.1/name",
            "sqlite:///name?password=PW",
            "postgresql:/me:PW@127.0.0.1/name",
        )
    },
    **{
        f"data pull --from {url}": ("", ("data", "pull", "codis", "--from", url.replace("PW", SECRET)))
        for url in (
            "http://me:PW@127.0.0.1:9/a.tar.gz",
            "http://PW@127.0.0.1:9/a.tar.gz",
            "http://127.0.0.1:9/a.tar.gz?token=PW",
            "http://127.0.0.1:9/a.tar.gz?X-Amz-Signature=PW&sig=PW",
            "http://me:PW@[::1/a.tar.gz",
        )
    },
}


@pytest.mark.parametrize("case", WRONG)
def test_a_secret_in_a_wrong_place_is_an_error_that_does_not_repeat_it(
    folder: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    config, words = WRONG[case]
    (folder / "other.toml").write_text(config)
    with_config = ("--config", "other.toml") if config else ()
    assert main([*words, *with_config]) in (2, 3)
    said = capsys.readouterr()
    assert said.err
    assert not leaks(said.out + said.err)
    (folder / "other.toml").unlink()
    assert leaking_files(folder) == []


@pytest.mark.slow
def test_a_traceback_does_not_repeat_a_secret(folder: Path) -> None:
    entry = [sys.executable, "-c", "from sightline.cli.main import entry; entry()"]
    url = f"postgresql://me:{SECRET}@127.0.0.1:9/name?password={SECRET}"
    ended = subprocess.run(
        [*entry, *RUN, "baseline/chance", "--store", url, "--debug"], capture_output=True, text=True
    )
    assert "Traceback" in ended.stderr
    assert not leaks(ended.stdout + ended.stderr)


def test_an_evaluation_is_shown_without_the_password_of_its_store(folder: Path) -> None:
    done = sightline.run("groups:mine.jsonl", model="baseline/chance", set={"embedder": "none"})
    shown = repr(replace(done, store=f"postgresql://me:{SECRET}@host/name"))
    assert "postgresql://me:***@host/name" in shown
    assert not leaks(shown)


@pytest.mark.parametrize("key", [KEY, SECRET, "0123456789abcdef", "0123456789abcdefg"])
def test_every_part_of_a_key_that_is_longer_than_half_of_it_is_hidden(key: str) -> None:
    for start in range(len(key)):
        for end in range(start + 1, len(key) + 1):
            hidden = hide_key(f"before {key[start:end]} after", key)
            assert (key[start:end] not in hidden) == (2 * (end - start) > len(key))
            assert hidden.startswith("before ")
            assert hidden.endswith(" after")
