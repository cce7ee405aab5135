"""Annotation: how far several annotators agree on the labels of an image, and II-Bench's records of it.

II-Bench (section 3.2, Appendix B.4): where annotators are not consistent, it is looked into and revised until
they agree. Here an image that several annotated has the labels that more than half of them give it; where
there are none it stays open. Its explanation and its questions are those of the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct, structs

import sightline
from sightline.benchmarks.contextual.folder import IMAGE
from sightline.benchmarks.iibench.records import LABELS, IIBenchQuestion, IIBenchRecord, ImageMetadata
from sightline.builders.annotation_form import FILLED, Cells, FormLine
from sightline.builders.built_folder import (
    IMAGES,
    BuildIdentity,
    begin,
    copy_images,
    finish,
    held,
    nothing_left,
)
from sightline.builders.image_index import CheckedImages
from sightline.builders.manifest import BuildManifest, fingerprint
from sightline.builders.source_ids import ids_of
from sightline.formats.digests import file_digest
from sightline.formats.files import write_atomically
from sightline.formats.tables import csv_bytes, escape_formula
from sightline.metric_types import MetricValue
from sightline.metrics.association import NOMINAL_ALPHA
from sightline.metrics.judge_statistics import statistic_value
from sightline.metrics.metric_values import clustered_mean
from sightline.scoring.multiple_choice import LETTERS

KIND = "annotate"
REPORT, TABLE = "annotation.json", "questions.csv"
ALONE = "no image has two annotators"

Values = tuple[str, ...]


class AnnotatedImage(Struct, frozen=True):
    """An image and the lines about it, by person in the order of the forms."""

    image: str
    by_human: Mapping[str, tuple[FormLine, ...]]

    @property
    def lines(self) -> tuple[FormLine, ...]:
        """Those of the first person."""
        return next(iter(self.by_human.values()))

    def said(self, label: str) -> dict[str, Values]:
        """The values that each person gives a label."""
        return {human: lines[0].values(label) for human, lines in self.by_human.items()}

    def decided(self, label: str) -> Values | None:
        """The values that more than half give it, as the first of them wrote them; else None."""
        said = list(self.said(label).values())
        for values in said:
            if 2 * sum(set(values) == set(other) for other in said) > len(said):
                return values
        return None

    @property
    def unused(self) -> tuple[str, ...]:
        """The people whose texts differ from those of the first, which are the image's."""
        told = {human: [line.texts for line in lines] for human, lines in self.by_human.items()}
        first = next(iter(told.values()))
        return tuple(human for human, texts in told.items() if texts != first)

    @property
    def open(self) -> tuple[str, ...]:
        """The labels of which nothing is decided."""
        return tuple(label for label in LABELS if self.decided(label) is None)

    @property
    def cells(self) -> list[Cells]:
        """What is decided: the lines of the first person with the labels of most; an open one is empty."""
        labels = {label: ", ".join(self.decided(label) or ()) for label in LABELS}
        return [{**line.cells, **labels, "answer": line.answer} for line in self.lines]


