"""A batch that exists is found in the list of a provider, whatever the list leaves out."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from sightline.models.batch_client import CALL, BatchClient, CallFailedError
from sightline.models.http_client import Timeouts
from sightline.types import Failure

NOW = 1_760_000_000.0
BATCHES, PAGE = 250, 100


class ListingClient(BatchClient):
    """A provider with more batches than fit on one page, the newest first."""

    def __init__(self, created_at: Any, *, takes_after: bool = True) -> None:
        self._created_at = created_at
        self._takes_after = takes_after
        self.calls = 0

    async def _call(self, method: str, path: str, timeouts: Timeouts = CALL, **content: Any) -> bytes:
        self.calls += 1
        if self.calls > BATCHES:
            raise CallFailedError(Failure("permanent", "asked for ever"))
        after = path.partition("after=b")[2]
        start = int(after) + 1 if after and self._takes_after else 0
        data = [
            {"id": f"b{number}", "status": "completed", "input_file_id": f"f{number}"}
            | ({} if self._created_at is None else {"created_at": self._created_at})
            for number in range(start, min(start + PAGE, BATCHES))
        ]
        return json.dumps({"data": data, "has_more": start + PAGE < BATCHES}).encode()


@pytest.mark.parametrize("created_at", [int(NOW), "2026-11-23T10:00:00Z", None])
def test_a_batch_on_a_later_page_is_found_however_its_time_is_given(created_at: Any) -> None:
    found = asyncio.run(ListingClient(created_at).find("f150", NOW))
    assert found is not None
    assert found.id == "b150"


def test_pages_that_are_older_than_the_batch_can_be_are_not_read() -> None:
    client = ListingClient(int(NOW) - 7 * 86400)
    assert asyncio.run(client.find("f150", NOW)) is None
    assert client.calls == 1


def test_a_provider_that_always_returns_the_first_page_is_not_asked_for_ever() -> None:
    client = ListingClient(int(NOW), takes_after=False)
    assert asyncio.run(client.find("f150", NOW)) is None
    assert client.calls == 2
