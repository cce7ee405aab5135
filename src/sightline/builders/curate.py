"""Curation: of raw images those that are worth annotating, and what became of each of the others.

II-Bench (section 3.2) removes copies and close variants, then images of which text covers too much, then
has people look at what is left. ConTextual (section 2.3) ranks images by the number of words that OCR finds
in them, and keeps the first 500.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

import sightline
from sightline.builders.built_folder import (
    IMAGES,
    BuildIdentity,
    begin,
    copy_images,
    finish,
    held,
    nothing_left,
)
from sightline.builders.curation_funnel import Funnel, ImageStatus, funnel_of, report
from sightline.builders.image_index import CheckedImages
from sightline.builders.image_io import ENDINGS
from sightline.builders.manifest import BuildManifest, fingerprint
from sightline.builders.near_duplicates import BITS, DISTANCE, copies, hashes, image_hash
from sightline.builders.read import read_all
from sightline.builders.review_lists import AcceptanceRule, Mark, MarkWords
from sightline.builders.source_ids import ids_of
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.formats.digests import file_digest
from sightline.formats.files import write_atomically
from sightline.images import BadImage
from sightline.models.ocr import Reader, Word

KIND = "curate"
REPORT = "curation.json"
KEEP = MarkWords("keep", "drop")

WHOLE, LARGE, FEW = 0.5, 0.1, 2
"""A box is no writing that covers more of an image than WHOLE, or than LARGE with FEW characters at most.

