"""Where the public data sets are released: repository, revision, digests, terms, and the papers' counts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from sightline.benchmarks.contextual.data import SYNTHETIC
from sightline.benchmarks.contextual.folder import IMAGE, table_name


class Records(Struct, frozen=True):
    """A released file of records: its place in the repository, its name in a data folder, its SHA-256.

    `samples` and `images` (distinct by content) are the paper's counts for this split.
    """

    split: str
    path: str
    name: str
    sha256: str
    samples: int
    images: int

    @property
    def accepted(self) -> Mapping[str, str]:
        """The names under which a data folder may hold it, each with its SHA-256."""
        return {self.name: self.sha256}


class Made(Struct, frozen=True):
    """A file of records that is made, not released, in the layout of those that are: its name in a data
    folder."""

    split: str
    name: str


class File(Struct, frozen=True):
    """A released file without records: its place in the repository, its name in a data folder, its SHA-256.

    `forms` are other names and digests under which a data folder may hold the same content.
    """

    path: str
    name: str
    sha256: str
    forms: Mapping[str, str] = {}

    @property
    def accepted(self) -> Mapping[str, str]:
        """The names under which a data folder may hold it, each with its SHA-256."""
        return {self.name: self.sha256, **self.forms}


class Source(Struct, frozen=True):
    """A public data set.

    `images` is the repository's folder that becomes `images` of a data folder. Where the repository holds
    no images, `links` may name the column of the records that says where each of them lies on the web.
    `made` are records that a data folder may hold though they are no part of the release.
    """

    name: str
    repository: str
    revision: str
    paper: str
    licence: str
    records: tuple[Records, ...] = ()
    images: str = ""
    links: str = ""
    files: tuple[File, ...] = ()
    made: tuple[Made, ...] = ()

    @property
    def contents(self) -> tuple[Records | File, ...]:
        """The files that are taken out of the repository, its images aside."""
        return (*self.records, *self.files)

    @property
    def splits(self) -> tuple[Records | Made, ...]:
        """The records that a data folder may hold, released or not, a split each."""
        return (*self.records, *self.made)

    @property
    def url(self) -> str:
        """The address of the repository's archive at the pinned revision."""
        return f"https://codeload.github.com/{self.repository}/tar.gz/{self.revision}"


SOURCES: Mapping[str, Source] = {
    source.name: source
    for source in (
        Source(
            name="codis",
            repository="THUNLP-MT/CODIS",
            revision="d070cf759c42676c88925004c83f1d81585675a7",
            records=(
                Records(
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
        ),
        Source(
            name="iibench",
            repository="II-Bench/II-Bench",
            # The commit that brought the data; at 1cf741d the two files of records are the same.
            revision="7cf618771f814ed6db9a2683549c7da83a77909b",
            records=(
                Records(
                    split="test",
                    path="data/test.json",
                    name="test.json",
                    sha256="f267ee1a402aa971e1558e1ce071a1bd3b0efe01626cae3e927abab3063a65e1",
                    samples=1399,
                    images=1187,
                ),
                Records(
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
        ),
        Source(
            name="contextual",
            repository="rohan598/ConTextual",
            # The commit that brought the data.
            revision="6e199b8b5cd7ec99e57d28bc1ef0b7693218365d",
            records=(
                Records(
                    split="test",
                    path="data/contextual_test.csv",
                    name=table_name("test"),
                    sha256="428ec237bbedc69eed125a162269a9f60154391fb7c5b9c9c4db55500c050391",
                    samples=506,
                    images=506,
                ),
                Records(
                    split="val",
                    path="data/contextual_val.csv",
                    name=table_name("val"),
                    sha256="db5426b8a5c96537b88e34f1c7bbb606d57295190c1c74777653a220daf473e9",
                    samples=100,
                    images=100,
                ),
            ),
            links=IMAGE,
            made=(Made(SYNTHETIC, table_name(SYNTHETIC)),),
            paper="Wadhawan et al. 2024, ConTextual: Evaluating Context-Sensitive Text-Rich Visual Reasoning "
            "in Large Multimodal Models, arXiv:2401.13311",
            licence="none is stated; the images come from LAION-5B, Rico, Open WebText, InfographicVQA, "
            "ST-VQA and ESTVQA (section 2.2 of the paper)",
        ),
    )
}
"""The data sets that `sightline data` knows, by the name of their benchmark."""


def differs_from_release(benchmark: str, folder: Path | None, split: str) -> bool:
    """Whether the table of this split in a data folder is another than the released one, by its SHA-256.

    False where nothing was released to tell it from. Only of tables that name their images by url: where
    the images came with the records, these name files, and copies of the release may name others.
    """
    source = SOURCES.get(benchmark)
    if source is None or not source.links or folder is None:
        return False
    for records in source.records:
        for table in (folder / records.name, folder / benchmark / records.name):
            if records.split == split and table.is_file():
                return hashlib.sha256(table.read_bytes()).hexdigest() != records.sha256
    return False
