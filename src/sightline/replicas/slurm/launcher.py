"""--on slurm[:PROFILE]: replicas as jobs of an array, which come and go as Slurm decides."""

from __future__ import annotations

import asyncio
import time

from sightline.config import DEFAULT_FILE, Config, SlurmProfile
from sightline.errors import EnvironmentFailedError, UserError, unknown_name
from sightline.models.served import Served
from sightline.output import print_note
from sightline.replicas.base import Joined, Left, Target
from sightline.replicas.slurm import commands
from sightline.replicas.slurm.attached import Attached, attach
from sightline.replicas.slurm.commands import Job, SlurmError
from sightline.replicas.slurm.run_folder import folder_of, open_run_folder, run_folder_name
from sightline.replicas.slurm.script import batch_script, server_words

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
        """The script that would be submitted."""
        folder = folder_of(self._profile) / self._folder_name
        return batch_script(self._target, self._profile, name=f"sightline-{folder.name}", folder=folder)

    async def run(self, joined: Joined, left: Left) -> None:
        """Keep the jobs in the queue until cancelled, then cancel them."""
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
            found = await commands.jobs(self._folder.name)
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
            await commands.check(self._folder.script)
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
            array = await commands.submit(self._folder.script, missing)
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
        """Look at the queue and the servers again and again."""
        began = noted = answered = time.monotonic()
        while True:
            await asyncio.sleep(self._profile.poll)
            now = time.monotonic()
            try:
                found = await commands.jobs(self._folder.name)
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
            is_healthy = await server.is_healthy()
            self._missed[task] = 0 if is_healthy else self._missed.get(task, 0) + 1
            if self._missed[task] >= UNREACHABLE_POLLS:
                await self._detach(task, "its server does not answer")
            if not (is_healthy and server.replica.is_lost):
                return
            # A request has reported it as lost, but it lives, so it joins again.
            await self._attached.pop(task).close()
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
        await server.close()

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
                await commands.cancel_job(task)
            except SlurmError as error:
                print_note(f"{self._target.model.name}: Slurm did not cancel job {task} ({error})")

    def _never_ready(self, task: str, why: str) -> UserError:
        lines = self._folder.last_lines(task)
        return UserError(
            f"{self._target.model.name} on {self.place}: {why}; the end of the log of job {task}:",
            quoted=lines or ["  (no line)"],
        )

    async def _end(self) -> None:
        """Cancel the jobs that are left, and remove the folder."""
        for server in self._attached.values():
            await server.close()
        self._attached.clear()
        if not self._has_jobs:
            self._folder.close(remove=self._has_jobs is False)
            return
        cancelled = True
        try:
            await commands.cancel(self._folder.name)
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
