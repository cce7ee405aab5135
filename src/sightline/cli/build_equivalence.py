"""`sightline build equivalence`: how far what was built means the same as its original."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import add_asking, add_quiet, add_store, asking_of, pairs
from sightline.cli.printing import print_budget_stop, print_json
from sightline.errors import UserError

if TYPE_CHECKING:
    from sightline.builders.equivalence import EquivalenceMeasure, EquivalenceReport, VariantPair
    from sightline.engine.client import ModelClient
    from sightline.models.embedder import Embedder
    from sightline.report.report_table import ReportTable

SUMMARY = "how far what was built means the same as its original: people, a judge, sentence similarity"

EXAMPLE = """examples:
  sightline build equivalence rephrased --write pairs.jsonl --pairs 100 --seed 1
  sightline build equivalence rephrased --human pairs.jsonl
  sightline build equivalence rephrased --judge openai/gpt-4o --similarity --json

The three measures are kept apart (MM-R3, section 3.2: people found 92 % of 100 rephrasings and 86 % of 100
restyled images equivalent). --write draws pairs for people, one a group: they put 'right' (the same) or
'wrong' (different) in the place of 'unscored', and their name into 'judge'. A judge and sentence similarity
compare questions; images are for people.
"""
FOR_HUMANS = 100
"""Pairs that are written for people where --pairs says nothing: as many as in the paper."""
SHOWN = 5


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build equivalence`."""
    parser.epilog = EXAMPLE
    parser.add_argument("folder", metavar="DIR", help="folder that a builder made")
    add = parser.add_argument_group("measures").add_argument
    add("--write", metavar="FILE.jsonl", help="draw pairs for people to fill in, write them there")
    add("--human", metavar="FILE.jsonl", help="the pairs that people filled in, or any verdicts.jsonl")
    add("--judge", metavar="SPEC", help="a chat model that says whether two questions ask the same")
    add("--judge-gen", action="append", default=[], metavar="KEY=VALUE", help="sampling option for the judge")
    add("--similarity", action="store_true", help="sentence similarity of questions")
    add("--embedder", metavar="NAME", help="what embeds them for --similarity (default: all-MiniLM-L6-v2)")
    some = "only N pairs, one a group, drawn by --seed (default 100 for --write, all for the others)"
    add("--pairs", type=int, metavar="N", help=some)
    add("--seed", type=int, default=0, metavar="N", help="seed of the draw and of intervals (default 0)")
    add("--force", action="store_true", help="let --write replace a file")
    add("--json", action="store_true", help="as JSON")
    add_quiet(parser)
    asking = parser.add_argument_group("asking the judge")
    add_asking(asking)
    add_store(asking)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Write pairs or measure, or both; 1 where the judge has not answered all, 4 at the budget's end."""
    from sightline.builders.equivalence import draw_pairs, read_pairs
    from sightline.engine.client import ModelClient
    from sightline.scoring.scorer import JUDGE_SAMPLING

    _refuse_nonsense(options)
    every = read_pairs(Path(options.folder))
    drawn = every if options.pairs is None else draw_pairs(every, options.pairs, options.seed)
    client = None
    if options.judge is not None:
        gen = pairs(options.judge_gen, "--judge-gen")
        client = ModelClient(asking_of(options, options.judge, gen=gen), JUDGE_SAMPLING)
    embedder = _embedder(options)
    humans = _humans(options, every)
    if options.write is not None:
        _write(options, every)
        if not (humans or client or embedder):
            return 0
    found = _measured(options, every, drawn, humans, client, embedder)
    _print(found, options.json)
    if client is not None and client.counts.stopped == "budget":
        print_budget_stop("judging")
        return 4
    return 1 if found.unanswered else 0


def _refuse_nonsense(options: argparse.Namespace) -> None:
    if options.pairs is not None and options.pairs < 1:
        raise UserError(f"--pairs {options.pairs} is no count", expected="at least 1")
    if options.judge_gen and options.judge is None:
        raise UserError("--judge-gen is about a judge", expected="--judge SPEC beside it")
    if options.embedder is not None and not options.similarity:
        raise UserError("--embedder is about sentence similarity", expected="--similarity beside it")
    if options.write is not None:
        from sightline.formats.files import refuse_overwriting

        read = [Path(options.human)] if options.human is not None else []
        refuse_overwriting(Path(options.write), options.force, "--write", read=read)


