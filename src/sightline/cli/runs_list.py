"""`sightline runs list`: list the runs in a store, all or those with a tag, a benchmark, a model."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sightline.cli.options import add_printing, add_store
from sightline.cli.printing import print_json, print_tables
from sightline.output import print_note

if TYPE_CHECKING:
    from sightline.reporting.report_table import Field
    from sightline.results.run_list import RunLine

SUMMARY = "list the runs in the store, with their numbers, names, tags and options"

EXAMPLE = """examples:
  sightline runs list
  sightline runs list --tag july --benchmark codis
  sightline runs list --model gpt-4o --json
"""

NUMBER = " " * 6
"""What is below the number of a run."""

DAMAGED_REMEDY = "its description cannot be read; `sightline runs delete` deletes the run, its answers stay"


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `runs list`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add("--tag", action="append", default=[], metavar="TAG", help="only runs with this tag; may repeat")
    add("--benchmark", default="", metavar="TASK", help="only runs of this BENCHMARK or BENCHMARK:SETTING")
    add("--model", default="", metavar="TEXT", help="only runs of models whose name contains this text")
    add_printing(parser, by=False)
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the list."""
    from sightline.engine.store import Store
    from sightline.results.run_list import list_runs, select_runs

    store = Store.open(options.store, create=False)
    try:
        runs = list_runs(store)
    finally:
        store.close()
    selected = select_runs(runs, options.tag, options.benchmark, options.model)
    print_runs(selected, options.format)
    if not selected:
        print_note(f"no run matches, of {len(runs):,} in the store")
    return 0


def print_runs(runs: Sequence[RunLine], form: str) -> None:
    """Print a list of runs. Columns in which every run is empty are left out of Markdown."""
    if form == "json":
        print_json(runs)
        return
    if form == "table":
        _print_lines(runs)
        return
    from sightline.reporting.report_table import build_table

    filled = [(column, cell) for column, cell in _fields() if form == "csv" or any(map(cell, runs))]
    print_tables([build_table("runs", filled, runs, ())], form)


def _print_lines(runs: Sequence[RunLine]) -> None:
    """Print a line for each run, because most terminals are too narrow for the table."""
    from sightline.reporting.terminal import show_paragraphs

    show_paragraphs((line, len(NUMBER)) for line in _lines(runs))


def _lines(runs: Sequence[RunLine]) -> Iterator[str]:
    """A heading, then a line for each run and each note."""
    from sightline.reporting.option_texts import options_text

    named = any(run.name for run in runs)
    width = max(len("name"), *(len(run.name or "") for run in runs)) if named else 0
    if runs:
        name = f"{'name':<{width}}  " if named else ""
        yield f"{'run':>4}  {'began':<19}  {name}{'task':<22} model, options, judges, tags"
    for run in runs:
        name = f"{run.name or '':<{width}}  " if named else ""
        if run.is_damaged:
            yield f"{run.number:>4}  {run.started:<19}  {name}damaged: {DAMAGED_REMEDY}"
            continue
        judges = f"judged by {', '.join(run.judges)}" + (f" ({run.state})" if not run.is_complete else "")
        tags = f"tags {', '.join(run.tags)}" if run.tags else ""
        rest = ", ".join(filter(None, (run.model, options_text(run.options), judges, tags)))
        yield f"{run.number:>4}  {run.started}  {name}{run.task:<22} {rest}"
        if run.note:
            yield f"{NUMBER}{run.note}"


def _fields() -> Sequence[Field[RunLine]]:
    from sightline.reporting.option_texts import options_text
    from sightline.reporting.report_table import Column

    return (
        (Column("text", "run", "run"), lambda run: str(run.number)),
        (Column("text", "name", "name"), lambda run: run.name or ""),
        (Column("text", "tags", "tags"), lambda run: ", ".join(run.tags)),
        (Column("text", "task", "task"), lambda run: run.task),
        (Column("text", "model", "model"), lambda run: run.model),
        (Column("text", "options", "options"), lambda run: options_text(run.options)),
        (Column("text", "judges", "judges"), lambda run: ", ".join(run.judges)),
        (Column("text", "started", "began"), lambda run: run.started),
        (Column("text", "state", "state"), lambda run: "" if run.is_complete else run.state),
        (Column("text", "note", "note"), lambda run: run.note),
    )
