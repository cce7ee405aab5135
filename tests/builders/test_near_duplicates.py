"""Images that look alike: as far apart as ImageHash says, and what is dropped is twice the same image."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from sightline.builders.folder import open_upright
from sightline.builders.near_duplicates import (
    BITS,
    DISTANCE,
    NearDuplicate,
    find_duplicates,
    hash_image,
    image_hashes,
)
from sightline.builders.sources import check_images
from sightline.cli.main import main
from sightline.images import BadImage
from sightline.store.store import Store
from sightline.types import ImageRef

imagehash = pytest.importorskip("imagehash", reason="curating needs the extra `build`")

TWICE = {"678": "646", "81": "202", "87": "199", "74": "206", "959": "280"}
"""Images of II-Bench that stand there twice, found by looking at all pairs that are near: the bytes differ,
by margins or scale."""
LIKE_OTHERS = ("1238", "1244", "212", "222", "1273", "1370", "1045", "405", "19", "24", "875", "1083", "655")
"""The nearest ones that are different images: words on grey, one artist's comics, screenshots."""
TOO_FAR = {"378": "993", "286": "958"}
"""Twice the same contents, set anew in another frame: farther apart than different images are."""


def photograph(seed: int, side: int = 200) -> Image.Image:
    """Soft blobs: something with large and small shapes."""
    small = np.random.default_rng(seed).integers(0, 256, (9, 9, 3), dtype=np.uint8)
    return Image.fromarray(small).resize((side, side * 3 // 4), Image.Resampling.BICUBIC)


def apart(one: bytes, two: bytes) -> int:
    """The distance of two images, counted bit by bit."""
    bits = np.unpackbits(np.frombuffer(one, np.uint8) ^ np.frombuffer(two, np.uint8)).reshape(2, BITS)
    return int(bits.sum(axis=1).min())


def test_the_distance_of_images_without_borders_is_that_of_imagehash() -> None:
    images = [photograph(seed) for seed in range(6)]
    images += [image.rotate(2).crop((9, 9, 190, 140)) for image in images]
    for n, one in enumerate(images):
        for other in images[:n]:
            found = find_duplicates({"one": hash_image(one), "other": hash_image(other)}, BITS)
            theirs = imagehash.phash(one, hash_size=16) - imagehash.phash(other, hash_size=16)
            assert found == {"other": NearDuplicate("one", theirs)}


@pytest.mark.parametrize("size", [(1, 1), (1, 900), (900, 1), (2, 2), (300, 2)])
def test_strips_and_dots_can_be_hashed(size: tuple[int, int]) -> None:
    image = Image.new("RGB", size, "white")
    image.putpixel((0, 0), (0, 0, 0))
    assert len(hash_image(image)) in (0, 64)


def test_without_imagehash_the_error_names_the_extra_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "raw").mkdir()
    photograph(1).save(tmp_path / "raw" / "a.png")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "imagehash", None)
    assert main(["build", "curate", "raw", "--out", "out"]) == 2
    told = capsys.readouterr().err
    assert "ImageHash is not installed" in told
    assert "pip install 'sightline[build]'" in told
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_the_duplicates_of_iibench_are_found_and_no_other_image_is_dropped(shared: Path) -> None:
    folder = shared / "data" / "iibench" / "images" / "test"
    names = [*TWICE, *TWICE.values(), *LIKE_OTHERS, *TOO_FAR, *TOO_FAR.values()]
    some = [path.stem.removeprefix("test-") for path in sorted(folder.glob("*.jpg"))[::60]]
    hashed = {
        name: hash_image(open_upright(folder / f"test-{name}.jpg")) for name in dict.fromkeys(names + some)
    }
    first = {name: hashed[name] for name in [*TWICE.values(), *hashed]}
    found = find_duplicates(first)
    assert {name: copy.of for name, copy in found.items()} == TWICE
    assert max(copy.distance for copy in found.values()) <= 46
    wider = find_duplicates(first, 52)
    assert wider.keys() - found.keys() == {"1244", "993"}


