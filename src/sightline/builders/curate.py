"""Curation: selects from raw images those worth annotating, and records why each other image was dropped.

II-Bench (section 3.2) removes copies and near-duplicates, then images that text covers too much; images that
humans reject fall in the annotation task `screen`. ConTextual (section 2.3) ranks images by the number of
words that OCR reads in them, and keeps the first 500.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import asdict, replace
from numpy.typing import NDArray

from sightline.builders.folder import (
    BuildManifest,
    Contents,
    build_identity,
    built_image_path,
    everything_dropped,
    write_folder,
)
from sightline.builders.near_duplicates import BITS, DISTANCE, find_duplicates, image_hashes, import_imagehash
from sightline.builders.read import read_all
from sightline.builders.sources import CheckedImages, ids_of
from sightline.errors import UserError
from sightline.images import BadImage
from sightline.models.ocr import Reader, Word
from sightline.store.store import OcrResult, Store
from sightline.text import indented_json
from sightline.types import ImageFile

# -- The curation funnel: a sequence of steps that drop images, with the status of every image


class ImageStatus(Struct, frozen=True):
    """The status of an image. `step`: the step that dropped it, '' if none did. `text`: share of its area
    that text covers, 0-1.
    """

    step: str = ""
    why: str = ""
    like: str = ""
    distance: int | None = None
    words: int | None = None
    text: float | None = None


class FunnelStep(Struct, frozen=True):
    """A step: its name, how many images came to it, and how many it dropped."""

    step: str
    came: int
    dropped: int

    @property
    def left(self) -> int:
        return self.came - self.dropped


class Funnel(Struct, frozen=True):
    """The status of all images, by name in their order, and the counts of each step."""

    gallery: CheckedImages
    settings: Mapping[str, Any]
    statuses: Mapping[str, ImageStatus]
    steps: tuple[FunnelStep, ...] = field(default_factory=tuple)

    @property
    def kept(self) -> dict[str, ImageFile]:
        return {name: file for name, file in self.gallery.files.items() if not self.statuses[name].step}

    @property
    def dropped(self) -> dict[str, str]:
        return {name: f"{one.step}: {one.why}" for name, one in self.statuses.items() if one.step}

    def drop(self, step: str, dropped: Iterable[tuple[str, ImageStatus]]) -> Funnel:
        new, came = dict(dropped), sum(not one.step for one in self.statuses.values())
        old = {name: self.statuses[name] for name in new}
        statuses = {
            name: replace(one, step=step, words=old[name].words, text=old[name].text)
            for name, one in new.items()
        }
        steps = (*self.steps, FunnelStep(step, came, len(new)))
        return replace(self, statuses={**self.statuses, **statuses}, steps=steps)

    def update(self, change: Callable[[str, ImageStatus], ImageStatus]) -> Funnel:
        statuses = {name: one if one.step else change(name, one) for name, one in self.statuses.items()}
        return replace(self, statuses=statuses)


def start_funnel(gallery: CheckedImages, settings: Mapping[str, Any]) -> Funnel:
    names = [*gallery.files, *gallery.broken]
    funnel = Funnel(gallery, settings, dict.fromkeys(names, ImageStatus()))
    return funnel.drop("broken", ((name, ImageStatus(why=why)) for name, why in gallery.broken.items()))


def curation_report(funnel: Funnel) -> dict[str, Any]:
    return {
        "schema": 1,
        "settings": funnel.settings,
        "images": len(funnel.statuses),
        "kept": len(funnel.kept),
        "steps": [{**asdict(step), "left": step.left} for step in funnel.steps],
        "statuses": [{"image": name, **asdict(status)} for name, status in funnel.statuses.items()],
    }


KIND = "curate"
REPORT = "curation.json"

MAX_BOX_SHARE, MAX_SHORT_BOX_SHARE, SHORT = 0.5, 0.1, 2
"""An OCR quadrilateral is not text if it covers more of the image than MAX_BOX_SHARE, or, with at most SHORT
characters, more than MAX_SHORT_BOX_SHARE.

