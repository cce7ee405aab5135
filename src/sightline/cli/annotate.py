"""`sightline annotate SUBCOMMAND`: annotation projects from their start to the export."""

from __future__ import annotations

import argparse
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import add_printing, add_project, add_store, opened_project, pairs, state_of
from sightline.cli.printing import is_confirmed, print_json, print_tables
from sightline.errors import UserError, unknown_name
from sightline.text import counted, print_line, print_note, print_url

if TYPE_CHECKING:
    from sightline.annotation.creation import Draft
    from sightline.annotation.overview import LabelAgreement, Overview
    from sightline.annotation.store import AnnotationStore, ProjectRow
    from sightline.annotation.types import Item
    from sightline.evaluation.corrected import LabelPlan, StratumPlan
    from sightline.reporting.table import Field, ReportTable, Value

EXAMPLE = """examples:
  sightline annotate new rate results/a results/b --name blind --data data/contextual --images 40
  sightline annotate invite blind Anna Ben Chloe
  sightline serve
  sightline annotate status blind
  sightline annotate export blind --out blind
  sightline annotate SUBCOMMAND --help

Annotators open their links in a browser; `sightline serve` runs the pages. docs/annotation.md has the whole
way.
"""


# -- `sightline annotate new`: start a project

NEW_EXAMPLE = """examples:
  sightline annotate new rate results/a results/b --name blind --data data/contextual --images 40
  sightline annotate new judge 3 4 --name table8 --data data/codis --seed 7
  sightline annotate new respond codis --name humans --data data/codis --annotators 5
  sightline annotate new same-meaning 3 5 --name meaning --data data/codis
  sightline annotate new equivalence rephrased --name pairs
  sightline annotate new errors results/a --name why --data data/iibench --by domain
  sightline annotate new mine.toml results/a --name mine

SOURCE is what the task needs: runs (number, name or results folder), a benchmark with its setting, a built
folder. --images and --items sample images with all their items, and keep the probability of each, so
that `report` can correct the judge's values by what humans found. The seed decides about sample and order;
two projects with one seed and the same sources are equal.
"""


def register_new(parser: argparse.ArgumentParser) -> None:
    parser.epilog = NEW_EXAMPLE
    parser.add_argument("task", metavar="TASK", help="task of `annotate tasks`, or a TOML file")
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="what the items are made of")
    add = parser.add_argument
    add("--name", required=True, metavar="N", help="name of the project")
    size = parser.add_mutually_exclusive_group().add_argument
    size(
        "--items",
        type=int,
        metavar="N",
        help="sample about N items: whole images (default: as the task says, mostly all)",
    )
    size("--images", type=int, metavar="N", help="sample N images, with all items about each")
    add("--pick", choices=("all", "random", "stratified"), help="how to sample (default: random)")
    add("--by", default="", metavar="LABEL", help="label whose values are strata, such as category")
    add("--annotators", type=int, metavar="K", help="annotators per item (default: as the task says)")
    add(
        "--pairs",
        type=int,
        default=1,
        metavar="N",
        help="author-codis: up to N pairs about an image (default: 1)",
    )
    add("--several", action="store_true", help="an answer may have several errors (default: one)")
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
    parser.set_defaults(execute=execute_new)