@pytest.mark.parametrize("quality", [20, 50])
@pytest.mark.parametrize("scale", [0.4, 1.7])
def test_an_image_saved_in_another_size_is_a_near_duplicate(quality: int, scale: float) -> None:
    image = photograph(1, 400)
    again = io.BytesIO()
    image.resize((round(image.width * scale), round(image.height * scale))).save(
        again, "JPEG", quality=quality
    )
    assert apart(hash_image(image), hash_image(Image.open(again).convert("RGB"))) <= DISTANCE


def test_margins_of_one_colour_do_not_count() -> None:
    image = photograph(2)
    framed = ImageOps.expand(image, (30, 5, 12, 60), "white")
    assert apart(hash_image(image), hash_image(framed)) <= 20
    cut = np.frombuffer(hash_image(image)[:32], np.uint8) ^ np.frombuffer(hash_image(framed)[:32], np.uint8)
    assert np.unpackbits(cut).sum() > DISTANCE


def test_different_images_and_mirrored_ones_are_far_apart() -> None:
    hashed = [hash_image(photograph(seed)) for seed in range(12)]
    hashed.append(hash_image(ImageOps.mirror(photograph(0))))
    assert min(apart(one, two) for n, one in enumerate(hashed) for two in hashed[:n]) > DISTANCE


def test_a_blank_image_is_a_near_duplicate_of_no_image() -> None:
    blank = [hash_image(Image.new("RGB", (40, 30), colour)) for colour in ("white", "black", "red")]
    assert blank == [b"", b"", b""]
    assert find_duplicates({"white": b"", "black": b"", "some": hash_image(photograph(3))}, BITS // 2) == {}


def bits_of(number: int) -> bytes:
    """Hashes of which the first `number` bits are set, in both halves."""
    one = np.zeros(BITS, np.uint8)
    one[:number] = 1
    return np.packbits(np.concatenate([one, one])).tobytes()


def test_a_chain_of_images_drops_only_near_duplicates_of_kept_images() -> None:
    # b is within 48 of a and of c, which are 80 apart: b goes, c stays.
    chain = {"a": bits_of(0), "b": bits_of(40), "c": bits_of(80)}
    assert find_duplicates(chain) == {"b": NearDuplicate("a", 40)}
    assert find_duplicates({"b": chain["b"], "a": chain["a"], "c": chain["c"]}) == {
        "a": NearDuplicate("b", 40),
        "c": NearDuplicate("b", 40),
    }


@given(st.lists(st.integers(0, 255), min_size=1, max_size=40), st.integers(0, 127))
def test_every_copy_is_near_one_that_is_kept_and_no_two_kept_ones_are_near(
    numbers: list[int], distance: int
) -> None:
    hashed = {str(place): bits_of(number) for place, number in enumerate(numbers)}
    found = find_duplicates(hashed, distance)
    kept = [name for name in hashed if name not in found]
    for name, copy in found.items():
        nearest = min(apart(hashed[name], hashed[other]) for other in kept if int(other) < int(name))
        assert copy.of in kept
        assert apart(hashed[name], hashed[copy.of]) == copy.distance == nearest <= distance
    assert all(apart(hashed[a], hashed[b]) > distance for n, a in enumerate(kept) for b in kept[:n])


def test_hashes_are_computed_once_and_unusable_images_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "twin"):
        photograph(1).save(tmp_path / f"{name}.png")
    photograph(2).save(tmp_path / "whole.png")
    photograph(3).save(tmp_path / "changing.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "whole.png").read_bytes()[:3000])
    gallery = check_images({path.name: ImageRef(str(path)) for path in sorted(tmp_path.glob("*.png"))})
    # The hash of other content must not be cached under the digest that the image had.
    photograph(4, side=100).save(tmp_path / "changing.png")
    store = Store.open(str(tmp_path / "s.db"))
    found = gallery.named(image_hashes(gallery.files.values(), store))
    assert "cut.png" not in found  # refused when it was inspected
    assert isinstance(found["changing.png"], BadImage)
    assert found["a.png"] == found["twin.png"] == hash_image(photograph(1))
    monkeypatch.setattr("sightline.builders.near_duplicates.hash_image", lambda _: b"computed anew")
    assert gallery.named(image_hashes(gallery.files.values(), store))["a.png"] == found["a.png"]
    store.close()
