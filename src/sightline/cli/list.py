"""`sightline list`: benchmarks with their settings, options, metrics and published rows."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sightline.cli.options import add_plugins
from sightline.text import print_note

if TYPE_CHECKING:
    from sightline.benchmarks.base import Benchmark
    from sightline.types import MetricDefinition

EXAMPLE = """examples:
  sightline list                 all benchmarks with their settings: what to write behind `sightline run`
  sightline list iibench         also its options, metrics and published rows
  sightline list codis --json
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument(
        "benchmark",
        nargs="?",
        metavar="BENCHMARK",
        help="print this benchmark only, with its options, metrics and published rows",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_plugins(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    from sightline.benchmarks.registry import benchmark_names

    names = [options.benchmark] if options.benchmark else benchmark_names()
    descriptions = [describe(name) for name in names]
    if options.json:
        from sightline.cli.printing import print_json

        print_json(descriptions)
        return 0
    from sightline.reporting.table import show_paragraphs

    for one in descriptions:
        show_paragraphs((line, _indent(line)) for line in _lines(one, full=options.benchmark is not None))
    if not options.benchmark:
        print_note("options, metrics and published rows of one: sightline list BENCHMARK")
    return 0


def describe(name: str) -> dict[str, Any]:
    from sightline.benchmarks.registry import benchmark as find_benchmark
    from sightline.benchmarks.released import rows
    from sightline.evaluation.options import effective
    from sightline.evaluation.spec import Spec

    benchmark = find_benchmark(name)
    return {
        "name": benchmark.name,
        "title": benchmark.title,
        "citation": benchmark.citation,
        "splits": list(benchmark.splits),
        "judged_by": list(benchmark.judged_by),
        "settings": [
            {
                "name": setting.name,
                "summary": setting.summary,
                "reproduces": setting.reproduces,
                "sampling": dict(setting.sampling),
                "sampling_source": setting.sampling_source,
                "metrics": [
                    metric.name
                    for metric in benchmark.metrics(effective(benchmark, setting, Spec(task=name)).benchmark)
                ],
            }
            for setting in benchmark.settings.values()
        ],
        "metrics": _metrics(benchmark),
        "options": {
            key: {"default": option.default, "summary": option.summary, "allowed": option.allowed}
            for key, option in benchmark.options.items()
            if not option.internal
        },
        "presets": {key: dict(value) for key, value in benchmark.presets.items()},
        "published_rows": rows(name),
    }


def _metrics(benchmark: Benchmark) -> dict[str, dict[str, Any]]:
    """Every metric that a result of the benchmark can hold under any option, by name."""
    from msgspec.structs import asdict

    from sightline.benchmarks.base import NAMES
    from sightline.evaluation.options import effective
    from sightline.evaluation.spec import Spec
    from sightline.metrics.agreement import DEFINITIONS
    from sightline.reporting.notes import direction

    definitions: dict[str, MetricDefinition] = {}
    for setting in benchmark.settings.values():
        options = effective(benchmark, setting, Spec(task=benchmark.name)).benchmark
        if "text_metrics" in options:
            options = {**options, "text_metrics": ",".join(NAMES)}
        choices = ((name, option.choices or ()) for name, option in benchmark.options.items())
        others = [{**options, name: choice} for name, values in choices for choice in values]
        for metric in (metric for one in (options, *others) for metric in benchmark.metrics(one)):
            definitions.setdefault(metric.name, metric.definition)
    if "model" in benchmark.judged_by or "human" in benchmark.judged_by:
        definitions |= DEFINITIONS
    return {name: {**asdict(one), "direction": direction(one)} for name, one in definitions.items()}


def _lines(one: dict[str, Any], *, full: bool) -> Iterator[str]:
    from sightline.benchmarks.base import FILE
    from sightline.reporting.notes import option_text, options_text

    yield f"{one['name']}  {one['title']}"
    yield f"  {one['citation']}"
    yield f"  splits: {', '.join(one['splits'])}; judged by: {', '.join(one['judged_by'])}"
    first, width = one["settings"][0], max(len(setting["name"]) for setting in one["settings"])
    default = "" if first["name"] == FILE else f" ({one['name']} alone is {one['name']}:{first['name']})"
    yield f"  settings{default}:"
    for setting in one["settings"]:
        yield f"    {one['name']}:{setting['name']:<{width}}  {setting['summary']} ({setting['reproduces']})"
    if full:
        yield f"  sampling (--gen KEY=VALUE): {options_text(first['sampling'])} ({first['sampling_source']})"
        for name, preset in one["presets"].items():
            yield f"    --preset {name}: {options_text(preset)}"
        yield "  options (--set KEY=VALUE) with their defaults:"
        for key, option in one["options"].items():
            yield f"    {key}={option_text(option['default'])}: {option['summary']} ({option['allowed']})"
        yield "  metrics:"
        for name, metric in one["metrics"].items():
            yield f"    {name}: {metric['meaning']} ({metric['direction']}; {metric['source']})"
        yield f"  published rows (--against): {', '.join(one['published_rows']) or 'none'}"
    yield ""


def _indent(line: str) -> int:
    """Where a line continues that is too long for the terminal."""
    return len(line) - len(line.lstrip()) + 4
