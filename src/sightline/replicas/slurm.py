"""--on slurm[:PROFILE]: replicas as jobs of an array, which come and go as Slurm decides."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import IO, NamedTuple

import msgspec
from msgspec import Struct

from sightline.config import DEFAULT_FILE, Config, SlurmProfile, cache_folder
from sightline.errors import EnvironmentFailedError, UserError, unknown_name
from sightline.models.base import ServerReport, read_server_report
from sightline.models.http_client import CallError, HTTPClient, Timeouts
from sightline.models.served import KEY_OF_SERVER, Served, launch_with_key
from sightline.replicas.fleet import HEALTH_SECONDS, Joined, Left, RemoteReplica, Target, is_healthy
from sightline.replicas.worker_client import KEY_VARIABLE, WorkerClient, read_key, worker_words, write_key
from sightline.text import print_note
from sightline.types import Answer, Failure, Request

NOTE_SECONDS = 60.0
"""How often the state of jobs is printed while no replica runs."""

MAX_SILENCE = 600.0
"""Seconds without an answer of Slurm after which a run without replicas ends."""

UNREACHABLE_POLLS = 3
"""Polls in which a server may be silent before it counts as lost."""

NEVER = frozenset(
    {
        "BadConstraints",
        "DependencyNeverSatisfied",
        "InvalidAccount",
        "InvalidQOS",
        "PartitionNodeLimit",
        "PartitionTimeLimit",
    }
)
"""Slurm's reasons to wait that do not pass."""

EXPLAINED = frozenset({"BOOT_FAIL", "CANCELLED", "CONFIGURING", "DEADLINE", "NODE_FAIL", "PENDING",
                       "PREEMPTED", "REQUEUED", "REQUEUE_HOLD", "RESIZING", "REVOKED", "SIGNALING", "STOPPED",
                       "SUSPENDED", "TIMEOUT"})  # fmt: skip
"""The states of a job whose server no request has ended."""

DEFAULT = "default"


def launcher(target: Target, rest: str, config: Config) -> SlurmLauncher:
    """Create the launcher of `--on slurm[:PROFILE]`; nothing is submitted."""
    profiles = config.slurm
    name = rest or (next(iter(profiles)) if len(profiles) == 1 else DEFAULT)
    if name in profiles:
        _check_processes(target, profiles[name], name)
        return SlurmLauncher(target, profiles[name], name)
    if rest and not profiles:
        raise UserError(
            f"--on slurm:{rest}: {DEFAULT_FILE} has no profile",
            expected=f"[slurm.{rest}] in {DEFAULT_FILE} of this folder (docs/cluster.md)",
        )
    if rest:
        raise unknown_name("profile of --on slurm", rest, profiles)
    if profiles:
        raise UserError(
            f"--on slurm: {DEFAULT_FILE} has several profiles and none is called {DEFAULT}",
            expected=" or ".join(f"--on slurm:{known}" for known in sorted(profiles)),
        )
    return SlurmLauncher(target, SlurmProfile(), name)


def _check_processes(target: Target, profile: SlurmProfile, name: str) -> None:
    """Refuse `processes` for a server: its job would use one of the GPUs that it reserves."""
    if profile.processes > 1 and isinstance(target.model, Served):
        raise UserError(
            f"has no effect on {target.spec}",
            file=DEFAULT_FILE,
            record=f"[slurm.{name}]",
            field="processes",
            found=profile.processes,
            expected="a profile without it; --model-arg flags=... gives the server several GPUs, such as"
            f' flags="--data-parallel-size {profile.processes}"',
        )


