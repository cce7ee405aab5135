"""What is submitted to Slurm, and how profiles are read; without a cluster."""

from __future__ import annotations

import asyncio
import fcntl
import shutil
import stat
import subprocess
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.main import main
from sightline.config import Config, SlurmProfile, load_config
from sightline.errors import EnvironmentFailedError, UserError
from sightline.models.offline import ChanceBaseline
from sightline.models.openai import OpenAICompatible
from sightline.models.registry import ModelOptions, resolve
from sightline.models.served import Served
from sightline.replicas import slurm
from sightline.replicas import slurm as launchers
from sightline.replicas.fleet import RemoteReplica, Target
from sightline.replicas.slurm import (
    Announcement,
    Attached,
    Job,
    RunFolder,
    SlurmLauncher,
    batch_script,
    launcher,
    open_run_folder,
)
from sightline.types import Answer, Request
from training.scenes.build import generate_iibench

FOLDER = Path("/shared/run")


def target(spec: str = "mini", **args: Any) -> Target:
    options = ModelOptions(args=args, elsewhere=True)
    model = ChanceBaseline(0) if spec == "mini" else resolve(spec, options)[0]
    return Target(model=model, spec=spec, args=args, weights=model.identity)


def script(profile: SlurmProfile, spec: str = "mini", **args: Any) -> str:
    return batch_script(target(spec, **args), profile, name="sightline-run", folder=FOLDER)


def test_the_script_has_the_fields_of_the_profile() -> None:
    profile = SlurmProfile(
        replicas=4,
        processes=8,
        partition="gpu",
        account="lab",
        qos="high",
        time="4:00:00",
        gres="gpu:8",
        cpus=16,
        mem="200G",
        flags=("--constraint=a100",),
        setup=("module load cuda",),
        python="/envs/s/bin/python",
    )
    lines = script(profile, dtype="bfloat16").splitlines()
    for flag in (
        "--array=0-3", "--nodes=1", "--partition=gpu", "--account=lab", "--qos=high", "--time=4:00:00",
        "--gres=gpu:8", "--cpus-per-task=16", "--mem=200G", "--requeue", "--constraint=a100",
    ):  # fmt: skip
        assert f"#SBATCH {flag}" in lines
    assert "module load cuda" in lines
    assert lines[-1] == (
        "exec /envs/s/bin/python -m sightline worker --model mini --log-requests"
        """ --model-arg 'dtype="bfloat16"' --processes 8 --host 0.0.0.0 --port "$port\""""
    )


def test_the_script_is_bash() -> None:
    text = script(SlurmProfile(setup=('echo "it\'s"',)), adapter="my 'folder'; rm -rf $HOME")
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    words = text.splitlines()[-1].partition("exec ")[2].partition(" --host")[0]
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {words}"], capture_output=True, text=True, check=True
    )
    assert """adapter="my 'folder'; rm -rf $HOME\"""" in done.stdout.splitlines()


@pytest.mark.parametrize("spec", ["vllm/org/llava", "sglang/org/llava"])
def test_a_server_runs_in_a_container_and_gets_its_key_by_the_environment(spec: str) -> None:
    profile = SlurmProfile(container="apptainer exec --nv server.sif")
    text = script(profile, spec, flags="--tensor-parallel-size 2")
    last = text.splitlines()[-1]
    program = "vllm serve" if spec.startswith("vllm") else "python3 -c"
    assert last.startswith(f"exec apptainer exec --nv server.sif {program}")
    assert last.endswith('org/llava --tensor-parallel-size 2 --host 0.0.0.0 --port "$port"')
    assert 'export VLLM_API_KEY="$SIGHTLINE_WORKER_KEY"' in text.splitlines()
    assert "$VLLM_API_KEY" not in last
    assert "-m sglang" not in last


