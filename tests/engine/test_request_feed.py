"""A run reads a feed to its end, whatever is added meanwhile, and waits only while nothing is there."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any

from sightline.engine.selector import RequestFeed


def test_requests_are_read_in_their_order_and_a_wait_ends_when_more_are_added() -> None:
    async def main() -> None:
        feed: Any = RequestFeed()
        reading = iter(feed)
        feed.add([1, 2])
        assert list(islice(reading, 3)) == [1, 2, None]
        waiting = asyncio.ensure_future(feed.more())
        await asyncio.sleep(0)
        assert not waiting.done()
        await feed.all_read()
        feed.add([3])
        feed.close()
        await waiting
        assert list(reading) == [3]

    asyncio.run(main())


def test_what_was_added_is_read_when_the_run_asks_for_more() -> None:
    async def main() -> None:
        feed: Any = RequestFeed()
        reading = iter(feed)
        feed.add(iter([1]))
        all_read = asyncio.ensure_future(feed.all_read())
        await asyncio.sleep(0)
        assert not all_read.done()
        assert list(islice(reading, 2)) == [1, None]
        more = asyncio.ensure_future(feed.more())
        await all_read
        feed.close()
        await more
        assert list(reading) == []

    asyncio.run(main())
