"""A local model as a back end of the engine: windows of requests in, answers out after each batch."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from threading import Event, Lock, Semaphore, Thread
from typing import Any, NamedTuple, Protocol, Self, TypeVar, cast

from sightline.errors import EnvironmentFailedError, UserError
from sightline.models.base import Model
from sightline.models.local.encode import Encoded, Encoder, compatible_batches, similar_chunks
from sightline.models.local.generate import generate, score_choices
from sightline.models.local.load import (
    Loaded,
    LocalArgs,
    effective,
    first_line,
    is_out_of_memory,
    load,
    read_checkpoint,
    too_large,
)
from sightline.text import print_note
from sightline.types import Answer, Failure, Request

IndexedResult = tuple[int, Answer | Failure]
T = TypeVar("T")


class _Failed(NamedTuple):
    """Why a batch has no answers, and whether memory did not suffice for it."""

    failure: Failure
    lacked_memory: bool


WORKERS = 2
"""Chunks of requests that are processed at the same time."""


class LocalModel(Model):
    """A checkpoint in a folder, run by transformers in this process.

    Two threads do all work, so that the event loop stays responsive, and one chunk of requests is prepared
    while another is computed.
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
        """Check the folder; nothing is loaded yet.

        Args:
            args: The user's arguments, None for the defaults.
            version: The model's version in answers; None: the folder's name, on the Hugging Face Hub its
                commit.
            attachment: A trained adapter, None for none.
        """
        self.args = args or LocalArgs()
        self.checkpoint = read_checkpoint(folder, self.args)
        if self.args.template == "chat" and self.checkpoint.chat_template is None:
            raise UserError(
                "--model-arg template=chat: its processor has no chat template",
                file=folder,
                expected="template=plain, or without it",
            )
        self._version = version or folder.resolve().name
        self._max_batch = self.args.batch
        self._stop = Event()
        self._encoding = Lock()
        self.name = name
        self.capabilities = self.checkpoint.capabilities
        # Another template gives other prompts, so it is part of the identity.
        template = "" if self.args.template == "auto" else f" template {self.args.template}"
        self.identity = self.checkpoint.identity() + template
        self._attachment = attachment
        if attachment is not None:
            attachment.check_base(self.identity)
            self.identity += f" adapter {attachment.identity}"

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        return effective(sampling)

    def training_overlap(self, folder: Path) -> str:
        return self._attachment.training_overlap(folder) if self._attachment is not None else ""

    async def __aenter__(self) -> Self:
        self._threads = ThreadPoolExecutor(WORKERS, "sightline-local")
        try:
            self._loaded, self._computing = await _in_daemon_thread(self._load)
        except BaseException:
            self._threads.shutdown(wait=False)
            raise
        self._encoder = Encoder(self._loaded, self.args.template)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Wait for the current batch, which is cut off if nobody waits for it, and free the memory."""
        self._stop.set()
        await asyncio.to_thread(self._threads.shutdown)
        if self._loaded.device.type == "cpu":
            release()
        del self._loaded, self._encoder

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[IndexedResult]:
        """Answer requests in batches of similar ones; each chunk is returned when it is done."""
        # A new event for each window: cancelling one must not cut off the next.
        self._stop = stop = Event()
        waiting = similar_chunks(requests, self._max_batch)
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
            # Nobody waits any more: the threads stop at the next token.
            stop.set()
            for part in running:
                part.add_done_callback(_ignore_result)
            raise

    def _in_thread(self, work: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    def _load(self) -> tuple[Loaded, Semaphore]:
        """The model, and how many batches it computes at a time: two on processors, which share the threads
        (one if there is one thread only), one elsewhere, while the next is prepared.
        """
        loaded = load(self.checkpoint, self.args)
        if self._attachment is not None:
            loaded = self._with_adapter(self._attachment, loaded)
        if loaded.device.type != "cpu":
            return loaded, Semaphore(1)
        return loaded, Semaphore(share_threads(WORKERS))

    def _with_adapter(self, attachment: Attachment, loaded: Loaded) -> Loaded:
        try:
            return attachment.attach(loaded)
        except Exception as error:
            if is_out_of_memory(error):
                why = f"{loaded.device} has too little memory for its adapter"
                raise too_large(self.checkpoint, why) from error
            raise

    def _answers(self, requests: Sequence[Request], chunk: Sequence[int], stop: Event) -> list[IndexedResult]:
        encoded: list[tuple[int, Encoded]] = []
        results: list[IndexedResult] = []
        with self._encoding:
            for position in chunk:
                inputs = self._encode(requests[position])
                if isinstance(inputs, Failure):
                    results.append((position, inputs))
                else:
                    encoded.append((position, inputs))
        with self._computing:
            for batch in compatible_batches(encoded):
                for part in self._answers_of_batch(batch, stop):
                    results += part
        return results

    def _encode(self, request: Request) -> Encoded | Failure:
        if self._attachment is not None and (reason := self._attachment.refusal(request)):
            return Failure("permanent", reason)
        return self._encoder.encode(request)

    def _answers_of_batch(
        self, batch: list[tuple[int, Encoded]], stop: Event
    ) -> Iterator[list[IndexedResult]]:
        """The answers of a batch; it is halved if memory does not suffice, or one of its requests fails."""
        waiting, largest, lacked_memory = [batch], 0, False
        while waiting:
            part = waiting.pop(0)
            answers = self._run([inputs for _, inputs in part], stop)
            if isinstance(answers, _Failed):
                lacked_memory |= answers.lacked_memory
            else:
                largest = max(largest, len(part))
                yield [(position, answer) for (position, _), answer in zip(part, answers, strict=True)]
                continue
            if len(part) == 1:
                yield [(part[0][0], answers.failure)]
            else:
                half = len(part) // 2
                waiting[:0] = [part[:half], part[half:]]
        if lacked_memory and 0 < largest < self._max_batch:
            # What fits now, so that one huge request does not make all later batches as small as itself.
            self._max_batch = largest
            print_note(
                f"{self.name}: too little memory for {len(batch)} requests at a time;"
                f" from now on {largest} (--model-arg batch={largest})"
            )

    def _run(self, batch: Sequence[Encoded], stop: Event) -> list[Answer] | _Failed:
        """The answers of a batch, or why there are none; EnvironmentFailedError if the device is lost."""
        try:
            if batch[0].request.choices:
                return score_choices(self._loaded, batch, self._version)
            return generate(self._loaded, batch, stop, self._version)
        # Models raise many types of errors for unsupported requests; only that request fails.
        except Exception as error:
            lacked_memory = is_out_of_memory(error)
            if lacked_memory:
                failure = Failure("permanent", f"{self.name}: not enough memory for this request")
            elif "CUDA error" in str(error):
                raise EnvironmentFailedError(
                    f"{self.name}: the device is lost: {first_line(error)}"
                ) from error
            else:
                what = f"{type(error).__name__}: {first_line(error)}"
                failure = Failure("permanent", f"{self.name} cannot answer this request ({what})")
        _free(self._loaded)
        return _Failed(failure, lacked_memory)


async def _in_daemon_thread(work: Callable[[], T]) -> T:
    """Run work that cannot be cut off in a thread that the end of the program does not wait for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(cast("T", result))

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    Thread(target=run, name="sightline-load", daemon=True).start()
    return await done


