"""Judged runs as sources: runs of the store, results folders, and files of answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.evaluation.compare_runs import judged_run
from sightline.formats.jsonl import read_outcomes
from sightline.formats.whole_results import METRICS
from sightline.results.run_names import find_run
from sightline.types import Group, GroupKey, Outcome


class SourceRun(Struct, frozen=True):
    """A run: what the user called it, its benchmark and setting ('' if unknown), model, groups, options."""

    name: str
    benchmark: str
    setting: str
    model: str
    groups: dict[GroupKey, Group]
    options: Mapping[str, Any] = {}


def read_runs(words: tuple[str, ...], store: Store) -> list[SourceRun]:
    runs = [_read(word, store) for word in dict.fromkeys(words)]
    for what, found in (
        ("benchmarks", [run.benchmark for run in runs if run.benchmark]),
        ("splits", [str(run.options["split"]) for run in runs if "split" in run.options]),
    ):
        if len(names := dict.fromkeys(found)) > 1:
            raise UserError(f"the runs are of several {what}", found=", ".join(names), expected="one")
    return runs


def _read(word: str, store: Store) -> SourceRun:
    path = Path(word)
    if path.is_file():
        return SourceRun(word, "", "", word, _groups(path))
    folder = path.is_dir() and (path / METRICS).is_file()
    run = judged_run(store, path if folder or path.is_dir() else find_run(store, word))
    result = run.result
    groups = dict(run.groups)
    return SourceRun(run.name, result.benchmark, result.setting, result.model, groups, result.options)


def _groups(file: Path) -> dict[GroupKey, Group]:
    members: dict[GroupKey, list[Outcome]] = defaultdict(list)
    for outcome in read_outcomes(file):
        members[outcome.sample, outcome.draw, ""].append(outcome)
    return {key: Group(key[0], key[1], of[0].cluster, tuple(of)) for key, of in members.items()}