def _embedder(options: argparse.Namespace) -> Embedder | None:
    if not options.similarity:
        return None
    from sightline.models.embedder import DEFAULT, embedder

    return embedder(DEFAULT if options.embedder is None else options.embedder)


def _humans(options: argparse.Namespace, every: list[VariantPair]) -> EquivalenceMeasure | None:
    if options.human is None:
        return None
    from sightline.builders.equivalence import built, by_humans

    kind = built(Path(options.folder))
    return by_humans(every, Path(options.human), kind=kind, seed=options.seed)


def _write(options: argparse.Namespace, every: list[VariantPair]) -> None:
    from sightline.builders.equivalence import draw_pairs, write_pairs

    count = FOR_HUMANS if options.pairs is None else options.pairs
    drawn = draw_pairs(every, count, options.seed)
    write_pairs(drawn, Path(options.write))
    few = f"; {count:,} were wanted, and there is one a group" if len(drawn) < count else ""
    print(f"{options.write}: {len(drawn):,} pairs for people{few}", file=sys.stderr)
    print("  verdict: 'right' for the same, 'wrong' for different; judge: a name", file=sys.stderr)


def _measured(
    options: argparse.Namespace,
    every: list[VariantPair],
    drawn: list[VariantPair],
    humans: EquivalenceMeasure | None,
    client: ModelClient | None,
    embedder: Embedder | None,
) -> EquivalenceReport:
    from sightline.builders.equivalence import (
        HUMANS,
        JUDGE,
        SIMILARITY,
        by_judge,
        by_similarity,
        not_asked,
        report,
    )

    measures = {
        HUMANS: humans or not_asked(HUMANS, "--write, then --human FILE"),
        JUDGE: not_asked(JUDGE, "--judge MODEL"),
        SIMILARITY: not_asked(SIMILARITY, "--similarity"),
    }
    if embedder is not None:
        measures[SIMILARITY] = by_similarity(
            drawn, embedder, seed=options.seed, show_progress=not options.quiet
        )
    if client is not None:
        with client.store() as store:
            judging = by_judge(
                drawn, client, store, options.judge, seed=options.seed, show_progress=not options.quiet
            )
            measures[JUDGE] = asyncio.run(judging)
    identity = embedder.identity if embedder is not None else None
    return report(Path(options.folder), every, len(drawn), measures, identity)


def _print(found: EquivalenceReport, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    from sightline.report.terminal import show

    show([_table(found)])
    for name, different in found.different.items():
        listed = ", ".join(f"{group} {variant}" for group, variant in different[:SHOWN])
        more = f" and {len(different) - SHOWN:,} more" if len(different) > SHOWN else ""
        found_so = "not above 0.7" if name == "similarity" else "different"
        print(f"{name}: {found_so}: {listed}{more}", file=sys.stderr)


def _table(found: EquivalenceReport) -> ReportTable:
    from sightline.report.report_table import Column, clusters_cell, n_cell, published_cell, value_cell
    from sightline.report.report_table import ReportTable as Grid

    words = {
        "human": "human: judged the same",
        "judge": "judge: called the same",
        "similarity": "sentence similarity, mean",
        "similar": "sentence similarity above 0.7",
    }
    printed = [
        published_cell(metric, metric.published[0]) if metric.published else None for metric in found.metrics
    ]
    columns = [
        Column("text", "measure", "measure"),
        Column("value", "percent\n95 %", ""),
        Column("count", "pairs", "pairs"),
        Column("count", "images", "images"),
        *([Column("published", "people\n3.2", "people (3.2)")] if any(printed) else []),
    ]
    rows = [
        (words[metric.metric], value_cell(metric), n_cell(metric), clusters_cell(metric))
        + ((figure,) if any(printed) else ())
        for metric, figure in zip(found.metrics, printed, strict=True)
    ]
    notes = [
        *(f"{words[metric.metric]}: {metric.reason}" for metric in found.metrics if metric.reason),
        *(f"{metric.metric}: {metric.judge}" for metric in found.metrics if metric.judge),
        *(f"published: {value.note}" for metric in found.metrics for value in metric.published or ()),
        *found.notes,
    ]
    looked = "" if found.pairs == found.pairs_built else f", {found.pairs:,} looked at"
    title = f"{found.folder}: {found.pairs_built:,} pairs of an original and a variant{looked}"
    return Grid(title, tuple(columns), tuple(rows), tuple(notes))
