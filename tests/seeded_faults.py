"""Puts known faults into a copy of the code, one at a time, and counts how many of them the tests notice.

    python tests/seeded_faults.py --jobs 2 --json faults.json
    python tests/seeded_faults.py --only loss-pairs --only fail-if-equal

A fault is a source text that occurs exactly once in src/, and what replaces it (seeded_faults.toml). Neither
files nor folders are part of it, so that the same faults serve before and after code is moved. The tests of a
fault are the doctests of its module, then the test files that are named for it, then wider ones.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from queue import SimpleQueue
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict

CHECKOUT = Path(__file__).resolve().parents[1]
FAULTS = Path(__file__).with_suffix(".toml")
LEFT_OUT = "not slow and not browser and not postgres and not cluster"
LONGEST = 300.0
"""Seconds that the named tests of one fault may take."""
LONGEST_WIDER = 900.0
PASSED, FAILED, INTERRUPTED = 0, 1, 2
"""Exit statuses of pytest; an error while tests are collected interrupts it."""

_FAILURE = re.compile(r"^(?:FAILED|ERROR) ((\S+?\.py).*)$", re.MULTILINE)

State = Literal["caught", "missed", "hung", "unclear"]
"""`hung`: the tests did not end in time. `unclear`: they cannot run, or fail without the fault as well."""


class Fault(Struct, frozen=True, forbid_unknown_fields=True):
    """A fault; `tests` and `wider` name test files and folders of tests, as `test_files` reads them."""

    kind: str
    find: str
    replace: str
    tests: tuple[str, ...]
    wider: tuple[str, ...] = ()


class FaultList(Struct, frozen=True, forbid_unknown_fields=True):
    """The faults by name, and the names that a folder of tests may have."""

    faults: Mapping[str, Fault]
    folders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Planned(NamedTuple):
    """A fault with the paths, relative to the checkout, of its module and of its tests."""

    name: str
    fault: Fault
    module: str
    tests: tuple[str, ...]
    wider: tuple[str, ...]


class Found(Struct, frozen=True):
    """What the tests say of a fault; `by` is the first test that failed."""

    name: str
    kind: str
    module: str
    state: State
    wider: bool
    seconds: float
    by: str = ""


class Ended(NamedTuple):
    """How a run of pytest ended: its exit status, None if it had to be stopped, and its output."""

    status: int | None
    output: str


def main() -> int:
    """Check the chosen faults; 1 if it is unclear for one of them whether the tests catch it."""
    options = _options()
    listed = msgspec.convert(tomllib.loads(FAULTS.read_text("utf-8")), FaultList)
    if unknown := set(options.only) - set(listed.faults):
        raise SystemExit(f"no such fault: {', '.join(sorted(unknown))}")
    chosen = [name for name in listed.faults if not options.only or name in options.only]
    plans = planned(listed, chosen, CHECKOUT)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        first = Path(folder) / "1"
        copy_checkout(first)
        print(f"{len(plans)} faults; without a fault:", end=" ", flush=True)
        refuse_failing(first, plans)
        print(f"all tests pass ({time.perf_counter() - began:.0f} s)", flush=True)
        copies = [first, *(Path(folder) / str(number) for number in range(2, options.jobs + 1))]
        for copy in copies[1:]:
            shutil.copytree(first, copy)
        found = list(_checked(copies, plans))
    caught = sum(one.state == "caught" for one in found)
    seconds = time.perf_counter() - began
    print(f"{caught} of {len(found)} faults caught in {seconds:.0f} s")
    if options.json:
        body = {"caught": caught, "faults": len(found), "seconds": round(seconds), "each": map(asdict, found)}
        options.json.write_text(json.dumps(body, indent=1, default=list) + "\n", "utf-8")
    return 1 if any(one.state == "unclear" for one in found) else 0


def planned(listed: FaultList, names: Sequence[str], checkout: Path) -> list[Planned]:
    """Find the module and the tests of each fault.

    Raises:
        SystemExit: A source text does not occur exactly once, or a name is one of no test.
    """
    sources = {path: path.read_text("utf-8") for path in sorted((checkout / "src").rglob("*.py"))}
    problems, plans = [], []
    for name in names:
        fault = listed.faults[name]
        places = [path for path, text in sources.items() for _ in range(text.count(fault.find))]
        tests, wider = (test_files(words, listed.folders, checkout) for words in (fault.tests, fault.wider))
        absent = [word for word, paths in (tests | wider).items() if not paths]
        problems += [f"{name}: no test is named {word}" for word in absent]
        if len(places) != 1:
            problems.append(f"{name}: the source text occurs {len(places)} times in src/, not once")
            continue
        own = tuple(dict.fromkeys(path for paths in tests.values() for path in paths))
        more = tuple(dict.fromkeys(path for paths in wider.values() for path in paths if path not in own))
        plans.append(Planned(name, fault, str(places[0].relative_to(checkout)), own, more))
    if problems:
        raise SystemExit("\n".join(problems))
    return plans


def test_files(
    words: Sequence[str], folders: Mapping[str, Sequence[str]], checkout: Path
) -> dict[str, list[str]]:
    """Find test files by names, wherever they are.

    Args:
        words: The end of a path (`test_loss.py`, `local/test_run.py`; * stands for anything), or the name of
            a folder (`metrics/`).
        folders: Name of a folder -> the names that it may have.
        checkout: The folder that holds tests/.

    Returns:
        Word -> paths relative to the checkout.
    """
    every = sorted(path.relative_to(checkout) for path in (checkout / "tests").rglob("test_*.py"))

    def fits(path: Path, word: str) -> bool:
        if word.endswith("/"):
            name = word.rstrip("/")
            return any(folder in path.parts[:-1] for folder in folders.get(name, (name,)))
        return fnmatch(path.as_posix(), f"*/{word}")

    return {word: [str(path) for path in every if fits(path, word)] for word in words}


def copy_checkout(copy: Path) -> None:
    """Copy the files of the checkout that git knows or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=CHECKOUT, stdout=subprocess.PIPE, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (source := CHECKOUT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy / name)


