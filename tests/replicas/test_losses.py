"""What becomes of the requests of a replica that ends: which of them are blamed, and where they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sightline.errors import EnvironmentFailedError
from sightline.models.offline import ChanceBaseline
from sightline.replicas import fleet
from sightline.replicas.fleet import Joined, Left, RemoteReplica, Replica, ReplicaLostError, ReplicaPool
from sightline.types import Answer, Failure, Request, user

POISON = "poison"


class Node:
    """A replica that a request of the key POISON ends, with all that it answers; so does `end`."""

    def __init__(self, name: str, seconds: float = 0.005) -> None:
        self.name = name
        self.seconds = seconds
        self.ended = asyncio.Event()
        self.in_flight = self.most = 0
        self.asked: list[str] = []

    async def answer(self, request: Request) -> Answer | Failure:
        self.asked.append(request.key)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            async with asyncio.timeout(self.seconds):
                await self.ended.wait()
        except TimeoutError:
            if not request.key.startswith(POISON):
                return Answer(self.name)
            self.ended.set()
        finally:
            self.in_flight -= 1
        raise ReplicaLostError("killed")


class Cluster:
    """A launcher of nodes; `explained` ones are said to have ended for a reason of their own."""

    place = "a test"

    def __init__(
        self,
        nodes: Sequence[Node],
        *,
        explained: bool = False,
        again: Callable[[Node], Node | None] = lambda node: None,
        late: float = 0.0,
    ) -> None:
        self.replicas = len(nodes)
        self._nodes = nodes
        self._explained = explained
        self._again = again
        self._late = late

    async def run(self, joined: Joined, left: Left) -> None:
        await asyncio.gather(*(self._keep(node, joined, left) for node in self._nodes))
        raise EnvironmentFailedError("no node is left")

    async def _keep(self, node: Node | None, joined: Joined, left: Left) -> None:
        while node is not None:
            joined(node)
            await node.ended.wait()
            await asyncio.sleep(self._late)
            left(node.name, "ended", is_explained=self._explained)
            node = self._again(node)


async def ask(pool: ReplicaPool, keys: Sequence[str]) -> list[Answer | Failure]:
    async def one(key: str) -> Answer | Failure:
        [(_, result)] = [pair async for pair in pool.answer([Request(key, (user("?"),), {})])]
        return result

    return await asyncio.gather(*map(one, keys))


def results(
    launcher: Callable[[], Any], keys: Sequence[str], concurrency: int = 64
) -> list[Answer | Failure]:
    async def session() -> list[Answer | Failure]:
        pool = ReplicaPool(ChanceBaseline(0), launcher(), concurrency=concurrency)
        async with asyncio.timeout(10), pool:
            return await ask(pool, keys)

    return asyncio.run(session())


@pytest.mark.parametrize("late", [0.0, 0.05])
def test_one_request_that_ends_its_replicas_is_the_only_one_that_fails(late: float) -> None:
    keys = [*map(str, range(40)), POISON, *map(str, range(41, 64))]
    found = results(lambda: Cluster([Node(name) for name in "abc"], late=late), keys)
    failures = [(key, result) for key, result in zip(keys, found, strict=True) if isinstance(result, Failure)]
    [(key, failure)] = failures
    assert (key, failure.kind) == (POISON, "permanent")
    assert "killed" in failure.message


def test_several_such_requests_are_the_only_ones_that_fail() -> None:
    keys = [f"{POISON} {number}" if number % 20 == 3 else str(number) for number in range(60)]
    again = iter(range(6))
    found = results(
        lambda: Cluster(
            [Node(name) for name in "abc"],
            again=lambda node: Node(node.name) if next(again, None) is not None else None,
        ),
        keys,
    )
    assert [isinstance(result, Failure) for result in found] == [key.startswith(POISON) for key in keys]


@pytest.mark.parametrize("late", [0.0, 0.03])
def test_replicas_that_end_for_a_reason_of_their_own_are_counted_for_no_request(late: float) -> None:
    """As where jobs are preempted again and again, while the same long request is sent to them."""
    starts = iter(range(6))

    def again(node: Node) -> Node:
        new = Node(node.name, seconds=60 if next(starts, None) is not None else 0.0)
        if new.seconds:
            asyncio.get_running_loop().call_later(0.01, new.ended.set)
        return new

    def launcher() -> Cluster:
        node = Node("a", seconds=60)
        asyncio.get_running_loop().call_later(0.01, node.ended.set)
        return Cluster([node], explained=True, again=again, late=late)

    [answer] = results(launcher, ["a long one"])
    assert isinstance(answer, Answer)


def test_a_request_that_no_replica_received_is_blamed_for_no_loss() -> None:
    """As where jobs of Slurm are completing: their servers are lost, and the launcher says why later."""
    sent: list[str] = []

    class Completing:
        place = "a test"
        replicas = 2

        async def run(self, joined: Joined, left: Left) -> None:
            async def send(request: Request) -> Answer | Failure:
                sent.append(request.key)
                return Answer("")

            lost = [RemoteReplica(name, "http://127.0.0.1:1", send) for name in "ab"]
            for replica in lost:
                joined(replica)
                replica.lose("the job is completing")
            await asyncio.sleep(0.05)
            for replica in lost:
                left(replica.name, "the job is failed")
            joined(RemoteReplica("c", "http://127.0.0.1:1", send))
            await asyncio.Event().wait()

    [answer] = results(Completing, ["a request"])
    assert isinstance(answer, Answer)
    assert sent == ["a request"]


def test_a_replica_that_joins_again_was_only_out_of_reach() -> None:
    class Flaky:
        name = "a"

        def __init__(self) -> None:
            self.asked = 0
            self.lost = asyncio.Event()

        async def answer(self, request: Request) -> Answer | Failure:
            self.asked += 1
            if self.asked % 4:
                self.lost.set()
                raise ReplicaLostError("connection reset")
            return Answer("")

    class Rejoining:
        place = "a test"
        replicas = 1

        async def run(self, joined: Joined, left: Left) -> None:
            replica = Flaky()
            while True:
                joined(replica)
                await replica.lost.wait()
                replica.lost.clear()

    assert all(isinstance(result, Answer) for result in results(Rejoining, ["a", "b"]))


def test_where_the_launcher_says_nothing_a_request_fails_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleet, "EXPLAIN_SECONDS", 0.05)

    class Silent:
        place = "a test"
        replicas = 2

        async def run(self, joined: Joined, left: Left) -> None:
            for name in "ab":
                joined(Node(name))
            await asyncio.Event().wait()

    [failure] = results(Silent, [POISON])
    assert isinstance(failure, Failure)


def test_no_replica_has_more_than_the_concurrency_in_flight_whoever_joins_first() -> None:
    nodes: list[Node] = []

    class OneByOne:
        place = "a test"
        replicas = 4

        async def run(self, joined: Joined, left: Left) -> None:
            for name in "abcd":
                nodes.append(Node(name, seconds=0.02))
                joined(nodes[-1])
                await asyncio.sleep(0.03)
            await asyncio.Event().wait()

    found = results(OneByOne, list(map(str, range(64))), concurrency=8)
    assert all(isinstance(result, Answer) for result in found)
    assert len(nodes) > 1
    assert max(node.most for node in nodes) == 8


def test_a_fleet_whose_launcher_has_failed_asks_none_of_its_replicas() -> None:
    asked: list[str] = []

    class Failing:
        place = "a test"
        replicas = 2

        async def run(self, joined: Joined, left: Left) -> None:
            for name in "ab":
                node: Replica = Node(name)
                joined(node)
                asked.append(node.name)
            await asyncio.sleep(0.02)
            raise EnvironmentFailedError("the workers have ended")

    async def session() -> None:
        async with ReplicaPool(ChanceBaseline(0), Failing()) as pool:
            assert isinstance((await ask(pool, ["a"]))[0], Answer)
            await asyncio.sleep(0.05)
            with pytest.raises(EnvironmentFailedError, match="the workers have ended"):
                await ask(pool, ["b"])

    asyncio.run(session())
    assert asked == ["a", "b"]


def test_a_request_that_nobody_waits_for_any_more_gives_its_place_back() -> None:
    async def session() -> None:
        async with ReplicaPool(ChanceBaseline(0), Cluster([Node("a", 0.02)]), concurrency=1) as pool:
            asking = [asyncio.create_task(ask(pool, [str(number)])) for number in range(6)]
            await asyncio.sleep(0.005)
            for task in asking[:5]:
                task.cancel()
            async with asyncio.timeout(2):
                [answer] = await asking[5]
        assert isinstance(answer, Answer)

    asyncio.run(session())
