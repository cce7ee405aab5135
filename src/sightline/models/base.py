"""What the engine needs of a model, and nothing a benchmark needs to know."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from msgspec import Struct

from sightline.images import ImageLimits
from sightline.types import Answer, Failure, Request


class Capabilities(Struct, frozen=True):
    """What a model can take, checked before the first call.

    `likelihood`: it can say which of several answers it finds likeliest. `replays`: it answers by the name of
    a probe, whatever that shows.
    """

    images: bool = True
    several_images: bool = True
    system_role: bool = True
    seed: bool = True
    likelihood: bool = False
    replays: bool = False
    limits: ImageLimits = ImageLimits()


class Model(Protocol):
    """Something that answers requests.

    `identity` says whose answers these are: it enters every key. `host` is what shares a rate limit and
    fails as one; the engine keeps concurrency, retries and the circuit per host. `batch_size` is how many
    requests one call of `answer` takes (1 for an API), `parallel` how many calls it takes at a time (None:
    as many as are wanted).
    """

    name: str
    identity: str
    host: str
    batch_size: int
    parallel: int | None
    capabilities: Capabilities

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """What of the wanted sampling options is really sent; it enters the key."""
        ...

    async def __aenter__(self) -> Self:
        """Get ready; called only where something is to be asked.

        Raises UserError where the model cannot be used at all (no server, no file).
        """
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of everything."""
        ...

    def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        """Answer each request, in any order: its index in `requests`, and what came of it."""
        ...


@runtime_checkable
class Cautious(Protocol):
    """A model that may know the data already."""

    def caution(self, folder: Path) -> str:
        """What to tell of the data in a folder; '' where there is nothing."""
        ...
