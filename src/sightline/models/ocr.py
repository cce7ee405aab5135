"""OCR: the interface of readers, RapidOCR as one, and the text that stands in place of images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol, get_args

from msgspec import Struct
from msgspec.structs import replace

from sightline.errors import UserError
from sightline.images import BadImage, read_image
from sightline.models.model_files import digest_of_files
from sightline.text import fill, load
from sightline.types import Augmentation, ImageFile, ImageRef, Message, Part, Text

if TYPE_CHECKING:
    from PIL.Image import Image


Point = tuple[float, float]


class Word(Struct, frozen=True, omit_defaults=True):
    """A word, or a few words in one line, and their position.

    Attributes:
        box: (x0, y0, x1, y1) in pixels of the upright image; x1 and y1 are just outside.
        corners: The four corners (x, y) in order, in pixels; () stands for those of the box.
    """

    text: str
    box: tuple[float, float, float, float]
    confidence: float
    corners: tuple[Point, ...] = ()

    @property
    def quad(self) -> tuple[Point, ...]:
        left, top, right, bottom = self.box
        return self.corners or ((left, top), (right, top), (right, bottom), (left, bottom))


class Reader(Protocol):
    """Reads the text in images."""

    name: str
    identity: str

    def read(self, image: ImageFile) -> tuple[Word, ...]:
        """Read an image. Returns the words in reading order, none if there is no text."""
        ...


# -- RapidOCR as an OCR reader: the PP-OCR models in its package, run by onnxruntime

PACKAGE = "rapidocr"
PARTS = ("det", "cls", "rec")
"""The models, as their files are named: detection of text, its direction, recognition."""

TALLEST, WIDEST = 8, 32
"""Ratios of sides from which an image is placed on a broader sheet. RapidOCR enlarges the short side of an
image to 736 pixels, and the long side with it.
"""

_INSTALL = "pip install 'sightline[ocr]'"


class RapidOcr:
    """Reads lines of printed words, mainly Latin and Chinese; small when pickled.

    The engine loads with the first image, once in each process.
    """

    name = PACKAGE

    def __init__(self, threads: int = 0) -> None:
        if threads < 0:
            raise UserError(f"{threads} is an invalid number of threads", expected="0 (all cores), or more")
        for package in (PACKAGE, "onnxruntime"):
            if find_spec(package) is None:
                raise UserError(f"reading images needs {package}", expected=_INSTALL)
        version, self._weights = _packaged()
        folder = Path(self._weights[0]).parent
        digest = digest_of_files(folder, [Path(Path(path).name) for path in self._weights])
        self.identity = f"{PACKAGE} {version} {digest} both-ways"
        self._threads = threads

    def read(self, image: ImageFile) -> tuple[Word, ...]:
        import numpy as np

        opened = read_image(image)
        # RapidOCR expects OpenCV's order of channels: blue, green, red.
        pixels = np.ascontiguousarray(np.asarray(_on_a_sheet(opened))[:, :, ::-1])
        engine = _engine(self._weights, self._threads)
        try:
            words = _words(engine(pixels), *opened.size)
        except Exception as error:  # whatever onnxruntime, OpenCV or RapidOCR itself raises
            _check(engine)
            raise BadImage(f"{image.path}: RapidOCR cannot read it ({_last_line(error)})") from None
        return tuple(word for line in lines_of(words) for word in line)


def _packaged() -> tuple[str, tuple[str, ...]]:
    """The version of the package, and the paths of its models in the order of PARTS.

    The package's own list of files decides: models that were downloaded later are not part of it.
    """
    try:
        package = distribution(PACKAGE)
    except PackageNotFoundError:
        raise UserError(f"{PACKAGE} was not installed by pip", expected=_INSTALL) from None
    models = [file for file in package.files or () if file.suffix == ".onnx"]
    paths = []
    for part in PARTS:
        found = [file for file in models if f"_{part}_" in file.name]
        if len(found) != 1:
            names = [file.name for file in models]
            raise UserError(
                f"{PACKAGE} {package.version} has no '{part}' model", found=names, expected=_INSTALL
            )
        paths.append(str(found[0].locate()))
    return package.version, tuple(paths)


@cache
def _engine(weights: tuple[str, ...], threads: int) -> Any:
    """RapidOCR with models given by path, so that it looks for no others; its warnings are silenced."""
    named = {f"{part.capitalize()}.model_path": path for part, path in zip(PARTS, weights, strict=True)}
    how = {"Global.log_level": "critical", "EngineConfig.onnxruntime.intra_op_num_threads": threads or -1}
    try:
        from rapidocr import RapidOCR

        engine: Any = RapidOCR(params={**named, **how})
    except Exception as error:  # an installation may be broken in any way
        raise UserError(f"{PACKAGE} cannot be loaded: {_last_line(error)}", expected=_INSTALL) from None
    engine.cls_and_rotate = partial(_turned_if_better, engine.cls_and_rotate, engine.recognize_txt)
    return engine


def _turned_if_better(turn: Any, recognize: Any, lines: list[Any]) -> tuple[list[Any], Any]:
    """RapidOCR's step between detection and recognition: lines that its classifier takes for upside down are
    read both ways, because it sees long upright lines too small to tell.
    """
    import numpy as np

    turned, directions = turn(lines)
    doubtful = [n for n, line in enumerate(lines) if not np.array_equal(line, turned[n])]
    if doubtful:
        scores = recognize([each[n] for n in doubtful for each in (lines, turned)]).scores
        for n, upright, upside_down in zip(doubtful, scores[::2], scores[1::2], strict=True):
            if upright >= upside_down:
                turned[n] = lines[n]
    return turned, directions


def _check(engine: Any) -> None:
    """Raise UserError if the engine cannot read a plain word: then the image is not at fault."""
    import numpy as np
    from PIL import Image, ImageDraw

    plain = Image.new("RGB", (320, 80), "white")
    ImageDraw.Draw(plain).text((40, 20), "PLAIN", fill="black", font_size=36)
    try:
        engine(np.asarray(plain))
    except Exception as error:  # as in `read`
        raise UserError(f"{PACKAGE} reads no image: {_last_line(error)}", expected=_INSTALL) from None


def _last_line(error: Exception) -> str:
    return (str(error).strip() or repr(error)).splitlines()[-1]


def _on_a_sheet(image: Image) -> Image:
    """The image itself, or a white sheet with it in the upper left corner if it is a narrow strip."""
    from PIL import Image

    width, height = image.size
    size = max(width, height // TALLEST), max(height, width // WIDEST)
    if size == image.size:
        return image
    sheet = Image.new("RGB", size, "white")
    sheet.paste(image)
    return sheet


def _words(output: Any, width: int, height: int) -> list[Word]:
    """The engine's results: for each line its corners within the image, and the upright box around them."""
    if output.txts is None:
        return []
    words = []
    for corners, text, score in zip(output.boxes, output.txts, output.scores, strict=True):
        xs = [min(max(float(x), 0.0), float(width)) for x, _ in corners]
        ys = [min(max(float(y), 0.0), float(height)) for _, y in corners]
        box = (min(xs), min(ys), max(xs), max(ys))
        words.append(Word(text, box, float(score), tuple(zip(xs, ys, strict=True))))
    return words