def execute_new(options: argparse.Namespace) -> int:
    from sightline.annotation.creation import NewProject, absent_parts, draft_project
    from sightline.annotation.sources import SourceRequest
    from sightline.annotation.store import AnnotationStore
    from sightline.annotation.task import task, task_names, with_several_labels
    from sightline.store.store import Store, existing_or_empty_store

    folder = options.data or os.environ.get("SIGHTLINE_DATA")
    if folder and not Path(folder).is_dir():
        raise UserError("there is no such data folder", file=folder, expected="--data DIR")
    declared = with_several_labels(task(options.task)) if options.several else task(options.task)
    with existing_or_empty_store(options.store) as store:
        request = SourceRequest(
            task=declared,
            sources=tuple(options.sources),
            store=store,
            data=Path(folder) if folder else None,
            split=options.split,
            options=pairs(options.set, "--set"),
            by=options.by,
            count=options.items,
            images=options.images,
            seed=options.seed,
            pairs=options.pairs,
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
            f"{f' ({parts})' if parts else ''}{_about_images(created.items)},"
            f" {_annotators_per_item(created)}: {counted(_wanted(created), 'judgement')}"
        )
    # The parts of our own tasks are optional; in a file, one that no item has may be misspelt.
    for note in created.notes if options.task in task_names() else [*created.notes, *absent_parts(created)]:
        print_note(note)
    if not options.json:
        store_option = "" if options.store == "sightline.db" else f" --store {options.store}"
        invite = f"sightline annotate invite {created.project.name} NAME...{store_option}"
        print_note(f"next: {invite}, then sightline serve{store_option}")
    return 0


def _about_images(items: Sequence[Item]) -> str:
    """How many images the items are about, if some have several items."""
    clusters = len({item.cluster for item in items})
    return f" about {counted(clusters, 'image')}" if 1 < clusters < len(items) else ""


def _annotators_per_item(created: Draft) -> str:
    everyone = created.project.annotators
    numbers = Counter(item.annotators or everyone for item in created.items if not item.expected)
    if set(numbers) <= {everyone}:
        return f"{counted(everyone, 'annotator')} per item"
    parts = (f"{counted(many, 'annotator')} for {items:,}" for many, items in sorted(numbers.items()))
    return f"{' and '.join(parts)} of these"


def _wanted(created: Draft) -> int:
    """How many judgements the project asks for; training, tests and gold items come on top."""
    return sum(item.annotators or created.project.annotators for item in created.items if not item.expected)


# -- `sightline annotate plan`: how many images to label

PLAN_EXAMPLE = """examples:
  sightline annotate plan 3
  sightline annotate plan 3 --by category --human blind
  sightline annotate plan results/a --human votes.jsonl --half-width 3 --json

Says for each metric of a run how many images humans have to label, so that the 95 % confidence interval of
the corrected value is the value plus or minus --half-width: for these images alone, and for the population
that they stand for. With --by, the stratum that narrows the interval most comes first. Without labels, the
plan is that of humans alone, whose verdicts vary as those of the judge: label some images, and plan again.
"""


def register_plan(parser: argparse.ArgumentParser) -> None:
    parser.epilog = PLAN_EXAMPLE
    parser.add_argument("run", metavar="RUN", help="judged run: number, name or results folder")
    add = parser.add_argument
    add("--human", default="", metavar="HUMANS", help="project, or file of verdicts, with the labels so far")
    add("--by", default="", metavar="LABEL", help="label whose values are strata, such as category")
    add("--half-width", type=float, default=2.0, metavar="POINTS", help="half the interval (default: 2)")
    add_printing(parser, by=False)
    add_store(parser)
    parser.set_defaults(execute=execute_plan)


def execute_plan(options: argparse.Namespace) -> int:
    from sightline.annotation.sources import label_of
    from sightline.benchmarks.registry import benchmark
    from sightline.evaluation.compare import judged_run
    from sightline.evaluation.corrected import plan_labels
    from sightline.evaluation.judges import HUMAN_PREFIX, RecordedJudge, human_verdicts
    from sightline.evaluation.runs import find_run
    from sightline.store.store import existing_or_empty_store

    if not options.half_width > 0:
        raise UserError("--half-width is not above 0", found=options.half_width)
    verdicts = human_verdicts(options.human, options.store) if options.human else []
    with existing_or_empty_store(options.store) as store:
        folder = Path(options.run)
        run = judged_run(store, folder if folder.is_dir() else find_run(store, options.run))
        source = benchmark(run.result.benchmark)
        plans = plan_labels(
            run.groups.values(),
            source,
            source.metrics(run.result.options),
            store.answers,
            RecordedJudge(f"{HUMAN_PREFIX}{options.human}", verdicts),
            lambda group: label_of(group.outcomes[0].labels, options.by),
            options.half_width,
        )
    if not plans:
        raise UserError("the run has no metric that humans can correct", found=options.run)
    if options.format == "json":
        print_json(plans)
    else:
        print_tables(_plan_tables(plans, options.half_width, options.by), options.format)
    return 0