OCR takes images without text for one large sign: in 45 of the 1,217 distinct images of II-Bench RapidOCR 3.10
found a box over more than half of the image, and only two of those images have words there."""

Dropped = Iterator[tuple[str, ImageStatus]]


class CurationOptions(Struct, frozen=True):
    """Which images to keep.

    Attributes:
        max_text: Largest share of the area that text may cover, 0-1; None skips the step.
        top: Number of images with the most words to keep; None skips the step.
    """

    distance: int = DISTANCE
    max_text: float | None = None
    top: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.distance < BITS // 2:
            raise UserError(
                f"--distance {self.distance} is out of range", expected=f"0 to {BITS // 2 - 1} bits of {BITS}"
            )
        if self.max_text is not None and not 0 <= self.max_text < 1:
            raise UserError(
                f"--max-text {self.max_text} is not a share", expected="0 to less than 1, for example 0.3"
            )
        if self.top is not None and self.top < 1:
            raise UserError("--top leaves nothing", found=self.top, expected="1 or more")

    @property
    def needs_ocr(self) -> bool:
        return self.max_text is not None or self.top is not None


def curate(
    gallery: CheckedImages,
    options: CurationOptions,
    store: Store,
    *,
    reader: Reader | None = None,
    processes: int = 1,
    show_progress: bool = False,
) -> Funnel:
    """Take images through all steps. Hashes and OCR text are cached in the store.

    Of exact copies the first is kept; of near-duplicates the one with most pixels, or the first of those.
    """
    settings = {**asdict(options), "reader": reader.identity if reader is not None else None}
    funnel = start_funnel(gallery, settings)
    funnel = funnel.drop("copy", _copies(funnel))
    hashes = image_hashes(funnel.kept.values(), store, processes=processes, show_progress=show_progress)
    funnel = funnel.drop("undecoded", _undecoded(funnel, hashes))
    funnel = funnel.drop("near_duplicate", _near_duplicates(funnel, hashes, options.distance))
    if reader is not None:
        left = CheckedImages(funnel.kept, {})
        texts = read_all(left, reader, store, processes=processes, show_progress=show_progress)
        funnel = _count_texts(funnel, texts)
    if options.max_text is not None:
        funnel = funnel.drop("text", _too_much_text(funnel, options.max_text))
    if options.top is not None:
        funnel = funnel.drop("words", _too_few_words(funnel, options.top))
    return funnel


def without_false_words(words: Iterable[Word], width: int, height: int) -> tuple[Word, ...]:
    """Leave out large shapes that OCR took for letters.

    >>> fish, sign = Word("8", (0, 0, 10, 10), 0.5), Word("EXIT", (0, 0, 9, 3), 1)
    >>> [word.text for word in without_false_words([fish, sign], 10, 10)]
    ['EXIT']
    """

    def is_text(word: Word) -> bool:
        share = word_area(word) / (width * height)
        return share <= (MAX_SHORT_BOX_SHARE if len(word.text.strip()) <= SHORT else MAX_BOX_SHARE)

    return tuple(word for word in words if is_text(word))


def count_words(words: Iterable[Word]) -> int:
    return sum(len(word.text.split()) for word in words)


def write_curated(funnel: Funnel, out: Path, *, force: bool = False) -> BuildManifest:
    """Write the images that are left into images/, curation.json and, last, manifest.json."""
    if not funnel.kept:
        raise everything_dropped(funnel.dropped, "images")
    ids = dict(zip(funnel.statuses, ids_of(list(funnel.statuses)), strict=True))
    identity = build_identity(
        KIND,
        funnel.settings,
        {name: asdict(status) for name, status in funnel.statuses.items()},
        versions={"imagehash": import_imagehash().__version__},
    )
    contents = Contents(
        groups=0,
        probes=0,
        files={REPORT: indented_json(curation_report(funnel))},
        sources={ids[name]: file.digest for name, file in funnel.kept.items()},
        dropped={ids[name]: why for name, why in funnel.dropped.items()},
    )
    images = {built_image_path(ids[name], file.format): file for name, file in funnel.kept.items()}
    return write_folder(out, identity, contents, images, manifest=BuildManifest, force=force)


def _copies(funnel: Funnel) -> Dropped:
    first: dict[str, str] = {}
    for name, file in funnel.kept.items():
        like = first.setdefault(file.digest, name)
        if like != name:
            yield name, ImageStatus(why=f"the same file as {like}", like=like)


def _undecoded(funnel: Funnel, hashes: Mapping[str, bytes | BadImage]) -> Dropped:
    for name, file in funnel.kept.items():
        hashed = hashes[file.digest]
        if isinstance(hashed, BadImage):
            yield name, ImageStatus(why=str(hashed).removeprefix(f"{file.path}: "))


def _near_duplicates(funnel: Funnel, hashes: Mapping[str, bytes | BadImage], distance: int) -> Dropped:
    largest_first = sorted(funnel.kept.items(), key=lambda item: -item[1].width * item[1].height)
    ordered = ((name, hashes[file.digest]) for name, file in largest_first)
    duplicates = find_duplicates({name: one for name, one in ordered if isinstance(one, bytes)}, distance)
    for name, duplicate in duplicates.items():
        why = f"looks like {duplicate.of} ({duplicate.distance} of {BITS} bits differ)"
        yield name, ImageStatus(why=why, like=duplicate.of, distance=duplicate.distance)


def _count_texts(funnel: Funnel, texts: Mapping[str, OcrResult]) -> Funnel:
    """The funnel with the counts of text in each image, without the unreadable ones."""
    files = funnel.kept

    def count_text(name: str, status: ImageStatus) -> ImageStatus:
        words, file = texts[name], files[name]
        if isinstance(words, BadImage):
            return status
        words = without_false_words(words, file.width, file.height)
        share = text_share(words, file.width, file.height)
        return replace(status, words=count_words(words), text=share)

    reasons = {name: str(words) for name, words in texts.items() if isinstance(words, BadImage)}
    unreadable = (
        (name, ImageStatus(why=why.removeprefix(f"{files[name].path}: "))) for name, why in reasons.items()
    )
    return funnel.update(count_text).drop("unreadable", unreadable)


def _too_much_text(funnel: Funnel, most: float) -> Dropped:
    for name in funnel.kept:
        share = funnel.statuses[name].text or 0.0
        if share > most:
            yield name, ImageStatus(why=f"text covers {100 * share:.1f} % of it, more than {100 * most:g} %")


def _too_few_words(funnel: Funnel, top: int) -> Dropped:
    ranked = sorted(funnel.kept, key=lambda name: -(funnel.statuses[name].words or 0))
    for rank, name in enumerate(ranked[top:], top + 1):
        yield name, ImageStatus(why=f"number {rank:,} by words, with {funnel.statuses[name].words or 0:,}")


# -- The area of an image that text covers: the quadrilaterals that OCR found, rotated ones included

STRIPS = 16
"""Strips between two corners in which the covered length is measured. It is exact for upright boxes, and for
rotated ones that do not overlap."""

Quads = NDArray[np.float64]
"""Corners of quadrilaterals in order, shape (words, 4, 2): x and y in pixels."""


def word_area(word: Word) -> float:
    """The area of the quadrilateral of a word, in square pixels.

    >>> word_area(Word("tilted", (0, 0, 10, 10), 1, ((5, 0), (10, 5), (5, 10), (0, 5))))
    50.0
    """
    x, y = np.array(word.quad).T
    return abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) / 2


def text_share(words: Iterable[Word], width: int, height: int) -> float:
    """The share of an image's area that the quadrilaterals of its words cover; overlaps count once.

    >>> text_share([Word("a", (0, 0, 5, 10), 1), Word("b", (0, 5, 10, 10), 1)], 10, 10)
    0.75
    >>> text_share([Word("tilted", (0, 0, 10, 10), 1, ((5, 0), (10, 5), (5, 10), (0, 5)))], 10, 10)
    0.5
    """
    quads = np.array([word.quad for word in words], dtype=np.float64).reshape(-1, 4, 2)
    quads = np.clip(quads, 0, (width, height))
    corners = np.unique(quads[..., 1])
    if len(corners) < 2:
        return 0.0
    heights = np.repeat(np.diff(corners) / STRIPS, STRIPS)
    steps = (np.arange(STRIPS) + 0.5) / STRIPS
    rows = (corners[:-1, None] + np.diff(corners)[:, None] * steps).ravel()
    return float(heights @ _covered_lengths(*_intervals(quads, rows))) / (width * height)


def _intervals(quads: Quads, rows: NDArray[np.float64]) -> tuple[Quads, Quads]:
    """Both ends of each quadrilateral on each row, shape (rows, words); 0 and 0 where it is absent."""
    left = np.full((len(rows), len(quads)), np.inf)
    right = np.full((len(rows), len(quads)), -np.inf)
    for corner in range(4):
        (x0, y0), (x1, y1) = quads[:, corner].T, quads[:, (corner + 1) % 4].T
        crosses = (np.minimum(y0, y1) <= rows[:, None]) & (rows[:, None] < np.maximum(y0, y1))
        slope = np.divide(x1 - x0, y1 - y0, out=np.zeros_like(x0), where=y1 != y0)
        x = x0 + (rows[:, None] - y0) * slope
        left = np.where(crosses, np.minimum(left, x), left)
        right = np.where(crosses, np.maximum(right, x), right)
    absent = left > right
    return np.where(absent, 0, left), np.where(absent, 0, right)


def _covered_lengths(left: Quads, right: Quads) -> NDArray[np.float64]:
    """The length of the union of the intervals of each row."""
    order = np.argsort(left, axis=1)
    left, right = np.take_along_axis(left, order, 1), np.take_along_axis(right, order, 1)
    before = np.maximum.accumulate(right, axis=1)
    before = np.hstack([np.zeros((len(left), 1)), before[:, :-1]])
    length: NDArray[np.float64] = np.maximum(0, right - np.maximum(left, before)).sum(axis=1)
    return length
