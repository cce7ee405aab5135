"""`sightline runs rename`: give a run a name, another name, or none."""

from __future__ import annotations

import argparse

from sightline.cli.options import add_store
from sightline.cli.run_arguments import add_run, opened_run
from sightline.errors import UserError
from sightline.output import print_line

SUMMARY = "give a run a name or another name, or remove its name"

EXAMPLE = """examples:
  sightline runs rename 3 base
  sightline runs rename base base-july
  sightline runs rename base --remove
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `runs rename`."""
    parser.epilog = EXAMPLE
    add_run(parser)
    parser.add_argument("name", nargs="?", metavar="NAME", help="the new name")
    parser.add_argument("--remove", action="store_true", help="remove the name")
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Rename the run."""
    from sightline.results.run_names import check_run_name

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