# -- Layout of OCR text: reading order, or every line and column at its position in the image

WIDEST_LINE = 240
"""Characters of the widest line, so that small type does not cause endless spaces."""

APART = 2
"""Gap in character widths from which two words of a line are separated by two spaces, like columns."""

TextLine = tuple[Word, ...]


def lines_of(words: Iterable[Word]) -> list[TextLine]:
    """Group words into lines.

    Two words of which one is above the other (more than half of the narrower one's width is below or above
    the other) are never in one line, and the higher one's line comes first. Other words are in one line
    if, from neighbour to neighbour, the heights of their middles differ by at most half of the mean of
    their own heights, so that a line may be slightly tilted. Blank words are left out.
    """
    texts = (replace(word, text=" ".join(word.text.split())) for word in words)
    ordered = sorted((word for word in texts if word.text), key=_height_and_place)
    below = [
        [n for n in range(m + 1, len(ordered)) if _in_one_column(upper, ordered[n])]
        for m, upper in enumerate(ordered)
    ]
    above = Counter(n for lower in below for n in lower)
    remaining = dict.fromkeys(range(len(ordered)))
    lines: list[TextLine] = []
    while remaining:
        # The highest remaining word has nothing above it; this must hold for the words of its line too.
        free = [n for n in remaining if not above[n]]
        line = [next(iter(remaining))]
        while followers := [n for n in free if _continues(ordered[line[-1]], ordered[n])]:
            line.append(min(followers, key=lambda n: ordered[n].box[0]))
        while leaders := [n for n in free if _continues(ordered[n], ordered[line[0]])]:
            line.insert(0, max(leaders, key=lambda n: ordered[n].box[0]))
        lines.append(tuple(ordered[n] for n in line))
        for n in line:
            del remaining[n]
            above.subtract(below[n])
    return lines


def plain_text(words: Iterable[Word]) -> str:
    """Format words in reading order, separated by spaces (Figure 17).

    >>> plain_text([Word("right", (60, 0, 90, 10), 1), Word("below", (0, 20, 30, 30), 1),
    ...             Word("left", (0, 1, 30, 11), 1)])
    'left right below'
    """
    return " ".join(word.text for line in lines_of(words) for word in line)


def layout_text(words: Iterable[Word]) -> str:
    """Format words at their positions in the image, one line of text for each line (Figures 18 and 19).

    Words that begin at the same x begin at the same character. A word that begins further left by a
    character's width begins at an earlier character. At least one space separates two words. The left
    margin is left out.

    >>> print(layout_text([Word("one", (0, 0, 30, 10), 1), Word("two", (60, 1, 90, 11), 1),
    ...                    Word("three", (60, 20, 110, 30), 1)]))
    one   two
          three
    """
    lines = lines_of(words)
    columns = _columns(lines)
    texts = []
    for line in lines:
        text = ""
        for word in line:
            text = text.ljust(columns[word.box[0]]) + word.text
        texts.append(text)
    return "\n".join(texts)