class SlurmLauncher:
    """Keeps jobs in the queue, and tells which of their servers answer."""

    def __init__(self, target: Target, profile: SlurmProfile, name: str) -> None:
        self.place = f"Slurm, profile {name}"
        self.replicas = profile.replicas
        self._target = target
        self._profile = profile
        self._folder_name = run_folder_name(target, profile, server_words(target, profile))
        self._attached: dict[str, Attached] = {}
        self._missed: dict[str, int] = {}
        self._began: dict[str, float] = {}
        self._ended: set[str] = set()
        self._earlier: set[str] = set()
        self._ever_ready = False
        # None: unknown, as long as Slurm has not answered.
        self._has_jobs: bool | None = None
        self._left_to_resubmit = profile.resubmits * profile.replicas

    @property
    def script(self) -> str:
        folder = folder_of(self._profile) / self._folder_name
        return batch_script(self._target, self._profile, name=f"sightline-{folder.name}", folder=folder)

    async def run(self, joined: Joined, left: Left) -> None:
        self._joined, self._left = joined, left
        self._folder = folder = open_run_folder(self._folder_name, self._profile)
        try:
            script = batch_script(self._target, self._profile, name=folder.name, folder=folder.path)
            folder.script.write_text(script)
            await self._submit_missing(await self._first_look(), first=True)
            await self._watch()
        finally:
            await asyncio.shield(asyncio.ensure_future(self._end()))

    async def _first_look(self) -> list[Job]:
        """The jobs of an earlier driver that still live; without any, a check that Slurm accepts new ones."""
        try:
            found = await list_jobs(self._folder.name)
        except SlurmError as error:
            raise UserError(
                f"--on slurm: Slurm does not answer: {error}", expected="a machine on which squeue works"
            ) from None
        jobs = [job for job in found if job.is_alive and not job.is_ending]
        self._earlier = {job.task for job in found} - {job.task for job in jobs}
        self._has_jobs = bool(jobs)
        if jobs:
            print_note(f"{self._target.model.name}: uses the jobs of an earlier run ({len(jobs)})")
            return jobs
        try:
            await check(self._folder.script)
        except SlurmError as error:
            raise self._refused(error) from None
        return []

    async def _submit_missing(self, alive: list[Job], *, first: bool = False) -> None:
        missing = self._profile.replicas - len(alive)
        if not first:
            missing = min(missing, self._left_to_resubmit)
        if missing <= 0:
            return
        # Slurm may accept jobs and then be interrupted before it says so.
        self._has_jobs = True
        try:
            array = await submit(self._folder.script, missing)
        except SlurmError as error:
            if first:
                raise self._refused(error) from None
            print_note(f"{self._target.model.name}: Slurm accepts no more jobs now ({error})")
            return
        if not first:
            self._left_to_resubmit -= missing
        again = "" if first else " in place of those that ended"
        print_note(
            f"{self._target.model.name}: submitted {missing} job{'s' * (missing != 1)}{again}: array {array};"
            f" logs: {self._folder.path}"
        )

    def _refused(self, error: SlurmError) -> UserError:
        return UserError(
            f"--on slurm: {self.place} cannot be used: {error}",
            expected=f"fields of the profile in {DEFAULT_FILE} that this cluster accepts",
        )

    async def _watch(self) -> None:
        began = noted = answered = time.monotonic()
        while True:
            await asyncio.sleep(self._profile.poll)
            now = time.monotonic()
            try:
                found = await list_jobs(self._folder.name)
                answered = now
            except SlurmError as error:
                await asyncio.gather(*map(self._look_at, list(self._attached)))
                if not self._attached and now - answered > MAX_SILENCE:
                    raise EnvironmentFailedError(f"Slurm does not answer: {error}") from None
                if now - noted > NOTE_SECONDS:
                    noted = now
                    print_note(f"{self._target.model.name}: Slurm does not answer ({error})")
                continue
            jobs = [job for job in found if job.task not in self._earlier]
            await self._update(jobs)
            alive = [job for job in jobs if job.is_alive]
            self._check_progress(jobs, alive)
            await self._cancel_late()
            await self._submit_missing(alive)
            if not self._attached and now - noted > NOTE_SECONDS:
                noted = now
                print_note(
                    f"{self._target.model.name}: no replica since {now - began:.0f} s: {_counted(alive)}"
                )
            began = now if self._attached else began

    async def _update(self, jobs: list[Job]) -> None:
        """Attach to servers that have become ready; let go of those that have ended."""
        running = {job.task: job for job in jobs if job.state == "RUNNING"}
        states = {job.task: job for job in jobs}
        for task in [task for task in self._attached if task not in running]:
            job = states.get(task)
            if job is None:
                await self._detach(task, "the job has ended")
            elif job.state == "COMPLETING":
                # Its next state says why it has ended.
                self._attached[task].replica.lose("the job is completing")
            else:
                reason = f"the job is {job.state.lower()}"
                await self._detach(task, reason, is_explained=job.state in EXPLAINED)
        for task in [task for task in self._began if task not in running]:
            del self._began[task]
        await asyncio.gather(*map(self._look_at, running))

    async def _look_at(self, task: str) -> None:
        """Attach to the server of a running job, or check the one that it has."""
        self._began.setdefault(task, time.monotonic())
        announced = self._folder.announcement(task)
        server = self._attached.get(task)
        if server is not None and announced != server.announcement:
            await self._detach(task, "the job has started again", is_explained=True)
        elif server is not None:
            is_healthy = await server.replica.is_healthy()
            self._missed[task] = 0 if is_healthy else self._missed.get(task, 0) + 1
            if self._missed[task] >= UNREACHABLE_POLLS:
                await self._detach(task, "its server does not answer")
            if not (is_healthy and server.replica.is_lost):
                return
            # A request has reported it as lost, but it lives, so it joins again.
            await self._attached.pop(task).opened.aclose()
        if announced is None:
            return
        server = await attach(self._target, task, announced, self._folder.key)
        if server is not None:
            self._attached[task] = server
            self._missed[task] = 0
            self._ever_ready = True
            self._joined(server.replica)

    async def _detach(self, task: str, reason: str, *, is_explained: bool = False) -> None:
        server = self._attached.pop(task)
        self._began[task] = time.monotonic()
        server.replica.lose(reason)
        self._left(server.replica.name, reason, is_explained=is_explained)
        await server.opened.aclose()

    def _check_progress(self, jobs: list[Job], alive: list[Job]) -> None:
        """Raise where no replica can run any more, or none could start."""
        ended = [job for job in jobs if not job.is_alive and job.task not in self._ended]
        self._ended |= {job.task for job in ended}
        if not self._ever_ready:
            if len(self._ended) >= self._profile.replicas and not alive and ended:
                raise self._never_ready(ended[-1].task, f"every job has ended ({ended[-1].state.lower()})")
            if late := self._late():
                raise self._never_ready(late[0], f"no server was ready within {self._profile.startup:g} s")
            stuck = [job for job in alive if job.reason.strip("()") in NEVER]
            if stuck and len(stuck) == len(alive):
                raise UserError(
                    f"--on slurm: Slurm never starts the jobs: {stuck[0].reason}",
                    expected=f"fields of the profile in {DEFAULT_FILE} that its partition allows",
                )
        if not alive and self._left_to_resubmit <= 0:
            raise EnvironmentFailedError(
                f"{self._target.model.name}: every job has ended, and none is submitted any more"
                f" (resubmits for each replica: {self._profile.resubmits})"
            )

    def _late(self) -> list[str]:
        """The running jobs that have had no server for longer than one takes to start."""
        earliest = time.monotonic() - self._profile.startup
        return [
            task for task, began in self._began.items() if task not in self._attached and began < earliest
        ]

    async def _cancel_late(self) -> None:
        """Cancel running jobs without a server; others are submitted in their place."""
        for task in self._late():
            why = f"job {task} has had no server for {self._profile.startup:g} s and is cancelled"
            print_note(f"{self._target.model.name}: {why}; its log: {self._folder.path / task}.log")
            # Slurm may take a while to end it.
            self._began[task] = time.monotonic()
            try:
                await cancel_job(task)
            except SlurmError as error:
                print_note(f"{self._target.model.name}: Slurm did not cancel job {task} ({error})")

    def _never_ready(self, task: str, why: str) -> UserError:
        lines = self._folder.last_lines(task)
        return UserError(
            f"{self._target.model.name} on {self.place}: {why}; the end of the log of job {task}:",
            quoted=lines or ["  (no line)"],
        )

    async def _end(self) -> None:
        for server in self._attached.values():
            await server.opened.aclose()
        self._attached.clear()
        if not self._has_jobs:
            self._folder.close(remove=self._has_jobs is False)
            return
        cancelled = True
        try:
            await cancel(self._folder.name)
        except SlurmError as error:
            cancelled = False
            print_note(
                f"{self._target.model.name}: the jobs could not be cancelled ({error});"
                f" scancel --name={self._folder.name} does it"
            )
        self._folder.close(remove=cancelled)


