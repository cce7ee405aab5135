"""A model whose requests are sent in batches: uploaded in files, answered by the provider within a day.

Batches outlive the process. The journal says which requests are in which batch, so that a batch that an
earlier process created, on this machine or another one, is fetched instead of paid for again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from msgspec.structs import replace

from sightline.config import BatchSettings
from sightline.counts import counted
from sightline.models.base import Model
from sightline.models.batch.client import BatchClient, CallFailedError
from sightline.models.batch.follower import LATER, Follower
from sightline.models.batch.input_files import InputFile, Unwritable, input_files
from sightline.models.batch.open_batch import Journal, OpenBatch
from sightline.models.batch.progress import BatchProgress
from sightline.models.openai import OpenAICompatible
from sightline.models.server_report import ServerReport
from sightline.types import Answer, Failure, Request

REQUESTS = 50_000
"""Requests that are in batches at a time: memory holds them until they are answered."""
GATHER = 3.0
"""Failed lines wait for others, before they are sent again: so many times the first pause between looks."""

_Result = tuple[int, Answer | Failure]


class BatchEndpoint(Model):
    """A model behind one endpoint, asked in batches.

    `live` is the same one, asked request by request; `settings` say how batches are used.
    """

    batch_size = REQUESTS
    parallel: int | None = 1

    def __init__(self, live: OpenAICompatible, settings: BatchSettings) -> None:
        self.live = live
        self.name = live.name
        self.identity = live.identity
        self.host = live.host
        self.capabilities = replace(live.capabilities, gather=GATHER * settings.poll)
        self.settings = settings
        self._client = BatchClient(live, settings)
        self._journal: Journal | None = None
        self._progress = BatchProgress(lambda _: None)
        self._tell: Callable[[str], None] = lambda _: None

    def connect(self, journal: Journal, show: Callable[[str], None], tell: Callable[[str], None]) -> None:
        """Say where batches are recorded, and how the user learns of them."""
        self._journal = journal
        self._progress = BatchProgress(show)
        self._tell = tell

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """The same options as of single requests: both share answers."""
        return self.live.effective(sampling)

    async def __aenter__(self) -> Self:
        """Open the endpoint. Raises UserError where no server listens at the address."""
        await self.live.check_reachable()
        self._client.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections; the batches go on."""
        await self._client.close()

    async def server_report(self) -> ServerReport | None:
        """What the server says about the model."""
        async with aclosing(self.live.new_client()) as client:
            return await self.live.read_report(client)

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[_Result]:
        """Send requests in batches, except those that are in a batch already, and wait for all results."""
        results: asyncio.Queue[_Result | None] = asyncio.Queue()
        work = asyncio.create_task(self._work(requests, results))
        work.add_done_callback(lambda _: results.put_nowait(None))
        try:
            while (result := await results.get()) is not None:
                yield result
            await work
        finally:
            work.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await work
            self._progress.end()

    async def _work(self, requests: Sequence[Request], results: asyncio.Queue[_Result | None]) -> None:
        index = {request.key: number for number, request in enumerate(requests)}

        async def put(key: str, result: Answer | Failure) -> None:
            await results.put((index[key], self.live.redact(result)))

        assert self._journal is not None, "used before connect"
        follower = Follower(self._client, self._journal, self.settings, self._progress, put, self.host)
        async with asyncio.TaskGroup() as tasks:
            held = set[str]()
            for batch in await self._journal.find(list(index)):
                held |= batch.keys
                if batch.address == self.live.address:
                    self._tell(f"{self.host}: fetching {_about(batch)}")
                    tasks.create_task(follower.follow(batch))
                else:
                    await self._journal.leave(batch, list(batch.keys))
                    await _refuse(batch, put)
            new = [request for request in requests if request.key not in held]
            async for batch in self._submit(new, put):
                tasks.create_task(follower.follow(batch, is_new=True))

    async def _submit(
        self, requests: Sequence[Request], put: Callable[[str, Answer | Failure], Any]
    ) -> AsyncIterator[OpenBatch]:
        """Upload requests file by file; yields the batches that the journal has from then on."""
        assert self._journal is not None
        with TemporaryDirectory(prefix="sightline-batch-") as folder:
            async for file in input_files(requests, self.live.encode, self.settings, Path(folder)):
                if isinstance(file, Unwritable):
                    await put(file.key, file.failure)
                    continue
                self._progress.say(f"uploading {_size(file)}")
                try:
                    uploaded = await self._client.upload(file.path)
                except CallFailedError as error:
                    for key in file.keys:
                        await put(key, error.failure)
                    continue
                finally:
                    self._progress.say("")
                    file.path.unlink()
                batch = await self._journal.add(self.live.address, uploaded, file.keys)
                if batch is None:
                    reason = "another process has sent some of these requests"
                    for key in file.keys:
                        await put(key, Failure("transient", f"{self.host}: {reason}"))
                    continue
                self._tell(f"{self.host}: batch of {_size(file)}")
                yield batch


async def _refuse(batch: OpenBatch, put: Callable[[str, Answer | Failure], Any]) -> None:
    """The result of requests in a batch at another address of the same model."""
    message = f"the request is in a batch at {batch.address}: run the command with this address to fetch it"
    for key in batch.keys:
        await put(key, Failure("transient", message, LATER))


def _size(file: InputFile) -> str:
    return f"{counted(len(file.keys), 'request')}, {file.bytes / 1e6:,.1f} MB"


def _about(batch: OpenBatch) -> str:
    hours, minutes = divmod(int(max(0.0, time.time() - batch.created)) // 60, 60)
    name = batch.batch or f"the batch of {batch.file}"
    return f"{name} ({counted(batch.requests, 'request')}, sent {hours}:{minutes:02} h ago)"