def test_a_server_on_a_node_is_asked_without_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proxy would see the key and the images, and may not reach the nodes."""
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    served = target("vllm/org/llava").model
    assert isinstance(served, Served)
    assert served.connect("http://gpu1:20000/v1", "key").proxy is None
    (endpoint,) = resolve("http://gpu1:8000/v1#llava", ModelOptions())
    assert isinstance(endpoint, OpenAICompatible)
    assert endpoint.proxy == "http://proxy:3128"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "partitoin = 'gpu'",
            r"unknown field 'partitoin', did you mean 'partition'\?; expected one of replicas,",
        ),
        ("replicas = 0", r"field replicas: Expected `int` >= 1 \(found 0\)"),
        ("time = 4", "field time: Expected `str | null`, got `int`"),
        ('partition = "gpu\\n#SBATCH --uid=0"', "field partition"),
        ('account = "a b"', "field account"),
        ('flags = ["constraint=a100"]', r"field flags\[0\]"),
        ('setup = ["a\\nb"]', r"field setup\[0\]"),
    ],
)
def test_a_wrong_field_of_a_profile_is_an_error_with_the_names_of_profile_and_field(
    tmp_path: Path, line: str, message: str
) -> None:
    file = tmp_path / "sightline.toml"
    file.write_text(f"[slurm.gpu]\n{line}\n")
    with pytest.raises(UserError, match=rf"sightline.toml, record \[slurm.gpu\].*{message}"):
        load_config(str(file))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[slrum.gpu]", r"unknown table \[slrum\], did you mean 'slurm'\?; expected .* or \[ray\]"),
        ("[ray]\ncpu = 1", r"record \[ray\]: unknown field 'cpu', did you mean 'cpus'\?"),
        ("[slurm]\nreplicas = 4", r"record \[slurm.replicas\]: Expected `object`, .* a table with replicas,"),
        ("slurm = 4", r"field slurm: is no table; expected"),
        (
            '[hosts."h:1"]\nbatch = {line = 1}',
            r'record \[hosts."h:1"\], field batch: .* expected one of lines,',
        ),
        ('[hosts.h]\nkey = ["sk-1"]', r"record \[hosts.h\], field key: Expected `str . null`, got `array`$"),
        ("[prices.m]\nprompt = inf", r"record \[prices.m\]: a price is a finite number"),
        ("[prices.m]\nprompt = 0.0000025", r"is a price per token: write 2.5, per million tokens"),
    ],
)
def test_a_wrong_table_is_an_error_with_its_name(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "sightline.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=message):
        load_config(str(file))


@pytest.mark.parametrize("spec", ["vllm/org/llava", "sglang/org/llava"])
def test_processes_of_a_profile_are_refused_for_a_server_that_uses_several_gpus_itself(spec: str) -> None:
    profile = SlurmProfile(processes=8)
    assert launcher(target(), "gpu", Config(slurm={"gpu": profile})).replicas == 1
    with pytest.raises(
        UserError, match=r"record \[slurm.gpu\], field processes: has no effect .* \(found 8\)"
    ):
        launcher(target(spec), "gpu", Config(slurm={"gpu": profile}))


def test_the_profile_is_the_named_one_the_only_one_or_the_default_one() -> None:
    one, two = SlurmProfile(replicas=2), SlurmProfile(replicas=3)
    assert launcher(target(), "", Config()).replicas == 1
    assert launcher(target(), "", Config(slurm={"gpu": one})).replicas == 2
    assert launcher(target(), "b", Config(slurm={"a": one, "b": two})).replicas == 3
    assert launcher(target(), "", Config(slurm={"a": one, "default": two})).replicas == 3
    with pytest.raises(UserError, match="did you mean 'gpu'"):
        launcher(target(), "gpus", Config(slurm={"gpu": one}))
    with pytest.raises(UserError, match=r"has no profile; expected \[slurm.gpu\] in sightline.toml"):
        launcher(target(), "gpu", Config())
    with pytest.raises(UserError, match="--on slurm:a or --on slurm:b"):
        launcher(target(), "", Config(slurm={"a": one, "b": two}))


def test_drivers_at_the_same_time_have_folders_of_their_own_and_later_ones_the_first(tmp_path: Path) -> None:
    profile = SlurmProfile(folder=str(tmp_path))
    first, second = open_run_folder("run", profile), open_run_folder("run", profile)
    assert (first.path.name, second.path.name) == ("run", "run-2")
    assert first.key != second.key
    assert stat.S_IMODE((first.path / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE(first.path.stat().st_mode) == 0o700
    first.close(remove=False)
    again = open_run_folder("run", profile)
    assert (again.path.name, again.key) == ("run", first.key)
    assert sorted(file.name for file in again.path.iterdir()) == ["driver", "key"]
    second.close(remove=True)
    assert not second.path.exists()


def test_a_folder_that_another_driver_removes_while_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock

    def removed_before(file: Any, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        shutil.rmtree(tmp_path / "run")
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", removed_before)
    profile = SlurmProfile(folder=str(tmp_path))
    first = open_run_folder("run", profile)
    assert first.path.is_dir()
    assert open_run_folder("run", profile).path.name == "run-2"


def test_the_log_of_a_job_is_in_the_folder_whatever_its_name_is() -> None:
    lines = batch_script(target(), SlurmProfile(), name="n", folder=Path("/a b/100%/c")).splitlines()
    assert '#SBATCH --output="/a b/100%%/c/%A_%a.log"' in lines
    with pytest.raises(UserError, match="folder: a name that sbatch can read"):
        open_run_folder("run", SlurmProfile(folder='/a"b'))


class Queue:
    """Slurm's commands in this process: each look at the queue is the next of a list, then the last one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *looks: list[Job]) -> None:
        self.submitted: list[int] = []
        self.cancelled = 0
        self.cancelled_jobs: list[str] = []
        self._looks = [[], *looks]
        for name in ("submit", "check", "list_jobs", "cancel", "cancel_job"):
            monkeypatch.setattr(slurm, name, getattr(self, name))

    async def submit(self, script: Path, count: int) -> str:
        self.submitted.append(count)
        return str(len(self.submitted))

    async def check(self, script: Path) -> None:
        pass

    async def list_jobs(self, name: str) -> list[Job]:
        return self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]

    async def cancel(self, name: str) -> None:
        self.cancelled += 1

    async def cancel_job(self, task: str) -> None:
        self.cancelled_jobs.append(task)


