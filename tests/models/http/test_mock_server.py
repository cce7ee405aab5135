"""The mock server of the measurements."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.e2e.conftest import Mock

from sightline.models.http_client import HTTPClient, Timeouts


@pytest.mark.parametrize("options", [[], ["--fail-rate", "0.3", "--fail-codes=-1,429"]])
def test_the_mock_server_of_the_measurements_is_called_as_it_expects(
    shared: Path, options: list[str]
) -> None:
    pytest.importorskip("httptools")
    server = Mock(shared / "tools" / "mock_openai_server.py", *options)
    body = json.dumps({"model": "mock", "messages": [{"role": "user", "content": "?"}]}).encode()

    async def run() -> tuple[list[int], int]:
        async with aclosing(HTTPClient(server.address, None, Timeouts(5, 5))) as client:
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
