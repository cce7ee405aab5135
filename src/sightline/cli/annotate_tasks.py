"""`sightline annotate tasks`: list the tasks that humans can do."""

from __future__ import annotations

import argparse

from sightline.cli.options import add_printing
from sightline.cli.printing import print_json, print_tables

SUMMARY = "list the tasks that humans can do: what they are about, what they produce"

EXAMPLE = """examples:
  sightline annotate tasks
  sightline annotate tasks --json

`annotate new` takes the name of a task, or the path of a TOML file with a task of your own.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `annotate tasks`."""
    parser.epilog = EXAMPLE
    add_printing(parser, by=False)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the tasks."""
    from sightline.annotation.task_files import task, task_names
    from sightline.reporting.report_table import Column, build_table

    tasks = [task(name) for name in task_names()]
    if options.format == "json":
        print_json(tasks)
        return 0
    fields = (
        (Column("text", "task", "task"), lambda one: one.name),
        (Column("text", "what humans do", "title"), lambda one: one.title),
        (Column("text", "items", "items"), lambda one: one.items),
        (Column("count", "annotators", "annotators"), lambda one: one.annotators),
        (Column("text", "produces", "produces"), lambda one: one.produces),
        (Column("text", "source", "source"), lambda one: one.source),
    )
    print_tables([build_table("annotation tasks", fields, tasks, ())], options.format)
    return 0
