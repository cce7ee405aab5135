"""What models share that call nobody: nothing to open, no sampling option that matters."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from sightline.models.base import Capabilities


class Offline:
    """The part of a model that is the same for all that answer by themselves."""

    batch_size = 256
    parallel: int | None = None
    capabilities = Capabilities()

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """No option matters."""
        return {}

    async def __aenter__(self) -> Self:
        """Nothing to get ready."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to let go of."""