def run(folder: Path, *, seconds: float = 5, **fields: Any) -> None:
    profile = SlurmProfile(folder=str(folder), poll=0.2, **fields)

    async def session() -> None:
        async with asyncio.timeout(seconds):
            await SlurmLauncher(target(), profile, "test").run(
                lambda replica: None, lambda name, why, is_explained=False: None
            )

    asyncio.run(session())


def test_jobs_that_all_end_before_a_server_is_ready_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = Queue(
        monkeypatch, [Job("1_0", "PENDING", "Resources")], [Job("1_0", "FAILED", "NonZeroExitCode")]
    )
    with pytest.raises(UserError, match=r"every job has ended \(failed\)"):
        run(tmp_path)
    assert (queue.submitted, queue.cancelled) == ([1], 1)
    assert not list(tmp_path.iterdir())


def test_jobs_are_submitted_again_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def is_ready(*_: object) -> None:
        return None

    monkeypatch.setattr(launchers, "attach", is_ready)
    ended = [[Job(f"{n}_0", "TIMEOUT", "TimeLimit") for n in range(1, most + 1)] for most in range(1, 6)]
    queue = Queue(monkeypatch, *ended)
    monkeypatch.setattr(SlurmLauncher, "_never_ready", lambda *_: pytest.fail("a server was ready"))
    profile = SlurmProfile(folder=str(tmp_path), poll=0.2, resubmits=2)

    async def session() -> None:
        started = SlurmLauncher(target(), profile, "test")
        started._ever_ready = True
        async with asyncio.timeout(5):
            await started.run(lambda replica: None, lambda name, why, is_explained=False: None)

    with pytest.raises(EnvironmentFailedError, match="none is submitted any more"):
        asyncio.run(session())
    assert queue.submitted == [1, 1, 1]
    assert queue.cancelled == 1


@pytest.mark.slow
def test_jobs_of_an_earlier_driver_that_are_ending_are_neither_used_nor_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = [Job("1_0", "COMPLETING", "None")]
    queue = Queue(monkeypatch, ending, [Job("1_0", "CANCELLED", "None"), Job("2_0", "PENDING", "Priority")])
    queue._looks.pop(0)
    with pytest.raises(TimeoutError):
        run(tmp_path, seconds=1)
    assert queue.submitted == [1]


@pytest.mark.slow
def test_a_running_job_that_never_has_a_server_again_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def has_none(*_: object) -> None:
        return None

    monkeypatch.setattr(launchers, "attach", has_none)
    queue = Queue(monkeypatch, [Job("1_0", "RUNNING", "None")])
    started = SlurmLauncher(target(), SlurmProfile(folder=str(tmp_path), poll=0.2, startup=0.3), "test")
    started._ever_ready = True

    async def session() -> None:
        async with asyncio.timeout(1):
            await started.run(lambda replica: None, lambda name, why, is_explained=False: None)

    with pytest.raises(TimeoutError):
        asyncio.run(session())
    assert queue.cancelled_jobs[0] == "1_0"