def _ignore_result(part: asyncio.Future[list[IndexedResult]]) -> None:
    """Retrieve an error that nobody waits for."""
    if not part.cancelled():
        part.exception()


def _free(loaded: Loaded) -> None:
    import torch

    if loaded.device.type == "cuda":
        torch.cuda.empty_cache()


# -- The interface of adapters, which put vectors before prompts or change layers of a loaded model


class Attachment(Protocol):
    """A trained adapter; `identity` becomes part of the model's identity."""

    identity: str

    def check_base(self, base: str) -> None:
        """Check that the adapter was trained on this model."""

    def refusal(self, request: Request) -> str:
        """Check whether a request may be sent."""

    def training_overlap(self, folder: Path) -> str:
        """Check whether data was made from images of the training."""

    def attach(self, loaded: Loaded) -> Loaded:
        """Attach the adapter."""


def language_model(loaded: Loaded) -> Any:
    """Find the language model within a model; None if there is no separate one."""
    for parent in (loaded.model, loaded.model.base_model):
        for name in ("language_model", "text_model"):
            if (module := getattr(parent, name, None)) is not None:
                return module
    return None


def embedding_receiver(loaded: Loaded) -> Any:
    """Find the part that receives the embeddings of a whole prompt, images included.

    Returns the language model, or its encoder if it has one; None if there is no such part.
    """
    module = language_model(loaded)
    return module.get_encoder() if loaded.is_seq2seq and module is not None else module


# -- Threads and memory of this machine's processor, set for the whole process while a model runs on it

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""glibc's numbers of these options: malloc.h, M_TRIM_THRESHOLD and M_MMAP_THRESHOLD."""

_KEEP_BYTES = 1 << 30
"""Bytes that malloc keeps: more than the memory that one layer frees."""


def share_threads(most: int) -> int:
    """Divide the processor's threads among parallel batches, and keep freed memory."""
    import torch

    batches = min(most, _threads())
    torch.set_num_threads(_threads() // batches)
    _keep_memory()
    return batches


def release() -> None:
    import torch

    torch.set_num_threads(_threads())


@cache
def _threads() -> int:
    """torch's default number of threads, cached because torch later reports the number that was set."""
    import torch

    return torch.get_num_threads()


def _keep_memory() -> None:
    """Let malloc keep the memory that tensors free.

    glibc returns it to the system at each layer and takes it back at the next, page by page; with two
    batches at work each waits for the other's pages. Other C libraries have no such setting.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_TRIM_THRESHOLD, _KEEP_BYTES)
    mallopt(_MMAP_THRESHOLD, _KEEP_BYTES)