def _plan_tables(plans: Sequence[LabelPlan], half_width: float, by: str) -> list[ReportTable]:
    from sightline.metrics.statistics import LEAST_CLUSTERS
    from sightline.reporting.table import Column, Value, build_table

    wanted = f"± {half_width:g}"
    sizes = (
        Column("count", "images", "images"),
        Column("count", "labelled", "labelled"),
        Column("count", f"{wanted}\nthese", "these"),
        Column("count", f"{wanted}\npopulation", "population"),
    )

    def counts(strata: Sequence[StratumPlan], place: int) -> int | str:
        numbers = [(of.clusters, of.labelled, of.these, of.population)[place] for of in strata]
        known = [number for number in numbers if number is not None]
        return sum(known) if known else "-"

    def now(place: int) -> Callable[[LabelPlan], Value]:
        return lambda one: Value(one.half_widths[place] if one.half_widths else None)

    fields: list[Field[LabelPlan]] = [
        (Column("text", "metric", "metric"), lambda one: one.metric),
        *((column, lambda one, place=place: counts(one.strata, place)) for place, column in enumerate(sizes)),
        (Column("value", "now ±\nthese", "these_now"), now(0)),
        (Column("value", "now ±\npopulation", "population_now"), now(1)),
    ]
    notes = [
        f"{wanted}: images to label in all for a 95 % CI of the corrected value of this half-width; '-' if"
        " labels of all images would not be enough",
        "these: the value of exactly these images; population: of the images that they stand for",
        f"answers to judge about an image, on average: {max(one.cases for one in plans):.1f}",
    ]
    if not all(one.half_widths for one in plans):
        notes.append(
            f"fewer than {LEAST_CLUSTERS} images are labelled: planned by the spread of the judge's verdicts,"
            " undecided ones as wrong: a rough number; label some, and plan again"
        )
    tables = [build_table("Labels for the corrected values", fields, plans, notes)]
    of_strata: list[Field[StratumPlan]] = [
        (Column("text", by, "stratum"), lambda one: one.name),
        *((column, lambda one, place=place: counts([one], place)) for place, column in enumerate(sizes)),
    ]
    first = "the stratum whose next label narrows the interval of these images most comes first"
    return tables + [
        build_table(f"{one.metric}: images to label, by {by}", of_strata, one.strata, [first])
        for one in plans
        if by
    ]


# -- `sightline annotate invite`: make personal links for annotators

INVITE_EXAMPLE = """examples:
  sightline annotate invite blind Anna Ben Chloe
  sightline annotate invite table8 Dora --role adjudicator
  sightline annotate invite blind Anna --expires 30d --url https://annotate.example.org
  sightline annotate invite blind Ben --revoke
  sightline annotate invite blind prolific --role crowd --most 20 --code C1X7Q2 --label region=KE

An annotator who is invited again gets a new link, and the old one ends; judgements stay. A pseudonym is
enough as a name. A crowd link is one link for all workers of a platform, which appends each one's id;
its labels and limits are theirs. Whoever has a personal link can judge in its name: send it to one person
only. --url names where `sightline serve` runs; the default is the URL of the last `serve --url` with this
store, else this computer with the default port.
"""

DEFAULT = "http://127.0.0.1:8765"
"""Where `sightline serve` is without options."""

UNITS = {"h": 3600, "d": 86400, "w": 7 * 86400}


