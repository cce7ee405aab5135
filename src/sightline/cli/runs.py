"""`sightline runs SUBCOMMAND`: the runs in a store."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.cli.options import ArgumentGroup, add_printing, add_run, add_store, opened_run
from sightline.cli.printing import is_confirmed, print_json, print_tables
from sightline.errors import UserError
from sightline.text import print_line, print_note

if TYPE_CHECKING:
    from sightline.evaluation.runs import RunLine
    from sightline.reporting.table import Field
    from sightline.store.store import Store
    from sightline.viewer.opened import AnswerTask

EXAMPLE = """examples:
  sightline run codis --model openai/gpt-4o --data data/codis --name base --tag july
  sightline runs list --tag july
  sightline compare base adapter
  sightline runs SUBCOMMAND --help

A run has a number, which is never used again, and can have a name, tags and a note. Commands that take a run
accept its number or its name.
"""


# -- `sightline runs list`: list the runs in a store, all or those with a tag, a benchmark, a model

LIST_EXAMPLE = """examples:
  sightline runs list
  sightline runs list --tag july --benchmark codis
  sightline runs list --model gpt-4o --json
"""

DAMAGED_REMEDY = "its description cannot be read; `sightline runs delete` deletes the run, its answers stay"


def register_list(parser: argparse.ArgumentParser) -> None:
    parser.epilog = LIST_EXAMPLE
    add = parser.add_argument
    add("--tag", action="append", default=[], metavar="TAG", help="only runs with this tag; may repeat")
    add("--benchmark", default="", metavar="TASK", help="only runs of this BENCHMARK or BENCHMARK:SETTING")
    add("--model", default="", metavar="TEXT", help="only runs of models whose name contains this text")
    add_printing(parser, by=False)
    add_store(parser)
    parser.set_defaults(execute=execute_list)


def execute_list(options: argparse.Namespace) -> int:
    from sightline.evaluation.runs import list_runs, select_runs
    from sightline.store.store import Store

    store = Store.open(options.store, create=False)
    try:
        runs = list_runs(store)
    finally:
        store.close()
    selected = select_runs(runs, options.tag, options.benchmark, options.model)
    print_runs(selected, options.format)
    if not selected:
        print_note(f"no run matches, of {len(runs):,} in the store" if runs else "the store has no run yet")
    return 0


def print_runs(runs: Sequence[RunLine], form: str) -> None:
    """Print a list of runs. Only CSV has columns in which every run is empty, options that are objects, and
    `rules` where no other judge is.
    """
    if form == "json":
        print_json(runs)
        return
    if not runs and form == "table":
        return
    from sightline.reporting.table import build_table

    filled = [(column, cell) for column, cell in _fields(form) if form == "csv" or any(map(cell, runs))]
    print_tables([build_table("runs", filled, runs, ())], form)


def _fields(form: str) -> Sequence[Field[RunLine]]:
    from sightline.reporting.notes import options_text
    from sightline.reporting.table import Column

    def options(run: RunLine) -> str:
        shown = {
            name: value
            for name, value in run.options.items()
            if form == "csv" or not isinstance(value, dict | list)
        }
        return options_text(shown)

    def judges(run: RunLine) -> str:
        return ", ".join(run.judges if form == "csv" or list(run.judges) != ["rules"] else ())

    return (
        (Column("text", "run", "run"), lambda run: str(run.number)),
        (Column("text", "name", "name"), lambda run: run.name or ""),
        (Column("text", "tags", "tags"), lambda run: ", ".join(run.tags)),
        (Column("text", "task", "task"), lambda run: run.task),
        (Column("text", "model", "model"), lambda run: run.model),
        (Column("text", "options", "options"), options),
        (Column("text", "judges", "judges"), judges),
        (Column("text", "started", "began"), lambda run: run.started),
        (
            Column("text", "sec.", "seconds"),
            lambda run: "" if run.seconds is None else f"{run.seconds:.1f}",
        ),
        (
            Column("text", "p95", "p95"),
            lambda run: "" if run.p95 is None else f"{run.p95:.2g}",
        ),
        (Column("text", "tokens", "tokens"), lambda run: f"{run.tokens:,}" if run.tokens else ""),
        (Column("text", "cost", "cost"), lambda run: f"{run.cost:.2f}" if run.cost else ""),
        (Column("text", "state", "state"), _state),
        (Column("text", "note", "note"), lambda run: run.note),
    )


def _state(run: RunLine) -> str:
    if run.is_damaged:
        return f"damaged: {DAMAGED_REMEDY}"
    return "" if run.is_complete else run.state


# -- `sightline runs show`: print everything that the store knows about a run

SHOW_EXAMPLE = """examples:
  sightline runs show 3
  sightline runs show base --json
