"""How the probes of a run ended, and what its answers cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import islice

from msgspec import Struct

from sightline.config import Price
from sightline.engine.store import Store
from sightline.plan.stored_probe import read_stored_probes
from sightline.types import Answer

_BATCH = 1_000


class RunCounts(Struct, frozen=True, kw_only=True):
    """Counts over the probes of a run, with the answers that the store has now.

    Attributes:
        prompt_tokens: The tokens of their requests, as servers reported them; cached answers count too.
        completion_tokens: The tokens of their answers.
        cost: The cost of these tokens; None without a price of the model.
    """

    probes: Mapping[str, int]
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


def count_run(store: Store, number: int, price: Price | None) -> RunCounts:
    """Count the probes of a run.

    Args:
        price: The price of its model; None if it is unknown.
    """
    statuses = dict.fromkeys(("ok", "empty", "error", "not_sent"), 0)
    tokens: Counter[str] = Counter()
    cost = 0.0
    probes = read_stored_probes(store, number)
    while batch := list(islice(probes, _BATCH)):
        answers = store.answers.look_up([probe.key for probe in batch if not probe.error])
        for probe in batch:
            answer = answers.get(probe.key)
            if not isinstance(answer, Answer):
                statuses["error" if answer is not None or probe.error else "not_sent"] += 1
                continue
            statuses["ok" if answer.text else "empty"] += 1
            tokens["prompt"] += answer.usage.prompt_tokens or 0
            tokens["completion"] += answer.usage.completion_tokens or 0
            cost += price.of(answer.usage) if price is not None else 0
    return RunCounts(
        probes=statuses,
        prompt_tokens=tokens["prompt"],
        completion_tokens=tokens["completion"],
        cost=cost if price is not None else None,
    )
