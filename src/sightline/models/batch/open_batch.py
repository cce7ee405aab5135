"""What a model of batches needs to keep between runs: which requests are in which batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class OpenBatch(Struct, frozen=True, kw_only=True):
    """A batch whose answers are not all in the store.

    Attributes:
        batch: The provider's id of the batch; None if the batch may not exist.
        created: When the journal learned of it, in seconds since 1970.
    """

    number: int
    address: str
    file: str
    batch: str | None
    state: str
    requests: int
    created: float
    keys: frozenset[str] = frozenset()


class Journal(Protocol):
    """The batches at providers. It outlives the process, and others may use it at the same time."""

    async def add(self, address: str, file: str, keys: Sequence[str]) -> OpenBatch | None:
        """Add a batch that will be created from an uploaded file.

        Returns:
            The batch; None, and nothing is added, if a request is in another batch or has an answer by now.
        """
        ...

    async def find(self, keys: Sequence[str]) -> list[OpenBatch]:
        """Find the batches that hold any of some requests."""
        ...

    async def record_id(self, number: int, batch: str | None) -> None:
        """Record the provider's id of a batch.

        Args:
            batch: The id; None if the batch was refused, so that another one is made from its file.
        """
        ...

    async def record_state(self, number: int, state: str) -> None:
        """Record the state of a batch."""
        ...

    async def leave(self, batch: OpenBatch, keys: Sequence[str]) -> None:
        """Do not follow a batch any more: another process may, for the requests that are not named here."""
        ...

    async def remove(self, number: int, keys: Sequence[str]) -> None:
        """Remove requests that a batch did not answer, so that another batch may hold them."""
        ...
