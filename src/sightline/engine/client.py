"""Asking a chat model outside of an evaluation, as a builder does: remembered like every call."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self, cast

from msgspec import Struct, field
from msgspec.structs import replace

from sightline.config import load_config
from sightline.engine.budget import Budget
from sightline.engine.counts import Counts
from sightline.engine.keys import KeyedRequest, with_key
from sightline.engine.limiter import Limiter
from sightline.engine.retry import is_settled
from sightline.engine.runner import Runner, RunnerOptions
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.images import transform_for
from sightline.models.argument_checks import refuse_protocol_fields
from sightline.models.base import Model
from sightline.models.resolve import ModelOptions, resolve
from sightline.progress import request_progress
from sightline.types import ImageFile, Message, Request


class ClientOptions(Struct, frozen=True, kw_only=True):
    """Whom to ask and how, in the words of `run`'s options."""

    model: str
    gen: Mapping[str, Any] = field(default_factory=dict)
    model_arg: Mapping[str, Any] = field(default_factory=dict)
    model_id: str | None = None
    store: str = "sightline.db"
    concurrency: int = 64
    max_requests: int | None = None
    max_cost: float | None = None
    retry_errors: bool = False
    config: str | None = None
    fresh: str = ""
    keyless: bool = False
    """Whether no key is needed, because nothing will be asked."""


class ModelClient:
    """One model, asked within one budget. `counts` tells what has happened over all that was asked."""

    def __init__(self, asking: ClientOptions, sampling: Mapping[str, Any]) -> None:
        """`sampling` are the defaults, which `asking.gen` overrides; None leaves an option out.

        Raises UserError where the model, an option or a number is wrong; nothing is sent or written.
        """
        _check(asking)
        config = load_config(asking.config)
        options = ModelOptions(config, asking.model_arg, asking.model_id, keyless=asking.keyless)
        self._models: Sequence[Model] = resolve(asking.model, options)
        self._asking = asking
        price = config.price(asking.model)
        if asking.max_cost is not None and price is None:
            raise UserError(
                f"--max-cost without a price for {asking.model}",
                expected=f'[prices."{asking.model}"] prompt and completion, per million tokens',
            )
        wanted = {**sampling, **asking.gen}
        self.sampling = self._models[0].effective({k: v for k, v in wanted.items() if v is not None})
        self.identity = self._models[0].identity
        self.capabilities = self._models[0].capabilities
        self.counts = Counts()
        self._budget = Budget(asking.max_requests, asking.max_cost, price)
        self._limiters = {model.host: Limiter(model.host, asking.concurrency) for model in self._models}

    @property
    def description(self) -> dict[str, Any]:
        """What decides the replies, for a manifest or a result."""
        fresh = {"fresh": self._asking.fresh} if self._asking.fresh else {}
        return {"model": self._asking.model, "identity": self.identity, "sampling": self.sampling, **fresh}

    @contextmanager
    def store(self, *, only_read: bool = False) -> Iterator[Store]:
        """The store; where it is only read and is not there, an empty one that leaves nothing behind."""
        url = self._asking.store
        with tempfile.TemporaryDirectory() as scratch:
            there = not only_read or "://" in url or Path(url).exists()
            store = Store.open(url if there else f"{scratch}/none.db")
            try:
                yield store
            finally:
                store.close()

    def keyed(
        self, messages: tuple[Message, ...], draw: int = 0, images: Sequence[ImageFile] = ()
    ) -> KeyedRequest:
        """A request; `draw` tells a second chance from the first, `images` are those in the messages."""
        limits = self.capabilities.limits
        shown = {file.path: replace(file, transform=transform_for(file, limits)) for file in images}
        request = Request("", messages, self.sampling, shown, draw)
        return with_key(request, self.identity, self._asking.fresh)

    @asynccontextmanager
    async def kept_open(self) -> AsyncIterator[None]:
        """Within it a model that was opened to ask stays open: it is loaded once for several asks."""
        models = self._models
        async with AsyncExitStack() as opened:
            self._models = [cast("Model", _KeptOpen(model, opened)) for model in models]
            try:
                yield
            finally:
                self._models = models

    async def ask(
        self, store: Store, requests: Sequence[KeyedRequest], title: str, *, show_progress: bool
    ) -> None:
        """Ask all that is not known, within what is left of the budget (`counts.stopped` tells its end).

        Raises EnvironmentFailedError where the store fails. Cancelled, it keeps everything answered so far.
        """
        self.counts.total += len({keyed.request.key for keyed in requests})
        runner = Runner(
            store,
            self._models,
            self._limiters,
            RunnerOptions(self._asking.concurrency, self._budget, self._asking.retry_errors),
            self.counts,
        )
        async with request_progress(title, self.counts, show_progress=show_progress):
            await runner.run(requests)

    def settled(self, store: Store, requests: Sequence[KeyedRequest]) -> set[str]:
        """The keys of those requests that would not be asked, because what came of them is known."""
        known = store.look_up([keyed.request.key for keyed in requests])
        return {key for key, result in known.items() if is_settled(result, self._asking.retry_errors)}


class _KeptOpen:
    """A model that is opened where it is first needed, and closed with `opened`."""

    def __init__(self, model: Model, opened: AsyncExitStack) -> None:
        self._model = model
        self._opened = opened
        self._is_open = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def __aenter__(self) -> Self:
        if not self._is_open:
            await self._opened.enter_async_context(self._model)
            self._is_open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        """It stays open."""


def _check(asking: ClientOptions) -> None:
    if asking.concurrency < 1:
        raise UserError(f"--concurrency {asking.concurrency} is no count", expected="at least 1")
    for name, number in (("--max-requests", asking.max_requests), ("--max-cost", asking.max_cost)):
        if number is not None and number < 0:
            raise UserError(f"{name} {number} is negative", expected="0 or more")
    refuse_protocol_fields(asking.gen)
