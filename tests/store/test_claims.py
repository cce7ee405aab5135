"""Claims when time goes wrong: processes that are stopped or killed, locked stores, machines that restart."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sightline.store import claims
from sightline.store.claims import (
    CLAIM_SECONDS,
    GRACE_SECONDS,
    WORKING_SECONDS,
    Renewals,
    new_owner,
    state_of_owner,
)
from sightline.store.store import Store

A, B = "a" * 64, "b" * 64


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


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """All owners of claims are stopped processes, or processes that cannot be seen from here."""
    monkeypatch.setattr(claims, "state_of_owner", lambda *_, **__: "unknown")


# Of others


@pytest.mark.usefixtures("stopped")
def test_a_claim_that_is_not_renewed_lapses(opened: Callable[[], Store], clock: Time) -> None:
    silent, living, other = opened(), opened(), opened()
    silent.claims.take([A])
    living.claims.take([B])
    clock.let_pass(CLAIM_SECONDS, living, other)
    assert other.claims.take([A, B]) == set()
    clock.let_pass(1, living, other)
    assert other.claims.take([A, B]) == {A}


def test_a_process_that_works_but_gets_no_processor_keeps_its_claims_longer(
    opened: Callable[[], Store], clock: Time
) -> None:
    """The owner is this process, which is not stopped."""
    slow, other = opened(), opened()
    slow.claims.take([A])
    clock.let_pass(WORKING_SECONDS, other)
    assert other.claims.take([A]) == set()
    clock.let_pass(1, other)
    assert other.claims.take([A]) == {A}


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize("locked", [CLAIM_SECONDS + 1, 10 * CLAIM_SECONDS])
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


@pytest.mark.usefixtures("stopped")
def test_a_process_that_just_started_does_not_know_whether_owners_could_renew(
    opened: Callable[[], Store], clock: Time
) -> None:
    opened().claims.take([A])
    clock.now += CLAIM_SECONDS + 1
    new = opened()
    new.claims.renew()
    assert new.claims.take([A]) == set()
    clock.let_pass(GRACE_SECONDS + 1, new)
    assert new.claims.take([A]) == {A}


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
def test_claims_of_a_killed_process_are_taken_at_once_those_of_a_stopped_one_are_not(
    tmp_path: Path, sent: signal.Signals
) -> None:
    path = str(tmp_path / "s.db")
    code = f"from sightline.store.store import Store; Store.open({path!r}).claims.take([{A!r}]); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{code}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    store = Store.open(path)
    try:
        while not store.claims.held():
            assert process.poll() is None
        process.send_signal(sent)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
        is_killed = sent == signal.SIGKILL
        assert (store.claims.held() == []) == is_killed
        assert store.claims.take([A]) == ({A} if is_killed else set())
    finally:
        process.kill()
        process.communicate()
        store.close()


def test_a_machine_that_started_again_has_no_claims(opened: Callable[[], Store], clock: Time) -> None:
    """Claims of before end later than any lease, by the clock of after."""
    opened().claims.take([A])
    clock.now = 10.0
    after = opened()
    clock.let_pass(GRACE_SECONDS + 1, after)
    assert after.claims.held() == []
    assert after.claims.take([A]) == {A}


# Of this process


def test_a_process_that_was_stopped_is_not_sure_of_its_claims_and_takes_them_again(
    opened: Callable[[], Store], clock: Time, stopped: None
) -> None:
    owner, other = opened(), opened()
    owner.claims.renew()
    before = owner.claims.generation
    assert owner.claims.take([A, B]) == {A, B}
    assert owner.claims.hold(before)
    clock.let_pass(CLAIM_SECONDS + 1, other)
    assert not owner.claims.hold(before)
    assert other.claims.take([A]) == {A}
    owner.claims.renew()
    assert not owner.claims.hold(before), "a renewal does not bring back what another process took"
    after = owner.claims.generation
    assert owner.claims.take([A, B]) == {B}
    assert owner.claims.hold(after)


def test_claims_are_certain_only_as_long_as_the_lease_of_the_last_renewal_began() -> None:
    """A renewal may have been in the store long before it is known here."""
    clock = Time()
    renewals = Renewals(clock)
    renewals.record(clock.now)
    generation = renewals.generation
    began, clock.now = clock.now + 1, clock.now + CLAIM_SECONDS - 2
    renewals.record(began)
    assert renewals.holds(generation)
    clock.now = began + CLAIM_SECONDS
    assert not renewals.holds(generation)


# Owners


def test_owners_have_different_names_that_a_store_can_hold() -> None:
    names = {new_owner() for _ in range(100)}
    assert len(names) == 100
    assert {len(name) for name in names} == {32}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows processes in /proc")
def test_the_state_of_an_owner_is_known_only_on_its_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    here = new_owner()
    assert state_of_owner(here, one_machine=True) == "working"
    monkeypatch.setattr("sightline.store.claims._machine", lambda _: (b"reboot", 1))
    assert state_of_owner(here, one_machine=True) == "ended"
    assert state_of_owner(here, one_machine=False) == "unknown"
    monkeypatch.setattr("sightline.store.claims._machine", lambda _: (bytes(6), 0))
    assert state_of_owner(here, one_machine=True) == "unknown"


@pytest.mark.parametrize("name", ["", "x", "0" * 31, "é" * 32, "f" * 32])
def test_a_name_that_is_none_of_this_machine_is_no_error(name: str) -> None:
    """An earlier Sightline named owners in another way."""
    assert state_of_owner(name, one_machine=False) == "unknown"
