"""RapidOCR as an OCR reader: the PP-OCR models in its package, run by onnxruntime.

The paper of ConTextual used PaddleOCR's PP-OCRv4 (section 3.1). The models here depend on the version of
the package (PP-OCRv6, small, in 3.10), which is part of the reader's identity. Nothing is downloaded.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.errors import UserError
from sightline.images import BadImage, read_image
from sightline.models.layout import lines_of
from sightline.models.model_files import digest_of_files
from sightline.models.ocr import Word
from sightline.types import ImageFile

if TYPE_CHECKING:
    from PIL.Image import Image

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
        self.identity = f"{PACKAGE} {version} {digest}"
        self._threads = threads

    def read(self, image: ImageFile) -> tuple[Word, ...]:
        """Read an image.

        Returns:
            The lines of words in reading order, none if there is no text.
        """
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

        return RapidOCR(params={**named, **how})
    except Exception as error:  # an installation may be broken in any way
        raise UserError(f"{PACKAGE} cannot be loaded: {_last_line(error)}", expected=_INSTALL) from None


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
