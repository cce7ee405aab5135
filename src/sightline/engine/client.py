"""A client for one model outside of an evaluation, as builders use it; every answer is cached."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from sightline.config import load_config
from sightline.engine.endpoint_check import NAMED_REMEDY, EndpointCheck
from sightline.engine.limits import CONCURRENCY, Account, Budget, Counts
from sightline.engine.runner import Runner, RunnerOptions, limiter_of
from sightline.engine.selector import OpenModels
from sightline.errors import UserError
from sightline.images import transform_for
from sightline.models.base import Model, check_request_limits, refuse_protocol_fields, refuse_unknown_sampling
from sightline.models.registry import ModelOptions
from sightline.progress import request_progress
from sightline.replicas.fleet import check_place, resolve_on
from sightline.store.answers import KeyedRequest, with_key
from sightline.store.database import run_in_thread
from sightline.store.store import Store, existing_or_empty_store
from sightline.text import load
from sightline.types import Answer, Failure, Fingerprint, ImageFile, ImageRef, Message, Request, user


class ClientOptions(Struct, frozen=True, kw_only=True):
    """The model and how it is called; the fields are named like the options of `run`."""

    model: str
    gen: Mapping[str, Any] = field(default_factory=dict)
    model_arg: Mapping[str, Any] = field(default_factory=dict)
    model_id: str | None = None
    store: str = "sightline.db"
    concurrency: int | None = None
    max_requests: int | None = None
    max_cost: float | None = None
    retry_errors: bool = False
    config: str | None = None
    fresh: str = ""
    on: str | None = None
    gen_any: bool = False
    fingerprint: Fingerprint = "on"
    accept_changed: bool = False
    keyless: bool = False


class RequestEstimate(Struct, frozen=True):
    """Requests that a builder would send; `image_bytes` is None if images are not counted."""

    cached: int
    to_send: int
    to_send_at_most: int
    image_bytes: int | None = None


class ModelClient:
    """One model within one budget. `counts` adds up everything that was sent.

    `account` is what was spent of the budget; a run replaces it by its own.
    """

    def __init__(self, options: ClientOptions, sampling: Mapping[str, Any]) -> None:
        """Nothing is sent yet; `options.gen` overrides `sampling`, where None omits an option."""
        check_request_limits(options.concurrency, options.max_requests, options.max_cost)
        refuse_protocol_fields(options.gen)
        config = load_config(options.config)
        model_options = ModelOptions(config, options.model_arg, options.model_id, keyless=options.keyless)
        self._models: Sequence[Model] = resolve_on(
            options.on, options.model, model_options, options.concurrency or CONCURRENCY
        )
        if options.on is not None:
            check_place(options.on, self._models)
        if not options.gen_any:
            refuse_unknown_sampling(self._models[0], options.gen, "--gen")
        self._options = options
        self._opened: OpenModels | None = None
        self._check: EndpointCheck | None = None
        if options.max_cost is not None:
            config.require_prices([options.model])
        requested = {**sampling, **options.gen}
        self.sampling = self._models[0].effective({k: v for k, v in requested.items() if v is not None})
        self.identity = self._models[0].identity
        self.capabilities = self._models[0].capabilities
        self.counts = Counts()
        self.account = Account()
        self._budget = Budget(options.max_requests, options.max_cost, config.price(options.model))
        self._limiters = {model.host: limiter_of(model, options.concurrency) for model in self._models}

    @property
    def notes(self) -> list[str]:
        return self._check.notes if self._check is not None else []

    @property
    def description(self) -> dict[str, Any]:
        fresh = {"fresh": self._options.fresh} if self._options.fresh else {}
        return {"model": self._options.model, "identity": self.identity, "sampling": self.sampling, **fresh}

    @contextmanager
    def store(self, *, only_read: bool = False) -> Iterator[Store]:
        if only_read:
            with existing_or_empty_store(self._options.store) as store:
                yield store
            return
        store = Store.open(self._options.store)
        try:
            yield store
        finally:
            store.close()

    def keyed(
        self, messages: tuple[Message, ...], draw: int = 0, images: Sequence[ImageFile] = ()
    ) -> KeyedRequest:
        limits = self.capabilities.limits
        transformed = {file.path: replace(file, transform=transform_for(file, limits)) for file in images}
        request = Request("", messages, self.sampling, transformed, draw)
        return with_key(request, self.identity, self._options.fresh)

    @asynccontextmanager
    async def keep_open(self) -> AsyncIterator[None]:
        """Keep the model open inside the block: it is loaded once for several calls of `ask`."""
        async with AsyncExitStack() as stack:
            self._opened = OpenModels(stack)
            try:
                yield
            finally:
                self._opened = None

    async def ask(
        self, store: Store, requests: Sequence[KeyedRequest], title: str, *, show_progress: bool
    ) -> None:
        """Send every request that the store cannot answer, within the rest of the budget.

        `counts.stopped` says whether the budget ended it. When cancelled, it keeps everything answered so
        far.
        """
        self.counts.total += len({keyed.request.key for keyed in requests})
        runner = Runner(
            store,
            self._models,
            self._limiters,
            RunnerOptions(
                self._options.concurrency, self._budget, self.account, retry_errors=self._options.retry_errors
            ),
            self.counts,
        )
        async with request_progress(title, self.counts, show_progress=show_progress):
            await runner.run(requests, self._opened, self._endpoint_check(store), partial(iter, requests))

    def _endpoint_check(self, store: Store) -> EndpointCheck | None:
        """The check of the model, which takes place once; None if there is nothing to check."""
        if self._options.fingerprint == "off" or not self.capabilities.endpoint:
            return None
        if self._check is None:
            self._check = EndpointCheck(
                store, self._models, NAMED_REMEDY, accept_changed=self._options.accept_changed
            )
        return self._check

    def settled(self, store: Store, requests: Sequence[KeyedRequest]) -> set[str]:
        keys = [keyed.request.key for keyed in requests]
        return store.answers.settled(keys, retry_errors=self._options.retry_errors)


# -- Captions of images, by any model that accepts images (CODIS, section 5.1)

SAMPLING: Mapping[str, Any] = {"temperature": 0, "max_tokens": 1024}
"""Sightline's own choice: the paper publishes none."""

