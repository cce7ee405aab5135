"""II-Bench's data set: repository, pinned revision, digests, licence, citation."""

from __future__ import annotations

from sightline.benchmarks.release import Release, ReleasedRecords

RELEASE = Release(
    name="iibench",
    repository="II-Bench/II-Bench",
    # The commit that brought the data; at 1cf741d the two files of records are the same.
    revision="7cf618771f814ed6db9a2683549c7da83a77909b",
    records=(
        ReleasedRecords(
            split="test",
            path="data/test.json",
            name="test.json",
            sha256="f267ee1a402aa971e1558e1ce071a1bd3b0efe01626cae3e927abab3063a65e1",
            samples=1399,
            images=1187,
        ),
        ReleasedRecords(
            split="dev",
            path="data/dev.json",
            name="dev.json",
            sha256="c6852395e8212d949ff85317b2509522158745074d248d186e977bb26bf69bb7",
            samples=35,
            images=35,
        ),
    ),
    images="images",
    paper="Liu et al. 2024, II-Bench: An Image Implication Understanding Benchmark for Multimodal "
    "Large Language Models, arXiv:2406.05862",
    licence="none is stated; the images come from third-party websites (Appendix B of the paper)",
)
