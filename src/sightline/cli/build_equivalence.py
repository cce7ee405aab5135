"""`sightline build equivalence`: measures how far variants mean the same as their originals."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import ray_tasks
from sightline.cli.options import add_quiet, add_request_limits, add_store, client_options, pairs
from sightline.cli.printing import print_budget_stop, print_json
from sightline.errors import UserError, some_of
from sightline.output import print_note

if TYPE_CHECKING:
    from sightline.builders.equivalence import EquivalenceMeasure, EquivalenceReport
    from sightline.builders.execution import Execution
    from sightline.builders.variant_pairs import VariantPair
    from sightline.engine.client import ModelClient
    from sightline.models.embedder import Embedder
    from sightline.reporting.report_table import ReportTable

SUMMARY = (
    "measure whether variants have the same meaning as originals: by humans, a judge, sentence similarity"
)

EXAMPLE = """examples:
  sightline annotate new equivalence rephrased --name pairs           (then invite, serve, export --out pairs)
  sightline build equivalence rephrased --human pairs/verdicts.jsonl
  sightline build equivalence rephrased --judge openai/gpt-4o --similarity --json

The three measures are reported separately (MM-R3, section 3.2: humans found 92 % of 100 rephrasings and 86 %
of 100 restyled images equivalent). `annotate new equivalence` samples pairs, one per group, for humans. A
judge model and sentence similarity compare questions only; humans compare images too.
"""
PRINTED_PAIRS = 5


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build equivalence`."""
    parser.epilog = EXAMPLE
    parser.add_argument("folder", metavar="DIR", help="built folder")
    add = parser.add_argument_group("measures").add_argument
    add("--human", metavar="FILE.jsonl", help="verdicts.jsonl of `annotate export`")
    add("--judge", metavar="SPEC", help="chat model that decides whether two questions mean the same")
    add("--judge-gen", action="append", default=[], metavar="KEY=VALUE", help="sampling option for the judge")
    add("--similarity", action="store_true", help="compute sentence similarity of questions")
    add("--embedder", metavar="NAME", help="embedder for --similarity (default: all-MiniLM-L6-v2)")
    some = "compare N sampled pairs, one per group, by judge and similarity (default: all)"
    add("--pairs", type=int, metavar="N", help=some)
    add(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="seed of the sample (default: 0)",
    )
    add("--json", action="store_true", help="print the measures as JSON")
    add_quiet(parser)
    asking = parser.add_argument_group("requests to the judge")
    add_request_limits(asking)
    add_store(asking)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Measure; returns 1 if an answer of the judge is missing, 4 at the end of the budget."""
    from sightline.builders.variant_pairs import draw_pairs, read_pairs
    from sightline.engine.client import ModelClient
    from sightline.scoring.scorer import JUDGE_SAMPLING

    _check_options(options)
    every = read_pairs(Path(options.folder))
    drawn = every if options.pairs is None else draw_pairs(every, options.pairs, options.seed)
    client = None
    if options.judge is not None:
        gen = pairs(options.judge_gen, "--judge-gen")
        client = ModelClient(client_options(options, options.judge, gen=gen), JUDGE_SAMPLING)
    embedder = _embedder(options)
    humans = _humans(options, every)
    report = _measured(options, every, drawn, humans, client, embedder)
    _print(report, options.json)
    if client is not None and client.counts.stopped == "budget":
        print_budget_stop("judging")
        return 4
    return 1 if report.unanswered else 0


def _check_options(options: argparse.Namespace) -> None:
    if options.pairs is not None and options.pairs < 1:
        raise UserError(f"--pairs {options.pairs} is too small", expected="at least 1")
    if options.judge_gen and options.judge is None:
        raise UserError("--judge-gen needs a judge", expected="--judge SPEC with it")
    on_ray = options.on is not None and options.on.partition(":")[0] == "ray"
    if options.on is not None and options.judge is None and not (options.similarity and on_ray):
        raise UserError(
            f"--on {options.on} has no effect",
            expected="--judge with a model that Sightline runs, or --similarity with --on ray",
        )
    if options.embedder is not None and not options.similarity:
        raise UserError("--embedder needs sentence similarity", expected="--similarity with it")


def _embedder(options: argparse.Namespace) -> Embedder | None:
    if not options.similarity:
        return None
    from sightline.models.embedder import DEFAULT, embedder

    return embedder(DEFAULT if options.embedder is None else options.embedder)


def _execution(options: argparse.Namespace) -> Execution:
    """Where texts are embedded: on a Ray cluster with --on ray, otherwise here."""
    from sightline.builders.execution import Execution

    kind, _, address = (options.on or "").partition(":")
    ray = ray_tasks(address) if kind == "ray" else None
    return Execution(ray=ray, show_progress=not options.quiet)


def _humans(options: argparse.Namespace, every: list[VariantPair]) -> EquivalenceMeasure | None:
    if options.human is None:
        return None
    from sightline.builders.equivalence import by_humans
    from sightline.builders.variant_pairs import kind_of_folder

    kind = kind_of_folder(Path(options.folder))
    return by_humans(every, Path(options.human), kind=kind)


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
        equivalence_report,
        not_requested,
    )

    measures = {
        HUMANS: humans or not_requested(HUMANS, "--human FILE, of `annotate new equivalence`"),
        JUDGE: not_requested(JUDGE, "--judge MODEL"),
        SIMILARITY: not_requested(SIMILARITY, "--similarity"),
    }
    if embedder is not None:
        measures[SIMILARITY] = by_similarity(drawn, embedder, _execution(options))
    if client is not None:
        with client.store() as store:
            judging = by_judge(drawn, client, store, options.judge, show_progress=not options.quiet)
            measures[JUDGE] = asyncio.run(judging)
    identity = embedder.identity if embedder is not None else None
    return equivalence_report(Path(options.folder), every, len(drawn), measures, identity)


def _print(report: EquivalenceReport, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    from sightline.reporting.terminal import show

    show([_table(report)])
    for name, different in report.different.items():
        listed = some_of([f"{group} {variant}" for group, variant in different], PRINTED_PAIRS)
        verdict = "not above 0.7" if name == "similarity" else "different"
        print_note(f"{name}: {verdict}: {listed}")


def _table(report: EquivalenceReport) -> ReportTable:
    from sightline.reporting.report_table import Column, clusters_cell, n_cell, published_cell, value_cell
    from sightline.reporting.report_table import ReportTable as Table

    labels = {
        "human": "human: same meaning",
        "judge": "judge: same meaning",
        "similarity": "sentence similarity, mean",
        "similar": "sentence similarity above 0.7",
    }
    printed = [
        published_cell(metric, metric.published[0]) if metric.published else None for metric in report.metrics
    ]
    columns = [
        Column("text", "measure", "measure"),
        Column("value", "percent\n95 %", ""),
        Column("count", "pairs", "pairs"),
        Column("count", "images", "images"),
        *([Column("published", "humans\n3.2", "humans (3.2)")] if any(printed) else []),
    ]
    rows = [
        (labels[metric.metric], value_cell(metric), n_cell(metric), clusters_cell(metric))
        + ((figure,) if any(printed) else ())
        for metric, figure in zip(report.metrics, printed, strict=True)
    ]
    notes = [
        *(f"{labels[metric.metric]}: {metric.reason}" for metric in report.metrics if metric.reason),
        *(f"{metric.metric}: {metric.judge}" for metric in report.metrics if metric.judge),
        *(f"published: {value.note}" for metric in report.metrics for value in metric.published or ()),
        *report.notes,
    ]
    compared = "" if report.pairs == report.pairs_built else f", {report.pairs:,} compared"
    title = f"{report.folder}: {report.pairs_built:,} pairs of an original and a variant{compared}"
    return Table(title, tuple(columns), tuple(rows), tuple(notes))
