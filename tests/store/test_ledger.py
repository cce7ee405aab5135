"""A budget of a run holds for all its processes that share a store."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from sightline.engine.limits import Counts, shared_account
from sightline.store import claims as ledger_module
from sightline.store.answers import KeyedRequest
from sightline.store.claims import ACCOUNT_LEASE_SECONDS, Budget, Ledger, Spent
from sightline.store.store import Store

Asking = Callable[..., list[KeyedRequest]]
Ask = Callable[..., Coroutine[Any, Any, Counts]]

RUN = b"r" * 32


@pytest.fixture
def any_store(store_url: str) -> Iterator[Store]:
    store = Store.open(store_url)
    yield store
    store.close()


def test_processes_of_a_run_share_its_budget_and_the_next_run_has_all_of_it(
    any_store: Store, scripted: Any, asking: Asking, ask: Ask
) -> None:
    budget = Budget(max_requests=30)

    async def process(first: int) -> Counts:
        async with shared_account(any_store, RUN, budget) as account:
            requests = asking(*range(first, first + 25))
            return await ask(any_store, requests, scripted(seconds=0.01), budget=budget, account=account)

    async def both() -> tuple[Counts, Counts]:
        return await asyncio.gather(process(0), process(100))

    counts = asyncio.run(both())
    assert sum(one.answered for one in counts) == 30
    assert [one.stopped for one in counts].count("budget") >= 1
    assert asyncio.run(process(200)).answered == 25


def _reserve_nothing(ledger: Ledger, seen: list[Spent]) -> bool:
    """Look what was spent on model `m`, and whether other processes have requests in flight."""

    def room(spent: Any) -> Spent:
        seen.append(spent.get("m", Spent()))
        return Spent()

    return ledger.reserve({}, "m", room)[1]


def test_what_a_process_had_in_flight_that_ended_silently_counts_as_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of another machine or container; whether it lives cannot be seen."""
    monkeypatch.setattr(ledger_module, "state_of_owner", lambda *_, **__: "unknown")
    now, seen = 1000.0, list[Spent]()
    store = Store.open(str(tmp_path / "s.db"))
    silent, other = (Ledger(store.database, lambda: now, RUN) for _ in range(2))
    silent.join()
    other.join()
    silent.write({"m": Spent(calls=5, outstanding=3, answered=2, cost=0.2, highest=0.1)})
    assert _reserve_nothing(other, seen)
    now += ACCOUNT_LEASE_SECONDS - 1
    assert _reserve_nothing(other, seen)
    now += 2
    assert not _reserve_nothing(other, seen)
    assert [round(one.committed, 3) for one in seen] == [0.5, 0.5, 0.5]
    assert seen[-1].outstanding == 0
    store.close()


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
def test_it_is_known_at_once_that_a_process_was_killed_and_one_that_was_stopped_counts(
    any_store: Store, store_url: str, sent: signal.Signals
) -> None:
    code = (
        "from sightline.store.claims import Spent; from sightline.store.store import Store; "
        f"ledger = Store.open({store_url!r}).ledger({RUN!r}); ledger.join(); "
        "ledger.write({'m': Spent(5, 3)}); print(flush=True); input()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    own = any_store.ledger(RUN)
    try:
        assert process.stdout.readline() == b"\n"
        process.send_signal(sent)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
        seen: list[Spent] = []
        assert _reserve_nothing(own, seen) == (sent == signal.SIGSTOP)
        assert seen[0].calls == 5
        any_store.ledger(RUN).join()  # a process that starts, while `own` runs
        _reserve_nothing(own, seen)
        assert seen[1].calls == 5
        own.leave({})
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("error", [-3600.0, 3600.0])
def test_a_wrong_clock_neither_ends_a_process_nor_its_run(
    any_store: Store, store_url: str, error: float
) -> None:
    """Otherwise a budget would be counted twice, and `runs delete` would take a run from its process."""
    wrong = Store.open(store_url, clock=lambda: time.time() + error)
    run = any_store.runs.start({}, held=True)
    own, other = any_store.ledger(RUN), wrong.ledger(RUN)
    own.join()
    own.write({"m": Spent(calls=5, outstanding=3)})
    other.join()
    seen: list[Spent] = []
    assert _reserve_nothing(other, seen)
    assert seen == [Spent(calls=5, outstanding=3)]
    assert wrong.leases.held() == any_store.leases.held() == {run}
    begun = wrong.runs.start({}, held=True)
    assert any_store.leases.held() == {run, begun}
    any_store.leases.release(run)
    assert any_store.leases.held() == {begun}
    wrong.close()


def test_leases_of_before_a_restart_of_the_machine_do_not_hold(tmp_path: Path) -> None:
    uptime = 1000.0
    store = Store.open(str(tmp_path / "s.db"), uptime=lambda: uptime)
    store.leases.renew(store.runs.start({}))
    uptime = 10.0
    assert store.leases.held() == set()
    store.close()
