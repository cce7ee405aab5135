"""A run against a local server: which modules it loads, and the mock server of the measurements."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.e2e.conftest import Mock
from tests.models.http.raw_server import Peer, raw_server, whole

from sightline.models.http_client import Timeouts, open_client

SCRIPT = """
import sys
from sightline.cli.main import main
status = main(sys.argv[1:])
# The package `email` itself is loaded by SQLAlchemy, which looks for plugins.
unwanted = {'aiohttp', 'attr', 'yarl', 'idna', 'multidict', 'email.parser', 'http.client', 'urllib.request'}
print("status", status, "loaded", sorted(unwanted & set(sys.modules)))
"""

GROUPS = """\
{"group": "a", "variant": "r2", "prompt": "Is it day?", "references": ["yes"]}
{"group": "a", "variant": "r1", "prompt": "Is it daytime?", "references": ["yes"]}
"""


@pytest.mark.slow
def test_a_run_against_a_local_server_does_not_load_aiohttp(tmp_path: Path) -> None:
    """Its import takes 0.2 s, and that of `email` and `http.client` some more."""
    (tmp_path / "groups.jsonl").write_text(GROUPS)
    asked: list[str] = []

    async def handler(peer: Peer) -> None:
        while True:
            head, body = await peer.request()
            asked.append(head.split()[1].decode())
            message = {"role": "assistant", "content": "yes"}
            answer = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
            await peer.send(whole(json.dumps(answer if body else {"data": [{"id": "m"}]}).encode()))

    async def run() -> str:
        async with raw_server(handler) as server:
            words = ["run", "groups:groups.jsonl", "--model", f"{server.address}/v1#m"]
            words += ["--store", "s.db", "--out", "out", "--quiet", "--set", "embedder=none"]
            process = await asyncio.create_subprocess_exec(
                *[sys.executable, "-c", SCRIPT, *words],
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            said, _ = await process.communicate()
            return said.decode()

    said = asyncio.run(run())
    assert said.strip().splitlines()[-1] == "status 0 loaded []", said
    assert sorted(set(asked)) == ["/v1/chat/completions", "/v1/models"]
    assert asked.count("/v1/chat/completions") == 2


@pytest.mark.parametrize("options", [[], ["--fail-rate", "0.3", "--fail-codes=-1,429"]])
def test_the_mock_server_of_the_measurements_is_called_as_it_expects(
    shared: Path, options: list[str]
) -> None:
    pytest.importorskip("httptools")
    server = Mock(shared / "tools" / "mock_openai_server.py", *options)
    body = json.dumps({"model": "mock", "messages": [{"role": "user", "content": "?"}]}).encode()

    async def run() -> tuple[list[int], int]:
        async with aclosing(open_client(server.address, None, Timeouts(5, 5))) as client:
            found = await asyncio.gather(
                *(client.call("/chat/completions", body) for _ in range(200)), return_exceptions=True
            )
            statuses = [one.status if not isinstance(one, BaseException) else 0 for one in found]
            return statuses, (await client.call("/models")).status

    try:
        statuses, listed = asyncio.run(run())
    finally:
        server.stop()
    assert listed == 200
    assert set(statuses) == ({0, 200, 429} if options else {200})