def register_invite(parser: argparse.ArgumentParser) -> None:
    parser.epilog = INVITE_EXAMPLE
    add_project(parser)
    add = parser.add_argument
    add("names", nargs="+", metavar="NAME", help="name or pseudonym of an annotator")
    add(
        "--role",
        default="rater",
        help="rater, adjudicator (gets only items without a decision), or crowd: one link for many workers",
    )
    add("--stratum", action="append", default=[], metavar="S", help="only items of this stratum; may repeat")
    add(
        "--expires",
        default="14d",
        metavar="TIME",
        help="when the links end, such as 12h, 14d, 4w (default: 14d)",
    )
    add("--label", action="append", default=[], metavar="KEY=VALUE", help="such as region=KE; may repeat")
    add("--most", type=int, default=0, metavar="N", help="at most N items for an annotator (default: all)")
    add("--code", default="", metavar="TEXT", help="crowd: completion code (default: each worker's own)")
    add("--url", metavar="BASE", help="URL of `sightline serve` (default: that of the last `serve --url`)")
    add("--revoke", action="store_true", help="end the links of these annotators")
    add("--json", action="store_true", help="print the links as JSON")
    parser.set_defaults(execute=execute_invite)


def execute_invite(options: argparse.Namespace) -> int:
    from sightline.annotation.links import invite, token_of

    expires = time.time() + _seconds(options.expires)
    if options.url and not re.match(r"https?://[^/]", options.url):
        raise UserError("--url is no URL", found=options.url, expected="such as https://annotate.example.org")
    labels = pairs(options.label, "--label", str)
    with opened_project(options.project, options.store) as (store, row):
        if options.revoke:
            _revoke(store, row, options.names)
            return 0
        invited = [
            invite(
                store,
                row,
                name,
                expires,
                role=options.role,
                strata=tuple(options.stratum),
                labels=labels,
                most=options.most,
                code=options.code,
            )
            for name in options.names
        ]
        kept = store.server_url()
    base = (options.url or kept or DEFAULT).rstrip("/")
    links = {one.name: f"{base}/annotate/{token_of(row, one)}" for one in invited}
    if options.json:
        print_json(links)
    else:
        for name, link in links.items():
            print_url(name, link)
    if not options.url:
        of = "the last `serve --url`" if kept else "the default of `sightline serve`"
        print_note(f"the links begin with {base}, {of}; --url BASE for another")
    if options.role == "crowd":
        print_note(
            "let the platform append the worker's id: ?PROLIFIC_PID=, ?workerId=, ?participantId=, ?id="
        )
    print_note("the pages are there while `sightline serve` runs")
    return 0


def _revoke(store: AnnotationStore, row: ProjectRow, names: Sequence[str]) -> None:
    from sightline.annotation.links import revoke

    present = {one.name.casefold(): one for one in store.annotators(row.number)}
    for name in names:
        if name.casefold() not in present:
            raise unknown_name("annotator", name, [one.name for one in present.values()])
    for name in names:
        revoke(store, row, present[name.casefold()].number)
        print_line(f"{name}: the link is revoked")


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d{1,4})([hdw])", text)
    if match is None or not int(match[1]):
        raise UserError("--expires is no time", found=text, expected="such as 12h, 14d or 4w")
    return float(int(match[1]) * UNITS[match[2]])


# -- `sightline annotate status`: progress and agreement of a project

STATUS_EXAMPLE = """examples:
  sightline annotate status
  sightline annotate status blind
  sightline annotate status blind --json

Without PROJECT, the projects of the store are listed.
"""


def register_status(parser: argparse.ArgumentParser) -> None:
    parser.epilog = STATUS_EXAMPLE
    parser.add_argument("project", nargs="?", metavar="PROJECT", help="name or number of the project")
    add_printing(parser, by=False)
    add_store(parser)
    parser.set_defaults(execute=execute_status)


