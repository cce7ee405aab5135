"""A local model as the engine sees it: windows of requests in, answers out as each batch is done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from threading import Event, Lock, Semaphore
from types import TracebackType
from typing import Any, Self, TypeVar

from sightline.errors import EnvironmentFailedError, UserError
from sightline.models.local import cpu
from sightline.models.local.args import LocalArgs, effective
from sightline.models.local.attachment import Attachment
from sightline.models.local.batches import alike, chunks
from sightline.models.local.checkpoint import read_checkpoint
from sightline.models.local.encode import Encoded, Encoder
from sightline.models.local.generate import generate
from sightline.models.local.likelihood import weigh
from sightline.models.local.load import Loaded, is_out_of_memory, load
from sightline.models.local.processor import first_line
from sightline.types import Answer, Failure, Request

IndexedResult = tuple[int, Answer | Failure]
T = TypeVar("T")

WORKERS = 2
"""Chunks of requests in work at a time."""


class LocalModel:
    """A checkpoint in a folder, run by transformers in this process.

    All work is done by two threads, so that the event loop stays free for progress and Ctrl-C, and one chunk
    of requests is prepared while another is computed. `version` is what the answers carry as the model's name
    for itself: the folder's name, which for a model of the Hugging Face Hub is its commit.
    """

    host = "local"
    batch_size = 256
    parallel: int | None = 1

    def __init__(
        self,
        folder: Path,
        *,
        name: str,
        args: LocalArgs | None = None,
        version: str | None = None,
        attachment: Attachment | None = None,
    ) -> None:
        """Raises UserError where the folder lacks config, processor, weights or the template asked for, and
        for an attachment of another model; loads nothing yet."""
        self.args = args or LocalArgs()
        self.checkpoint = read_checkpoint(folder, self.args)
        if self.args.template == "chat" and self.checkpoint.chat_template is None:
            raise UserError(
                "--model-arg template=chat: its processor has no chat template",
                file=folder,
                expected="template=plain, or without it",
            )
        self._version = version or folder.resolve().name
        self._most = self.args.batch
        self._stop = Event()
        self._encoding = Lock()
        self.name = name
        self.capabilities = self.checkpoint.capabilities
        # Another template is another question: it is part of whose answers these are.
        template = "" if self.args.template == "auto" else f" template {self.args.template}"
        self.identity = self.checkpoint.identity() + template
        self._attachment = attachment
        if attachment is not None:
            attachment.refuse_other(self.identity)
            self.identity += f" adapter {attachment.identity}"

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """What of the options has a part in the answer. Raises UserError for one that does not exist."""
        return effective(sampling)

    def caution(self, folder: Path) -> str:
        """What to tell of data in a folder before it is asked about; '' where there is nothing."""
        return self._attachment.caution(folder) if self._attachment is not None else ""

    async def __aenter__(self) -> Self:
        """Load the model. Raises UserError where that cannot be done on this machine."""
        self._threads = ThreadPoolExecutor(WORKERS, "sightline-local")
        try:
            self._loaded, self._computing = await self._in_thread(self._load)
        except BaseException:
            self._threads.shutdown(wait=False)
            raise
        self._encoder = Encoder(self._loaded, self.args.template)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the batch that is under way, cut off where nobody waits for it, and let go of memory."""
        self._stop.set()
        await asyncio.to_thread(self._threads.shutdown)
        if self._loaded.device.type == "cpu":
            cpu.release()
        del self._loaded, self._encoder

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[IndexedResult]:
        """Answer requests in batches of like ones; each chunk of them is handed over when it is done."""
        # Of its own for each window: one that was given up must not cut off the next.
        self._stop = stop = Event()
        waiting = chunks(requests, self._most)
        running: set[asyncio.Future[list[IndexedResult]]] = set()
        try:
            while True:
                for chunk in islice(waiting, WORKERS - len(running)):
                    running.add(self._in_thread(self._answers, requests, chunk, stop))
                if not running:
                    return
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for part in done:
                    for result in part.result():
                        yield result
        except BaseException:
            # Whoever waited is gone: what the threads are at is cut off at its next token.
            stop.set()
            for part in running:
                part.add_done_callback(_let_go)
            raise

    def _in_thread(self, work: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    def _load(self) -> tuple[Loaded, Semaphore]:
        """The model, and how many batches it computes at a time: two on processors, which share them, one
        elsewhere, while the next is prepared."""
        loaded = load(self.checkpoint, self.args)
        if self._attachment is not None:
            loaded = self._attachment.attach(loaded)
        if loaded.device.type != "cpu":
            return loaded, Semaphore(1)
        cpu.occupy(WORKERS)
        return loaded, Semaphore(WORKERS)

    def _answers(self, requests: Sequence[Request], chunk: Sequence[int], stop: Event) -> list[IndexedResult]:
        """The answers to some of the requests, and why others cannot be asked."""
        encoded: list[tuple[int, Encoded]] = []
        found: list[IndexedResult] = []
        with self._encoding:
            for place in chunk:
                one = self._encode(requests[place])
                if isinstance(one, Failure):
                    found.append((place, one))
                else:
                    encoded.append((place, one))
        with self._computing:
            for batch in alike(encoded):
                for part in self._fitting(batch, stop):
                    found += part
        return found

    def _encode(self, request: Request) -> Encoded | Failure:
        """What the model is given, or why it cannot be asked."""
        if self._attachment is not None and (reason := self._attachment.refusal(request)):
            return Failure("permanent", reason)
        return self._encoder.encode(request)

    def _fitting(self, batch: list[tuple[int, Encoded]], stop: Event) -> Iterator[list[IndexedResult]]:
        """The answers of a batch, in halves where memory does not suffice for it or a request of it fails."""
        waiting = [batch]
        while waiting:
            part = waiting.pop(0)
            answers = self._run([one for _, one in part], stop)
            if isinstance(answers, list):
                yield [(place, answer) for (place, _), answer in zip(part, answers, strict=True)]
            elif len(part) == 1:
                yield [(part[0][0], answers)]
            else:
                half = len(part) // 2
                waiting[:0] = [part[:half], part[half:]]

    def _run(self, batch: Sequence[Encoded], stop: Event) -> list[Answer] | Failure:
        """The answers of a batch, or why there are none; EnvironmentFailedError where the device is lost."""
        try:
            if batch[0].request.choices:
                return weigh(self._loaded, batch, self._version)
            return generate(self._loaded, batch, stop, self._version)
        # Models fail in their own ways on what they cannot take, and must lose nothing but that.
        except Exception as error:
            if is_out_of_memory(error):
                self._most = min(self._most, max(1, len(batch) // 2))
                failure = Failure("permanent", f"{self.name}: memory does not suffice for this request")
            elif "CUDA error" in str(error):
                raise EnvironmentFailedError(
                    f"{self.name}: the device is lost: {first_line(error)}"
                ) from error
            else:
                what = f"{type(error).__name__}: {first_line(error)}"
                failure = Failure("permanent", f"{self.name} cannot answer this request ({what})")
        _free(self._loaded)
        return failure


def _let_go(part: asyncio.Future[list[IndexedResult]]) -> None:
    """Nobody asks any more what came of it."""
    if not part.cancelled():
        part.exception()


def _free(loaded: Loaded) -> None:
    """Give back what is held of the device's memory for later."""
    import torch

    if loaded.device.type == "cuda":
        torch.cuda.empty_cache()
