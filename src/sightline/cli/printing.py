"""What commands print: numbers on standard output, everything about the run on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from sightline.cli.pipe import output_errors
from sightline.types import Result

if TYPE_CHECKING:
    from sightline.engine.counts import Counts
    from sightline.evaluation.estimate import RunEstimate
    from sightline.evaluation.evaluation import Evaluation
    from sightline.report.report_table import ReportTable
    from sightline.report.varied_options import ResultPoint


def print_json(body: object) -> None:
    """Print plain data or structs as JSON."""
    with output_errors():
        print(msgspec.json.format(msgspec.json.encode(body), indent=1).decode())


def by_reason(named: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The names of pairs (name, reason) by the reason, in the order in which each first stands.

    >>> by_reason([("a", "broken"), ("b", "empty"), ("c", "broken")])
    {'broken': ['a', 'c'], 'empty': ['b']}
    """
    found: dict[str, list[str]] = {}
    for name, why in named:
        found.setdefault(why, []).append(name)
    return found


def print_results(results: Sequence[Result], form: str, by: str | None) -> None:
    """Print results as a terminal table, Markdown, CSV or JSON (one result: metrics.json as it is)."""
    if form == "json":
        print_json(results[0] if len(results) == 1 else list(results))
        return
    from sightline.report.correlations import over_models
    from sightline.report.tables import summary

    tables = [*summary(results, by), *over_models(results)]
    print_tables(tables[:1] if form == "csv" else tables, form)


def print_tables(tables: Sequence[ReportTable], form: str) -> None:
    """Print tables for a terminal, or as Markdown, CSV or JSON."""
    with output_errors():
        if form == "json":
            from sightline.report.table_text import json_text

            print(json_text(tables), end="")
        elif form == "markdown":
            from sightline.report.markdown import markdown

            print(markdown(tables))
        elif form == "csv":
            from sightline.report.table_text import csv_text

            print("\n".join(map(csv_text, tables)), end="")
        else:
            from sightline.report.terminal import show

            show(tables)


def print_evaluation(evaluation: Evaluation, form: str, by: str | None) -> int:
    """Print what came of an evaluation; returns its exit status."""
    print_results([evaluation.result], form, by)
    print_course(evaluation)
    return evaluation.exit_status


def print_pivot(points: Sequence[ResultPoint], form: str, by: str | None) -> None:
    """Print several results as one table: models down, what was varied across."""
    from sightline.report.pivot import fitted, pivot

    tables = pivot(points, by)
    if form == "table":
        from sightline.report.console import Console

        width = Console().width
        tables = [part for table in tables for part in fitted(table, width)]
    print_tables(tables, form)


def print_course(evaluation: Evaluation) -> None:
    """Print how an evaluation went: where its results are, what it asked, what has no answer."""
    result, counts = evaluation.result, evaluation.counts
    if evaluation.out:
        print(f"results: {evaluation.out}", file=sys.stderr)
    if evaluation.run is not None:
        print(f"run {evaluation.run}: {_told(counts)}", file=sys.stderr)
    captioned, judged = evaluation.caption_counts, evaluation.judge_counts
    for what, asked in (("captions", captioned), ("judges", judged)):
        if asked.sent or asked.cached:
            print(f"{what}: {_told(asked)}", file=sys.stderr)
    for lost in counts.unavailable:
        print(f"not used: {lost}", file=sys.stderr)
    stops = ((captioned.stopped, "captioning"), (counts.stopped, "asking"), (judged.stopped, "judging"))
    for stopped, what in stops:
        if stopped == "budget":
            print(
                f"{what} stopped at the budget; the same command with a larger one goes on", file=sys.stderr
            )
        elif stopped == "host":
            reason = captioned.last_error or counts.last_error or judged.last_error
            print(f"{what} stopped: every call failed in the end ({reason})", file=sys.stderr)
    if result.errors:
        _print_unanswered(evaluation)
    print_failed(evaluation.conditions_met)


def print_failed(found: Iterable[str]) -> None:
    """Print which conditions of --fail-if hold."""
    for one in found:
        print(f"--fail-if {one}", file=sys.stderr)


def _print_unanswered(evaluation: Evaluation) -> None:
    """Which probes have no answer, by the reason, and what asks them again."""
    result = evaluation.result
    print(f"{result.errors} of {result.probes} probes have no answer:", file=sys.stderr)
    named = ((f"{sample} {variant}", why) for sample, variant, why in evaluation.unanswered)
    for why, probes in by_reason(named).items():
        print(f"  {why}: {', '.join(probes)}", file=sys.stderr)
    if result.errors > len(evaluation.unanswered):
        print(f"  and {result.errors - len(evaluation.unanswered)} more", file=sys.stderr)
    if evaluation.run is not None:
        print(
            "the same command asks again what failed for a time or lacked its image; --retry-errors asks"
            " the rest too",
            file=sys.stderr,
        )


def _told(counts: Counts) -> str:
    """What was asked, what was known, and what it took."""
    parts = [f"asked {counts.sent:,}", f"known {counts.cached:,}", f"retries {counts.retried:,}"]
    if tokens := counts.tokens:
        parts.append(f"{tokens:,} tokens")
    if counts.cost:
        parts.append(f"cost {counts.cost:.2f}")
    return ", ".join(parts)


def print_estimate(estimate: RunEstimate, form: str) -> None:
    """Print what a run would ask."""
    if form == "json":
        print_json(estimate)
        return
    for name, value in msgspec.structs.asdict(estimate).items():
        if value is not None:
            shown = f"{value:.2f}" if isinstance(value, float) else f"{value:,}"
            print(f"{name.replace('_', ' '):<28}{shown}")
    print("what judges will be asked depends on the answers and is not in it", file=sys.stderr)
