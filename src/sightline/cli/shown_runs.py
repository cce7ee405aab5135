"""Runs that a command shows: those of a store, or those of results folders and of files of answers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import ArgumentGroup
from sightline.errors import UserError

if TYPE_CHECKING:
    from sightline.store.store import Store
    from sightline.viewer.opened import AnswerTask


def add_answer_task(group: ArgumentGroup) -> None:
    """Add the options that say what files of answers answer."""
    add = group.add_argument
    add(
        "--task",
        metavar="TASK",
        help="for files of answers: their benchmark and setting, such as codis or iibench:none. The layouts"
        " are those of `sightline score`; rules judge the answers, and missing ones are shown as missing",
    )
    add(
        "--split",
        metavar="S",
        help="with --task: split of the data (default: the first one of the benchmark)",
    )


def answer_task(options: argparse.Namespace) -> AnswerTask | None:
    """Read the options of `add_answer_task`; None without --task."""
    from sightline.viewer.opened import AnswerTask

    if options.task is None and options.split is not None:
        raise UserError("--split needs --task", expected="--task TASK too, or no --split")
    return None if options.task is None else AnswerTask(options.task, options.split)


@contextmanager
def opened_runs(
    words: Sequence[str], store: str, data: Sequence[Path], task: AnswerTask | None
) -> Iterator[tuple[Store, list[int]]]:
    """Open the store of runs, or a temporary one with those of results folders and files.

    Args:
        words: Numbers or names of runs of the store, or only paths; none for the latest finished run.
        task: What files of answers answer; None for results folders.
    """
    from sightline.evaluation.folder import is_stored
    from sightline.evaluation.runs import find_run, latest_finished_run, list_runs, read_stored_run
    from sightline.store.store import Store
    from sightline.viewer.opened import opened_store

    paths = [Path(word) for word in words if task or Path(word).is_file() or not is_stored(word, store)]
    if not paths:
        opened = Store.open(store, create=False)
        try:
            found = [read_stored_run(opened, find_run(opened, word)) for word in words]
            yield opened, [run.number for run in found or [latest_finished_run(opened)[0]]]
        finally:
            opened.close()
        return
    if len(paths) < len(words):
        raise UserError("runs of the store and paths cannot be shown together", expected="one of the two")
    with opened_store(store, paths, data, task) as temporary:
        runs = list_runs(temporary)
        if len(runs) > len(words):
            raise UserError(
                "the answers are those of several models",
                file=paths[0],
                found=", ".join(run.model for run in runs),
                expected="`sightline serve`, which shows all, or a file of one (`import --model NAME`)",
            )
        yield temporary, [run.number for run in runs]
