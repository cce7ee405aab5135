"""RapidOCR itself, on drawn images: its words, where they stand, and that nothing is fetched."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import NoReturn

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from sightline.builders.read import images_at, read_all
from sightline.builders.sources import check_images
from sightline.errors import UserError
from sightline.images import BadImage, inspect_image
from sightline.models import ocr
from sightline.models.ocr import RapidOcr, Reader, layout_text, plain_text
from sightline.store.store import Store
from sightline.types import ImageFile, ImageRef

installed = pytest.mark.skipif(
    find_spec("rapidocr") is None or find_spec("onnxruntime") is None, reason="needs the extra ocr"
)

TABLE = [
    [("BREAKFAST", 40), ("LUNCH", 460)],
    [("Coffee 3.50", 40), ("Soup 6.00", 460)],
    [("Toast 4.20", 40), ("Salad 8.50", 460)],
]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError("something is fetched")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A menu in two columns, a word on a dark sign, and the menu on its side with EXIF to turn it upright."""
    folder = tmp_path_factory.mktemp("images")
    font = ImageFont.load_default(36)
    menu = Image.new("RGB", (840, 300), "white")
    for number, line in enumerate(TABLE):
        for text, x in line:
            ImageDraw.Draw(menu).text((x, 40 + 80 * number), text, fill="black", font=font)
    menu.save(folder / "menu.png")
    sign = Image.new("RGB", (400, 160), "navy")
    ImageDraw.Draw(sign).text((80, 40), "HOTEL", fill="white", font=ImageFont.load_default(64))
    sign.save(folder / "sign.jpg")
    exif = Image.Exif()
    exif[0x0112] = 6
    menu.rotate(90, expand=True).save(folder / "turned.png", exif=exif)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(str(tmp_path / "s.db"))
    yield opened
    opened.close()


def file_of(path: Path) -> ImageFile:
    return inspect_image(ImageRef(str(path)), {})


@installed
@pytest.mark.slow
def test_words_and_their_places_are_found(images: Path) -> None:
    reader: Reader = RapidOcr(threads=1)
    words = reader.read(file_of(images / "menu.png"))
    assert plain_text(words) == " ".join(text for line in TABLE for text, _ in line)
    for word in words:
        ((row, x),) = [(row, x) for row, line in enumerate(TABLE) for text, x in line if text == word.text]
        x0, y0, x1, y1 = word.box
        assert abs(x0 - x) < 20
        assert 0 <= x0 < x1 <= 840
        assert y0 < 60 + 80 * row < y1
        assert 0.5 < word.confidence <= 1
    lines = layout_text(words).split("\n")
    assert [line.split() for line in lines] == [" ".join(text for text, _ in line).split() for line in TABLE]
    assert len({line.index(right) for line, (_, (right, _)) in zip(lines, TABLE, strict=True)}) == 1


@installed
@pytest.mark.slow
def test_light_words_on_a_dark_sign_are_read_and_an_empty_image_is_empty(
    images: Path, tmp_path: Path
) -> None:
    reader = RapidOcr(threads=1)
    (word,) = reader.read(file_of(images / "sign.jpg"))
    assert word.text == "HOTEL"
    Image.new("RGB", (200, 100), "white").save(tmp_path / "empty.png")
    assert reader.read(file_of(tmp_path / "empty.png")) == ()


@installed
@pytest.mark.slow
def test_a_image_is_read_as_its_exif_turns_it(images: Path) -> None:
    reader = RapidOcr(threads=1)
    upright, turned = (reader.read(file_of(images / f"{name}.png")) for name in ("menu", "turned"))
    assert [word.text for word in turned] == [word.text for word in upright]
    assert all(
        abs(a - b) < 3
        for one, other in zip(upright, turned, strict=True)
        for a, b in zip(one.box, other.box, strict=True)
    )


def drawn_line(length: int) -> tuple[str, Image.Image]:
    words = [
        "the",
        "quick",
        "brown",
        "fox",
        "jumps",
        "over",
        "lazy",
        "dogs",
        "near",
        "stone",
        "bridges",
        "where",
    ]
    draw, line = Random(length), ""
    while len(line) < length:
        line += draw.choice(words) + " "
    font = ImageFont.load_default(22)
    page = Image.new("RGB", (int(font.getlength(line)) + 80, 100), "white")
    ImageDraw.Draw(page).text((40, 36), line, fill="black", font=font)
    return line, page


