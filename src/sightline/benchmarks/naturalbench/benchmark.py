"""NaturalBench: two questions about two images, with opposite answers (Li et al. 2024).

A group is a row of the release: each of its questions, asked of each of its images.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from sightline.benchmarks import base
from sightline.benchmarks.released import UNPACKED, clusters_of_images, data_folder, read_records
from sightline.errors import UserError
from sightline.metrics import choice
from sightline.scoring.chosen import read_choice
from sightline.scoring.scorer import Reading, RuleScorer, Scorer
from sightline.text import load
from sightline.types import Case, Group, ImageRef, Metric, Probe, Sample, Term, user

SIDES: Mapping[str, tuple[str, str]] = {"yes_no": ("Yes", "No"), "multiple_choice": ("A", "B")}
"""The answers to a question of each type."""


class NaturalRecord(Struct, frozen=True):
    """One released row, its images as `sightline data unpack` writes them."""

    Index: int | str
    Image_0: str
    Image_1: str
    Question_0: str
    Question_1: str
    Image_0_Question_0: str
    Image_1_Question_0: str
    Image_0_Question_1: str
    Image_1_Question_1: str
    Question_Type: Literal["yes_no", "multiple_choice"]
    Source: str


class NaturalBench(base.Benchmark):
    """1,900 groups of four: 1,450 with yes/no questions, 450 with two options."""

    name = "naturalbench"
    title = "NaturalBench: two questions about two images, with opposite answers"
    citation = (
        "Li et al. 2024, NaturalBench: Evaluating Vision-Language Models on Natural Adversarial Samples"
    )
    elsewhere = (
        "huggingface.co/datasets/BaiqiL/NaturalBench, split train, unpacked by "
        "`sightline data unpack FILE... --name naturalbench`"
    )
    unpinned = base.UserRecords("test", UNPACKED, 1900)
    leading_metrics = ("g_acc", "q_acc", "i_acc", "acc")
    chance_levels: Mapping[str, float] = {"g_acc": 6.25, "q_acc": 25.0, "i_acc": 25.0, "acc": 50.0}
    chance_notes: Mapping[str, str] = {"g_acc": "chance: g_acc 6.25, q_acc and i_acc 25, acc 50"}
    report_sections = (base.ByLabel("g_acc", "question_type"), base.ByLabel("g_acc", "source"))
    settings = base.by_name(
        base.Setting(
            "default",
            "the released questions and suffixes",
            "the leaderboard of its page at the Hub",
            sampling={"temperature": 0, "max_tokens": 128},
            sampling_source="max_tokens as in naturalbench_vqa_example_qwen.py; temperature 0 here",
        )
    )
    options: Mapping[str, base.BenchmarkOption] = {
        "extraction": base.BenchmarkOption(
            "strict",
            "how the answer is read: what is stated, or the first word found",
            ("strict", "released"),
        )
    }

    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Iterator[Sample]:
        """The rows; those that share an image, directly or through others, are one cluster."""
        folder = data_folder(folder, self.name, UNPACKED)
        records = read_records(
            folder / UNPACKED, NaturalRecord, name="Index", renamed=("Question Type", "Question_Type")
        )
        clusters = clusters_of_images([(one.Image_0, one.Image_1) for one in records])
        for one, cluster in zip(records, clusters, strict=True):
            _check(one, folder / UNPACKED)
            yield Sample(
                id=str(one.Index),
                question=one.Question_0,
                images=tuple(
                    ImageRef(str(folder / name), str(folder)) for name in (one.Image_0, one.Image_1)
                ),
                labels={"question_type": one.Question_Type, "source": one.Source},
                cluster=cluster,
                record=one,
            )

    def probes(self, sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
        one: NaturalRecord = sample.record
        suffix = load(__package__)["suffix"][one.Question_Type]
        for variant, question, image, answer in _asked(one):
            yield Probe(
                sample=sample.id,
                variant=variant,
                messages=(user(sample.images[image], question + suffix),),
                question=question,
                references=(answer,),
                options=_options(question) if one.Question_Type == "multiple_choice" else SIDES["yes_no"],
                labels=sample.labels,
            )

    def scorers(self, options: Mapping[str, Any]) -> Sequence[Scorer]:
        released = options["extraction"] == "released"
        judge = _judge_as_released if released else _judge
        return [RuleScorer(f"naturalbench/{options['extraction']}", "correct", judge)]

    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        """Those of the released naturalbench_vqa.py, and the responses without an answer."""
        return METRICS


def _asked(one: NaturalRecord) -> Iterator[tuple[str, str, int, str]]:
    """The name of each query as in the released script, its question, image and right answer."""
    yield "q0_i0", one.Question_0, 0, one.Image_0_Question_0
    yield "q0_i1", one.Question_0, 1, one.Image_1_Question_0
    yield "q1_i0", one.Question_1, 0, one.Image_0_Question_1
    yield "q1_i1", one.Question_1, 1, one.Image_1_Question_1


def _check(one: NaturalRecord, file: Path) -> None:
    sides = SIDES[one.Question_Type]
    for variant, _, image, answer in _asked(one):
        if answer not in sides:
            raise UserError(
                "is no answer to a question of this type",
                file=file,
                record=str(one.Index),
                field=f"Image_{image}_Question_{variant[1]}",
                found=answer,
                expected=f"{' or '.join(sides)}, as its Question_Type is {one.Question_Type}",
            )


_LISTED = re.compile(r"\bA([:.])\s*(.+?)[;.]*\s*\bB\1\s*(.+?)[;.\s]*$", re.DOTALL)
"""The options at the end of a question: '\\nOption: A:Knit cap; B:Helmet;', ' A. Knit cap. B. Helmet.'."""


def _options(question: str) -> tuple[str, ...]:
    """The texts of two options; of one of the 900 questions, whose B has no colon, the letters.

    >>> _options("Where are they?\\nOption: A:On a roof; B:At sea;"), _options("A:On a roof. Bt sea.;")
    (('On a roof', 'At sea'), ('A', 'B'))
    """
    found = _LISTED.search(question)
    return (found[2], found[3]) if found else SIDES["multiple_choice"]


# -- Judging


def _sides(case: Case) -> tuple[str, str]:
    return next(sides for sides in SIDES.values() if case.references[0] in sides)


def _judge(case: Case) -> Reading:
    position, rule, words = read_choice(case.texts[0], case.options, case.probe_question)
    if position is None:
        return Reading("miss", rule=rule, words=words)
    side = _sides(case)[position]
    return Reading("right" if side == case.references[0] else "wrong", extracted=side, rule=rule, words=words)


def _judge_as_released(case: Case) -> Reading:
    """The side that is named first; right are yes, no, no, yes (A, B, B, A), whatever the record says."""
    sides = _sides(case)
    found = re.search(rf"\b(?:{'|'.join(sides)})\b", case.texts[0], re.IGNORECASE)
    if found is None:
        return Reading("miss", rule="first word")
    side = found[0].capitalize()
    is_right = (side == sides[0]) == (case.variant in ("q0_i0", "q1_i1"))
    return Reading("right" if is_right else "wrong", extracted=side, rule="first word", words=found[0])


# -- Metrics


def _metric(name: str, terms: Callable[[Group], Iterator[Term]], meaning: str, **more: Any) -> Metric:
    source = "the released naturalbench_vqa.py, get_scores"
    return Metric(name=name, terms=terms, meaning=meaning, better="higher", source=source, **more)


METRICS = (
    _metric("g_acc", choice.consistent, "groups of which all four answers are right", per_group=True),
    _metric(
        "q_acc",
        choice.all_right(lambda one: one.variant[:2]),
        "questions answered right about both images",
        per_group=True,
    ),
    _metric(
        "i_acc",
        choice.all_right(lambda one: one.variant[3:]),
        "images about which both questions are answered right",
        per_group=True,
    ),
    _metric("acc", choice.accuracy, "questions, about each image, that are answered right"),
    choice.MISS,
)
