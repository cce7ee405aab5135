"""The base class of models without a connection and without sampling, such as `replay` and `baseline`."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from sightline.models.base import Capabilities, Model


class OfflineModel(Model):
    """The members of `Model` that are the same for every model that answers without a connection."""

    batch_size = 256
    parallel: int | None = None
    capabilities = Capabilities()

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """Drop all options, because none changes an answer."""
        return {}

    async def __aenter__(self) -> Self:
        """Open nothing."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close nothing."""