def refuse_failing(copy: Path, plans: Sequence[Planned]) -> None:
    """Raise SystemExit unless all named tests pass without a fault."""
    paths = dict.fromkeys(path for plan in plans for path in (plan.module, *plan.tests))
    status, output = run_tests(copy, list(paths), LONGEST * len(plans), stop_early=False)
    if status != PASSED:
        failures = "\n".join(found[0] for found in _FAILURE.finditer(output)) or output[-2000:]
        raise SystemExit(f"the tests do not pass (exit status {status})\n{failures}")


def check(copy: Path, plan: Planned) -> Found:
    """Put a fault into a copy, run its tests, and take it out again."""
    began, module = time.perf_counter(), copy / plan.module
    right = module.read_bytes()
    wrong = right.decode().replace(plan.fault.find, plan.fault.replace)
    compile(wrong, plan.module, "exec")
    state: State
    by, wider = "", False
    try:
        module.write_bytes(wrong.encode())
        _forget(module)
        state, by = _state(run_tests(copy, [plan.module, *plan.tests], LONGEST))
        if state == "missed" and plan.wider:
            wider = True
            state, by = _state(run_tests(copy, plan.wider, LONGEST_WIDER))
    finally:
        module.write_bytes(right)
        _forget(module)
    if wider and state == "caught" and (failed := _FAILURE.match(f"FAILED {by}")):
        # The wider tests were not run without a fault.
        state = "caught" if run_tests(copy, [failed[2]], LONGEST).status == PASSED else "unclear"
    seconds = round(time.perf_counter() - began, 1)
    return Found(plan.name, plan.fault.kind, plan.module, state, wider, seconds, by)


def run_tests(copy: Path, paths: Sequence[str], limit: float, *, stop_early: bool = True) -> Ended:
    """Run tests of a copy, without those that need a browser, a server or a cluster.

    Args:
        copy: The copy.
        paths: Test files, and modules with doctests.
        limit: Seconds after which they are stopped.
        stop_early: Whether the first failure ends them. Those that go on keep the compiled modules too.
    """
    words = ["-m", LEFT_OUT, "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    words += ["-x"] if stop_early else []
    environment = {
        "SIGHTLINE_SHARED": str(CHECKOUT.parent / "shared"),
        **os.environ,
        "PYTHONPATH": str(copy / "src"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / ".hypothesis"),
        # The file of a compiled module holds no more than the second and the size of its source.
        **({"PYTHONDONTWRITEBYTECODE": "1"} if stop_early else {}),
    }
    shutil.rmtree(copy / ".hypothesis", ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="fault-") as folder, tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *words, f"--basetemp={folder}/t", *paths],
            cwd=copy,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        status: int | None = None
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        return Ended(status, output.read().decode("utf-8", "replace"))


def _checked(copies: Sequence[Path], plans: Sequence[Planned]) -> Iterator[Found]:
    """Check the faults, as many at a time as there are copies, and print a line for each."""
    free: SimpleQueue[Path] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def check_in_a_copy(plan: Planned) -> Found:
        copy = free.get()
        try:
            return check(copy, plan)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as threads:
        for found in threads.map(check_in_a_copy, plans):
            where = " (wider)" if found.wider else ""
            print(
                f"{found.state:<7} {found.name}: {found.kind}, {found.seconds} s{where} {found.by}",
                flush=True,
            )
            yield found


def _state(ended: Ended) -> tuple[State, str]:
    """What a run says of the fault, and the first failure."""
    failure = _FAILURE.search(ended.output)
    by = failure[1][:200] if failure else ""
    if ended.status is None:
        return "hung", by
    if ended.status == PASSED:
        return "missed", ""
    if ended.status in (FAILED, INTERRUPTED) and by:
        return "caught", by
    last = ended.output.strip().rpartition("\n")[2]
    return "unclear", f"exit status {ended.status}: {last[:200]}"


def _forget(module: Path) -> None:
    """Remove the compiled forms of a module."""
    for compiled in (module.parent / "__pycache__").glob(f"{module.stem}.*.pyc"):
        compiled.unlink()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="faults at a time (default: 1)")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a fault; may repeat")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
