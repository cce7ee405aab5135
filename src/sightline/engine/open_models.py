"""The open models of a run: each is opened at its first use."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from sightline.engine.counts import Counts
from sightline.errors import UserError
from sightline.models.base import Model


class OpenModels:
    """Opens each model at its first use; `stack` closes the models. Several runners may share it."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._models: list[Model] = []
        self._opening = asyncio.Lock()

    async def open(self, model: Model) -> None:
        async with self._opening:
            if not any(model is other for other in self._models):
                await self._stack.enter_async_context(model)
                self._models.append(model)

    async def open_usable(self, models: Sequence[Model], counts: Counts) -> list[Model]:
        """Open the model at each of its hosts."""
        usable: list[Model] = []
        errors: list[UserError] = []
        for model in models:
            counts.loading = model.name
            try:
                await self.open(model)
                usable.append(model)
            except UserError as error:
                errors.append(error)
        counts.loading = ""
        if not usable:
            raise errors[0]
        counts.unavailable += [message for message in map(str, errors) if message not in counts.unavailable]
        return usable
