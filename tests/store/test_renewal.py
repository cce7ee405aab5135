"""Claims and leases are renewed again after an error of the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event

import pytest

from sightline.errors import EnvironmentFailedError
from sightline.evaluation.run import held_run
from sightline.store import claims
from sightline.store.store import Store


def _failing_once(operation: Callable[..., None], repeated: Event) -> Callable[..., None]:
    """The operation, which fails at its first call; its second call sets the event."""
    calls = []

    def run(*args: int) -> None:
        calls.append(args)
        if len(calls) == 1:
            raise EnvironmentFailedError("database is locked")
        operation(*args)
        repeated.set()

    return run


def test_claims_are_renewed_again_after_an_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "RENEWAL_SECONDS", 0.01)
    repeated = Event()
    monkeypatch.setattr(store.claims, "renew", _failing_once(store.claims.renew, repeated))
    with store.claims.renewed():
        assert repeated.wait(30)


def test_a_lease_is_renewed_again_after_an_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = store.runs.start({})
    repeated = Event()

    async def work() -> str:
        async with held_run(store, run):
            monkeypatch.setattr(store.leases, "renew", _failing_once(store.leases.renew, repeated))
            assert await asyncio.to_thread(repeated.wait, 30)
            return "the evaluation"

    monkeypatch.setattr("sightline.evaluation.run.RUN_LEASE_SECONDS", 0.03)
    assert asyncio.run(work()) == "the evaluation"
    assert store.leases.held() == set()


@pytest.mark.parametrize("outcome", [None, ValueError("the outcome")])
def test_a_lease_that_cannot_be_released_does_not_replace_the_outcome(
    store: Store, monkeypatch: pytest.MonkeyPatch, outcome: Exception | None
) -> None:
    def fail(run: int) -> None:
        raise EnvironmentFailedError("database is locked")

    monkeypatch.setattr(store.leases, "release", fail)

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
