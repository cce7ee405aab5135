"""The open models of a run: each is opened at its first use."""

from __future__ import annotations

from contextlib import AsyncExitStack

from sightline.models.base import Model


class OpenModels:
    """Opens each model at its first use; `stack` closes the models."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._models: list[Model] = []

    async def open(self, model: Model) -> None:
        """Open a model that is not open yet.

        Args:
            model: The model.

        Raises:
            UserError: The model cannot be used at all (no server, no file).
        """
        if not any(model is other for other in self._models):
            await self._stack.enter_async_context(model)
            self._models.append(model)
