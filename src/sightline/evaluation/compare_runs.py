"""Comparing stored runs: each run is computed again, then compared group by group."""

from __future__ import annotations

from collections.abc import Sequence

from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.evaluation.recompute import UNFINISHED, recompute
from sightline.judging.panel import JudgedGroup
from sightline.results.compare import GroupsByName, JudgedRun, compare
from sightline.results.comparison import Comparison


def compare_runs(store: Store, pairs: Sequence[tuple[int, int]]) -> Comparison:
    """Compare stored runs pair by pair. Nothing is sent.

    Args:
        store: The store that holds the runs.
        pairs: The numbers of the runs: first the base, then the run that is compared with it.

    Returns:
        The differences of the second runs from the first ones, with 95 % confidence intervals.

    Raises:
        UserError: A run does not exist or did not finish, or the runs have different settings or data.
    """
    numbers = dict.fromkeys(number for pair in pairs for number in pair)
    return compare({number: judged_run(store, number) for number in numbers}, pairs)


def judged_run(store: Store, number: int) -> JudgedRun:
    """Judge a stored run again.

    Args:
        store: The store that holds the run.
        number: The number of the run.

    Returns:
        The result and the judged groups.

    Raises:
        UserError: The run does not exist or did not finish: a missing answer is not a wrong one.
    """
    _, _, finished = store.run(number)
    if not finished:
        raise UserError(f"run {number} {UNFINISHED}", file=store.name, expected="runs that finished")
    groups: GroupsByName = {}

    def keep(judged: JudgedGroup) -> None:
        groups[judged.group.id, judged.group.draw] = judged.group

    result = recompute(store, number, on_group=keep)
    return JudgedRun(result=result, groups=groups)