def _counted(alive: list[Job]) -> str:
    """What the jobs do, as '1 pending (Resources), 1 starting'."""
    counts: dict[str, int] = {}
    for job in alive:
        reason = job.reason.strip("()")
        state = "starting" if job.state == "RUNNING" else job.state.lower()
        label = f"{state} ({reason})" if reason not in ("", "None") else state
        counts[label] = counts.get(label, 0) + 1
    return (
        ", ".join(f"{count} {label}" for label, count in sorted(counts.items())) or "no job is in the queue"
    )


# -- A connection to the server of one job


class Attached(NamedTuple):
    """A server that is ready: its replica, and its open connection."""

    announcement: Announcement
    replica: RemoteReplica
    opened: AsyncExitStack


async def attach(target: Target, task: str, announced: Announcement, key: str) -> Attached | None:
    """Connect to the server of a job; None while it is not ready."""
    host = f"[{announced.host}]" if ":" in announced.host else announced.host
    address = f"http://{host}:{announced.port}"
    model = target.model
    served = model.command.served_name if isinstance(model, Served) else model.name
    report = await _report(address, served, key) if await is_healthy(address) else None
    if report is None or report.id is None:
        return None
    name = f"job {task} on {announced.node}"
    if not isinstance(model, Served) and report.root != target.weights:
        raise UserError(
            f"{model.name} on {name} is not the model of this machine",
            found=report.root,
            expected=f"{target.weights}: the same files and the same version of Sightline on all nodes",
        )
    async with AsyncExitStack() as stack:
        if isinstance(model, Served):
            endpoint = await stack.enter_async_context(model.connect(f"{address}/v1", key))

            async def send(request: Request) -> Answer | Failure:
                async for _, result in endpoint.answer([request]):
                    return result
                return Failure("transient", f"{name} gave no answer to this request")
        else:
            send = (await stack.enter_async_context(WorkerClient(address, served, key))).send
        return Attached(announced, RemoteReplica(name, address, send), stack.pop_all())


