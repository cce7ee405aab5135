"""`sightline sweep`: run every combination of models and values of options; print one table of all."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sightline.cli.options import (
    Parser,
    add_dry_run,
    add_evaluation,
    add_plot,
    chart_request,
    options_of,
    read_value,
)
from sightline.errors import UserError
from sightline.evaluation.spec import RequestOptions, SweepOptions, spec_of
from sightline.text import print_line, print_note

if TYPE_CHECKING:
    from sightline.evaluation.sweep import PointRun, SweepPoint
    from sightline.reporting.charts import ChartRequest

EXAMPLE = """examples:
  sightline sweep mmr3:restyling --model http://localhost:8000/v1#llava --data data/mmr3 \\
      --set size=224,640,1024 --out results/sizes --plot sizes.png
  sightline sweep codis --model openai/gpt-4o --model openai/gpt-4o-mini --data data/codis \\
      --gen temperature=0.2,0.7,1 --dry-run
  sightline sweep codis --model baseline/chance --data data/codis --set cot=on,off --set instructions=on,off
  sightline sweep contextual --model openai/gpt-4 --data data/contextual \\
      --augment ocr,layout,layout+caption --captions captions.json

Commas separate values, except where all are JSON: --gen 'stop=["a","b"],null' has two values,
--set 'bias="up:down,left:right"' has one.
"""


def register(parser: Parser) -> None:
    parser.epilog = EXAMPLE
    groups = add_evaluation(parser, SweepOptions)
    add_dry_run(groups["requests"])
    add_plot(parser, ("curves", "bars"), drawn="the table", metrics=True)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    points = _points(options)
    chart = chart_request(options)
    if chart is not None and chart.kind == "curves":
        from sightline.reporting.chart_kinds import curve_option

        curve_option([point.values for point in points])
    return run_points(points, options, chart)


def run_points(
    points: Sequence[SweepPoint], options: argparse.Namespace, chart: ChartRequest | None = None
) -> int:
    """Run the points and print one table of all; returns the worst exit status."""
    import asyncio

    from sightline.cli.printing import print_json, print_tables
    from sightline.evaluation.sweep import run_sweep
    from sightline.interop.tracking import run_tracked

    if options.dry_run:
        return _print_estimates(points, options.format)
    sweep = asyncio.run(
        run_sweep(
            points, options.out, show_progress=not options.quiet, on_point=_print_point, evaluate=run_tracked
        )
    )
    if options.format == "json":
        print_json(sweep.record)
    elif sweep.results:
        from sightline.reporting.pivot import pivot

        print_tables(pivot(sweep.results, options.by), options.format, is_brief=not options.all)
    if chart is not None and sweep.results:
        from sightline.reporting.charts import draw_results

        draw_results(sweep.results, chart, by=options.by, pivot=True)
        print_note(f"plot: {chart.path}")
    for run in sweep.points:
        if run.evaluation is None:
            print_note(f"{run.point.name}: {run.error or 'not reached'}")
    if options.out:
        print_note(f"results: {options.out}")
    return sweep.exit_status


def _points(options: argparse.Namespace) -> list[SweepPoint]:
    """Every combination of the values of --model, --set, --gen and --augment."""
    from sightline.evaluation.sweep import plan_sweep

    shared = options_of(options, RequestOptions, omitted=("set", "gen"))
    return plan_sweep(
        [spec_of(options.task, shared, RequestOptions)],
        options.model,
        lists(options.set, "--set"),
        lists(options.gen, "--gen"),
        options.augment.split(",") if options.augment else (),
    )


def lists(words: Iterable[str], option: str) -> dict[str, tuple[Any, ...]]:
    """Read KEY=VALUE,VALUE words; a comma inside JSON does not separate values.

    >>> lists(["size=224,640", 'stop=["a","b"],null', "cot=on,off"], "--set")
    {'size': (224, 640), 'stop': (['a', 'b'], None), 'cot': (True, False)}
    """
    found: dict[str, tuple[Any, ...]] = {}
    for word in words:
        key, sign, text = word.partition("=")
        if not sign or not key:
            raise UserError(
                f"{option} {word}: '=' or the key is missing", expected=f"{option} KEY=VALUE[,VALUE...]"
            )
        if key in found:
            raise UserError(f"{option} {key} occurs twice", expected=f"{option} {key}=VALUE,VALUE once")
        found[key] = tuple(_values(text, f"{option} {key}")) if text.strip() else ("",)
    return found


def _values(text: str, option: str) -> list[Any]:
    """The values between commas: all are JSON, or no value holds a comma."""
    with suppress(json.JSONDecodeError):
        values: list[Any] = json.loads(f"[{text}]")
        return values
    pieces = [piece.strip() for piece in text.split(",")]
    if not all(pieces):
        raise UserError(f"{option} has an empty value", expected=f'{option}=VALUE,VALUE, or "" for none')
    values = list(map(read_value, pieces))
    if any(value == piece and piece[0] in '[{"' for value, piece in zip(values, pieces, strict=True)):
        raise UserError(
            f"{option} starts like JSON and is not valid JSON",
            found=text,
            expected="JSON between all commas; put texts into double quotes",
        )
    return values


def _print_point(run: PointRun) -> None:
    if run.evaluation is not None:
        from sightline.cli.printing import print_run_summary

        print_run_summary(run.evaluation)
    else:
        print_note(f"not run: {run.error}")


def _print_estimates(points: Sequence[SweepPoint], form: str) -> int:
    """Print the estimate of each point and their total; returns the exit status."""
    from sightline.cli.printing import print_estimate, print_json
    from sightline.evaluation.estimate import add_estimates
    from sightline.evaluation.sweep import estimate_sweep

    estimates = estimate_sweep(points)
    if form == "json":
        each = [
            {"name": point.name, "model": point.spec.model, "at": point.values, "estimate": one}
            for point, one in zip(points, estimates, strict=True)
        ]
        body = {"points": each, "total": add_estimates(estimates)}
        print_json(body)
        return 0
    for number, (point, one) in enumerate(zip(points, estimates, strict=True), 1):
        costs = {"expected": one.total_expected_cost, "at full length": one.total_full_length_cost}
        cost = "".join(f", {kind} {cost:.2f}" for kind, cost in costs.items() if cost is not None)
        print_line(
            f"[{number}/{len(points)}] {point.name}: {one.to_ask:,} to ask, {one.cached:,} cached{cost}"
        )
    print_estimate(add_estimates(estimates), form)
    return 0