"""


def register_show(parser: argparse.ArgumentParser) -> None:
    parser.epilog = SHOW_EXAMPLE
    add_run(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--config", metavar="FILE", help="sightline.toml with the prices of models")
    add_store(parser)
    parser.set_defaults(execute=execute_show)


def execute_show(options: argparse.Namespace) -> int:
    import msgspec

    from sightline.config import load_config
    from sightline.evaluation.runs import run_details

    with opened_run(options.run, options.store) as (store, number):
        run = run_details(store, number, load_config(options.config))
    if options.json:
        print_json(run)
        return 0
    shown = msgspec.to_builtins(run)
    answers = shown.pop("answers")
    for name, value in {**shown, **answers}.items():
        if value not in (None, "", (), [], {}):
            print_line(f"{name.replace('_', ' '):<19}{_text(value)}")
        elif name == "note":
            print_line(f"{name:<19}none")
    return 0


def _text(value: Any) -> str:
    from sightline.reporting.notes import options_text

    if isinstance(value, dict):
        return options_text(value)
    return "; ".join(value) if isinstance(value, list | tuple) else str(value)


# -- `sightline runs rename`: give a run a name, another name, or none

RENAME_EXAMPLE = """examples:
  sightline runs rename 3 base
  sightline runs rename base base-july
  sightline runs rename base --remove
"""


def register_rename(parser: argparse.ArgumentParser) -> None:
    parser.epilog = RENAME_EXAMPLE
    add_run(parser)
    parser.add_argument("name", nargs="?", metavar="NAME", help="the new name")
    parser.add_argument("--remove", action="store_true", help="remove the name")
    add_store(parser)
    parser.set_defaults(execute=execute_rename)


def execute_rename(options: argparse.Namespace) -> int:
    from sightline.formats.jsonl import check_run_name

    if options.remove == (options.name is not None):
        raise UserError(
            "runs rename: there is no new name, or a name and --remove", expected="one of the two"
        )
    if options.name is not None:
        if not options.name:
            raise UserError("the new name is empty", expected="a name; --remove removes the name")
        check_run_name(options.name)
    with opened_run(options.run, options.store) as (store, run):
        if options.name is None:
            store.labels.remove_name(run)
            print_line(f"run {run} has no name")
            return 0
        holder = store.labels.give_name(run, options.name)
    if holder != run:
        raise UserError(
            f"run {holder} is called '{options.name}'",
            expected=f"another name, or `sightline runs rename {holder} --remove` first",
        )
    print_line(f"run {run} is called '{options.name}'")
    return 0


# -- `sightline runs tag`: add tags to a run, or remove them

TAG_EXAMPLE = """examples:
  sightline runs tag base july paper
  sightline runs tag 3 july --remove
"""


def register_tag(parser: argparse.ArgumentParser) -> None:
    parser.epilog = TAG_EXAMPLE
    add_run(parser)
    parser.add_argument("tags", nargs="+", metavar="TAG", help="the tags")
    parser.add_argument("--remove", action="store_true", help="remove these tags")
    add_store(parser)
    parser.set_defaults(execute=execute_tag)


def execute_tag(options: argparse.Namespace) -> int:
    """Change the tags, and print those that the run has now."""
    from sightline.formats.jsonl import check_tags

    check_tags(options.tags)
    with opened_run(options.run, options.store) as (store, run):
        absent = [tag for tag in options.tags if tag not in store.labels.of(run).tags]
        if options.remove:
            store.labels.remove_tags(run, options.tags)
        else:
            store.labels.add_tags(run, options.tags)
        tags = store.labels.of(run).tags
    if options.remove and absent:
        print_note(f"run {run} had no tag {', '.join(absent)}")
    print_line(f"tags of run {run}: {', '.join(tags) or 'none'}")
    return 0


# -- `sightline runs note`: write a note on a run

NOTE_EXAMPLE = """examples:
  sightline runs note base "server restarted with --max-model-len 8192"
  sightline runs note base ""                                              removes the note
