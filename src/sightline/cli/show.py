"""`sightline show`: the most informative groups of a run, or those that differ from another run."""

from __future__ import annotations

import argparse
from pathlib import Path

from sightline.cli.options import add_quiet, add_store
from sightline.cli.printing import print_json
from sightline.cli.runs import add_answer_task, answer_task, opened_runs
from sightline.errors import UserError

EXAMPLE = """examples:
  sightline show                          the ten most informative groups of the latest finished run
  sightline show base                     the ten most informative groups of the run named base
  sightline show 3 --inconsistent -n 3    the three groups on which run 3 is most inconsistent
  sightline show 3 --wrong                groups with a wrong answer
  sightline show 3 --flips 4              groups with an answer that is right in only one of runs 3 and 4
  sightline show 3 --search "red car"     groups whose question, prompt or responses contain these words
  sightline show results/a --data data/codis
  sightline show samples.jsonl --task iibench:none --data data/iibench    answers of another tool

The most informative groups come first: inconsistent ones before the others, of these the ones without a right
answer, then the least similar answers. Groups without an answer to each probe come last.
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add(
        "run",
        nargs="?",
        metavar="RUN",
        help="number or name of a run in the store, a results folder, or with --task a file of answers"
        " (default: the latest finished run)",
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--wrong", action="store_true", help="groups with a wrong answer")
    chosen.add_argument(
        "--inconsistent",
        action="store_true",
        help="groups whose answers differ where the references are equal, or are equal where they differ",
    )
    chosen.add_argument(
        "--flips",
        metavar="OTHER",
        help="groups with an answer that is right in only one of the two runs, RUN and OTHER",
    )
    add(
        "--search",
        default="",
        metavar="WORDS",
        help="groups whose question, prompt or responses contain all of these words",
    )
    add("-n", type=_count, default=10, dest="number", metavar="N", help="groups to print (default: 10)")
    add(
        "--data",
        action="append",
        default=[],
        metavar="DIR",
        help="data folder: of a results folder or file, or of a run whose data folder moved; may repeat",
    )
    add_answer_task(parser)
    add("--json", action="store_true", help="print JSON")
    add_quiet(parser)
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Index the run if it is not indexed, and print the groups."""
    from sightline.cli.shown_groups import FlippedGroups, ShownGroups, print_groups
    from sightline.evaluation.runs import name_or_number
    from sightline.viewer.index import OutcomeIndex, index_run
    from sightline.viewer.index_types import GroupFilter

    if options.flips is not None and options.run is None:
        raise UserError("--flips needs two runs", expected="show RUN --flips OTHER")
    words = [word for word in (options.run, options.flips) if word is not None]
    data = [Path(folder) for folder in options.data]
    with opened_runs(words, options.store, data, answer_task(options)) as (store, runs):
        run = runs[0]
        index = OutcomeIndex(store, data)
        for number in runs:
            index_run(index, store, number, quiet=options.quiet)
        wanted = GroupFilter(
            verdict="wrong" if options.wrong else None,
            consistency="inconsistent" if options.inconsistent else None,
            search=options.search,
        )
        shown: ShownGroups | FlippedGroups
        if options.flips is None:
            opened = index.open(run)
            page = opened.page(wanted, limit=options.number)
            rows = opened.details(page.rows)
            shown = ShownGroups(run=run, total=page.total, groups=rows)
        else:
            other = runs[1]
            flips = index.compare(run, other).page("flipped", wanted, limit=options.number)
            shown = FlippedGroups(run=run, other=other, total=flips.total, groups=list(flips.rows))
        if options.json:
            print_json(shown)
        else:
            print_groups(shown, index, [name_or_number(store, number) for number in runs])
    return 0


def _count(word: str) -> int:
    number = int(word) if word.isdecimal() else 0
    if not 0 < number <= 1000:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number from 1 to 1000")
    return number