EMPTY = "the reply is empty"


class Caption(Struct, frozen=True):
    """The description of an image, in one line; '' if there is none."""

    text: str = ""
    key: str = ""
    cut: bool = False
    missing: str = ""


class Captioner:
    """Describes images with a model."""

    def __init__(self, client: ModelClient, prompt: str | None = None, *, again: bool = False) -> None:
        """`prompt` is the text after each image; None: the prompt in engine/prompts.toml."""
        self.prompt: str = load(__package__)["caption"]["text"] if prompt is None else prompt
        if not self.prompt.strip():
            raise UserError("--prompt is empty", expected="a question about each image")
        if not client.capabilities.images:
            raise UserError("this model does not accept images", expected="a --model that accepts images")
        self.client = client
        self._again = again

    async def describe(
        self, files: Iterable[ImageFile], store: Store, *, show_progress: bool = False
    ) -> dict[str, Caption]:
        """Describe images; cached descriptions are not requested again.

        When cancelled, it keeps everything answered so far.

        Returns:
            Image digest -> description, or the reason why there is none.
        """
        distinct = {file.digest: file for file in files}
        requests = await run_in_thread(self._requests, distinct, store)
        await self.client.ask(store, requests, "captioning", show_progress=show_progress)
        stopped = self.client.counts.stopped
        return await run_in_thread(self.cached, distinct.values(), store, stopped=stopped)

    def cached(self, files: Iterable[ImageFile], store: Store, *, stopped: str = "") -> dict[str, Caption]:
        """Look up descriptions by image digest, or the reason why there is none; nothing is sent."""
        distinct = {file.digest: file for file in files}
        return {digest: _read(latest, stopped) for digest, latest in self._current(distinct, store).items()}

    def estimate(self, files: Iterable[ImageFile], store: Store) -> RequestEstimate:
        """Estimate what `describe` would send, a request per distinct image; nothing is sent or written."""
        distinct = {file.digest: file for file in files}
        requests = self._requests(distinct, store)
        settled = self.client.settled(store, requests)
        sent = [keyed.request for keyed in requests if keyed.request.key not in settled]
        size = sum(file.stamp[0] for request in sent for file in request.images.values())
        return RequestEstimate(len(distinct) - len(sent), len(sent), len(sent), size)

    def _requests(self, distinct: Mapping[str, ImageFile], store: Store) -> list[KeyedRequest]:
        """One request an image; one after an empty response only if cached, or `again` is set."""
        return [
            latest.keyed
            for latest in self._current(distinct, store).values()
            if latest.keyed.request.draw == 0 or latest.result is not None or self._again
        ]

    def _current(self, distinct: Mapping[str, ImageFile], store: Store) -> dict[str, _Current]:
        """The current request of each image: the first whose response is not empty."""
        current: dict[str, _Current] = {}
        pending, draw = dict(distinct), 0
        while pending:
            requests = {digest: self._keyed(file, draw) for digest, file in pending.items()}
            stored = store.answers.look_up([keyed.request.key for keyed in requests.values()])
            for digest, keyed in requests.items():
                current[digest] = _Current(keyed, stored.get(keyed.request.key))
                if not current[digest].is_empty:
                    del pending[digest]
            draw += 1
        return {digest: current[digest] for digest in distinct}

    def _keyed(self, file: ImageFile, draw: int) -> KeyedRequest:
        return self.client.keyed((user(ImageRef(file.path), self.prompt),), draw, [file])


class _Current(NamedTuple):
    """The current request of an image and its result, None if there is none yet."""

    keyed: KeyedRequest
    result: Answer | Failure | None

    @property
    def is_empty(self) -> bool:
        return isinstance(self.result, Answer) and not self.result.text.strip()


def _read(current: _Current, stopped: str) -> Caption:
    """The description in one line, because prompts have one line for it; reasoning is not part of it."""
    key = current.keyed.request.key
    if isinstance(current.result, Answer):
        return Caption(" ".join(current.result.text.split()), key, current.result.truncated)
    if isinstance(current.result, Failure):
        return Caption(key=key, missing=current.result.message)
    if current.keyed.request.draw:
        return Caption(key=key, missing=EMPTY)
    return Caption(key=key, missing="the budget is reached" if stopped == "budget" else "not asked")
