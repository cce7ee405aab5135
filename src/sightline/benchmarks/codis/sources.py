"""CODIS's data set: repository, pinned revision, digests, licence, citation."""

from __future__ import annotations

from sightline.benchmarks.release import Release, ReleasedRecords

RELEASE = Release(
    name="codis",
    repository="THUNLP-MT/CODIS",
    revision="d070cf759c42676c88925004c83f1d81585675a7",
    records=(
        ReleasedRecords(
            split="test",
            path="data/data.json",
            name="data.json",
            sha256="f7823ce5efea89912dc65ca5586ff0790fe75c2cf7e4d95fa854f57ebb325709",
            samples=353,
            images=216,
        ),
    ),
    images="data/images",
    paper="Luo et al. 2024, CODIS: Benchmarking Context-Dependent Visual Comprehension for "
    "Multimodal Large Language Models, arXiv:2402.13607",
    licence="the repository's LICENSE is Apache-2.0; the images have no terms of their own",
)
