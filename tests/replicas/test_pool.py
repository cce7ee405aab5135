"""The pool: requests go where the fewest are, outlive their replica, and wait while there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from sightline.errors import UserError
from sightline.models.offline import ChanceBaseline
from sightline.models.registry import ModelOptions
from sightline.replicas import fleet
from sightline.replicas.fleet import (
    MAX_LOSSES,
    MORE_IN_FLIGHT,
    Joined,
    Left,
    ReplicaLostError,
    ReplicaPool,
    check_place,
    replicas_kept,
    resolve_on,
)
from sightline.types import Answer, Failure, ImageFile, Request, user


class Copy:
    """A replica that answers when `seconds` have passed, or is lost with its n-th request."""

    def __init__(self, name: str, *, seconds: float = 0.0, lost_at: int | None = None) -> None:
        self.name = name
        self.seconds = seconds
        self.lost_at = lost_at
        self.asked: list[str] = []
        self.in_flight = self.most = 0

    async def answer(self, request: Request) -> Answer | Failure:
        self.asked.append(request.key)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            await asyncio.sleep(self.seconds)
            if self.lost_at is not None and len(self.asked) >= self.lost_at:
                raise ReplicaLostError("killed")
            return Answer(f"{request.key} from {self.name}")
        finally:
            self.in_flight -= 1


class Script:
    """A launcher that does what a function of (joined, left) does, and then waits to be cancelled."""

    place = "a test"

    def __init__(self, steps: Callable[[Joined, Left], Any], replicas: int = 2) -> None:
        self.replicas = replicas
        self.ended = False
        self._steps = steps

    async def run(self, joined: Joined, left: Left) -> None:
        try:
            await self._steps(joined, left)
            await asyncio.Event().wait()
        finally:
            self.ended = True


def starting(*copies: Copy) -> Script:
    async def steps(joined: Joined, left: Left) -> None:
        for copy in copies:
            joined(copy)

    return Script(steps, len(copies))


def request(key: str) -> Request:
    return Request(key, (user("?"),), {})


async def ask(pool: ReplicaPool, keys: Iterable[str]) -> list[Answer | Failure]:
    """Ask for all at the same time; returns the results in the order of the keys."""

    async def one(key: str) -> Answer | Failure:
        [(index, result)] = [pair async for pair in pool.answer([request(key)])]
        assert index == 0
        return result

    return await asyncio.gather(*map(one, keys))


def results(launcher: Script, keys: Iterable[str]) -> list[Answer | Failure]:
    async def session() -> list[Answer | Failure]:
        async with ReplicaPool(ChanceBaseline(0), launcher) as pool:
            return await ask(pool, keys)

    found = asyncio.run(session())
    assert launcher.ended
    return found


def test_each_request_goes_to_the_replica_with_the_fewest_in_flight() -> None:
    slow, fast = Copy("slow", seconds=0.2), Copy("fast", seconds=0.2)
    answers = results(starting(slow, fast), map(str, range(20)))
    assert all(isinstance(answer, Answer) for answer in answers)
    assert (slow.most, fast.most) == (10, 10)


def test_requests_with_one_image_go_to_one_replica_while_it_has_few_more_than_the_others() -> None:
    async def session(images: list[int]) -> dict[str, list[str]]:
        copies = [Copy(name, seconds=0.02) for name in "abc"]

        async def one(pool: ReplicaPool, number: int, image: int) -> None:
            file = ImageFile(f"{image}.png", f"{image:064x}", "PNG", 1, 1, (1, 1))
            asked = Request(f"{image} {number}", (user("?"),), {}, {file.path: file})
            assert [result async for _, result in pool.answer([asked])]

        async with ReplicaPool(ChanceBaseline(0), starting(*copies)) as pool:
            await asyncio.gather(*(one(pool, number, image) for number, image in enumerate(images)))
        return {copy.name: [key.split()[0] for key in copy.asked] for copy in copies}

    pairs = asyncio.run(session([number // 2 for number in range(60)]))
    assert sum(len(set(asked)) for asked in pairs.values()) == 30
    assert max(map(len, pairs.values())) <= min(map(len, pairs.values())) + MORE_IN_FLIGHT + 1
    # One image for all requests does not leave the other replicas without work.
    one = asyncio.run(session([0] * 60))
    assert max(map(len, one.values())) <= min(map(len, one.values())) + MORE_IN_FLIGHT + 1


@pytest.mark.parametrize("lost_at", [1, 4, 7])
def test_the_requests_of_a_lost_replica_are_answered_by_another_and_none_is_answered_twice(
    lost_at: int,
) -> None:
    dying, other = Copy("dying", seconds=0.01, lost_at=lost_at), Copy("other", seconds=0.01)
    keys = [str(number) for number in range(14)]
    answers = results(starting(dying, other), keys)
    texts = [answer.text for answer in answers if isinstance(answer, Answer)]
    assert [text.partition(" ")[0] for text in texts] == keys
    assert sorted(other.asked) == sorted(set(other.asked))


def test_a_request_that_ends_every_replica_is_not_sent_to_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleet, "EXPLAIN_SECONDS", 0.01)
    copies = [Copy(str(number), lost_at=1) for number in range(MAX_LOSSES + 2)]
    [failure] = results(starting(*copies), ["poison"])
    assert isinstance(failure, Failure)
    assert failure.kind == "permanent"
    assert sum(len(copy.asked) for copy in copies) == MAX_LOSSES


def test_requests_wait_while_there_is_no_replica(capfd: pytest.CaptureFixture[str]) -> None:
    first, second = Copy("first", lost_at=1), Copy("second")

    async def steps(joined: Joined, left: Left) -> None:
        joined(first)
        while not first.asked:
            await asyncio.sleep(0.01)
        left("first", "the time limit")
        await asyncio.sleep(0.05)
        joined(second)

    answers = results(Script(steps), ["a", "b"])
    assert [answer.text for answer in answers if isinstance(answer, Answer)] == [
        "a from second",
        "b from second",
    ]
    notes = capfd.readouterr().err
    assert "first has ended" in notes
    assert "second is ready; 1 of 2 replicas run" in notes


def test_a_replica_that_starts_again_under_its_name_gets_requests() -> None:
    before, after = Copy("node 1", lost_at=1), Copy("node 1")

    async def steps(joined: Joined, left: Left) -> None:
        joined(before)
        while not before.asked:
            await asyncio.sleep(0.01)
        left("node 1", "requeued")
        joined(after)

    [answer] = results(Script(steps), ["a"])
    assert isinstance(answer, Answer)
    assert after.asked == ["a"]


@pytest.mark.parametrize("joins_first", [False, True])
def test_what_ends_the_launcher_reaches_the_requests_that_wait(joins_first: bool) -> None:
    async def steps(joined: Joined, left: Left) -> None:
        if joins_first:
            joined(Copy("a", lost_at=1))
            await asyncio.sleep(0.05)
        raise UserError("there is no partition gpu")

    with pytest.raises(UserError, match="no partition gpu"):
        results(Script(steps), ["a"])


def test_ending_the_pool_ends_requests_and_launcher() -> None:
    launcher = starting(Copy("a", seconds=60))

    async def session() -> None:
        async with ReplicaPool(ChanceBaseline(0), launcher) as pool:
            async with asyncio.timeout(0.05):
                await ask(pool, ["a"])

    with pytest.raises(TimeoutError):
        asyncio.run(session())
    assert launcher.ended


def test_a_sweep_keeps_the_replicas_of_a_model_and_ends_them_before_those_of_another_start() -> None:
    events: list[str] = []

    def named(name: str) -> Script:
        async def steps(joined: Joined, left: Left) -> None:
            events.append(f"start {name}")
            joined(Copy(name))

        return Script(steps)

    scripts = {name: [named(name) for _ in range(2)] for name in "ab"}

    async def session() -> None:
        async with replicas_kept():
            for name, number in [("a", 0), ("a", 1), ("b", 0)]:
                if events == ["start a"] and name == "b":
                    assert not scripts["a"][0].ended
                async with ReplicaPool(ChanceBaseline(0), scripts[name][number], key=name) as pool:
                    await ask(pool, [str(number)])
                assert not scripts[name][0].ended
            assert scripts["a"][0].ended

    asyncio.run(session())
    assert events == ["start a", "start b"]
    assert scripts["b"][0].ended


def test_within_a_sweep_the_replicas_outlive_the_judging_of_a_point() -> None:
    launcher = starting(Copy("a"))

    async def session() -> None:
        async with replicas_kept():
            async with replicas_kept(), ReplicaPool(ChanceBaseline(0), launcher, key="a") as pool:
                await ask(pool, ["1"])
            assert not launcher.ended
        assert launcher.ended

    asyncio.run(session())


def test_a_pool_has_the_identity_and_the_options_of_its_model() -> None:
    model = ChanceBaseline(3)
    pool = ReplicaPool(model, starting(Copy("a")))
    assert (pool.name, pool.identity) == (model.name, model.identity)
    assert pool.effective({"temperature": 0.5}) == model.effective({"temperature": 0.5})
    assert pool.capabilities.replicas == 1


def test_a_place_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(UserError, match="unknown --on 'nowhere'"):
        resolve_on("nowhere:gpu", "mini", ModelOptions())


def test_a_place_without_a_model_to_run_there_is_refused() -> None:
    models = resolve_on("slurm", "baseline/chance", ModelOptions())
    with pytest.raises(UserError, match="neither model nor judge"):
        check_place("slurm", models)
