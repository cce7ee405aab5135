"""BiVLC: a caption and its image against a hard negative caption and its image (Miranda et al. 2024).

A group is an instance of the release: which caption fits each image, and which image fits each caption.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from sightline.benchmarks import base
from sightline.benchmarks.released import UNPACKED, clusters_of_images, data_folder, read_records
from sightline.metrics import choice
from sightline.scoring.chosen import read_choice
from sightline.scoring.scorer import Reading
from sightline.text import fill, load
from sightline.types import (
    LETTERS,
    Case,
    Group,
    ImageRef,
    Metric,
    Outcome,
    Probe,
    Sample,
    Term,
    VerdictName,
    user,
)

COMPARED: Mapping[str, tuple[str, str]] = {
    "ipos_2t": ("c0_i0", "c1_i0"),
    "ineg_2t": ("c1_i1", "c0_i1"),
    "tpos_2i": ("c0_i0", "c0_i1"),
    "tneg_2i": ("c1_i1", "c1_i0"),
}
"""Each choice -> the pair of caption and image that must score more than the other (evaluate_BiVLC of
src/CLIP_fine_tuning/CLIP_utils.py, IMirandaM/BiVLC at 84f0d175): 0 is the image or caption of COCO."""
I2T, T2I = ("ipos_2t", "ineg_2t"), ("tpos_2i", "tneg_2i")


class BiVLCRecord(Struct, frozen=True):
    """One released row, its images as `sightline data unpack` writes them."""

    image: str
    caption: str
    negative_caption: str
    negative_image: str
    type: Literal["replace", "swap", "add"]
    subtype: Literal["obj", "att", "rel"]


class BiVLC(base.Benchmark):
    """2,933 instances, each of two images and two captions."""

    name = "bivlc"
    title = "BiVLC: two images and two captions that differ in one detail"
    citation = (
        "Miranda et al. 2024, BiVLC: Extending Vision-Language Compositionality Evaluation, NeurIPS 2024"
    )
    elsewhere = (
        "huggingface.co/datasets/imirandam/BiVLC, split test, unpacked by "
        "`sightline data unpack FILE... --name bivlc`"
    )
    unpinned = base.UserRecords("test", UNPACKED, 2933)
    leading_metrics = ("group", "i2t", "t2i")
    chance_notes: Mapping[str, str] = {
        "group": "chance: i2t and t2i 25, group 6.25 of chosen answers and 16.67 of likelihoods"
    }
    chance_levels: Mapping[str, float] = {"i2t": 25.0, "t2i": 25.0, **dict.fromkeys(COMPARED, 50.0)}
    report_sections = (
        base.ByLabel("group", "type"),
        base.ByLabel("group", "subtype"),
        base.Together("Each choice", tuple(COMPARED)),
    )
    settings = base.by_name(
        base.Setting(
            "default",
            "four questions with two options",
            options={"answer_by": "text"},
            sampling={"temperature": 0, "max_tokens": 512},
        ),
        base.Setting(
            "likelihood",
            "how likely a local model confirms each caption of each image",
            "the form of the released VQAScore_BiVLC.py",
            {"answer_by": "likelihood"},
        ),
    )
    options: Mapping[str, base.BenchmarkOption] = {"answer_by": base.ANSWER_BY}

    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Iterator[Sample]:
        """The rows by their number from 0; those that share an image are one cluster."""
        folder = data_folder(folder, self.name, UNPACKED)
        records = read_records(folder / UNPACKED, BiVLCRecord, name="caption")
        clusters = clusters_of_images([(one.image, one.negative_image) for one in records])
        for number, (one, cluster) in enumerate(zip(records, clusters, strict=True)):
            names = (one.image, one.negative_image)
            yield Sample(
                id=str(number),
                question=one.caption,
                images=tuple(ImageRef(str(folder / name), str(folder)) for name in names),
                labels={"type": one.type, "subtype": one.subtype},
                cluster=cluster,
                record=one,
            )

    def probes(self, sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
        """Four choices, or the four pairs of caption and image to score."""
        captions = (sample.record.caption, sample.record.negative_caption)
        if options["answer_by"] == "likelihood":
            yield from _pairs(sample, captions)
            return
        prompts = load(__package__)
        # Both choices of a direction list their options in one order: no letter is right for both.
        order = [0, 1]
        random.Random(f"{options['seed']}/{sample.id}").shuffle(order)
        letters = [LETTERS[order.index(at)] for at in (0, 1)]
        listed = [captions[at] for at in order]
        which = fill(prompts["caption"]["text"], first=listed[0], second=listed[1])
        for variant, image, letter in zip(I2T, sample.images, letters, strict=True):
            yield _probe(sample, variant, (image, which), letter, listed)
        heads = (prompts["image"]["first"], prompts["image"]["second"])
        shown = [part for head, at in zip(heads, order, strict=True) for part in (head, sample.images[at])]
        for variant, caption, letter in zip(T2I, captions, letters, strict=True):
            which = fill(prompts["image"]["text"], caption=caption)
            yield _probe(sample, variant, (*shown, which), letter, ("Image A", "Image B"))

    def rule(self, case: Case) -> Reading:
        """The option that a response states; a likelihood is neither right nor wrong."""
        if not case.options:
            return Reading("unscored")
        # The captions in a question are not its own words: 'A man' names no option A.
        asked = re.split(r'[\n"]', case.probe_question)[0]
        position, rule, words = read_choice(case.texts[0], case.options, asked)
        if position is None:
            return Reading("miss", rule=rule, words=words)
        letter = LETTERS[position]
        verdict: VerdictName = "right" if letter == case.references[0] else "wrong"
        return Reading(verdict, extracted=letter, rule=rule, words=words)

    def text_scores(self, outcome: Outcome, options: Mapping[str, Any]) -> Mapping[str, float]:
        """The likelihood that a local model gave."""
        if options["answer_by"] == "likelihood":
            with suppress(ValueError):
                return {"likelihood": float(outcome.response)}
        return {}

    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        """Those of the released main_evaluation_BiVLC.py; of chosen answers also those without a choice."""
        by_likelihood = options["answer_by"] == "likelihood"
        metrics = [
            Metric(
                name=name,
                terms=_all_right(choices, by_likelihood),
                meaning=meaning,
                better="higher",
                source="the released main_evaluation_BiVLC.py",
                judged=None if by_likelihood else "correct",
                per_group=True,
            )
            for name, (choices, meaning) in MEANINGS.items()
        ]
        return metrics if by_likelihood else [*metrics, choice.MISS]


def _probe(
    sample: Sample,
    variant: str,
    parts: Sequence[ImageRef | str],
    letter: str,
    options: Sequence[str],
) -> Probe:
    """A choice; the question is the prompt without its last line, which says how to answer."""
    return Probe(
        sample=sample.id,
        variant=variant,
        messages=(user(*parts),),
        question=str(parts[-1]).rpartition("\n")[0],
        references=(letter,),
        options=tuple(options),
        labels=sample.labels,
    )


def _pairs(sample: Sample, captions: Sequence[str]) -> Iterator[Probe]:
    prompt = load(__package__)["likelihood"]
    for (at, image), (which, caption) in product(enumerate(sample.images), enumerate(captions)):
        text = fill(prompt["text"], caption=caption)
        yield Probe(
            sample=sample.id,
            variant=f"c{which}_i{at}",
            messages=(user(image, text),),
            question=text,
            labels=sample.labels,
            choices=(prompt["answer"],),
        )


# -- Metrics


def _all_right(choices: Sequence[str], by_likelihood: bool) -> Callable[[Group], Iterator[Term]]:
    """1 for a group whose choices are all right, of 1 for which all of them are known."""

    def terms(group: Group) -> Iterator[Term]:
        right = _by_score(group) if by_likelihood else {one.variant: one.right for one in group if one.scored}
        if all(name in right for name in choices):
            yield Term(all(right[name] for name in choices), 1)

    return terms


def _by_score(group: Group) -> dict[str, bool]:
    """The choices that four scores make; of two that are equal, none is the greater one, as released.

    A failed call has no score, and makes no choice: it counts as not right, as everywhere.
    """
    scores = {
        one.variant: one.scores.get("likelihood", math.nan)
        for one in group
        if "likelihood" in one.scores or one.status == "error"
    }
    return {
        name: scores[right] > scores[wrong]
        for name, (right, wrong) in COMPARED.items()
        if right in scores and wrong in scores
    }


MEANINGS: Mapping[str, tuple[Sequence[str], str]] = {
    "group": ((*I2T, *T2I), "instances of which all four choices are right"),
    "i2t": (I2T, "instances of which the right caption is chosen for both images"),
    "t2i": (T2I, "instances of which the right image is chosen for both captions"),
    "ipos_2t": (I2T[:1], "COCO images for which the right caption is chosen"),
    "ineg_2t": (I2T[1:], "negative images for which the right caption is chosen"),
    "tpos_2i": (T2I[:1], "COCO captions for which the right image is chosen"),
    "tneg_2i": (T2I[1:], "negative captions for which the right image is chosen"),
}
"""Metric -> the choices that must be right, and what it counts."""
