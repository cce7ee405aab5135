"""The work of builders as tasks of a Ray cluster; a lost worker or node costs only what it had in work."""

from __future__ import annotations

import os
import pickle
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Generic, NoReturn, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from sightline.errors import EnvironmentFailedError, UserError
from sightline.images import BadImage, read_original
from sightline.replicas import ray_entry
from sightline.replicas.on_ray import connected, first_line, losses
from sightline.replicas.ray_node import PACKAGES, Work, at_path, installed_versions
from sightline.text import print_note
from sightline.types import ImageFile

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

TextBatch = tuple[int, Sequence[str]]
"""Texts that are embedded together, and their number."""

MAX_LOSSES = 3
"""Workers that may end while they work on an item."""
LOOK_SECONDS = 5.0
"""Seconds after which the cluster is asked again how many tasks it can run."""


class RayTasks(Struct, frozen=True, kw_only=True):
    """Where and how tasks run."""

    address: str = ""
    cpus: int = 1
    gpus: int = 0


class Transfer(Struct, Generic[ItemT], frozen=True, kw_only=True):
    """How the items of a builder get to another machine; the functions are at module level.

    `packages`: the packages whose versions decide the bytes of a result.
    """

    image: Callable[[ItemT], tuple[str, str] | None]
    moved: Callable[[ItemT, str], ItemT]
    restored: Callable[[Any, str, str], Any]
    files: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = PACKAGES

    def name(self, item: ItemT) -> str:
        image = self.image(item)
        return "a batch of texts" if image is None else image[0]


def _image_of(image: ImageFile) -> tuple[str, str]:
    return image.path, image.digest


def _restored(result: tuple[Any, Any], path: str, copy: str) -> tuple[Any, Any]:
    first, second = result
    return first, BadImage(str(second).replace(copy, path)) if isinstance(second, BadImage) else second


IMAGE_FILES: Transfer[ImageFile] = Transfer(image=_image_of, moved=at_path, restored=_restored)
"""Transfer of images, for results of a first value and a second, which may be a BadImage."""


def _no_image(texts: TextBatch) -> None:
    return None


def _not_moved(texts: TextBatch, path: str) -> TextBatch:
    return texts


def _not_restored(result: Any, path: str, copy: str) -> Any:
    return result


TEXTS: Transfer[TextBatch] = Transfer(
    image=_no_image,
    moved=_not_moved,
    restored=_not_restored,
    packages=("sightline", "numpy", "torch", "transformers", "sentence-transformers", "tokenizers"),
)
"""Transfer of texts, for an embedder."""


class _Sent(Struct, frozen=True):
    """An item in work, the node that lacks its image ('' for none), and the workers that it has outlived."""

    item: Any
    lacking: str = ""
    losses: int = 0


def map_on_ray(
    function: Callable[[ItemT], ResultT],
    items: Sequence[ItemT],
    tasks: RayTasks,
    transfer: Transfer[ItemT],
) -> Generator[ResultT]:
    """Apply a function to items in the tasks of a cluster, a limited number at a time."""
    if not items:
        return
    with connected(tasks.address) as connection:
        ray = connection.ray
        cluster = _Cluster(ray, tasks)
        waiting: dict[Any, _Sent] = {}
        todo = deque(_Sent(item) for item in items)
        lacking = ""
        try:
            while todo or waiting:
                while todo and len(waiting) < 2 * cluster.slots():
                    sent = todo.popleft()
                    work = _work(function, sent.item, transfer)
                    try:
                        sent_along = work.image if lacking or sent.lacking else None
                        content = read_original(*sent_along) if sent_along else None
                    except BadImage:
                        # The result is that of this machine, which cannot use the image either.
                        yield function(sent.item)
                        continue
                    if sent.lacking and not lacking:
                        lacking = sent.lacking
                        print_note(f"node {lacking} does not share the images; they are sent to the nodes")
                    waiting[cluster.submit(work, content)] = sent
                for ref in cluster.ready(list(waiting)):
                    sent = waiting.pop(ref)
                    try:
                        kind, node, value = ray.get(ref)
                    except losses(ray) as error:
                        todo.appendleft(_after_loss(sent, transfer, error))
                        continue
                    if kind == "done":
                        yield value
                    elif kind == "absent":
                        todo.appendleft(replace(sent, lacking=node))
                    else:
                        _fail(kind, node, f"{transfer.name(sent.item)}: {value}", value)
        finally:
            for ref in waiting:
                ray.cancel(ref, force=True)


