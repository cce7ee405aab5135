"""Throughput of one and of two replicas of `mini` on Ray, each limited to one processor.

    python perf/replicas.py [--requests N] [--rounds N] [--short]

Starts Ray in this machine and asks the replicas directly: starting them is excluded. Each request has an
image and takes up to 32 tokens; 64 requests for each replica are in flight. One and two replicas take turns.
Prints requests per second, and how many processors the replicas kept busy: two are as much faster as the
processors that they get. CI does not run it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from report import Report, new_parser
from sightline.config import Config, RaySettings
from sightline.images import inspect_image
from sightline.models.registry import ModelOptions, resolve
from sightline.replicas.fleet import Replica, Target
from sightline.replicas.on_ray import ray_launcher
from sightline.types import Answer, ImageRef, Request, user

TOKENS = 32
IN_FLIGHT = 64
"""Requests in flight for each replica."""
ADDRESS = "127.0.0.2"
"""Ray replaces 127.0.0.1 by the machine's address in its network."""


def main() -> None:
    """Measure and print."""
    parser = new_parser(__doc__)
    parser.add_argument("--requests", type=int, default=1000, help="requests of a measurement")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; the median is printed")
    parser.add_argument("--short", action="store_true", help="200 requests, one round")
    options = parser.parse_args()
    number, rounds = (200, 1) if options.short else (options.requests, options.rounds)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=200_000_000,
        _node_ip_address=ADDRESS,
        log_to_driver=False,
        logging_level=logging.CRITICAL,
    )
    report = Report()
    try:
        with tempfile.TemporaryDirectory() as folder:
            _measure(_requests(number, Path(folder)), rounds, report)
    finally:
        ray.shutdown()
    report.save(options.json)


def _requests(number: int, folder: Path) -> list[Request]:
    requests = []
    for index in range(number):
        path = folder / f"{index}.png"
        pixels = np.random.default_rng(index).integers(0, 256, (64, 64, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
        image = ImageRef(str(path))
        question = user(image, f"What is in image {index}?")
        sampling = {"max_tokens": TOKENS, "temperature": 0.0}
        requests.append(Request(str(index), (question,), sampling, {str(path): inspect_image(image, {})}))
    return requests


def _measure(requests: Sequence[Request], rounds: int, report: Report) -> None:
    rates: dict[int, list[float]] = {1: [], 2: []}
    busy: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for replicas in rates:
            seconds, worked = asyncio.run(_ask_all(requests, replicas))
            rates[replicas].append(len(requests) / seconds)
            busy[replicas].append(worked / seconds)
    columns = ("requests per second", "processors that the replicas kept busy")
    report.table(
        f"{len(requests):,} requests to `mini`, rounds: {rounds}, {os.cpu_count()} cores", "", *columns
    )
    for replicas, rate in rates.items():
        median = statistics.median(rate)
        used = statistics.median(busy[replicas])
        report.row(f"{replicas} replica{'s' * (replicas != 1)}", f"{median:.1f}", f"{used:.2f}")
    faster = statistics.median(rates[2]) / statistics.median(rates[1])
    more = statistics.median(busy[2]) / statistics.median(busy[1])
    report.note(f"Two replicas are {faster:.2f} times as fast, with {more:.2f} times the processors.")


async def _ask_all(requests: Sequence[Request], number: int) -> tuple[float, float]:
    """Seconds of wall time, and of processor time of the replicas."""
    [model] = resolve("mini", ModelOptions())
    config = Config(ray=RaySettings(replicas=number, cpus=1, gpus=0))
    launcher = ray_launcher(Target(model=model, spec="mini", args={}, weights=model.identity), "", config)
    replicas: list[Replica] = []

    def joined(replica: Replica) -> None:
        replicas.append(replica)

    running = asyncio.create_task(launcher.run(joined, lambda name, reason, is_explained=False: None))
    while len(replicas) < number:
        await asyncio.sleep(0.1)
    # The first window compiles kernels.
    await _answers(requests[: IN_FLIGHT * number], replicas)
    before, start = _processor_seconds(), time.perf_counter()
    await _answers(requests, replicas)
    seconds, worked = time.perf_counter() - start, _processor_seconds() - before
    running.cancel()
    await asyncio.wait({running})
    return seconds, worked


async def _answers(requests: Sequence[Request], replicas: Sequence[Replica]) -> None:
    waiting = iter(requests)

    async def ask(replica: Replica) -> None:
        for request in waiting:
            assert isinstance(await replica.answer(request), Answer)

    await asyncio.gather(*(ask(replica) for replica in replicas for _ in range(IN_FLIGHT)))


def _actors() -> list[int]:
    """The processes of replicas."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and (folder / "cmdline").read_bytes().startswith(b"ray::Actor"):
                found.append(int(folder.name))
        except OSError:  # It has just ended.
            continue
    return found


def _processor_seconds() -> float:
    """The processor time of the replicas so far."""
    total = 0
    for process in _actors():
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
