"""Readings: each image is read once by each reader, whatever becomes of the process or the other ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from PIL import Image
from sqlalchemy import create_engine, text

from sightline.images import BadImage, ImageLimits, inspect_image, read_image, transform_for
from sightline.models.ocr import Reader, Word
from sightline.store.store import Store, read_images
from sightline.types import ImageFile, ImageRef

STOP = Word("STOP", (1.5, 2, 30, 12.25), 0.75)


class Signs:
    """Reads STOP in every wide image, nothing in a tall one, and cannot read a square one."""

    name = "signs"

    def __init__(self, identity: str = "signs 1") -> None:
        self.identity = identity
        self.read_so_far: list[str] = []

    def read(self, image: ImageFile) -> tuple[Word, ...]:
        if image.width == image.height:
            raise BadImage(f"{image.path}: it is square")
        self.read_so_far.append(Path(image.path).name)
        return (STOP,) if image.width > image.height else ()


@pytest.fixture
def images(tmp_path: Path) -> list[ImageFile]:
    """Wide, tall, square, and the wide one under another name."""
    for name, size in {"wide": (9, 4), "tall": (4, 9), "square": (5, 5), "twin": (9, 4)}.items():
        Image.new("RGB", size, "red").save(tmp_path / f"{name}.png")
    names = ("wide", "tall", "square", "twin")
    return [inspect_image(ImageRef(str(tmp_path / f"{name}.png")), {}) for name in names]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(str(tmp_path / "s.db"))
    yield opened
    opened.close()


def test_each_image_is_read_once_and_found_again_as_it_was(
    tmp_path: Path, images: list[ImageFile], store: Store
) -> None:
    reader: Reader = (signs := Signs())
    wide, tall, square, _ = images
    for _ in range(2):
        found = dict(read_images(images, reader, store))
        assert (found[wide.digest, ""], found[tall.digest, ""]) == ((STOP,), ())
        assert str(found[square.digest, ""]).endswith("it is square")
        assert len(found) == 3
    assert sorted(signs.read_so_far) == ["tall.png", "twin.png"]
    other = Store.open(str(tmp_path / "s.db"))
    assert dict(read_images([wide], Signs(), other))[wide.digest, ""] == (STOP,)
    other.close()


def test_an_image_whose_row_is_damaged_is_read_again_once(images: list[ImageFile], store: Store) -> None:
    signs = Signs()
    dict(read_images(images[:1], signs, store))
    with store.database.write() as connection:
        connection.core.exec_driver_sql("UPDATE readings SET body = x'00ff'")
    for _ in range(2):
        assert dict(read_images(images[:1], signs, store)) == {(images[0].digest, ""): (STOP,)}
    assert signs.read_so_far == ["wide.png", "wide.png"]


def test_another_reader_reads_anew(images: list[ImageFile], store: Store) -> None:
    for identity in ("signs 1", "signs 2"):
        signs = Signs(identity)
        dict(read_images(images[:2], signs, store))
        assert signs.read_so_far == ["wide.png", "tall.png"]


def test_a_image_is_read_as_it_is_shown(images: list[ImageFile], store: Store) -> None:
    class Measures(Signs):
        def read(self, image: ImageFile) -> tuple[Word, ...]:
            return (Word("all", (0, 0, *read_image(image).size), 1),)

    wide = images[0]
    small = replace(wide, transform=transform_for(wide, ImageLimits(max_side=5)))
    for _ in range(2):
        found = dict(read_images([small, wide], Measures(), store))
        boxes = [word.box for words in found.values() if isinstance(words, tuple) for word in words]
        assert [right for _, _, right, _ in boxes] == [5, 9]
        assert dict(read_images([wide], Measures(), store)) == {(wide.digest, ""): found[wide.digest, ""]}


def test_what_was_read_before_an_interruption_is_kept(images: list[ImageFile], store: Store) -> None:
    class Interrupted(Signs):
        def read(self, image: ImageFile) -> tuple[Word, ...]:
            if self.read_so_far:
                raise KeyboardInterrupt
            return super().read(image)

    with pytest.raises(KeyboardInterrupt):
        dict(read_images(images[:2], Interrupted(), store))
    signs = Signs()
    dict(read_images(images[:2], signs, store))
    assert signs.read_so_far == ["tall.png"]


def test_readings_may_be_dropped_and_come_back(tmp_path: Path, images: list[ImageFile], store: Store) -> None:
    dict(read_images(images, Signs(), store))
    store.close()
    engine = create_engine(f"sqlite:///{tmp_path / 's.db'}")
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE readings"))
    engine.dispose()
    again = Store.open(str(tmp_path / "s.db"))
    signs = Signs()
    found = dict(read_images(images[:1], signs, again))
    assert (found[images[0].digest, ""], signs.read_so_far) == ((STOP,), ["wide.png"])
    assert again.caches.readings.look_up([]) == {}
    again.close()
