"""`sightline list`: benchmarks with their settings, options, metrics and published rows."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from sightline.cli.options import add_plugins
from sightline.output import print_line

if TYPE_CHECKING:
    from sightline.benchmarks.base import Benchmark
    from sightline.metric_types import MetricDefinition


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `list`."""
    parser.epilog = "examples:\n  sightline list\n  sightline list iibench\n  sightline list codis --json"
    parser.add_argument(
        "benchmark", nargs="?", metavar="BENCHMARK", help="print this benchmark with its metrics and options"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_plugins(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the benchmarks."""
    from sightline.registry import benchmark_names

    names = [options.benchmark] if options.benchmark else benchmark_names()
    descriptions = [_describe(name) for name in names]
    if options.json:
        from sightline.cli.printing import print_json

        print_json(descriptions)
        return 0
    for one in descriptions:
        _print(one, full=options.benchmark is not None)
    return 0


def _describe(name: str) -> dict[str, Any]:
    from sightline.benchmarks.published import rows
    from sightline.plan.effective import effective
    from sightline.plan.spec import Spec
    from sightline.registry import benchmark as find_benchmark

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

    from sightline.benchmarks.text_metrics import NAMES
    from sightline.metrics.agreement_definitions import DEFINITIONS
    from sightline.plan.effective import effective
    from sightline.plan.spec import Spec
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


def _print(one: dict[str, Any], *, full: bool) -> None:
    print_line(f"{one['name']}  {one['title']}")
    print_line(f"  {one['citation']}")
    print_line(f"  splits: {', '.join(one['splits'])}; judged by: {', '.join(one['judged_by'])}")
    width = max(len(setting["name"]) for setting in one["settings"])
    for setting in one["settings"]:
        print_line(
            f"  {one['name']}:{setting['name']:<{width}}  {setting['summary']} ({setting['reproduces']})"
        )
    if full:
        first = one["settings"][0]
        print_line(f"  sampling: {first['sampling']} ({first['sampling_source']})")
        for name, preset in one["presets"].items():
            print_line(f"    --gen {name}: {preset}")
        print_line("  options (--set KEY=VALUE):")
        for key, option in one["options"].items():
            print_line(
                f"    {key} = {_option_text(option['default'])}: {option['summary']} ({option['allowed']})"
            )
        print_line("  metrics:")
        for name, metric in one["metrics"].items():
            print_line(f"    {name}: {metric['meaning']} ({metric['direction']}; {metric['source']})")
        print_line(f"  published rows (--against): {', '.join(one['published_rows']) or 'none'}")
    print_line()


def _option_text(default: Any) -> str:
    """A default as on the command line after --set KEY=."""
    if isinstance(default, bool):
        return "on" if default else "off"
    return "null" if default is None else str(default)