def execute_status(options: argparse.Namespace) -> int:
    from sightline.annotation.overview import label_agreement, overview

    if options.project is None:
        return _print_projects(options)
    with opened_project(options.project, options.store) as (store, row):
        state, annotators = state_of(store, row), store.annotators(row.number)
    seen = overview(state, annotators, time.time(), growth=0)
    labels = label_agreement(state, annotators)
    if options.format == "json":
        about = {"name": row.project.name, "task": row.project.task.name}
        print_json({**about, "overview": seen, "labels": labels})
        return 0
    print_tables([_table(row, seen), *_label_tables(labels)], options.format)
    return 0


def _print_projects(options: argparse.Namespace) -> int:
    from sightline.annotation.store import AnnotationStore
    from sightline.store.store import Store

    store = Store.open(options.store, create=False)
    try:
        rows = AnnotationStore(store, time.time).projects()
    finally:
        store.close()
    if options.format == "json":
        print_json(
            [
                {
                    "number": row.number,
                    "name": row.project.name,
                    "task": row.project.task.name,
                    "sources": row.project.sources,
                    "closed": row.closed is not None,
                }
                for row in rows
            ]
        )
        return 0
    for row in rows:
        ended = ", closed" if row.closed is not None else ""
        print_line(f"{row.number}  {row.project.name}: {row.project.task.name}{ended}")
    if not rows:
        print_note("no annotation project is in the store; `sightline annotate new` starts one")
    return 0


def _table(row: ProjectRow, seen: Overview) -> ReportTable:
    from sightline.reporting.table import Column, build_table

    fields = (
        (Column("text", "annotator", "annotator"), lambda one: one.annotator.name),
        (Column("text", "role", "role"), lambda one: one.annotator.role),
        (Column("count", "done", "done"), lambda one: one.done),
        (Column("count", "skipped", "skipped"), lambda one: one.skipped),
        (
            Column("text", "gold", "gold"),
            lambda one: f"{one.gold.right} of {one.gold.judged}" if one.gold.judged else "",
        ),
        (
            Column("text", "agrees\n%", "agreement"),
            lambda one: "" if one.agreement is None else f"{one.agreement:.1f}",
        ),
        (
            Column("text", "median\ns", "seconds"),
            lambda one: "" if one.seconds is None else f"{one.seconds:.0f}",
        ),
        (Column("text", "state", "state"), lambda one: one.standing),
    )
    return build_table(f"{row.project.name}: {row.project.task.title}", fields, seen.annotators, _notes(seen))


def _label_tables(labels: Sequence[LabelAgreement]) -> list[ReportTable]:
    """The agreement on labels; no table for a task without labels."""
    from sightline.reporting.table import Column, build_table, clusters_cell, n_cell, value_cell

    if not labels:
        return []
    fields = (
        (Column("text", "label", "label"), lambda one: one.name),
        (Column("value", "agree %\n95 %", "agreement"), lambda one: value_cell(one.share)),
        (Column("value", "alpha\n95 %", "alpha"), lambda one: value_cell(one.alpha)),
        (Column("count", "pairs", "pairs"), lambda one: n_cell(one.share)),
        (Column("count", "clusters", "clusters"), lambda one: clusters_cell(one.share)),
    )
    notes = dict.fromkeys(one.share.reason for one in labels if one.share.reason)
    return [build_table("Agreement on labels", fields, labels, list(notes))]


