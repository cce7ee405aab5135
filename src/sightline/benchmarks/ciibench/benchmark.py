"""CII-Bench: the questions of II-Bench about Chinese images, in Chinese, with answers (Zhang et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sightline.benchmarks.base import (
    BenchmarkOption,
    ByLabel,
    Release,
    ReleasedRecords,
    Setting,
    by_name,
)
from sightline.benchmarks.iibench.benchmark import IIBench
from sightline.benchmarks.iibench.data import LABELS, read_samples, records_file
from sightline.benchmarks.iibench.formats import question_id
from sightline.errors import UserError
from sightline.formats.jsonl import ExportFormat
from sightline.formats.prediction import AnswerFiles, Prediction
from sightline.scoring.options import released_letters
from sightline.text import fill, load
from sightline.types import LETTERS, Metric, Sample

RELEASE = Release(
    name="ciibench",
    repository="MING-ZCH/CII-Bench",
    revision="ba8e9952a617df7f122e1426eae70025b2393296",
    records=(
        ReleasedRecords(
            split="test",
            path="data/test.json",
            name="test.json",
            sha256="c8822f3e0dc700259cac2027ad7da775a6eb36cfbd96db7235a714738cc00d2d",
            samples=765,
            images=668,
        ),
        ReleasedRecords(
            split="dev",
            path="data/dev.json",
            name="dev.json",
            sha256="55a078db287d64c336c87dc36cbcb1ddb83850dff7b2eaf5f94a6efa66495170",
            samples=35,
            images=35,
        ),
    ),
    images="images",
    paper="Zhang et al. 2024, Can MLLMs Understand the Deep Implication Behind Chinese Images?, "
    "ACL 2025, arXiv:2410.13854",
    licence="none is stated; the images come from third-party websites",
)
SAMPLING = {"temperature": 0, "max_tokens": 8192}
SAMPLING_SOURCE = "max_tokens as in the released src/infer/models/api.py; temperature unpublished, 0 here"
MARKS = ("\n答案", "\n**答案：")
BEYOND = "beyond the released scripts; as for II-Bench"


def _setting(name: str, summary: str, source: str = "the released scripts", **options: Any) -> Setting:
    fixed = {"prompt": name, "variant": name, **options}
    return Setting(name, summary, source, fixed, SAMPLING, SAMPLING_SOURCE)


class CIIBench(IIBench):
    """765 test and 35 dev questions in the layout of II-Bench's records, whose metrics it shares."""

    name = "ciibench"
    title = "CII-Bench: implication understanding of Chinese images"
    citation = "Zhang et al. 2024, Can MLLMs Understand the Deep Implication Behind Chinese Images?, ACL 2025"
    release = RELEASE
    published = None
    released_digests = None
    presets: Mapping[str, Mapping[str, Any]] = {"released": {"temperature": None, "max_tokens": 8192}}
    answer_files = AnswerFiles(sample_id=question_id, sample_ids="'test-N' or 'dev-N'")
    export_formats: Mapping[str, ExportFormat] = {}
    error_types = ()
    # Charts lack the signs of its labels unless a font of the system has them; tables do not.
    radar_labels = ()
    report_sections = (ByLabel("accuracy", "domain"), *IIBench.report_sections[1:])
    settings = by_name(
        _setting("none", "the question only"),
        _setting("cot", "chain of thought"),
        *(_setting(name, f"with the image's {name} as keyword") for name in (*LABELS[:2], "rhetoric")),
        _setting("no-image", "without the image: test of leakage", BEYOND, prompt="none", image=False),
        _setting("shuffled", "several option orders", BEYOND, prompt="none", orders=3),
    )
    options: Mapping[str, BenchmarkOption] = {
        "prompt": BenchmarkOption("none", "the prompt", ("none", "cot", *LABELS[:2], "rhetoric")),
        **{name: IIBench.options[name] for name in ("image", "orders", "variant", "answer_by")},
        "extraction": BenchmarkOption("strict", "how the option letter is extracted", ("strict", "released")),
    }

    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Sequence[Sample]:
        """The questions of a split, each with its answer."""
        samples = read_samples(folder, split, None, None, (), self.name)
        for sample in samples:
            letters = tuple(LETTERS[: len(sample.options)])
            if not sample.references or sample.references[0] not in letters:
                raise UserError(
                    "is no letter of an option",
                    file=records_file(folder, split, self.name),
                    record=sample.id,
                    field="questions.answer",
                    found=", ".join(sample.references),
                    expected=f"{letters[0]} to {letters[-1]}" if letters else "options",
                )
        return samples

    def prompt(self, sample: Sample, order: tuple[str, ...], options: Mapping[str, Any]) -> str:
        """One of the released prompts."""
        name = options["prompt"]
        label = sample.labels.get(name, ())
        return fill(
            load(__package__)["keywords" if name in LABELS else name]["text"],
            question=sample.question,
            options="\n".join(f"({letter}) {one}" for letter, one in zip(LETTERS, order, strict=False)),
            keywords=label if isinstance(label, str) else ",".join(label),
        )

    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        """Those of II-Bench; its tables have accuracy, error and miss, as has the script of this release."""
        return [
            replace(metric, source="the released src/eval_cii.py")
            if metric.name in ("accuracy", "error", "miss")
            else metric
            for metric in super().metrics(options)
        ]

    @staticmethod
    def released_letters(response: str, options: Sequence[str]) -> tuple[str, list[str]]:
        """The rule of the released eval_cii.py (extract_option_labels) that finds letters, and the letters.

        After the last answer mark, the first letter of the alphabet that stands there counts, in any word.
        Without a letter there, II-Bench's rules read what follows the mark.
        """
        text = response.strip()
        if text in tuple(LETTERS[:8]):
            return "letter only", [text]
        for mark in MARKS:
            if mark in text:
                text = text.rpartition(mark)[2]
                if found := [letter for letter in LETTERS[:8] if letter in text]:
                    return "answer mark", found[:1]
        return released_letters(text, options)

    def options_from_answers(
        self, file: str, predictions: Sequence[Prediction], folder: Path | None
    ) -> dict[str, Any]:
        """None: a file of answers holds the options in the order of the data."""
        return {}
