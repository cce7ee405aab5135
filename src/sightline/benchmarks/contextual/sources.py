"""ConTextual's data set: repository, pinned revision, digests, licence, citation."""

from __future__ import annotations

from sightline.benchmarks.contextual.folder import IMAGE, NAME, SYNTHETIC, image_path, table_name
from sightline.benchmarks.release import Release, ReleasedRecords, UserRecords

RELEASE = Release(
    name=NAME,
    repository="rohan598/ConTextual",
    # The commit that brought the data.
    revision="6e199b8b5cd7ec99e57d28bc1ef0b7693218365d",
    records=(
        ReleasedRecords(
            split="test",
            path="data/contextual_test.csv",
            name=table_name("test"),
            sha256="428ec237bbedc69eed125a162269a9f60154391fb7c5b9c9c4db55500c050391",
            samples=506,
            images=506,
        ),
        ReleasedRecords(
            split="val",
            path="data/contextual_val.csv",
            name=table_name("val"),
            sha256="db5426b8a5c96537b88e34f1c7bbb606d57295190c1c74777653a220daf473e9",
            samples=100,
            images=100,
        ),
    ),
    image_urls=IMAGE,
    image_path=image_path,
    user_records=(UserRecords(SYNTHETIC, table_name(SYNTHETIC)),),
    paper="Wadhawan et al. 2024, ConTextual: Evaluating Context-Sensitive Text-Rich Visual Reasoning "
    "in Large Multimodal Models, arXiv:2401.13311",
    licence="none is stated; the images come from LAION-5B, Rico, Open WebText, InfographicVQA, "
    "ST-VQA and ESTVQA (section 2.2 of the paper)",
)
