"""How often the check of an endpoint is wrong: simulated servers, and the exact probabilities of the rule.

Each server is simulated in this process; the check that asks it is the engine's (engine/asking_again.py). A
server answers a request with one of N texts, chosen by request and weights. With the chance of the noise,
a call gets a random text instead, also the call whose answer is cached. `--mock N` also starts N real servers
(tools/mock_openai_server.py in SIGHTLINE_SHARED) of each kind and runs a benchmark against them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cache
from math import comb
from pathlib import Path
from typing import Any, NamedTuple, Self

import sightline
from sightline.engine.account import Account
from sightline.engine.asking_again import AskingAgain, Candidate, Means, select_candidates
from sightline.engine.budget import Budget
from sightline.engine.check_rule import CLOSED, OPEN, REPEATS, Found, decide
from sightline.engine.counts import Counts
from sightline.engine.endpoint_log import CheckResult
from sightline.engine.keys import with_key
from sightline.errors import UserError
from sightline.models.base import Capabilities, Model
from sightline.types import Answer, Request, Text, user

NOISE = 0.01
MANY = 10**9
"""The number of texts from which open answers are drawn: two are never the same by chance."""
TEXTS = {"open answers": MANY, "6 options": 6, "4 options": 4, "yes or no": 2}
CACHED = {"open answers": (1, 2, 3, 5)}
CACHED_CLOSED = (1, 2, 3, 5, 8, 16)
MOCK_WORDS = {"open answers": "|".join(f"This is text {number}." for number in range(997)), "6 options": ""}


class Server(Model):
    """A simulated server with some weights and noise."""

    name = identity = host = "simulated"
    batch_size = 1
    parallel: int | None = None
    capabilities = Capabilities(endpoint=True)

    def __init__(self, texts: int, weights: int, noise: float, chance: random.Random) -> None:
        self._texts, self._weights, self._noise, self._chance = texts, weights, noise, chance

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """All options, as `Model.effective`."""
        return dict(sampling)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def text(self, prompt: str) -> str:
        """The text of one call."""
        if self._chance.random() < self._noise:
            return self._shown(self._chance.randrange(self._texts))
        return self._shown(random.Random(f"{prompt} {self._weights}").randrange(self._texts))

    def _shown(self, number: int) -> str:
        return f"This is text {number:09}." if self._texts == MANY else str(number)

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer]]:
        """Answer requests, as `Model.answer`."""
        for index, request in enumerate(requests):
            (part,) = request.messages[0].parts
            assert isinstance(part, Text)
            yield index, Answer(self.text(part.text))


class Kind(NamedTuple):
    """A kind of server: how many cached answers there are, among how many texts, and its noise."""

    cached: int
    texts: int
    noise: float
    changed: bool


async def simulate(kind: Kind, servers: int) -> tuple[Counter[CheckResult], float]:
    """Check servers of one kind; returns the results, and the mean number of requests of a check."""
    results: Counter[CheckResult] = Counter()
    asked = 0
    for number in range(servers):
        chance = random.Random(f"{kind} {number}")
        before = Server(kind.texts, 0, kind.noise, chance)
        now = Server(kind.texts, int(kind.changed), kind.noise, chance)
        prompts = [f"server {number} question {question}" for question in range(kind.cached)]
        requests = [with_key(Request("", (user(prompt),), {"temperature": 0}), "m") for prompt in prompts]
        cached = {
            one.request.key: Answer(before.text(prompt))
            for one, prompt in zip(requests, prompts, strict=True)
        }
        candidates: list[Candidate] = select_candidates([], cached)
        by_key = {one.request.key: one for one in requests}
        again = AskingAgain(now, candidates, by_key, Means(Budget(), Account(), Counts(), concurrency=8))
        results[(await again.compare())[0]] += 1
        asked += again.asked
    return results, asked / servers


def exact(kind: Kind) -> float:
    """The probability that the rule finds a change."""
    calls = 1 + REPEATS
    other = 1 - 1 / kind.texts
    noisy = kind.noise * other
    # The cached text is not the one that the server gives without noise: only noise can repeat it.
    never = (1 - kind.noise / kind.texts) ** calls
    unlike = other if kind.changed else noisy
    differs = unlike * never + (1 - unlike) * noisy**calls

    plan = OPEN if kind.texts == MANY else CLOSED
    cached = min(kind.cached, plan.most)

    @cache
    def changed(compared: int, differing: int, size: int) -> float:
        size = min(size, cached - compared)
        total, now = 0.0, compared + size
        for more in range(size + 1):
            chance = comb(size, more) * differs**more * (1 - differs) ** (size - more)
            decision = decide(plan, Found(now, differing + more, 0, cached - now))
            if decision == "ask further":
                total += chance * changed(now, differing + more, plan.further)
            else:
                total += chance * (decision == "changed")
        return total

    return changed(0, 0, plan.first)


def run_mock(folder: Path, weights: str, words: str) -> bool:
    """Run a benchmark twice against real servers, the second with these weights; whether it is refused."""
    lines = [f'{{"group": "g{n}", "variant": "a", "images": [], "prompt": "Q{n}?"}}\n' for n in range(20)]
    (folder / "own.jsonl").write_text("".join(lines))
    for tag in ("", weights):
        with RealServer(tag, words) as address:
            try:
                sightline.run(
                    f"groups:{folder}/own.jsonl",
                    model=f"{address}/v1#mock",
                    model_id="mock",
                    store=folder / "s.db",
                    set={"embedder": "none"},
                )
            except UserError as error:
                if "is not the model" not in error.message:
                    raise
                return True
    return False


class RealServer:
    """A real server at a free loopback port, as a context."""

    def __init__(self, weights: str, words: str) -> None:
        shared = os.environ.get("SIGHTLINE_SHARED")
        folder = Path(shared) if shared else Path(__file__).resolve().parents[2] / "shared"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        script = folder / "tools" / "mock_openai_server.py"
        options = ["--port", self._port, "--noise", NOISE, "--weights", weights, "--words", words]
        self._process = subprocess.Popen(
            [sys.executable, str(script), *map(str, options)], stdout=subprocess.PIPE
        )

    def __enter__(self) -> str:
        assert self._process.stdout is not None
        assert b"listening" in self._process.stdout.readline()
        return f"http://127.0.0.1:{self._port}"

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, default=1000, help="simulated servers of each kind")
    parser.add_argument("--mock", type=int, default=0, metavar="N", help="real servers of each kind")
    options = parser.parse_args()
    print("| server | answers | cached | found changed | exact | unsure | requests |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for changed in (False, True):
        for answers, texts in TEXTS.items():
            for cached in CACHED.get(answers, CACHED_CLOSED):
                kind = Kind(cached, texts, NOISE, changed)
                results, asked = asyncio.run(simulate(kind, options.servers))
                rates = (
                    results["changed"] / options.servers,
                    exact(kind),
                    results["unsure"] / options.servers,
                )
                shown = " | ".join(f"{100 * rate:.2f} %" for rate in rates)
                server = "other weights" if changed else "unchanged"
                print(f"| {server} | {answers} | {cached} | {shown} | {asked:.2f} |")
    for noise in (0.02, 0.05, 0.1):
        for answers, texts in TEXTS.items():
            rate = exact(Kind(16, texts, noise, changed=False))
            print(f"noise {noise:.0%}, {answers}: false alarms {100 * rate:.2f} %")
    for name, words in MOCK_WORDS.items() if options.mock else ():
        for weights in ("", "B"):
            refused = 0
            for _ in range(options.mock):
                with tempfile.TemporaryDirectory() as folder:
                    refused += run_mock(Path(folder), weights, words)
            print(f"real servers, {name}, weights '{weights}': {refused} of {options.mock} found changed")


if __name__ == "__main__":
    main()
