"""The digest of a sample tells data apart, and never settings: `compare` pairs settings by it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sightline.benchmarks.base import defaults
from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.evaluation.plan import sample_digest
from training.scenes.build import (
    generate_codis,
    generate_contextual,
    generate_iibench,
    generate_mmr3,
)

Generate = Callable[..., Path]


def digests(name: str, setting: str, folder: Path, **changed: Any) -> Mapping[str, str]:
    benchmark = find_benchmark(name)
    options = {**defaults(benchmark, benchmark.settings[setting]), "seed": 0, **changed}
    samples = benchmark.samples(folder, benchmark.splits[0], options)
    return {sample.id: sample_digest(benchmark, sample) for sample in samples}


@pytest.mark.parametrize(
    ("name", "generate", "size"),
    [
        ("codis", generate_codis, {"pairs": 3}),
        ("contextual", generate_contextual, {"questions": 3, "val": 12}),
        ("iibench", generate_iibench, {"questions": 3, "dev": 3}),
    ],
)
def test_a_sample_has_one_digest_in_all_settings(
    tmp_path: Path, name: str, generate: Generate, size: Mapping[str, int]
) -> None:
    folder = generate(tmp_path / "data", **size)
    captions = tmp_path / "captions.json"
    images = [path.name for path in (folder / "images").rglob("*.*")]
    captions.write_text(json.dumps(dict.fromkeys(images, "A caption.")))
    found: dict[str, set[str]] = {}
    for setting in find_benchmark(name).settings:
        extra = {"captions": str(captions)} if setting == "captions" else {}
        for sample, digest in digests(name, setting, folder, **extra).items():
            found.setdefault(sample, set()).add(digest)
    assert found
    assert {sample: len(each) for sample, each in found.items()} == dict.fromkeys(found, 1)


def test_sampling_asks_about_the_same_samples(tmp_path: Path) -> None:
    folder = generate_mmr3(tmp_path / "data", groups=2)
    own, unchanged = (digests("mmr3", "restyling", folder, unchanged=on) for on in (False, True))
    assert own == unchanged != {}


def test_another_context_is_another_sample(tmp_path: Path) -> None:
    folder = generate_codis(tmp_path / "data", pairs=3)
    before = digests("codis", "default", folder)
    records = json.loads((folder / "data.json").read_text())
    records[1]["context"]["context_2"] += " Today."
    (folder / "data.json").write_text(json.dumps(records))
    after = digests("codis", "default", folder)
    assert [sample for sample in before if before[sample] != after[sample]] == [records[1]["id"]]


@pytest.mark.parametrize("unchanged", [False, True])
def test_a_benchmark_says_whether_its_probes_pool_their_draws(tmp_path: Path, unchanged: bool) -> None:
    benchmark = find_benchmark("mmr3")
    options = {**defaults(benchmark, benchmark.settings["restyling"]), "seed": 0, "unchanged": unchanged}
    (sample, *_) = benchmark.samples(generate_mmr3(tmp_path / "data", groups=2), "test", options)
    assert {probe.draws > 0 for probe in benchmark.probes(sample, options)} == {
        benchmark.pools_draws(options)
    }
