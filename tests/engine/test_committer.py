"""Answers are written together, in time, in order; a write that fails is told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from sightline.engine.selector import SECONDS, Committer
from sightline.errors import EnvironmentFailedError
from sightline.store.answers import Attempt
from sightline.store.store import Store
from sightline.types import Answer


class Listening:
    """A store that notes when it was written to, and may fail."""

    def __init__(self, fails: bool = False) -> None:
        self.groups: list[list[str]] = []
        self.times: list[float] = []
        self._fails = fails
        self.answers = self
        self.loop = asyncio.get_running_loop()

    def add(self, entries: list[Attempt]) -> None:
        if self._fails:
            raise EnvironmentFailedError("the disk is full")
        self.groups.append([entry.key for entry in entries])
        self.times.append(self.loop.time())


def _key(number: int) -> str:
    return f"{number:064x}"


def _entry(number: int) -> Attempt:
    return Attempt(_key(number), b"{}", Answer(""))


def test_an_answer_is_written_at_once_and_those_that_follow_a_write_together(in_no_time: Any) -> None:
    async def run() -> None:
        store = Listening()
        committed: list[int] = []
        committer = Committer(store, lambda group: committed.append(len(group)))  # type: ignore[arg-type]
        for pause, numbers in [
            (0.0, range(50)),
            (SECONDS / 4, range(50, 100)),
            (3 * SECONDS, range(100, 101)),
        ]:
            await asyncio.sleep(pause)
            for number in numbers:
                committer.add(_entry(number))
        await asyncio.sleep(2 * SECONDS)
        assert [len(group) for group in store.groups] == committed == [50, 50, 1]
        assert store.times == pytest.approx([0, SECONDS, 3.25 * SECONDS], abs=SECONDS / 10)
        assert [key for group in store.groups for key in group] == [_key(n) for n in range(101)]
        await committer.close()

    in_no_time(run())


def test_a_slow_write_makes_the_next_group_larger_instead_of_a_queue_of_writes() -> None:
    async def run() -> None:
        store, go_on = Listening(), Event()
        add = store.add
        store.add = lambda entries: (go_on.wait(), add(entries))[1]  # type: ignore[method-assign]
        committer = Committer(store, lambda _: None)  # type: ignore[arg-type]
        for number in range(5):
            committer.add(_entry(number))
            await asyncio.sleep(2 * SECONDS)
        go_on.set()
        await committer.close()
        assert [len(group) for group in store.groups] == [1, 4]

    asyncio.run(run())


def test_closing_writes_the_rest(in_no_time: Any) -> None:
    async def run() -> None:
        store = Listening()
        committer = Committer(store, lambda _: None)  # type: ignore[arg-type]
        committer.add(_entry(1))
        await committer.close()
        assert store.groups == [[_key(1)]]

    in_no_time(run())


def test_a_write_that_fails_is_known_at_once_and_raised_in_the_end(in_no_time: Any) -> None:
    async def run() -> None:
        told: list[tuple[int, bool]] = []
        store = Listening(fails=True)
        committer = Committer(store, lambda group: told.append((len(group), committer.error is not None)))  # type: ignore[arg-type]
        for number in range(64):
            committer.add(_entry(number))
        await asyncio.sleep(2 * SECONDS)
        assert told == [(64, True)]
        with pytest.raises(EnvironmentFailedError, match="disk is full"):
            await committer.close()

    in_no_time(run())


def test_other_writes_wait_for_those_before_them(tmp_path: Path, in_no_time: Any) -> None:
    async def run() -> None:
        store = Store.open(str(tmp_path / "s.db"))
        committer = Committer(store, lambda _: None)
        for number in range(64):
            committer.add(_entry(number))
        assert len(await committer.run(store.answers.look_up, [_key(n) for n in range(64)])) == 64
        await committer.close()
        store.close()

    in_no_time(run())
