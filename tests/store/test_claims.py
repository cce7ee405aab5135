"""Claims when time goes wrong: processes that are stopped or killed, locked stores, machines that restart."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Event

import pytest

from sightline.errors import EnvironmentFailedError
from sightline.evaluation.recorded_run import held_run
from sightline.store import claims
from sightline.store.claims import GRACE_SECONDS, LEASE_SECONDS, has_ended, new_name
from sightline.store.database import Connection
from sightline.store.store import Store

A, B, C = "a" * 64, "b" * 64, "c" * 64


class Time:
    """A clock that the test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now

    def let_pass(self, seconds: float, *renewing: Store) -> None:
        """Let time pass while some processes renew their claims."""
        end = self.now + seconds
        while self.now < end:
            self.now += 0.5
            for store in renewing:
                store.claims.renew()


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def opened(tmp_path: Path, clock: Time) -> Iterator[Callable[[], Store]]:
    """Opens one store several times, as several processes do."""
    stores: list[Store] = []

    def open_store() -> Store:
        stores.append(Store.open(str(tmp_path / "s.db"), uptime=clock))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


# Of others


def test_a_claim_of_a_process_that_does_not_renew_its_row_lapses_and_so_do_all_its_claims(
    opened: Callable[[], Store], clock: Time
) -> None:
    silent, living, other = opened(), opened(), opened()
    silent.claims.take([A, C])
    living.claims.take([B])
    clock.let_pass(LEASE_SECONDS, living, other)
    assert other.claims.take([A, B]) == set()
    clock.let_pass(1, living, other)
    assert other.claims.take([A, B]) == {A}
    assert living.claims.take([A, B, C]) == {B, C}


@pytest.mark.parametrize("locked", [LEASE_SECONDS + 1, 10 * LEASE_SECONDS])
def test_after_a_time_in_which_nobody_could_renew_owners_get_time_to_do_so(
    opened: Callable[[], Store], clock: Time, locked: float
) -> None:
    """While the store is locked or the machine sleeps, no process renews."""
    owner, other = opened(), opened()
    owner.claims.take([A])
    clock.let_pass(2, owner, other)
    clock.now += locked
    assert other.claims.take([A]) == set()
    other.claims.renew()
    clock.let_pass(GRACE_SECONDS, other)
    assert other.claims.take([A]) == set()
    owner.claims.renew()
    clock.let_pass(GRACE_SECONDS, other)
    assert other.claims.take([A]) == set()


