"""Curation: selects from raw images those worth annotating, and records why each other image was dropped.

II-Bench (section 3.2) removes copies and near-duplicates, then images that text covers too much, then images
that humans reject. ConTextual (section 2.3) ranks images by the number of words that OCR reads in them, and
keeps the first 500.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from sightline.builders.built_folder import Contents, built_image_path, everything_dropped, write_folder
from sightline.builders.checked_images import CheckedImages
from sightline.builders.curation_funnel import Funnel, ImageStatus, curation_report, start_funnel
from sightline.builders.execution import Execution
from sightline.builders.manifest import BuildManifest, build_identity, indented_json
from sightline.builders.near_duplicates import BITS, DISTANCE, find_duplicates, image_hashes, import_imagehash
from sightline.builders.read import read_all
from sightline.builders.review_lists import Mark, MarkWords
from sightline.builders.source_ids import ids_of
from sightline.builders.text_area import text_share, word_area
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.formats.digests import json_digest
from sightline.images import BadImage
from sightline.models.ocr import Reader, Word
from sightline.scoring.majority import majority

KIND = "curate"
REPORT = "curation.json"
KEEP = MarkWords("keep", "drop")

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
        """Whether a step needs an OCR reader."""
        return self.max_text is not None or self.top is not None


def curate(
    gallery: CheckedImages,
    options: CurationOptions,
    store: Store,
    *,
    reader: Reader | None = None,
    marks: Mapping[str, Sequence[Mark]] | None = None,
    execution: Execution = Execution(),  # noqa: B008 - it is immutable
) -> Funnel:
    """Take images through all steps. Hashes and OCR text are cached in the store.

    Of exact copies the first is kept; of near-duplicates the one with most pixels, or the first of those.

    Args:
        marks: The marks of humans by image digest; an image that the majority keeps stays. None skips the
            step.
    """
    settings = {
        **asdict(options),
        "reader": reader.identity if reader is not None else None,
        "human": json_digest(msgspec.to_builtins(marks)) if marks is not None else None,
    }
    funnel = start_funnel(gallery, settings)
    funnel = funnel.drop("copy", _copies(funnel))
    hashes = image_hashes(funnel.kept.values(), store, execution)
    funnel = funnel.drop("undecoded", _undecoded(funnel, hashes))
    funnel = funnel.drop("near_duplicate", _near_duplicates(funnel, hashes, options.distance))
    if reader is not None:
        funnel = _read(funnel, reader, store, execution)
    if options.max_text is not None:
        funnel = funnel.drop("text", _too_much_text(funnel, options.max_text))
    if options.top is not None:
        funnel = funnel.drop("words", _too_few_words(funnel, options.top))
    if marks is not None:
        funnel = funnel.drop("human", _rejected(funnel, marks))
    return funnel


def without_false_words(words: Iterable[Word], width: int, height: int) -> tuple[Word, ...]:
    """Leave out large shapes that OCR took for letters.

    Args:
        width, height: Its size in pixels.

    >>> fish, sign = Word("8", (0, 0, 10, 10), 0.5), Word("EXIT", (0, 0, 9, 3), 1)
    >>> [word.text for word in without_false_words([fish, sign], 10, 10)]
    ['EXIT']
    """

    def is_text(word: Word) -> bool:
        share = word_area(word) / (width * height)
        return share <= (MAX_SHORT_BOX_SHARE if len(word.text.strip()) <= SHORT else MAX_BOX_SHARE)

    return tuple(word for word in words if is_text(word))


def count_words(words: Iterable[Word]) -> int:
    """Count the words of an image, split at blanks."""
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


def _read(funnel: Funnel, reader: Reader, store: Store, execution: Execution) -> Funnel:
    """The funnel with the counts of text in each image, without the unreadable ones."""
    left = CheckedImages(funnel.kept, {})
    texts = read_all(left, reader, store, execution)

    def count_text(name: str, status: ImageStatus) -> ImageStatus:
        words, file = texts[name], left.files[name]
        if isinstance(words, BadImage):
            return status
        words = without_false_words(words, file.width, file.height)
        share = text_share(words, file.width, file.height)
        return replace(status, words=count_words(words), text=share)

    reasons = {name: str(words) for name, words in texts.items() if isinstance(words, BadImage)}
    unreadable = (
        (name, ImageStatus(why=why.removeprefix(f"{left.files[name].path}: ")))
        for name, why in reasons.items()
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


def _rejected(funnel: Funnel, marks: Mapping[str, Sequence[Mark]]) -> Dropped:
    for name, file in funnel.kept.items():
        own = marks.get(file.digest, ())
        keep = majority(mark.yes for mark in own)
        if keep is None:
            why = "equally many annotators keep it and drop it" if own else "no annotator has marked it"
            yield name, ImageStatus(why=why)
        elif not keep:
            remarks = "; ".join(mark.remark for mark in own if mark.remark and not mark.yes)
            yield name, ImageStatus(why=f"humans drop it{': ' * bool(remarks)}{remarks}")
