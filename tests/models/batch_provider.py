"""The stand-in for a provider of batches, in a thread of the test."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from aiohttp import web
from tests.models.batch_server import Provider, application, parse

POLL = "poll = 0.05, slowest_poll = 0.1, appears = 0.3"
"""Settings of batches whose tests do not wait for long."""


class RunningProvider:
    """A provider on a free loopback port. `model` is its name for --model."""

    def __init__(self, **options: Any) -> None:
        self.provider = Provider(parse([]))
        vars(self.provider.options).update(options)
        self._loop = asyncio.new_event_loop()
        self._listens = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        assert self._listens.wait(20)
        self.host = f"127.0.0.1:{self.port}"
        self.address = f"http://{self.host}/v1"
        self.model = f"{self.address}#m"

    def config(self, batch: str = POLL, more: str = "") -> str:
        """A sightline.toml with settings of its batches."""
        return f'[hosts."{self.host}"]\nbatch = {{ {batch} }}\n{more}'

    def set(self, **options: Any) -> None:
        """Change what it does from now on."""
        vars(self.provider.options).update(options)

    @property
    def paid(self) -> int:
        """How many distinct requests were answered."""
        return len(self.provider.paid)

    @property
    def paid_twice(self) -> int:
        """How many of these were answered more than once."""
        return sum(count > 1 for count in self.provider.paid.values())

    @property
    def sizes(self) -> list[int]:
        """The number of lines of each batch."""
        return [batch["request_counts"]["total"] for batch in self.provider.batches.values()]

    def stop(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        runner = web.AppRunner(application(self.provider), access_log=None)
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, "127.0.0.1", 0)
        self._loop.run_until_complete(site.start())
        self.port: int = runner.addresses[0][1]
        self._listens.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