def _notes(seen: Overview) -> list[str]:
    from sightline.annotation.overview import stuck_sentence

    alpha = seen.alpha
    decided, ties = len(seen.with_status("decided")), seen.with_status("tie")
    settled = len(seen.with_status("settled"))
    notes = [
        f"judgements: {seen.judgements:,} of {seen.wanted:,}",
        f"items: {seen.items:,}, decided {decided:,}, settled {settled:,}, without a decision {len(ties):,}",
    ]
    if alpha.value is not None:
        limits = f" [{alpha.low:.2f}, {alpha.high:.2f}]" if alpha.low is not None else ""
        notes.append(f"Krippendorff's alpha {alpha.value:.2f}{limits} on {seen.shared:,} items")
    elif alpha.reason:
        notes.append(f"no alpha: {alpha.reason}")
    if ties:
        word = "item" if len(ties) == 1 else "items"
        notes.append(f"to settle: {word} {', '.join(map(str, ties[:20]))}")
    if stuck := stuck_sentence(seen):
        notes.append(stuck)
    if seen.to_compare:
        notes.append(
            f"answers that only you can compare with the expected ones: {len(seen.to_compare):,}; the page"
            " Annotate of `sightline serve` lists them"
        )
    if seen.remarks:
        numbers = dict.fromkeys(str(entry.item) for entry in seen.remarks)
        notes.append(
            f"remarks of annotators on the items {', '.join(list(numbers)[:20])}: see the page Annotate"
        )
    if seen.broken:
        notes.append(f"reported as broken: {', '.join(map(str, seen.broken[:20]))}")
    return notes


# -- `sightline annotate import`: add judgements of a filled-in table

IMPORT_EXAMPLE = """examples:
  sightline annotate export blind --out blind          (blind/items.csv is the table to fill in)
  sightline annotate import blind anna.csv ben.xlsx
  sightline annotate import blind label-studio-export.json
  sightline annotate import blind annotation_output/*/user_state.json

A line needs the item, the annotator's name and the values of the fields. Lines without values are ignored.
Annotators who are not in the project are added. A file that is imported twice adds nothing the second time.
Also read, if annotate export wrote their items: exports of Label Studio (JSON, JSON_MIN, CSV or TSV), and
of Potato user_state.json, its exports (annotations.jsonl, .csv or .tsv) and annotated_instances.
"""


def register_import(parser: argparse.ArgumentParser) -> None:
    parser.epilog = IMPORT_EXAMPLE
    add_project(parser)
    parser.add_argument("files", nargs="+", metavar="FILE", help="filled-in table")
    parser.set_defaults(execute=execute_import)


def execute_import(options: argparse.Namespace) -> int:
    from sightline.annotation.exchange import import_sheets

    with opened_project(options.project, options.store) as (store, row):
        imported = import_sheets(
            store, row, state_of(store, row), [Path(file) for file in options.files], time.time()
        )
    print_line(
        f"{row.project.name}: {imported.added:,} judgements added, {imported.known:,} were there already"
    )
    if imported.empty:
        print_note(f"left out, because nothing is filled in: {counted(imported.empty, 'record')}")
    if imported.changed:
        print_note(
            f"{counted(imported.changed, 'annotation')} changed by somebody else than the annotator, in whose"
            " name Label Studio has them (the log has a remark on each)"
        )
    if imported.unknown:
        print_note(f"left out, because the task has no such field: {', '.join(imported.unknown)}")
    if imported.beyond:
        numbers = ", ".join(map(str, imported.beyond[:20])) + (", ..." if len(imported.beyond) > 20 else "")
        print_note(f"more judgements than the project asks for, all of which count: items {numbers}")
    return 0


# -- `sightline annotate export`: write what humans judged

EXPORT_EXAMPLE = """examples:
  sightline annotate export blind --out blind
  sightline annotate export humans --out humans
  sightline score codis humans/anna/default.jsonl --model human:anna --data data/codis
  sightline annotate export blind --out blind --xlsx

DIR receives log.jsonl, with every entry of the log; judgements.csv, a table of the judgements that stand;
annotators.csv, with labels, time and completion code of each; items.csv, a form for work without a browser;
the items for Label Studio and Potato; and what the task produces: verdicts.jsonl, a folder per annotator
with answers by setting, or data. The files are replaced.
Commands with this store read verdicts without an export: --judge human:blind, judge-report --human blind.
"""


