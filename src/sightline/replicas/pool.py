"""A model whose replicas share its requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec.structs import replace

from sightline.models.base import Model
from sightline.replicas.base import Launcher
from sightline.replicas.fleet import Fleet
from sightline.replicas.kept import leave_fleet, take_fleet
from sightline.types import Answer, Failure, Request


class ReplicaPool(Model):
    """A model that replicas answer for, with the identity and the options of the model itself."""

    batch_size = 1
    parallel: int | None = None

    def __init__(
        self,
        model: Model,
        launcher: Launcher,
        key: Hashable = None,
        script: str = "",
        concurrency: int | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            concurrency: The most requests that a replica has in flight; None for no limit.
        """
        self.name = model.name
        self.identity = model.identity
        self.host = f"{model.name} on {launcher.place}"
        self.capabilities = replace(model.capabilities, endpoint=False, replicas=launcher.replicas)
        self.script = script
        self._model = model
        self._launcher = launcher
        self._key = key
        self._concurrency = concurrency

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """Translate options as the model does."""
        return self._model.effective(sampling)

    def training_overlap(self, folder: Path) -> str:
        """Check as the model does whether it was trained on the data."""
        return self._model.training_overlap(folder)

    async def __aenter__(self) -> Self:
        """Start the replicas and wait for the first one. Raises UserError if none can start."""
        self._fleet = await take_fleet(self._key, Fleet(self.name, self._launcher, self._concurrency))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the replicas, or keep them for the next evaluation."""
        await leave_fleet(self._key, self._fleet)

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        """Send each request to the replica with the fewest requests in flight."""
        for index, request in enumerate(requests):
            yield index, await self._fleet.answer(request)
