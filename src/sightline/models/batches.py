"""A model whose requests are sent in batches: uploaded in files, answered by the provider within a day.

Batches outlive the process. The journal says which requests are in which batch, so that a batch that an
earlier process created, on this machine or another one, is fetched instead of paid for again.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from msgspec.structs import replace

from sightline.config import BatchSettings
from sightline.errors import UserError
from sightline.models.base import Model, ServerReport
from sightline.models.batch_client import (
    ENDED,
    Batch,
    BatchClient,
    BatchError,
    CallFailedError,
    InputFile,
    Journal,
    OpenBatch,
    Unwritable,
    input_files,
    read_line,
)
from sightline.models.openai import OpenAICompatible
from sightline.text import counted
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

    async def __aexit__(self, *_: object) -> None:
        """Close the connections; the batches go on."""
        await self._client.close()

    async def server_report(self) -> ServerReport | None:
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


# -- Follows batches to their end: finds or creates each, waits for it, and reads its results

SLOWER = 1.5
"""How much longer each pause between two looks is than the one before."""
OUTAGE_SECONDS = 3600.0
"""How long a provider may not reply, before the run leaves its batches to the next run."""
LATER = 2 * 86400.0
"""A pause that no run waits for."""
READ_ATTEMPTS = 5
PAYMENT = 402
NO_ROOM = ("token_limit_exceeded", "rate_limit_exceeded")
"""Why a provider refuses a file that it takes when other batches have ended."""

Put = Callable[[str, Answer | Failure], Awaitable[None]]


class Follower:
    """Follows the batches of one endpoint. Belongs to one event loop."""

    def __init__(
        self,
        client: BatchClient,
        journal: Journal,
        settings: BatchSettings,
        progress: BatchProgress,
        put: Put,
        host: str,
    ) -> None:
        self._client = client
        self._journal = journal
        self._settings = settings
        self._progress = progress
        self._put = put
        self._host = host
        self._has_answered = False

    async def follow(self, record: OpenBatch, *, is_new: bool = False) -> None:
        """Give each request of a batch its result.

        Requests without an answer leave the journal before they get their failure: they may be sent again.
        If the provider cannot be reached, they stay there for the next run.
        """
        waiting = set(record.keys)
        while (reserved := await self._journal.reserve(record)) is None:
            await asyncio.sleep(self._settings.slowest_poll)
        record = reserved
        try:
            batch = await self._wait(record, is_new=is_new)
            await self._read(record, batch, waiting)
        except CallFailedError as error:
            failure = Failure(error.failure.kind, error.failure.message, LATER, error.failure.status)
            if failure.kind == "transient" and failure.status != 404:
                for key in waiting:
                    await self._put(key, failure)
            else:
                await self._fail(record, dict.fromkeys(waiting, _gone(failure)))
        finally:
            self._progress.done(record.number)
            await self._journal.release(record)

    async def _wait(self, record: OpenBatch, *, is_new: bool) -> Batch:
        """Find or create a batch, and wait until it has ended; again if the provider had no room for it."""
        while True:
            batch = await self._ended(record, await self._find_or_create(record, is_new=is_new))
            if batch.status != "failed" or not _lacks_room(batch.problems):
                return batch
            is_new = False
            await self._journal.record_id(record.number, None)
            await self._wait_for_room(_text(batch.problems))

    async def _find_or_create(self, record: OpenBatch, *, is_new: bool) -> Batch:
        """The batch of a record; created from its file if the provider does not have it."""
        if record.batch is not None:
            with_id = await self._client.retrieve(record.batch)
            if not (with_id.status == "failed" and _lacks_room(with_id.problems)):
                return with_id
        found = None if is_new else await self._client.find(record.file, record.created)
        # A process may have been killed while the provider created the batch, which its list shows later.
        rest = record.created + self._settings.appears - time.time()
        if found is None and not is_new and rest > 0:
            await asyncio.sleep(min(rest, self._settings.appears))
            found = await self._client.find(record.file, record.created)
        if found is None:
            try:
                found = await self._create(record)
            finally:
                self._progress.say("")
        await self._journal.record_id(record.number, found.id)
        return found

    async def _create(self, record: OpenBatch) -> Batch:
        """Create a batch, again while the provider has no room for it or does not reply."""
        found, may_exist = None, False
        pause, silent_since = self._settings.poll, time.monotonic()
        while found is None:
            try:
                found = await self._client.find(record.file, record.created) if may_exist else None
                found = found or await self._client.create(record.file)
            except CallFailedError as error:
                status = error.failure.status
                if error.failure.kind != "transient" or status in (PAYMENT, 404):
                    raise
                if status is not None and status < 500:
                    await self._wait_for_room(error.failure.message)
                    silent_since = time.monotonic()
                    continue
                if time.monotonic() - silent_since > OUTAGE_SECONDS:
                    raise
                self._progress.say(f"{self._host} creates no batch for now: {error.failure.message[:120]}")
                # The provider may have created it, and its list shows it later.
                may_exist = True
                await asyncio.sleep(max(pause, self._settings.appears))
                pause = self._slower(pause)
        return found

    async def _wait_for_room(self, reason: str) -> None:
        """Wait until other batches may have ended."""
        self._progress.say(f"{self._host} takes no more batches for now: {reason[:120]}")
        await asyncio.sleep(self._settings.slowest_poll)
        self._progress.say("")

    async def _ended(self, record: OpenBatch, batch: Batch) -> Batch:
        pause, state, silent_since = self._settings.poll, "", time.monotonic()
        while True:
            self._progress.see(record.number, batch)
            if batch.status != state:
                state = batch.status
                await self._journal.record_state(record.number, state)
            if state in ENDED:
                return batch
            await asyncio.sleep(pause)
            pause = self._slower(pause)
            try:
                batch = await self._client.retrieve(batch.id)
                silent_since = time.monotonic()
            except CallFailedError as error:
                passing = error.failure.kind == "transient" and error.failure.status != 404
                if not passing or time.monotonic() - silent_since > OUTAGE_SECONDS:
                    raise

    def _slower(self, pause: float) -> float:
        return min(pause * SLOWER, max(self._settings.poll, self._settings.slowest_poll))

    async def _read(self, record: OpenBatch, batch: Batch, waiting: set[str]) -> None:
        """Read the results of a batch that has ended; `waiting` loses the requests that have a result."""
        failures = dict[str, Failure]()
        for file in (batch.output_file_id, batch.error_file_id):
            if file is not None:
                await self._read_file(file, waiting, failures)
        failures |= await self._of_refused_lines(record, batch, waiting - failures.keys())
        reason = f"{self._host}: {batch.id} is {batch.status}, and has no result of this request"
        for key in waiting - failures.keys():
            failures[key] = Failure("transient", reason)
        waiting.clear()
        await self._fail(record, failures)
        if batch.status == "failed" and not self._has_answered and not _lines(batch.problems):
            raise UserError(
                f"{self._host} refuses the batch {batch.id}: {_text(batch.problems)}",
                expected="a model and options that this provider takes in batches, or no --batch",
            )

    async def _read_file(self, file: str, waiting: set[str], failures: dict[str, Failure]) -> None:
        """Read a file of results; `waiting` loses what was answered."""
        for attempt in range(READ_ATTEMPTS):
            try:
                async for line in self._client.lines(file):
                    found = read_line(line, self._host)
                    if found is None or found.key not in waiting or found.key in failures:
                        continue
                    if isinstance(found.result, Failure):
                        failures[found.key] = found.result
                        continue
                    waiting.discard(found.key)
                    self._has_answered = True
                    await self._put(found.key, found.result)
                return
            except CallFailedError as error:
                if attempt == READ_ATTEMPTS - 1 or error.failure.status == 404:
                    raise
                await asyncio.sleep(self._settings.poll)

    async def _of_refused_lines(
        self, record: OpenBatch, batch: Batch, unanswered: set[str]
    ) -> dict[str, Failure]:
        """The failures of requests for whose lines the provider refused the whole file."""
        if batch.status != "failed" or not (lines := _lines(batch.problems)):
            return {}
        keys = await self._keys_of_lines(record, lines)
        return {
            key: Failure("permanent", f"{self._host}: {problem.message or problem.code}")
            for key, problem in keys.items()
            if key in unanswered
        }

    async def _keys_of_lines(self, record: OpenBatch, lines: dict[int, BatchError]) -> dict[str, BatchError]:
        """The keys in some lines of an input file, which the provider still has."""
        found, number = dict[str, BatchError](), 0
        async for line in self._client.lines(record.file):
            number += 1
            if number in lines and (named := read_line(line, self._host)) is not None:
                found[named.key] = lines[number]
        return found

    async def _fail(self, record: OpenBatch, failures: dict[str, Failure]) -> None:
        """Give requests their failures; other batches may hold them from now on."""
        if failures:
            await self._journal.remove(record.number, list(failures))
        for key, failure in failures.items():
            await self._put(key, failure)


def _lines(problems: list[BatchError]) -> dict[int, BatchError]:
    return {problem.line: problem for problem in problems if problem.line is not None}


def _lacks_room(problems: list[BatchError]) -> bool:
    return any(problem.code in NO_ROOM for problem in problems)


def _text(problems: list[BatchError]) -> str:
    texts = [problem.message or problem.code or "" for problem in problems[:3]]
    return "; ".join(text for text in texts if text) or "it gives no reason"


def _gone(failure: Failure) -> Failure:
    """The failure of requests whose batch or results the provider does not have, or refuses to make."""
    return Failure("permanent", f"{failure.message}; --retry-errors asks again", status=failure.status)


# -- What a run says about its batches while it waits for them


class BatchProgress:
    """The state of the batches that a process follows, as one short text."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._batches: dict[int, Batch] = {}
        self._ended = 0
        self._event = ""

    def say(self, event: str) -> None:
        self._event = event
        self._update()

    def see(self, number: int, batch: Batch) -> None:
        self._batches[number] = batch
        self._update()

    def done(self, number: int) -> None:
        self._ended += self._batches.pop(number, None) is not None
        self._update()

    def end(self) -> None:
        self._batches.clear()
        self._ended, self._event = 0, ""
        self._update()

    def _update(self) -> None:
        batches = list(self._batches.values())
        parts = [self._event] if self._event else []
        if batches:
            states = Counter(batch.status for batch in batches)
            if self._ended:
                states["ended"] = self._ended
            states_text = ", ".join(f"{count} {state}" for state, count in states.items())
            total = sum(batch.counts.total for batch in batches)
            done = sum(batch.counts.completed + batch.counts.failed for batch in batches)
            parts.append(f"batches: {states_text}; {done:,} of {total:,} lines")
            if oldest := min((batch.created for batch in batches if batch.created), default=0.0):
                minutes = max(0, int(time.time() - oldest)) // 60
                parts.append(f"{minutes // 60}:{minutes % 60:02} h old")
        self._show(", ".join(parts))