def register_export(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXPORT_EXAMPLE
    add_project(parser)
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the files")
    parser.add_argument("--xlsx", action="store_true", help="write judgements.xlsx, too")
    parser.set_defaults(execute=execute_export)


def execute_export(options: argparse.Namespace) -> int:
    from sightline.annotation.export import export_project

    with opened_project(options.project, options.store) as (store, row):
        state, annotators = state_of(store, row), store.annotators(row.number)
        log, out = store.entries(row.number), Path(options.out)
        for file, content in export_project(state, annotators, log, out, xlsx=options.xlsx):
            print_line(f"{file}: {content}")
    return 0


# -- `sightline annotate close`: close a project

CLOSE_EXAMPLE = """examples:
  sightline annotate close blind
  sightline annotate close blind --reopen
"""


def register_close(parser: argparse.ArgumentParser) -> None:
    parser.epilog = CLOSE_EXAMPLE
    add_project(parser)
    parser.add_argument("--reopen", action="store_true", help="open it again")
    parser.set_defaults(execute=execute_close)


def execute_close(options: argparse.Namespace) -> int:
    with opened_project(options.project, options.store) as (store, row):
        store.close(row.number, closed=not options.reopen)
    print_line(f"{row.project.name} is {'open' if options.reopen else 'closed'}")
    return 0


# -- `sightline annotate delete`: delete a project from the store

DELETE_EXAMPLE = """examples:
  sightline annotate export blind --out blind
  sightline annotate delete blind
  sightline annotate delete blind --yes

Export the project first: its judgements cannot be restored. Verdicts that runs have of it stay in these runs.
"""


def register_delete(parser: argparse.ArgumentParser) -> None:
    parser.epilog = DELETE_EXAMPLE
    add_project(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.set_defaults(execute=execute_delete)


def execute_delete(options: argparse.Namespace) -> int:
    from sightline.annotation.overview import overview

    with opened_project(options.project, options.store) as (store, row):
        annotators = store.annotators(row.number)
        judgements = overview(state_of(store, row), annotators, time.time(), growth=0).judgements
        made = f"{counted(judgements, 'judgement')} of {counted(len(annotators), 'annotator')}"
        goes = f"{row.project.name}: items, links, log and {made}"
        name, place = row.project.name, "" if options.store == "sightline.db" else f" --store {options.store}"
        export = f"sightline annotate export {name} --out {name}{place}"
        lines = (f"to delete: {goes}", f"to keep them, export first: {export}")
        if not options.yes and not is_confirmed("annotate delete", lines):
            print_note("nothing is deleted")
            return 0
        store.drop(row.number)
    print_line(f"deleted: {goes}; verdicts in runs stay")
    return 0


# -- `sightline annotate tasks`: list the tasks that humans can do

TASKS_EXAMPLE = """examples:
  sightline annotate tasks
  sightline annotate tasks --json

`annotate new` takes the name of a task, or the path of a TOML file with a task of your own.
"""


def register_tasks(parser: argparse.ArgumentParser) -> None:
    parser.epilog = TASKS_EXAMPLE
    add_printing(parser, by=False)
    parser.set_defaults(execute=execute_tasks)


def execute_tasks(options: argparse.Namespace) -> int:
    from sightline.annotation.task import task, task_names
    from sightline.reporting.table import Column, build_table

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


SUBCOMMANDS = {
    "tasks": (register_tasks, "list the tasks that humans can do: what they are about, what they produce"),
    "new": (register_new, "start a project: make the items of a task, sample and order them"),
    "plan": (register_plan, "say how many images humans have to label for an interval of a given width"),
    "invite": (register_invite, "make personal links, each for the items of one annotator, or end one"),
    "status": (register_status, "print progress, annotators, agreement and items without a decision"),
    "export": (register_export, "write verdicts, answers or data, the log, and tables of what humans judged"),
    "import": (
        register_import,
        "add the judgements of filled-in tables, or of exports of Label Studio and Potato",
    ),
    "close": (register_close, "close a project, so that nothing is added any more; its judgements stay"),
    "delete": (register_delete, "delete a project with its judgements; export it first"),
}
