"""The names of benchmarks and of export formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sightline.plugins import find_entry, load_entry, registered_names

if TYPE_CHECKING:
    from sightline.benchmarks.base import Benchmark
    from sightline.formats.jsonl import ExportFormat


BENCHMARKS = {
    "codis": "sightline.benchmarks.codis.benchmark:Codis",
    "iibench": "sightline.benchmarks.iibench.benchmark:IIBench",
    "contextual": "sightline.benchmarks.contextual.benchmark:Contextual",
    "mmr3": "sightline.benchmarks.mmr3.benchmark:MMR3",
    "ciibench": "sightline.benchmarks.ciibench.benchmark:CIIBench",
    "dynamath": "sightline.benchmarks.dynamath.benchmark:DynaMath",
    "hallusionbench": "sightline.benchmarks.hallusionbench.benchmark:HallusionBench",
    "mmvp": "sightline.benchmarks.mmvp.benchmark:MMVP",
    "naturalbench": "sightline.benchmarks.naturalbench.benchmark:NaturalBench",
    "bivlc": "sightline.benchmarks.bivlc.benchmark:BiVLC",
    "conbench": "sightline.benchmarks.conbench.benchmark:ConBench",
    "groups": "sightline.benchmarks.groups.benchmark:Groups",
}


EXPORT_FORMATS = {
    "jsonl": "sightline.formats.jsonl:JSONL",
}
"""The export formats that hold answers to any benchmark; the others belong to a benchmark."""


def benchmark(name: str) -> Benchmark:
    from sightline.benchmarks.base import Benchmark
    from sightline.plugins import check_contract

    entry = find_entry("benchmarks", name, BENCHMARKS)
    check_contract("benchmark", name, entry, Benchmark)
    made: Benchmark = entry()
    return made


def benchmark_class(name: str) -> type[Benchmark]:
    """Look up what a benchmark declares, for readers of results whose benchmark may not be installed."""
    from sightline.benchmarks.base import Benchmark

    return type(benchmark(name)) if is_benchmark(name) else Benchmark


def is_benchmark(name: str) -> bool:
    return name in BENCHMARKS or name in benchmark_names()


def benchmark_names() -> list[str]:
    return registered_names("benchmarks", BENCHMARKS)


def export_formats() -> dict[str, ExportFormat]:
    """List the export formats: those of each benchmark, then those for any benchmark."""
    formats: dict[str, ExportFormat] = {}
    for name in benchmark_names():
        formats |= benchmark_class(name).export_formats
    return formats | {name: load_entry(entry) for name, entry in EXPORT_FORMATS.items()}
