"""Comparing runs: stored runs are computed again, results folders are read; then group by group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.evaluation.recompute import UNFINISHED, recompute
from sightline.judging.panel import JudgedGroup
from sightline.results.compare import compare
from sightline.results.comparison import Comparison
from sightline.results.judged_run import JudgedRun, read_judged_run
from sightline.types import Group, GroupKey

RunName = int | Path
"""The number of a stored run, or a results folder."""


def compare_runs(store: Store | None, pairs: Sequence[tuple[RunName, RunName]]) -> Comparison:
    """Compare runs pair by pair. Nothing is sent.

    Args:
        store: The store that holds the numbered runs; None if there are only folders.
        pairs: The runs: first the base, then the run that is compared with it.

    Returns:
        The differences of the second runs from the first ones, with 95 % confidence intervals.

    Raises:
        UserError: A run does not exist or did not finish, or two runs share no group of the same data.
    """
    names = dict.fromkeys(name for pair in pairs for name in pair)
    runs = {name: judged_run(store, name) for name in names}
    return compare([(runs[base], runs[other]) for base, other in pairs])


def judged_run(store: Store | None, name: RunName) -> JudgedRun:
    """Judge a stored run again, or read a judged one from its folder.

    Args:
        store: The store that holds numbered runs.
        name: The run.

    Returns:
        The result and the judged groups.

    Raises:
        UserError: The run does not exist or did not finish: a missing answer is not a wrong one.
    """
    if isinstance(name, Path):
        return read_judged_run(name)
    if store is None:
        raise ValueError(f"run {name} needs a store")
    _, finished = store.run(name)
    if not finished:
        raise UserError(f"run {name} {UNFINISHED}", file=store.name, expected="runs that finished")
    groups: dict[GroupKey, Group] = {}

    def keep(judged: JudgedGroup) -> None:
        groups[judged.group.key] = judged.group

    result = recompute(store, name, on_group=keep)
    return JudgedRun(name=f"run {name}", result=result, groups=groups)
