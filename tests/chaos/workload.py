"""What is disturbed: commands over one groups file, a server that logs, and the results that are expected."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from tests.chaos.full_disk import FullDisk
from tests.chaos.victim import work
from tests.postgres_server import PostgresServer

from sightline.maintenance.verify import verify
from sightline.store import schema
from sightline.store.database import NoStoreError
from sightline.store.store import Store

HERE = Path(__file__).resolve().parent
NAMES = ("run", "judge", "score", "sweep", "merge")
GROUPS, VARIANTS = 40, 3
CONCURRENCY = 6

# Processes are forked from one that has imported everything: starting Python takes longer than a trial.
_processes = get_context("forkserver")
_processes.set_forkserver_preload(["tests.chaos.preloaded"])
Process = ForkServerProcess


class Server:
    """The model server, as a process of its own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen([sys.executable, str(HERE / "server.py")], stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.address = f"127.0.0.1:{int(self._process.stdout.readline())}"

    def log(self) -> list[dict[str, Any]]:
        """Every request since the reset, in the order of arrival."""
        with urllib.request.urlopen(f"http://{self.address}/log") as reply:
            found: list[dict[str, Any]] = json.load(reply)
            return found

    def reset(self, fault: str = "busy") -> None:
        """Empty the log; `fault` is a name of `server.FAULTS`."""
        urllib.request.urlopen(f"http://{self.address}/reset", fault.encode()).close()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


class Workload:
    """A folder with the data of the commands. `prepare` a command before it is disturbed."""

    def __init__(
        self, folder: Path, server: Server, lease: float, postgres: PostgresServer | None = None
    ) -> None:
        """Write the data.

        Args:
            folder: The folder.
            server: The model server.
            lease: How long a claim holds, in seconds.
            postgres: Where the stores of trials are; None: in files.
        """
        self._folder = folder
        self._server = server
        self._lease = lease
        self._postgres = postgres
        self._expected: dict[str, Any] = {}
        self._writes: dict[str, int] = {}
        folder.mkdir(parents=True, exist_ok=True)
        lines = [
            {
                "group": f"g{group}",
                "variant": f"r{variant}",
                "prompt": f"How many dots has image {group}? Wording {variant}.",
                "references": [str(group % 7)],
            }
            for group in range(GROUPS)
            for variant in range(VARIANTS)
        ]
        (folder / "groups.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (folder / "sightline.toml").write_text(f'[hosts."{server.address}"]\nkey = "CHAOS_SENDER"\n')

    def start(
        self, name: str, sender: str, store: str, *, skew: float = 0.0, out: str | None = None
    ) -> Process:
        """Start a command, whose requests the server logs under the sender; `out` is another's results."""
        process = _processes.Process(target=work, args=self.arguments(name, sender, store, skew, out))
        process.start()
        return process

    def arguments(
        self, name: str, sender: str, store: str, skew: float = 0.0, out: str | None = None
    ) -> tuple[Sequence[str], Path, str, float, float]:
        """What `victim.work` gets for a command."""
        return (
            self._words(name, self._folder / (out or sender), store),
            self._folder,
            sender,
            self._lease,
            skew,
        )

    def writes(self, name: str) -> int:
        """How many writes a command makes."""
        if name not in self._writes:
            sender = f"counted-{name}"
            ended = self.disk.run(self.arguments(name, sender, self._file(sender)))
            assert ended.status == 0, self.output(sender)
            self._writes[name] = ended.writes
        return self._writes[name]

    @cached_property
    def disk(self) -> FullDisk:
        """A disk that can become full."""
        return FullDisk(self._folder)

    def check_whole(self, name: str, sender: str, store: str) -> None:
        """Fail if a command that ended on a full disk left anything half-written."""
        if name != "merge" and (self._folder / sender / "metrics.json").exists():
            self.check(name, sender, store)
        with suppress(NoStoreError):
            faults = list(verify(store, show_progress=False))
            assert not faults, faults

    def check_no_leftovers(self, sender: str) -> None:
        """Fail if files in progress remain in a results folder, or beside it."""
        files = [*self._folder.glob(f".{sender}*.tmp"), *(self._folder / sender).rglob(".*.tmp")]
        assert not files, files

    def prepare(self, name: str) -> None:
        """Make what a command needs, and what it gives undisturbed."""
        if name in self._expected:
            return
        if name == "merge":
            self.prepare("run")
            self.prepare("sweep")
        if name == "score":
            self.prepare("judge")
            shutil.copy(self._folder / "expected-judge" / "answers.jsonl", self._folder / "answers.jsonl")
        sender = f"expected-{name}"
        store = self._file(sender)
        process = self.start(name, sender, store)
        process.join()
        assert process.exitcode == 0, self.output(sender)
        self._expected[name] = self._results(name, sender, store)

    def check(self, name: str, sender: str, store: str) -> None:
        """Fail unless a command gave the results that are expected."""
        assert self._results(name, sender, store) == self._expected[name], f"other results: {sender}"

    def output(self, sender: str) -> str:
        """What a command printed."""
        return (self._folder / f"{sender}.log").read_text()

    def store(self, name: str) -> str:
        """The path or URL of a new store."""
        if self._postgres is not None:
            return self._postgres.url(self._postgres.create_database())
        return self._file(name)

    def _file(self, name: str) -> str:
        return str(self._folder / f"{name}.db")

    def _words(self, name: str, out: Path, store: str) -> Sequence[str]:
        if name == "merge":
            return ["store", "merge", "expected-run.db", "expected-sweep.db", "--into", store, "--quiet"]
        command = "run" if name == "judge" else name
        words = [command, "groups:groups.jsonl"]
        if name == "score":
            words += ["answers.jsonl"]
        else:
            words += ["--model", f"http://{self._server.address}/v1#chaos"]
        if name in ("judge", "score"):
            words += ["--judge", f"http://{self._server.address}/v1#judge"]
        if name == "sweep":
            words += ["--gen", "temperature=0,0.5"]
        words += ["--set", "embedder=none", "--concurrency", str(CONCURRENCY), "--fingerprint", "off"]
        return [*words, "--quiet", "--store", store, "--out", str(out)]

    def _results(self, name: str, sender: str, store: str) -> Any:
        if name == "merge":
            return _rows(store)
        folder = self._folder / sender
        files = sorted(file for file in folder.rglob("*") if file.suffix in (".json", ".jsonl"))
        return {str(file.relative_to(folder)): _without_times(file.read_text()) for file in files}


def _without_times(text: str) -> str:
    """A file of results without the time that answers took, and the digests of the files that say it."""
    times = r'"(?:latency|p50|p95)": ?[0-9.e-]+|"(?:answers\.jsonl|report\.md)": ?"[0-9a-f]{64}"'
    return re.sub(times, "", text)


def _rows(url: str) -> dict[str, int]:
    """How many rows a store has of what a merge copies."""
    store = Store.open(url, create=False)
    tables = (schema.answers, schema.runs, schema.probes, schema.verdicts)
    with store.database.read() as connection:
        counted = {
            table.name: connection.core.execute(select(func.count()).select_from(table)).scalar_one()
            for table in tables
        }
    store.close()
    return counted
