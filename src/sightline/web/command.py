"""The commands that ask the model of a run again: all its probes, or those without an answer."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from sightline.plan.spec import RunOptions, declared_options
from sightline.reporting.option_texts import option_text
from sightline.results.run_list import RunLine
from sightline.results.run_options import NESTED
from sightline.results.stored_run import StoredRun

DIR = "DIR"
"""Stands for a data folder that the store does not keep."""


class AskAgain(Struct, frozen=True):
    """Commands that repeat a run."""

    failed: str
    every: str


def ask_again(run: StoredRun, line: RunLine, store: str) -> AskAgain:
    """Write the commands that ask the model of a run again."""
    folder = run.folders[0] if len(run.folders) == 1 else DIR
    words = ["sightline", "run", run.task, "--model", line.model, "--data", folder]
    if tuple(line.judges) != ("rules",):
        words += [word for judge in line.judges for word in ("--judge", judge)]
    words += _options(run.description.options, run.description.benchmark_options, line.options)
    words += ["--store", store] if store else []
    fresh = run.description.options.get("fresh")
    kept = ["--fresh", str(fresh)] if fresh else []
    return AskAgain(
        failed=shlex.join([*words, *kept, "--retry-errors"]),
        every=shlex.join([*words, "--fresh", f"{fresh}-again" if fresh else "again"]),
    )


def _options(
    effective: Mapping[str, Any], of_benchmark: Mapping[str, Any], listed: Mapping[str, Any]
) -> Iterator[str]:
    """The words of the options that differ from the defaults; others are no options of the command."""
    nested = {name: effective.get(name) or {} for name in NESTED}
    declared = {option.name for option in declared_options(RunOptions)} - {"fresh"}
    for name, value in listed.items():
        plain = name.removeprefix("gen ").removeprefix("model-arg ")
        place = next((place for place, values in nested.items() if plain in values), None)
        if name in declared:
            if value is not None and value is not False:
                yield f"--{name.replace('_', '-')}"
                yield from () if value is True else (option_text(value),)
        elif name in of_benchmark:
            yield from ("--set", f"{name}={option_text(value)}")
        elif place is not None:
            yield from (f"--{NESTED[place]}", f"{plain}={option_text(value)}")
    yield from _judge_sampling(list((effective.get("judge_sampling") or {}).values()))
    for kind, source in (effective.get("captioned_by") or {}).items():
        if kind in ("model", "file"):
            yield from ("--captioner" if kind == "model" else "--captions", str(source))


def _judge_sampling(by_judge: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The sampling that all judge models share, as the command line states it for all of them."""
    for name, value in by_judge[0].items() if by_judge else ():
        if all(other.get(name) == value for other in by_judge):
            yield from ("--judge-gen", f"{name}={option_text(value)}")