async def _report(address: str, model: str, key: str) -> ServerReport | None:
    """What a server says about our model; None if it does not know our key: another one may have the port."""
    try:
        async with aclosing(HTTPClient(address, key, Timeouts(HEALTH_SECONDS, HEALTH_SECONDS))) as client:
            reply = await client.call("/v1/models")
    except CallError:
        return None
    return read_server_report(reply.body, address, model) if reply.status == 200 and reply.is_whole else None


# -- The commands of Slurm: sbatch, squeue and scancel

SECONDS = 60.0
"""How long a command may take."""

ALIVE = frozenset({"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING",
                   "STAGE_OUT", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT",
                   "RESV_DEL_HOLD"})  # fmt: skip
"""The states of a job that has not ended."""

_KEPT = ("SLURM_CONF", "SLURM_CLUSTERS")


class Job(Struct, frozen=True):
    """One job of an array."""

    task: str
    state: str
    reason: str

    @property
    def is_alive(self) -> bool:
        return self.state in ALIVE

    @property
    def is_ending(self) -> bool:
        """Whether its processes are ending; if Slurm puts it back into the queue, it may run again."""
        return self.state == "COMPLETING"


class SlurmError(Exception):
    """A command of Slurm failed; the text is what it said."""


async def submit(script: Path, count: int) -> str:
    said = await _run("sbatch", "--parsable", f"--array=0-{count - 1}", str(script))
    return said.strip().splitlines()[-1].partition(";")[0]