@installed
@pytest.mark.slow
@pytest.mark.parametrize(("lengths", "turned"), [(range(70, 124, 3), 0), (range(5, 30, 5), 180)])
def test_long_lines_are_not_turned_and_lines_that_are_upside_down_are(
    tmp_path: Path, lengths: range, turned: int
) -> None:
    reader = RapidOcr(threads=1)
    for length in lengths:
        line, page = drawn_line(length)
        page.rotate(turned).save(tmp_path / "line.png")
        read = plain_text(reader.read(file_of(tmp_path / "line.png")))
        assert read.replace(" ", "") == line.replace(" ", "")


@installed
@pytest.mark.slow
@pytest.mark.parametrize("size", [(1, 1), (3, 900), (900, 3)])
def test_strips_and_dots_are_read_without_ado(tmp_path: Path, size: tuple[int, int]) -> None:
    Image.new("RGB", size, "white").save(tmp_path / "strip.png")
    assert RapidOcr(threads=1).read(file_of(tmp_path / "strip.png")) == ()


@installed
@pytest.mark.slow
def test_two_processes_read_the_same_and_a_second_pass_reads_nothing(
    images: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    gallery = check_images(images_at([images]))
    reader = RapidOcr(threads=1)
    both = read_all(gallery, reader, store, processes=2)
    alone = Store.open(f"{store.name}.other")
    assert read_all(gallery, reader, alone) == both
    alone.close()
    monkeypatch.setattr(RapidOcr, "read", None)
    assert read_all(gallery, RapidOcr(threads=2), store) == both


@installed
def test_the_identity_is_of_engine_version_and_weights_and_costs_no_engine() -> None:
    reader = RapidOcr(threads=2)
    name, version, digest, _ = reader.identity.split()
    assert (name, len(digest)) == ("rapidocr", 64)
    assert version[0].isdigit()
    assert RapidOcr().identity == reader.identity
    again = pickle.loads(pickle.dumps(reader))
    assert again.identity == reader.identity
    assert len(pickle.dumps(reader)) < 2_000


@pytest.mark.slow
@installed
def test_an_engine_that_cannot_be_loaded_is_one_message(
    images: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    import rapidocr

    def broken(**_: object) -> NoReturn:
        raise RuntimeError("libonnxruntime.so\nundefined symbol: OrtGetApiBase")

    monkeypatch.setattr(rapidocr, "RapidOCR", broken)
    with pytest.raises(UserError, match=r"cannot be loaded: undefined symbol.*; expected pip install"):
        read_all(check_images(images_at([images])), RapidOcr(threads=61), store)


@installed
@pytest.mark.parametrize("whole", [False, True])
def test_an_engine_that_reads_nothing_is_one_message_and_a_image_that_it_cannot_read_one_of_its_own(
    images: Path, store: Store, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    class Found:
        txts = None

    def engine(pixels: NDArray[np.uint8]) -> Found:
        if whole or pixels.shape[:2] == (160, 400):
            raise RuntimeError("onnxruntime: no such operator")
        return Found()

    monkeypatch.setattr(ocr, "_engine", lambda *_: engine)
    gallery, reader = check_images(images_at([images])), RapidOcr()
    if whole:
        with pytest.raises(UserError, match="reads no image: onnxruntime: no such operator"):
            read_all(gallery, reader, store)
    else:
        read = read_all(gallery, reader, store)
        assert [name for name, words in read.items() if isinstance(words, BadImage)] == ["sign.jpg"]


def test_what_is_missing_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("rapidocr", "onnxruntime"):
        monkeypatch.setattr(ocr, "find_spec", lambda name, absent=package: name != absent or None)
        with pytest.raises(UserError, match=rf"needs {package}; expected pip install 'sightline\[ocr\]'"):
            RapidOcr()


def test_a_package_without_its_models_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Empty:
        version = "9.9"
        files = ()

    monkeypatch.setattr(ocr, "find_spec", lambda name: name)
    monkeypatch.setattr(ocr, "distribution", lambda name: Empty)
    with pytest.raises(UserError, match=r"rapidocr 9.9 has no 'det' model"):
        RapidOcr()

    def absent(name: str) -> NoReturn:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(ocr, "distribution", absent)
    with pytest.raises(UserError, match="was not installed by pip"):
        RapidOcr()


def test_threads_are_counted_from_none() -> None:
    with pytest.raises(UserError, match="-1 is an invalid number of threads"):
        RapidOcr(-1)