class Healthy(RemoteReplica):
    """The replica of a server that is always healthy."""

    async def is_healthy(self) -> bool:
        return True


def seen_until(
    folder: Path, monkeypatch: pytest.MonkeyPatch, is_enough: Callable[[list[Any]], bool]
) -> list[Any]:
    """What a launcher calls, until that is enough: replicas that join, and (reason, is explained) of ends."""
    announced = Announcement("n1", 1, "n1", 0)

    async def attach(_: Target, task: str, announced: Announcement, key: str) -> Attached:
        async def send(_: Request) -> Answer:
            return Answer("")

        return Attached(announced, Healthy(f"job {task}", "", send), AsyncExitStack())

    monkeypatch.setattr(launchers, "attach", attach)
    monkeypatch.setattr(RunFolder, "announcement", lambda *_: announced)
    seen: list[Any] = []

    async def session() -> None:
        launcher = SlurmLauncher(target(), SlurmProfile(folder=str(folder), poll=0.05), "test")
        enough = asyncio.Event()

        def see(one: Any) -> None:
            seen.append(one)
            if is_enough(seen):
                enough.set()

        def left(name: str, reason: str, *, is_explained: bool = False) -> None:
            see((reason, is_explained))

        running = asyncio.create_task(launcher.run(lambda replica: see(replica), left))
        async with asyncio.timeout(20):
            await enough.wait()
        running.cancel()
        await asyncio.wait({running})

    asyncio.run(session())
    return seen


@pytest.mark.parametrize(
    ("state", "is_explained"),
    [
        ("PREEMPTED", True),
        ("TIMEOUT", True),
        ("CANCELLED", True),
        ("NODE_FAIL", True),
        ("PENDING", True),
        ("FAILED", False),
        ("OUT_OF_MEMORY", False),
        ("COMPLETED", False),
    ],
)
def test_a_request_can_have_ended_a_server_unless_slurm_did(
    state: str, is_explained: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Queue(monkeypatch, [Job("1_0", "RUNNING", "None")], [Job("1_0", state, "None")])
    _, end = seen_until(tmp_path, monkeypatch, lambda seen: len(seen) == 2)
    assert end == (f"the job is {state.lower()}", is_explained)


def test_a_server_that_a_request_could_not_reach_joins_again_if_it_is_healthy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Queue(monkeypatch, [Job("1_0", "RUNNING", "None")])

    def lose_the_first(seen: list[Any]) -> bool:
        if len(seen) == 1:
            seen[0].lose("connection reset")
        return len(seen) == 2

    first, second = seen_until(tmp_path, monkeypatch, lose_the_first)
    assert (first.is_lost, second.is_lost) == (True, False)
    assert first.name == second.name


@pytest.mark.slow
def test_a_dry_run_shows_the_script_and_submits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    (tmp_path / "sightline.toml").write_text('[slurm.gpu]\ngres = "gpu:1"\nfolder = "shared"\n')
    data = str(generate_iibench(tmp_path / "iibench", questions=4))
    words = ["run", "iibench", "--model", "vllm/org/llava", "--data", data, "--on", "slurm:gpu", "--dry-run"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "#SBATCH --gres=gpu:1" in printed.splitlines()
    assert "exec vllm serve org/llava" in printed
    assert not (tmp_path / "shared").exists()


@pytest.mark.parametrize(
    ("fails", "message"),
    [("list_jobs", "Slurm does not answer: refused"), ("check", "profile gpu cannot be used: refused")],
)
def test_where_slurm_refuses_before_a_job_exists_nothing_is_cancelled_and_no_live_server_loses_its_folder(
    fails: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = Queue(monkeypatch)

    async def refuse(*_: object) -> Any:
        raise slurm.SlurmError("refused")

    monkeypatch.setattr(slurm, fails, refuse)
    profile = SlurmProfile(folder=str(tmp_path))
    started = SlurmLauncher(target(), profile, "gpu")
    with pytest.raises(UserError, match=message):
        asyncio.run(started.run(lambda replica: None, lambda name, reason, is_explained=False: None))
    assert (queue.submitted, queue.cancelled) == ([], 0)
    # Without an answer, jobs of an earlier driver may run: they read their key here when they start again.
    assert len(list(tmp_path.iterdir())) == (1 if fails == "list_jobs" else 0)
