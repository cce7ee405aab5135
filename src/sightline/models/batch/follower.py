"""Follows batches to their end: finds or creates each, waits for it, and reads its results."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from sightline.config import BatchSettings
from sightline.errors import UserError
from sightline.models.batch.client import ENDED, Batch, BatchClient, BatchError, CallFailedError
from sightline.models.batch.open_batch import Journal, OpenBatch
from sightline.models.batch.progress import BatchProgress
from sightline.models.batch.result_lines import read_line
from sightline.types import Answer, Failure

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
        try:
            try:
                batch = await self._wait(record, is_new=is_new)
            except CallFailedError:
                await self._journal.leave(record, list(waiting))
                raise
            await self._journal.leave(record, list(waiting))
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
        """Wait until a batch has ended."""
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