OCR takes images without writing for one large sign: in 45 of the 1,217 images of II-Bench that are no
copies RapidOCR 3.10 found a box over more than half of the image, two of them with words there."""

Dropped = Iterator[tuple[str, ImageStatus]]


class CurationOptions(Struct, frozen=True):
    """What is kept: in how many bits of 256 two images may differ to be taken for one, which share of its
    area text may cover (0-1), how many images with the most words. None leaves a step out.

    Raises UserError where a number is none.
    """

    distance: int = DISTANCE
    max_text: float | None = None
    top: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.distance < BITS // 2:
            raise UserError(
                f"--distance {self.distance} is none", expected=f"0 to {BITS // 2 - 1} bits of {BITS}"
            )
        if self.max_text is not None and not 0 <= self.max_text < 1:
            raise UserError(f"--max-text {self.max_text} is no share", expected="0 to less than 1, as 0.3")
        if self.top is not None and self.top < 1:
            raise UserError("--top leaves nothing", found=self.top, expected="1 or more")

    @property
    def reads(self) -> bool:
        """Whether a reader is needed."""
        return self.max_text is not None or self.top is not None


def curate(
    gallery: CheckedImages,
    how: CurationOptions,
    store: Store,
    *,
    reader: Reader | None = None,
    marks: Mapping[str, Sequence[Mark]] | None = None,
    processes: int = 1,
    show_progress: bool = False,
) -> Funnel:
    """Take the images through all steps; what is computed and read of them is remembered in the store.

    Of exact copies the first is kept, of images that look alike the one with most pixels, of those the
    first. `reader` is there where `how` needs one. `marks` are those of people by the images' digests (None
    leaves that step out): what more people keep than drop stays. UserError where ImageHash is missing,
    EnvironmentFailedError where the store fails or a process dies.
    """
    settings = {
        **asdict(how),
        "reader": reader.identity if reader is not None else None,
        "human": fingerprint(msgspec.to_builtins(marks)) if marks is not None else None,
    }
    funnel = funnel_of(gallery, settings)
    funnel = funnel.after("copy", _exact(funnel))
    hashed = hashes(funnel.kept.values(), store, processes=processes, show_progress=show_progress)
    funnel = funnel.after("undecoded", _undecoded(funnel, hashed))
    funnel = funnel.after("alike", _alike(funnel, hashed, how.distance))
    if reader is not None:
        funnel = _read(funnel, reader, store, processes, show_progress)
    if how.max_text is not None:
        funnel = funnel.after("text", _too_much_text(funnel, how.max_text))
    if how.top is not None:
        funnel = funnel.after("words", _few_words(funnel, how.top))
    if marks is not None:
        funnel = funnel.after("human", _unwanted(funnel, marks))
    return funnel


def writing(words: Iterable[Word], width: int, height: int) -> tuple[Word, ...]:
    """The words without what is no writing, but a large shape taken for a letter.

    >>> fish, sign = Word("8", (0, 0, 10, 10), 0.5), Word("EXIT", (0, 0, 9, 3), 1)
    >>> [word.text for word in writing([fish, sign], 10, 10)]
    ['EXIT']
    """

    def is_writing(word: Word) -> bool:
        left, top, right, bottom = word.box
        share = (right - left) * (bottom - top) / (width * height)
        return share <= (LARGE if len(word.text.strip()) <= FEW else WHOLE)

    return tuple(word for word in words if is_writing(word))


def text_share(words: Iterable[Word], width: int, height: int) -> float:
    """The share of an image's area, 0-1, that the boxes of its words cover; where they overlap, once.

    >>> text_share([Word("a", (0, 0, 5, 10), 1), Word("b", (0, 5, 10, 10), 1)], 10, 10)
    0.75
    """
    import numpy as np

    boxes = np.array([word.box for word in words], dtype=np.float64).reshape(-1, 4)
    boxes = np.clip(boxes, 0, (width, height, width, height))
    xs, ys = np.unique(boxes[:, 0::2]), np.unique(boxes[:, 1::2])
    covered = np.zeros((max(len(ys) - 1, 0), max(len(xs) - 1, 0)))
    for left, top, right, bottom in boxes:
        rows, columns = np.searchsorted(ys, (top, bottom)), np.searchsorted(xs, (left, right))
        covered[slice(*rows), slice(*columns)] = 1
    return float(np.diff(ys) @ covered @ np.diff(xs)) / (width * height)


def count_words(words: Iterable[Word]) -> int:
    """How many words were read, as blanks part them."""
    return sum(len(word.text.split()) for word in words)


def write(funnel: Funnel, out: Path, *, force: bool = False) -> BuildManifest:
    """Write the images that are left into images/, curation.json and, last, manifest.json.

    The same bytes for the same images and settings. Raises UserError, with nothing written, where none is
    left, and where the folder holds something else unless `force` replaces it; EnvironmentFailedError where the
    disk refuses.
    """
    if not funnel.kept:
        raise nothing_left(funnel.dropped, "images")
    ids = dict(zip(funnel.statuses, ids_of(list(funnel.statuses)), strict=True))
    copied = {f"{IMAGES}/{ids[name]}{ENDINGS[file.format][0]}": file for name, file in funnel.kept.items()}
    versions = {"sightline": sightline.__version__, "imagehash": image_hash().__version__}
    header = {"kind": KIND, "settings": funnel.settings, "versions": versions}
    build = BuildIdentity(
        header, fingerprint([header, {name: asdict(fate) for name, fate in funnel.statuses.items()}])
    )
    with held(out, build, force=force) as journal:
        begin(out, build, journal)
        images = copy_images(copied, out)
        told = msgspec.json.format(msgspec.json.encode(report(funnel)), indent=1)
        write_atomically(out / REPORT, [told, b"\n"])
        manifest = BuildManifest(
            **build.header,
            groups=0,
            probes=0,
            images=len(images),
            fingerprint=build.fingerprint,
            dropped={ids[name]: why for name, why in funnel.dropped.items()},
            sources={ids[name]: file.digest for name, file in funnel.kept.items()},
            made={REPORT: file_digest(out / REPORT), **images},
        )
        finish(out, manifest, journal)
    return manifest


def _exact(funnel: Funnel) -> Dropped:
    first: dict[str, str] = {}
    for name, file in funnel.kept.items():
        like = first.setdefault(file.digest, name)
        if like != name:
            yield name, ImageStatus(why=f"the same file as {like}", like=like)


def _undecoded(funnel: Funnel, hashed: Mapping[str, bytes | BadImage]) -> Dropped:
    for name, file in funnel.kept.items():
        found = hashed[file.digest]
        if isinstance(found, BadImage):
            yield name, ImageStatus(why=str(found).removeprefix(f"{file.path}: "))


def _alike(funnel: Funnel, hashed: Mapping[str, bytes | BadImage], distance: int) -> Dropped:
    largest = sorted(funnel.kept.items(), key=lambda one: -one[1].width * one[1].height)
    known = ((name, hashed[file.digest]) for name, file in largest)
    found = copies({name: one for name, one in known if isinstance(one, bytes)}, distance)
    for name, copy in found.items():
        why = f"looks like {copy.of} ({copy.distance} of {BITS} bits differ)"
        yield name, ImageStatus(why=why, like=copy.of, distance=copy.distance)


def _read(funnel: Funnel, reader: Reader, store: Store, processes: int, show_progress: bool) -> Funnel:
    """The funnel with what was read in each image, without those that cannot be read."""
    left = CheckedImages(funnel.kept, {})
    read = read_all(left, reader, store, processes=processes, show_progress=show_progress)

    def known(name: str, fate: ImageStatus) -> ImageStatus:
        words, file = read[name], left.files[name]
        if isinstance(words, BadImage):
            return fate
        written = writing(words, file.width, file.height)
        share = text_share(written, file.width, file.height)
        return replace(fate, words=count_words(written), text=share)

    reasons = {name: str(words) for name, words in read.items() if isinstance(words, BadImage)}
    unreadable = (
        (name, ImageStatus(why=why.removeprefix(f"{left.files[name].path}: ")))
        for name, why in reasons.items()
    )
    return funnel.having(known).after("unreadable", unreadable)


def _too_much_text(funnel: Funnel, most: float) -> Dropped:
    for name in funnel.kept:
        share = funnel.statuses[name].text or 0.0
        if share > most:
            yield name, ImageStatus(why=f"text covers {100 * share:.1f} % of it, more than {100 * most:g} %")


def _few_words(funnel: Funnel, top: int) -> Dropped:
    ranked = sorted(funnel.kept, key=lambda name: -(funnel.statuses[name].words or 0))
    for place, name in enumerate(ranked[top:], top + 1):
        yield name, ImageStatus(why=f"number {place:,} by words, with {funnel.statuses[name].words or 0:,}")


def _unwanted(funnel: Funnel, marks: Mapping[str, Sequence[Mark]]) -> Dropped:
    for name, file in funnel.kept.items():
        given = marks.get(file.digest, ())
        wanted = AcceptanceRule().decide(given)
        if wanted is None:
            yield name, ImageStatus(why="as many keep it as drop it" if given else "nobody has marked it")
        elif not wanted:
            remarks = "; ".join(mark.remark for mark in given if mark.remark and not mark.yes)
            yield name, ImageStatus(why=f"people drop it{': ' * bool(remarks)}{remarks}")
