"""The account of a run or a sweep: the same options, run by several processes on one store, are one run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

import msgspec

from sightline.engine.account import Account, shared_account
from sightline.engine.budget import Budget
from sightline.engine.store import Store
from sightline.plan.spec import Spec

OF_A_PROCESS = frozenset(
    {"store", "out", "force", "against", "fail_if", "name", "tag", "concurrency", "config"}
)
"""Options in which the processes of a run may differ."""


def run_budget(spec: Spec) -> Budget:
    """The limits of a run."""
    return Budget(spec.max_requests, spec.max_cost)


def run_account(specs: Sequence[Spec], store: Store) -> AbstractAsyncContextManager[Account]:
    """Open the account that the processes of a run, or of a sweep, share."""
    options = [
        {name: value for name, value in msgspec.to_builtins(spec).items() if name not in OF_A_PROCESS}
        for spec in specs
    ]
    run = hashlib.sha256(msgspec.json.encode(options, order="deterministic")).digest()
    return shared_account(store, run, run_budget(specs[0]))
