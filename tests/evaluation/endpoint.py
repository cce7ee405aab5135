"""An endpoint that replies by a function, without a server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from sightline.models.base import Capabilities
from sightline.models.offline import OfflineModel
from sightline.types import Answer, Failure, Request

Reply = Callable[[Request], Answer | Failure]


class Endpoint(OfflineModel):
    """An endpoint that replies by a function; `asked` counts its requests, `began` is set by the first."""

    batch_size = 1
    capabilities = Capabilities(endpoint=True)

    def __init__(self, name: str, reply: Reply) -> None:
        self.name = self.identity = self.host = name
        self.reply = reply
        self.asked: Counter[str] = Counter()
        self.began = asyncio.Event()

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        return dict(sampling)

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        for index, request in enumerate(requests):
            self.asked[request.key] += 1
            self.began.set()
            await self.wait(request)
            yield index, self.reply(request)

    async def wait(self, request: Request) -> None:
        """What happens before a reply."""
        await asyncio.sleep(0)
