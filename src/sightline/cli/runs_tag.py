"""`sightline runs tag`: add tags to a run, or remove them."""

from __future__ import annotations

import argparse

from sightline.cli.options import add_store
from sightline.cli.run_arguments import add_run, opened_run
from sightline.output import print_line, print_note

SUMMARY = "add tags to a run, or remove them"

EXAMPLE = """examples:
  sightline runs tag base july paper
  sightline runs tag 3 july --remove
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `runs tag`."""
    parser.epilog = EXAMPLE
    add_run(parser)
    parser.add_argument("tags", nargs="+", metavar="TAG", help="the tags")
    parser.add_argument("--remove", action="store_true", help="remove these tags")
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Change the tags, and print those that the run has now."""
    from sightline.results.run_names import check_tags

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