def _columns(lines: Sequence[TextLine]) -> dict[float, int]:
    """The character at which words begin, by their x.

    It grows with x, one character per character width. If the words further left in a line need more room
    than they have in the image, it and all that follow move to the right.
    """
    before: dict[float, list[tuple[Word, int]]] = {}
    unit = _character_width(lines)
    for line in lines:
        before.setdefault(line[0].box[0], [])
        for word, follower in pairwise(line):
            gap = 1 + (follower.box[0] - word.box[2] >= APART * unit)
            before.setdefault(follower.box[0], []).append((word, len(word.text) + gap))
    columns: dict[float, int] = {}
    margin = anchor = min(before, default=0.0)
    column = 0
    for x, neighbours in sorted(before.items()):
        room = max((columns[word.box[0]] + needed for word, needed in neighbours), default=0)
        # Less than a character apart: the same x within the precision of the boxes.
        if x - anchor >= unit or room > column:
            column = max(room, int((x - margin) / unit), column + 1)
            anchor = x
        columns[x] = column
    return columns


def _character_width(lines: Sequence[TextLine]) -> float:
    """Width of a character in pixels: the median over the words, larger if a line would be too long."""
    words = [word for line in lines for word in line]
    if not words:
        return 1.0
    usual = median((word.box[2] - word.box[0]) / len(word.text) for word in words)
    width = max(word.box[2] for word in words) - min(word.box[0] for word in words)
    return max(usual, width / WIDEST_LINE) or 1.0


def _continues(word: Word, follower: Word) -> bool:
    """Whether the second word is to the right of the first, at the same height."""
    heights = sum(each.box[3] - each.box[1] for each in (word, follower))
    return (
        word.box[0] < follower.box[0]
        and not _in_one_column(word, follower)
        and abs(_middle(word) - _middle(follower)) <= heights / 4
    )


def _in_one_column(one: Word, other: Word) -> bool:
    """Whether one word is above the other; boxes that touch or overlap a little are side by side."""
    shared = min(one.box[2], other.box[2]) - max(one.box[0], other.box[0])
    narrower = min(one.box[2] - one.box[0], other.box[2] - other.box[0])
    return one.box[0] == other.box[0] or shared > narrower / 2


def _middle(word: Word) -> float:
    return (word.box[1] + word.box[3]) / 2


def _height_and_place(word: Word) -> tuple[float, float]:
    return _middle(word), word.box[0]


# -- Text in place of images, for text-only models: OCR text, its layout, image descriptions

AUGMENTATIONS: tuple[Augmentation, ...] = get_args(Augmentation)


class ImageText(Struct, frozen=True):
    """The text that replaces an image: OCR text, and a caption ('' if there is none)."""

    text: str
    caption: str = ""


class Augmented(Struct, frozen=True):
    """The text of each image by its path, or why there is none, and the kind of augmentation."""

    how: Augmentation
    images: Mapping[str, ImageText | BadImage]

    def messages(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Replace all images in messages by text.

        Messages without images stay unchanged. The text of a turn next to its images is its instruction.
        """
        positions = [position for position, message in enumerate(messages) if _images(message.parts)]
        replaced = list(messages)
        for position in positions:
            words = self._turn(messages[position].parts)
            parts = load(__package__)[self.how]
            if position == positions[-1]:
                words = parts["call"] + words
            if position == positions[0]:
                opening: str = parts["opening"]
                words = (opening if len(positions) == 1 else opening.rstrip() + "\n") + words
            replaced[position] = Message(messages[position].role, (Text(words),))
        return tuple(replaced)

    def _turn(self, parts: Sequence[Part]) -> str:
        texts = [self._text_of(image) for image in _images(parts)]
        return fill(
            load(__package__)[self.how]["turn"],
            instruction="\n".join(part.text for part in parts if isinstance(part, Text)).strip(),
            text=_each([image_text.text for image_text in texts]),
            caption=_each([image_text.caption for image_text in texts]),
        )

    def _text_of(self, image: ImageRef) -> ImageText:
        text = self.images[image.path]
        if isinstance(text, BadImage):
            raise text
        return text


def text_of(words: Iterable[Word], how: Augmentation) -> str:
    return plain_text(words) if how == "ocr" else layout_text(words)


def _images(parts: Iterable[Part]) -> list[ImageRef]:
    return [part for part in parts if isinstance(part, ImageRef)]


def _each(texts: Sequence[str]) -> str:
    """One text unchanged; several under numbers, to which prompts refer (II-Bench: <Image 1>)."""
    if len(texts) == 1:
        return texts[0]
    # The word "Picture" is part of cached request keys.
    return "\n".join(f"Picture {number}:\n{text}" for number, text in enumerate(texts, 1))