def annotated(lines: Iterable[FormLine]) -> list[AnnotatedImage]:
    """Lines without a fault by the image that they are about, in their order."""
    found: dict[str, dict[str, list[FormLine]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        found[line.image][line.by].append(line)
    return [
        AnnotatedImage(image, {human: tuple(own) for human, own in by_human.items()})
        for image, by_human in found.items()
    ]


def still_open(
    form: Mapping[str, Sequence[Cells]], found: Iterable[AnnotatedImage]
) -> dict[str, Sequence[Cells]]:
    """The part of a folder's form that is left: images that nobody annotated, and those with an open label,
    as the first person left them, that label empty."""
    done = {one.image: one for one in found}
    return {
        image: done[image].cells if image in done else cells
        for image, cells in form.items()
        if image not in done or done[image].open
    }


def agreement(found: Sequence[AnnotatedImage], *, seed: int = 0) -> list[MetricValue]:
    """How far annotators agree on each label, with intervals over images: `agreement`, the share of pairs
    of them who say the same of an image, in percent; `alpha`, Krippendorff's, 1 where all agree and 0 where
    they do as by chance. Who gives a label several values says the same as who gives it all of these, and no
    other."""
    several = [one for one in found if len(one.by_human) > 1]
    values = []
    for label in LABELS:
        said = [[frozenset(own) for own in one.said(label).values()] for one in several]
        pairs = [
            (one.image, float(a == b))
            for one, own in zip(several, said, strict=True)
            for a, b in combinations(own, 2)
        ]
        kinds = list(dict.fromkeys(value for own in said for value in own))
        counts = np.array([[own.count(kind) for kind in kinds] for own in said], dtype=np.float64)
        counts = counts.reshape(len(said), len(kinds))
        images = [one.image for one in several]
        alpha = statistic_value(NOMINAL_ALPHA, counts, counts.sum(axis=1), images, seed=seed)
        share = clustered_mean("agreement", pairs, shares=True, reason=ALONE, seed=seed)
        absent = {} if several else {"reason": ALONE}
        values += [
            structs.replace(share, subset=f"label={label}"),
            structs.replace(alpha, subset=f"label={label}", **absent),
        ]
    return values


def places(images: Collection[str]) -> dict[str, str]:
    """Where the images of a folder, all by their paths there, lie in what is built: below images/.

    They keep their paths where these all begin so, as in the release.

    >>> places(["images/a.png"]), places(["a.png", "images/a.png"])
    ({'images/a.png': 'images/a.png'}, {'a.png': 'images/a.png', 'images/a.png': 'images/images/a.png'})
    """
    below = all(image.startswith(f"{IMAGES}/") for image in images)
    return {image: image if below else f"{IMAGES}/{image}" for image in images}


def records(found: Sequence[AnnotatedImage], placed: Mapping[str, str], split: str) -> list[IIBenchRecord]:
    """II-Bench's records of images without an open label, by where these are `placed`; questions are named
    after their image."""
    names = [Path(one.image).name for one in found for _ in one.lines]
    ids = iter(ids_of(names))
    return [
        IIBenchRecord(
            placed[one.image],
            tuple(_question(line, next(ids)) for line in one.lines),
            _meta(one, split),
        )
        for one in found
    ]


def report(found: Sequence[AnnotatedImage], images: int, *, seed: int = 0) -> dict[str, Any]:
    """The whole of annotation.json: the counts (`images`: of the folder), the agreement, what each said of
    every image, and whose texts about it are not used."""
    return {
        "schema": 1,
        "images": images,
        "annotated": len(found),
        "open": sum(bool(one.open) for one in found),
        "human": list(dict.fromkeys(human for one in found for human in one.by_human)),
        "metrics": agreement(found, seed=seed),
        "labels": [
            {
                "image": one.image,
                "decided": {label: one.decided(label) for label in LABELS},
                "said": {label: one.said(label) for label in LABELS},
                "unused_texts": one.unused,
            }
            for one in found
        ],
    }


def build_of(gallery: CheckedImages, split: str) -> BuildIdentity:
    """What a folder must have been built from to be built on; annotations that come later join it."""
    images = fingerprint({name: file.digest for name, file in gallery.files.items()})
    header = {
        "kind": KIND,
        "settings": {"split": split, "images": images},
        "versions": {"sightline": sightline.__version__},
    }
    return BuildIdentity(header, fingerprint(header))


def write(
    found: Sequence[AnnotatedImage],
    gallery: CheckedImages,
    split: str,
    out: Path,
    *,
    seed: int = 0,
    force: bool = False,
) -> BuildManifest:
    """Write SPLIT.json in II-Bench's layout, the same questions as questions.csv for `build verify`, the
    images of both, annotation.json and, last, manifest.json. Open images are left out.

    Raises UserError, with nothing written, where no image is left, and where the folder holds something
    else unless `force` replaces it; EnvironmentFailedError where the disk refuses.
    """
    settled = [one for one in found if not one.open]
    dropped = {
        **gallery.broken,
        **dict.fromkeys(gallery.files, "no annotation"),
        **{one.image: f"annotators disagree on {', '.join(one.open)}" for one in found},
    }
    for one in settled:
        del dropped[one.image]
    if not settled:
        raise nothing_left(dropped, "images")
    placed = places(gallery.files)
    made = records(settled, placed, split)
    files = {
        f"{split}.json": _json(made),
        TABLE: _table(settled, placed),
        REPORT: _json(report(found, len(gallery.files), seed=seed)),
    }
    build = build_of(gallery, split)
    with held(out, build, force=force) as journal:
        begin(out, build, journal)
        images = copy_images({placed[one.image]: gallery.files[one.image] for one in settled}, out)
        for name, content in files.items():
            write_atomically(out / name, [content])
        manifest = BuildManifest(
            **build.header,
            groups=len(made),
            probes=sum(len(record.questions) for record in made),
            images=len(images),
            fingerprint=build.fingerprint,
            dropped=dropped,
            sources=images,
            made={**{name: file_digest(out / name) for name in files}, **images},
        )
        finish(out, manifest, journal)
    return manifest


def _json(content: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def _question(line: FormLine, name: str) -> IIBenchQuestion:
    right = line.options[LETTERS.index(line.answer)]
    return IIBenchQuestion(name, line.cells["question"], line.options, line.answer, right)


def _meta(one: AnnotatedImage, split: str) -> ImageMetadata:
    values = {label: one.decided(label) or () for label in LABELS}
    types = values["image_type"]
    return ImageMetadata(
        domain=values["domain"][0],
        emotion=values["emotion"][0],
        # The release writes one type of an image in dev as a text, in test as a list.
        image_type=types[0] if split == "dev" and len(types) == 1 else types,
        difficulty=values["difficulty"][0],
        rhetoric=values["rhetoric"],
        explanation=one.lines[0].cells["explanation"],
    )


def _table(found: Iterable[AnnotatedImage], placed: Mapping[str, str]) -> bytes:
    rows = (
        [line.by, placed[one.image], *(cells[column] for column in FILLED)]
        for one in found
        for line, cells in zip(one.lines, one.cells, strict=True)
    )
    return csv_bytes([["by", IMAGE, *FILLED], *([*map(escape_formula, row)] for row in rows)])