async def check(script: Path) -> None:
    """Ask Slurm whether the jobs of a script could run."""
    await _run("sbatch", "--test-only", str(script))


async def list_jobs(name: str) -> list[Job]:
    said = await _run("squeue", "-h", "-r", "-a", "-t", "all", f"--name={name}", "-o", "%i|%T|%r")
    lines = [line.strip().split("|", 2) for line in said.splitlines()]
    return [Job(*line) for line in lines if len(line) == 3 and "_" in line[0]]


async def cancel(name: str) -> None:
    await _run("scancel", f"--name={name}")


async def cancel_job(task: str) -> None:
    await _run("scancel", task)


async def _run(*words: str) -> str:
    """Run a command; a driver that is itself a job does not hand its own settings on."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or not name.startswith(("SLURM_", "SBATCH_", "SQUEUE_", "SCANCEL_"))
    }
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
        )
    except FileNotFoundError:
        raise UserError(
            f"--on slurm: there is no program {words[0]} on this machine",
            expected="a machine from which jobs can be submitted",
        ) from None
    try:
        async with asyncio.timeout(SECONDS):
            out, errors = await process.communicate()
    except TimeoutError:
        raise SlurmError(f"{words[0]} gave no answer within {SECONDS:g} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    if process.returncode:
        raise SlurmError(_said(words, errors))
    return out.decode("utf-8", "replace")


def _said(words: Sequence[str], errors: bytes) -> str:
    text = "; ".join(line.strip() for line in errors.decode("utf-8", "replace").splitlines() if line.strip())
    return text or f"{words[0]} failed"


# -- The folder that driver and nodes share: key, script, logs, and a file of each server that has started

LOG_BYTES = 4096
LOG_LINES = 15
REMOVAL_SECONDS = 5
"""How long a driver that has cancelled its jobs tries to remove the folder."""
_NOT_IN_SCRIPTS = frozenset('"\\\n')


class Announcement(Struct, frozen=True):
    """What a job writes before its server starts."""

    host: str
    port: int
    node: str
    restart: int


class RunFolder:
    """The folder of one driver at a time: a restarted driver finds the servers of the one before it."""

    def __init__(self, path: Path, lock: IO[str], key: str) -> None:
        self.path = path
        self.name = f"sightline-{path.name}"
        """The name of the jobs: that of the folder."""
        self.key = key
        self.script = path / "replica.sh"
        self._lock = lock

    def announcement(self, task: str) -> Announcement | None:
        try:
            return msgspec.json.decode((self.path / f"{task}.json").read_bytes(), type=Announcement)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None

    def last_lines(self, task: str) -> list[str]:
        try:
            content = (self.path / f"{task}.log").read_bytes()[-LOG_BYTES:]
        except OSError:
            return []
        lines = content.decode("utf-8", "replace").splitlines()
        return [f"  {line}" for line in lines if line.strip()][-LOG_LINES:]

    def close(self, *, remove: bool) -> None:
        if remove:
            # A job that ends may write its log or file meanwhile, and so keep the folder.
            until = time.monotonic() + REMOVAL_SECONDS
            shutil.rmtree(self.path, ignore_errors=True)
            while self.path.exists() and time.monotonic() < until:
                time.sleep(0.1)
                shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def run_folder_name(target: Target, profile: SlurmProfile, command: list[str]) -> str:
    told = [target.model.identity, profile, command, os.getcwd()]
    return sha256(msgspec.json.encode(told)).hexdigest()[:12]


def open_run_folder(name: str, profile: SlurmProfile) -> RunFolder:
    root = folder_of(profile)
    for number in count(1):
        path = root / (name if number == 1 else f"{name}-{number}")
        try:
            lock = _locked(path)
            if lock is not None:
                return RunFolder(path, lock, _key(path / "key"))
        except OSError as error:
            raise UserError(
                f"the folder of --on slurm cannot be written ({error.strerror})",
                file=path,
                expected="[slurm.PROFILE] folder: a folder that this machine and the nodes share",
            ) from None
    raise AssertionError


def folder_of(profile: SlurmProfile) -> Path:
    root = Path(profile.folder).expanduser() if profile.folder else cache_folder() / "slurm"
    if wrong := sorted({character for character in str(root.absolute()) if character in _NOT_IN_SCRIPTS}):
        raise UserError(
            f"the folder of --on slurm has {' and '.join(map(repr, wrong))} in its name",
            file=root,
            expected="[slurm.PROFILE] folder: a name that sbatch can read",
        )
    return root.absolute()


def _locked(path: Path) -> IO[str] | None:
    """Make a folder and lock it; None while another driver uses it."""
    while True:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            lock = (path / "driver").open("a")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A driver that ends removes the folder, and its lock with it.
                if os.path.samestat(os.fstat(lock.fileno()), (path / "driver").stat()):
                    return lock
            except BlockingIOError:
                lock.close()
                return None
            except OSError:
                lock.close()
                raise
            lock.close()


def _key(file: Path) -> str:
    try:
        return write_key(file)
    except FileExistsError:
        return read_key(file)


# -- The sbatch script of a replica: it announces address and port, then becomes the server


def server_words(target: Target, profile: SlurmProfile) -> list[str]:
    model = target.model
    python = profile.python or sys.executable
    if not isinstance(model, Served):
        words = [python, *worker_words(target.spec, target.args)]
        return words if profile.processes == 1 else [*words, "--processes", str(profile.processes)]
    return launch_with_key(model.command.command, shlex.split(profile.python))


def batch_script(target: Target, profile: SlurmProfile, *, name: str, folder: Path) -> str:
    shared = shlex.quote(str(folder))
    words = [*shlex.split(profile.container), *server_words(target, profile)]
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH {flag}" for flag in _flags(profile, name, folder)),
            f"folder={shared}",
            "task=${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}",
            'rm -f "$folder/$task.json"',
            *profile.setup,
            f'export {KEY_VARIABLE}="$(cat "$folder/key")"',
            f'export {KEY_OF_SERVER}="${KEY_VARIABLE}"',
            f"host={profile.address}",
            "while port=$((20000 + RANDOM % 12000)); (: < /dev/tcp/127.0.0.1/$port) 2>/dev/null; do :; done",
            """printf '{"host":"%s","port":%d,"node":"%s","restart":%d}' "$host" "$port" \\""",
            '  "$SLURMD_NODENAME" "${SLURM_RESTART_COUNT:-0}" > "$folder/.$task"',
            'mv "$folder/.$task" "$folder/$task.json"',
            f'exec {shlex.join(words)} --host 0.0.0.0 --port "$port"',
            "",
        ]
    )


def _flags(profile: SlurmProfile, name: str, folder: Path) -> list[str]:
    named = {
        "partition": profile.partition,
        "account": profile.account,
        "qos": profile.qos,
        "time": profile.time,
        "gres": profile.gres,
        "cpus-per-task": profile.cpus,
        "mem": profile.mem,
    }
    return [
        f"--job-name={name}",
        f"--array=0-{profile.replicas - 1}",
        f"--nodes={profile.nodes}",
        *(f"--{flag}={value}" for flag, value in named.items() if value is not None),
        "--requeue",
        "--open-mode=append",
        f'--output="{str(folder).replace("%", "%%")}/%A_%a.log"',
        *profile.flags,
    ]