def test_a_process_that_just_started_does_not_know_whether_owners_could_renew(
    opened: Callable[[], Store], clock: Time
) -> None:
    opened().claims.take([A])
    clock.now += LEASE_SECONDS + 1
    new = opened()
    new.claims.renew()
    assert new.claims.take([A]) == set()
    clock.let_pass(GRACE_SECONDS + 1, new)
    assert new.claims.take([A]) == {A}


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
def test_claims_and_runs_of_a_killed_process_are_free_at_once_those_of_a_stopped_one_are_not(
    store_url: str, sent: signal.Signals
) -> None:
    code = (
        "from sightline.store.store import Store\n"
        f"store = Store.open({store_url!r}); store.claims.take([{A!r}]); store.runs.start({{}}, held=True)\n"
        "print(flush=True); input()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    store = Store.open(store_url)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        assert store.claims.held() == [bytes.fromhex(A)]
        process.send_signal(sent)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
        is_killed = sent == signal.SIGKILL
        assert (store.claims.held() == []) == (store.claims.held_runs() == set()) == is_killed
        assert store.claims.take([A]) == ({A} if is_killed else set())
    finally:
        process.kill()
        process.communicate()
        store.close()


def test_a_machine_that_started_again_has_no_claims(opened: Callable[[], Store], clock: Time) -> None:
    """Rows of before end later than any lease, by the clock of after."""
    before = opened()
    before.claims.take([A])
    before.runs.start({}, held=True)
    clock.now = 10.0
    after = opened()
    clock.let_pass(GRACE_SECONDS + 1, after)
    assert (after.claims.held(), after.claims.held_runs()) == ([], set())
    assert after.claims.take([A]) == {A}


@pytest.mark.parametrize("error", [-3600.0, 3600.0])
def test_a_wrong_clock_ends_no_claim_and_no_run(store_url: str, error: float) -> None:
    right, wrong = Store.open(store_url), Store.open(store_url, clock=lambda: time.time() + error)
    run, begun = right.runs.start({}, held=True), wrong.runs.start({}, held=True)
    assert right.claims.take([A]) == {A}
    assert wrong.claims.take([A, B]) == {B}
    assert right.claims.held_runs() == wrong.claims.held_runs() == {run, begun}
    right.runs.release(run)
    assert wrong.claims.held_runs() == {begun}
    right.close()
    wrong.close()


# Of this process


def test_a_process_whose_claims_were_taken_knows_it_when_it_goes_on(
    opened: Callable[[], Store], clock: Time
) -> None:
    owner, other = opened(), opened()
    before = owner.claims.generation
    assert owner.claims.take([A, B]) == {A, B}
    assert owner.claims.hold(before)
    clock.let_pass(LEASE_SECONDS + 1, other)
    assert not owner.claims.hold(before)
    assert other.claims.take([A]) == {A}
    owner.claims.renew()
    assert not owner.claims.hold(before), "a renewal does not bring back what another process took"
    after = owner.claims.generation
    assert owner.claims.take([A, B]) == {B}
    assert owner.claims.hold(after)


def test_a_process_that_was_stopped_keeps_what_no_other_one_needed(
    opened: Callable[[], Store], clock: Time
) -> None:
    owner, other = opened(), opened()
    before = owner.claims.generation
    owner.claims.take([A])
    clock.let_pass(2 * LEASE_SECONDS, other)
    assert not owner.claims.hold(before)
    owner.claims.renew()
    assert owner.claims.hold(before)
    assert other.claims.take([A]) == set()


def test_claims_are_certain_only_as_long_as_the_lease_since_the_last_renewal_began(
    opened: Callable[[], Store], clock: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renewal may have been in the store long before it is known here."""
    owner = opened()
    write = owner.database.write

    @contextmanager
    def slow() -> Iterator[Connection]:
        with write() as connection:
            yield connection
        clock.now += LEASE_SECONDS - 2

    monkeypatch.setattr(owner.database, "write", slow)
    owner.claims.take([A])
    assert owner.claims.hold(owner.claims.generation)
    clock.now += 1.5
    assert not owner.claims.hold(owner.claims.generation)


def test_the_heartbeat_goes_on_after_an_error_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "HEARTBEAT_SECONDS", 0.01)
    store, tried, again = Store.open(str(tmp_path / "s.db")), Event(), Event()
    write = store.database.write

    def fail_once() -> AbstractContextManager[Connection]:
        if not tried.is_set():
            tried.set()
            raise EnvironmentFailedError("database is locked")
        again.set()
        return write()

    monkeypatch.setattr(store.database, "write", fail_once)

    async def work() -> None:
        async with store.claims.at_work():
            assert await asyncio.to_thread(again.wait, 30)

    asyncio.run(work())
    store.close()


def test_a_process_that_ends_gives_up_its_claims_and_only_those(tmp_path: Path) -> None:
    one, other, third = (Store.open(str(tmp_path / "s.db")) for _ in range(3))
    other.claims.take([B])

    async def work() -> None:
        async with one.claims.at_work():
            one.claims.take([A])

    asyncio.run(work())
    assert third.claims.take([A, B]) == {A}
    for store in (one, other, third):
        store.close()


def test_the_last_of_several_runners_gives_up_the_claims_and_one_that_begins_keeps_its_own(
    tmp_path: Path,
) -> None:
    store, other = (Store.open(str(tmp_path / "s.db")) for _ in range(2))

    async def runner(began: asyncio.Event, ends: asyncio.Event, key: str) -> None:
        async with store.claims.at_work():
            store.claims.take([key])
            began.set()
            await ends.wait()

    async def work() -> None:
        began, ends = ([asyncio.Event() for _ in range(3)] for _ in range(2))
        tasks = []
        for number, key in enumerate((A, B)):
            tasks.append(asyncio.create_task(runner(began[number], ends[number], key)))
            await began[number].wait()
        ends[0].set()
        await tasks[0]
        assert other.claims.take([A, B]) == set()
        ends[1].set()
        tasks.append(asyncio.create_task(runner(began[2], ends[2], C)))
        await tasks[1]
        await began[2].wait()
        assert other.claims.take([C]) == set()
        ends[2].set()
        await tasks[2]
        assert other.claims.take([A, B, C]) == {A, B, C}

    asyncio.run(work())
    store.close()
    other.close()


@pytest.mark.parametrize("outcome", [None, ValueError("the outcome")])
def test_a_run_that_cannot_be_released_does_not_replace_the_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: Exception | None
) -> None:
    store = Store.open(str(tmp_path / "s.db"))

    def fail(run: int) -> None:
        raise EnvironmentFailedError("database is locked")

    monkeypatch.setattr(store.runs, "release", fail)

    async def work() -> str:
        async with held_run(store, store.runs.start({})):
            if outcome is not None:
                raise outcome
            return "the evaluation"

    if outcome is None:
        assert asyncio.run(work()) == "the evaluation"
    else:
        with pytest.raises(ValueError, match="the outcome"):
            asyncio.run(work())
    store.close()


# Names of processes


def test_processes_have_different_names_that_a_store_can_hold() -> None:
    names = {new_name() for _ in range(100)}
    assert len(names) == 100
    assert all(len(name) <= 64 for name in names)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows processes in /proc")
def test_whether_a_process_has_ended_is_known_only_on_its_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    here = new_name()
    boot, namespace, process, start, _ = here.split(".")
    assert not has_ended(here, one_machine=True)
    assert has_ended(f"{boot}.{namespace}.{process}.{int(start) + 1}.x", one_machine=False), "another one"
    assert not has_ended(f"{boot}.1.{process}.{int(start) + 1}.x", one_machine=True), "another container"
    monkeypatch.setattr(claims, "_machine", lambda _: ("reboot", namespace))
    assert has_ended(here, one_machine=True)
    assert not has_ended(here, one_machine=False)
    monkeypatch.setattr(claims, "_machine", lambda _: ("", ""))
    assert not has_ended(here, one_machine=True)


@pytest.mark.parametrize("name", ["", "x", "." * 4, "é" * 32, "a.1.x.2.b", f"a.1.{'9' * 40}.2.b"])
def test_a_name_of_no_process_is_no_error(name: str) -> None:
    boot, namespace, *_ = new_name().split(".")
    for one in (name, name.replace("a.1", f"{boot}.{namespace}")):
        assert not has_ended(one, one_machine=False)
