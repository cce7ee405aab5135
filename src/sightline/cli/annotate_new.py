"""`sightline annotate new`: start a project."""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import add_store, pairs
from sightline.cli.printing import print_json
from sightline.counts import counted
from sightline.errors import UserError
from sightline.output import print_line, print_note

if TYPE_CHECKING:
    from sightline.annotation.creation import Draft
    from sightline.annotation.types import Item

SUMMARY = "start a project: make the items of a task, sample and order them"

EXAMPLE = """examples:
  sightline annotate new rate results/a results/b --name blind --data data/contextual --items 40
  sightline annotate new judge 3 4 --name table8 --data data/codis --seed 7
  sightline annotate new respond codis --name humans --data data/codis --annotators 5
  sightline annotate new same-meaning 3 5 --name meaning --data data/codis
  sightline annotate new equivalence rephrased --name pairs
  sightline annotate new errors results/a --name why --data data/iibench --by domain
  sightline annotate new mine.toml results/a --name mine

SOURCE is what the task needs: runs (number, name or results folder), a benchmark with its setting, a built
folder. --items samples whole clusters (all items about one image), and keeps the probability of each, so
that `report` can correct the judge's values by what humans found. The seed decides about sample and order;
two projects with one seed and the same sources are equal.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `annotate new`."""
    parser.epilog = EXAMPLE
    parser.add_argument("task", metavar="TASK", help="task of `annotate tasks`, or a TOML file")
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="what the items are made of")
    add = parser.add_argument
    add("--name", required=True, metavar="N", help="name of the project")
    add("--items", type=int, metavar="N", help="sample N clusters (default: as the task says, mostly all)")
    add(
        "--pick", choices=("all", "random", "stratified"), help="how to sample (default: random with --items)"
    )
    add("--by", default="", metavar="LABEL", help="label whose values are strata, such as category")
    add("--annotators", type=int, metavar="K", help="annotators per item (default: as the task says)")
    add("--shared", type=int, metavar="N", help="N queries go to all K annotators, each other one to one")
    add("--gold", type=Path, metavar="FILE", help="verdicts.jsonl with known verdicts: gold items")
    add("--training", type=int, default=0, metavar="N", help="N items with known values are for training")
    add("--qualification", type=int, default=0, metavar="N", help="N such items are a test to pass")
    add("--proposals", type=Path, metavar="FILE", help="verdicts.jsonl of a model, to confirm or change")
    add("--disjoint", action="append", default=[], metavar="PROJECT", help="its annotators cannot take part")
    add("--seed", type=int, default=0, metavar="N", help="seed of sample and order (default: 0)")
    add("--data", metavar="DIR", help="data folder with the images (default: SIGHTLINE_DATA)")
    add("--split", default="", metavar="S", help="split of a benchmark (default: its first one)")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="option of the benchmark; may repeat")
    add("--json", action="store_true", help="print the project as JSON")
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Make the project."""
    from sightline.annotation.creation import NewProject, absent_parts, draft_project
    from sightline.annotation.sources.request import SourceRequest
    from sightline.annotation.store import AnnotationStore
    from sightline.annotation.task_files import task, task_names
    from sightline.cli.annotation_arguments import read_store
    from sightline.engine.store import Store

    folder = options.data or os.environ.get("SIGHTLINE_DATA")
    if folder and not Path(folder).is_dir():
        raise UserError("there is no such data folder", file=folder, expected="--data DIR")
    declared = task(options.task)
    with read_store(options.store) as store:
        request = SourceRequest(
            task=declared,
            sources=tuple(options.sources),
            store=store,
            data=Path(folder) if folder else None,
            split=options.split,
            options=pairs(options.set, "--set"),
            by=options.by,
            count=options.items,
            seed=options.seed,
        )
        new = NewProject(
            name=options.name,
            pick=options.pick,
            annotators=options.annotators,
            shared=options.shared,
            gold=options.gold,
            proposals=options.proposals,
            training=options.training,
            qualification=options.qualification,
            disjoint=tuple(options.disjoint),
        )
        created = draft_project(AnnotationStore(store, time.time), request, new)
    # Only now: a project that cannot be made leaves no empty store.
    store = Store.open(options.store)
    try:
        number = AnnotationStore(store, time.time).create(created.project, created.items)
    finally:
        store.close()
    if options.json:
        print_json({"number": number, "items": len(created.items), "project": created.project})
    else:
        phases = Counter(item.phase for item in created.items)
        parts = ", ".join(f"{count:,} {phase}" for phase, count in phases.items() if phase)
        print_line(
            f"project {number}, {created.project.name}: {counted(len(created.items), 'item')}"
            f"{f' ({parts})' if parts else ''}{_in_clusters(created.items)},"
            f" {counted(created.project.annotators, 'annotator')} per item:"
            f" {counted(_wanted(created), 'judgement')}"
        )
    # The parts of our own tasks are optional; in a file, one that no item has may be misspelt.
    for note in created.notes if options.task in task_names() else [*created.notes, *absent_parts(created)]:
        print_note(note)
    if not options.json:
        print_note(f"next: sightline annotate invite {created.project.name} NAME..., then sightline serve")
    return 0


def _in_clusters(items: Sequence[Item]) -> str:
    """How many clusters the items are about, if some have several: --items counts clusters."""
    clusters = len({item.cluster for item in items})
    return (
        f" in {counted(clusters, 'cluster')} (all items about one image)" if 1 < clusters < len(items) else ""
    )


def _wanted(created: Draft) -> int:
    """How many judgements the project asks for; training, tests and gold items come on top."""
    return sum(item.annotators or created.project.annotators for item in created.items if not item.expected)