class _Cluster:
    """The cluster as it is now."""

    def __init__(self, ray: Any, tasks: RayTasks) -> None:
        self._ray = ray
        self._tasks = tasks
        self._remote = ray.remote(ray_entry.call).options(
            num_cpus=tasks.cpus, num_gpus=tasks.gpus, max_retries=0, scheduling_strategy="SPREAD"
        )
        if not self._room():
            raise UserError(
                f"no node of the Ray cluster has {tasks.cpus} CPUs and {tasks.gpus} GPUs",
                expected="a node with room for one task",
            )
        self._known = self._room()
        self._looked = time.monotonic()
        print_note(f"Ray: {self._known:,} tasks at a time on {self._nodes()}")

    def slots(self) -> int:
        """The tasks that can run at a time, 1 at least: without a node they wait for one."""
        return max(1, self._known)

    def submit(self, work: Work, content: bytes | None) -> Any:
        """Send an item, with the bytes of its image if nodes lack it; returns the reference of its result."""
        return self._remote.remote(pickle.dumps(work), content)

    def ready(self, waiting: list[Any]) -> list[Any]:
        """Wait for the first results; an empty list if none came for a while."""
        ready, others = self._ray.wait(waiting, num_returns=1, timeout=LOOK_SECONDS)
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self._look()
        if not ready:
            return []
        more, _ = self._ray.wait(others, num_returns=len(others), timeout=0) if others else ([], [])
        return [*ready, *more]

    def _look(self) -> None:
        self._looked = time.monotonic()
        room = self._room()
        if room != self._known:
            print_note(f"Ray: {room:,} tasks at a time on {self._nodes()}")
        self._known = room

    def _alive(self) -> list[Mapping[str, float]]:
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def _room(self) -> int:
        return sum(self._room_on(resources) for resources in self._alive())

    def _room_on(self, resources: Mapping[str, float]) -> int:
        by_cpu = int(resources.get("CPU", 0) // self._tasks.cpus)
        if not self._tasks.gpus:
            return by_cpu
        return min(by_cpu, int(resources.get("GPU", 0) // self._tasks.gpus))

    def _nodes(self) -> str:
        nodes = sum(self._room_on(resources) > 0 for resources in self._alive())
        return f"{nodes:,} node{'s' * (nodes != 1)}"


def _work(function: Callable[[ItemT], ResultT], item: ItemT, transfer: Transfer[ItemT]) -> Work:
    return Work(
        function=function,
        item=item,
        image=transfer.image(item),
        moved=transfer.moved,
        restored=transfer.restored,
        files=transfer.files,
        folder=os.getcwd(),
        versions=installed_versions(transfer.packages),
    )


def _after_loss(sent: _Sent, transfer: Transfer[Any], error: Exception) -> _Sent:
    lost, name, reason = sent.losses + 1, transfer.name(sent.item), first_line(error)
    if lost < MAX_LOSSES:
        print_note(f"{name}: the worker ended ({reason}); another one does it")
        return replace(sent, losses=lost)
    raise EnvironmentFailedError(
        f"{name}: {lost} workers ended while they worked on it ({reason}); "
        "finished work is kept, run the same command again to continue"
    )


def _fail(kind: str, node: str, text: str, value: Any) -> NoReturn:
    if kind == "wrong":
        raise UserError(f"node {node}: {value}")
    if kind == "failed":
        raise EnvironmentFailedError(f"node {node}: {value}")
    raise EnvironmentFailedError(
        f"node {node}: {text}; finished work is kept, run the same command again to continue"
    )