"""


def register_note(parser: argparse.ArgumentParser) -> None:
    parser.epilog = NOTE_EXAMPLE
    add_run(parser)
    parser.add_argument("text", metavar="TEXT", help="the note; an empty one removes the former note")
    add_store(parser)
    parser.set_defaults(execute=execute_note)


def execute_note(options: argparse.Namespace) -> int:
    with opened_run(options.run, options.store) as (store, run):
        store.labels.set_note(run, options.text)
    print_line(f"note of run {run}: {options.text}" if options.text else f"run {run} has no note")
    return 0


# -- `sightline runs delete`: delete runs from the store; the answers of models and judges stay

DELETE_EXAMPLE = """examples:
  sightline runs delete 3
  sightline runs delete base 7 --yes

`report` and `compare` cannot show a deleted run any more. The same `sightline run` command makes a new run
from the cached answers, under a new number.
"""

GOES = "deleted: options, list of probes, copied verdicts of humans, name, tags and note of each run"
STAYS = "kept: all answers of models and judges, and results folders (--out)"


def register_delete(parser: argparse.ArgumentParser) -> None:
    parser.epilog = DELETE_EXAMPLE
    parser.add_argument("runs", nargs="+", metavar="RUN", help="numbers or names of runs")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_store(parser)
    parser.set_defaults(execute=execute_delete)


def execute_delete(options: argparse.Namespace) -> int:
    from sightline.evaluation.runs import find_run, list_runs
    from sightline.store.runs import no_run
    from sightline.store.store import Store

    store = Store.open(options.store, create=False)
    try:
        there = {run.number: run for run in list_runs(store)}
        numbers = {find_run(store, word) for word in options.runs}
        for number in sorted(numbers - there.keys()):
            raise no_run(number, store.name)
        for number in sorted(numbers & store.claims.held_runs()):
            raise UserError(
                f"run {number} is in progress: a process is working on it",
                file=store.name,
                expected="a run that ended; stop that process first",
            )
        lines = [*(_line(there[number]) for number in sorted(numbers)), GOES, STAYS]
        if not options.yes and not is_confirmed("runs delete", lines):
            print_note("nothing is deleted")
            return 0
        for number in sorted(numbers):
            store.runs.drop(number)
    finally:
        store.close()
    print_line(f"deleted: {', '.join(f'run {number}' for number in sorted(numbers))}; all answers are kept")
    return 0


def _line(run: RunLine) -> str:
    name = f" ({run.name})" if run.name else ""
    return f"run {run.number}{name}: {', '.join(filter(None, (run.task, run.model, run.started, run.state)))}"


# -- Runs that a command shows: those of a store, or those of results folders and of files of answers


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
    from sightline.viewer.opened import indexable, opened_store

    paths = [Path(word) for word in words if task or Path(word).is_file() or not is_stored(word, store)]
    if not paths:
        opened = Store.open(store, create=False)
        try:
            found = [read_stored_run(opened, find_run(opened, word)) for word in words]
            with indexable(opened) as shown:
                yield shown, [run.number for run in found or [latest_finished_run(opened)[0]]]
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


SUBCOMMANDS = {
    "list": (register_list, "list the runs in the store, with their numbers, names, tags and options"),
    "show": (
        register_show,
        "print the name, tags, note, state, data, model, options, counts, tokens and cost of a run",
    ),
    "rename": (register_rename, "give a run a name or another name, or remove its name"),
    "tag": (register_tag, "add tags to a run, or remove them"),
    "note": (register_note, "write a note on a run, in the place of its former note"),
    "delete": (register_delete, "delete runs; the answers of models and judges stay"),
}
