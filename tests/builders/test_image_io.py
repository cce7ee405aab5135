"""Any image becomes an upright RGB one, or is refused with its reason."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sightline.builders.folder import Form, open_upright, save
from sightline.errors import EnvironmentFailedError
from sightline.images import BadImage

RED, WHITE = (255, 0, 0), (255, 255, 255)
Pixels = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]


def pixels(path: Path) -> Pixels:
    image = open_upright(path)
    assert image.mode == "RGB"
    return np.asarray(image)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, depth: int, colour: int, rows: bytes) -> bytes:
    """A PNG file put together by hand, after the standard."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def test_a_palette_gives_its_colours(tmp_path: Path) -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([*RED, 0, 0, 255])
    image.putdata([0, 1])
    image.save(tmp_path / "p.png")
    assert pixels(tmp_path / "p.png").tolist() == [[[255, 0, 0], [0, 0, 255]]]


def test_a_transparent_palette_entry_becomes_white(tmp_path: Path) -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([*RED, 0, 0, 255])
    image.putdata([0, 1])
    image.save(tmp_path / "p.png", transparency=1)
    assert pixels(tmp_path / "p.png").tolist() == [[[255, 0, 0], [255, 255, 255]]]


@pytest.mark.parametrize("form", ["png", "webp"])
def test_transparent_pixels_are_composed_on_white(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"a.{form}"
    image = Image.new("RGBA", (3, 1))
    image.putdata([(0, 0, 0, 0), (0, 0, 0, 255), (0, 0, 0, 51)])
    image.save(path, lossless=True)
    assert pixels(path).tolist() == [[[255] * 3, [0] * 3, [204] * 3]]


def test_grey_of_16_bits_keeps_its_brightness(tmp_path: Path) -> None:
    rows = b"\0" + struct.pack(">5H", 0, 257, 32896, 65278, 65535)
    (tmp_path / "g.png").write_bytes(png(5, 1, 16, 0, rows))
    assert pixels(tmp_path / "g.png")[0, :, 0].tolist() == [0, 1, 128, 254, 255]


def test_colour_of_16_bits_keeps_its_colours(tmp_path: Path) -> None:
    (tmp_path / "c.png").write_bytes(png(1, 1, 16, 2, b"\0" + struct.pack(">3H", 65535, 32896, 0)))
    assert pixels(tmp_path / "c.png").tolist() == [[[255, 128, 0]]]


def test_cmyk_becomes_the_printed_colours(tmp_path: Path) -> None:
    Image.new("CMYK", (16, 16), (0, 255, 255, 0)).save(tmp_path / "c.jpg", quality=100)
    assert np.abs(pixels(tmp_path / "c.jpg").astype(int) - RED).max() <= 3


@pytest.mark.parametrize("mode", ["1", "L", "LA"])
def test_grey_and_black_and_white_become_rgb(tmp_path: Path, mode: str) -> None:
    Image.new(mode, (4, 3), 0 if mode != "LA" else (0, 255)).save(tmp_path / "g.png")
    assert pixels(tmp_path / "g.png").shape == (3, 4, 3)
    assert (pixels(tmp_path / "g.png") == 0).all()


TURNED = {
    1: [[1, 2], [3, 4], [5, 6]],
    2: [[2, 1], [4, 3], [6, 5]],
    3: [[6, 5], [4, 3], [2, 1]],
    4: [[5, 6], [3, 4], [1, 2]],
    5: [[1, 3, 5], [2, 4, 6]],
    6: [[5, 3, 1], [6, 4, 2]],
    7: [[6, 4, 2], [5, 3, 1]],
    8: [[2, 4, 6], [1, 3, 5]],
}
"""What one sees of the pixels 1 2 / 3 4 / 5 6 under each orientation of EXIF 2.3, tag 0x0112."""


@pytest.mark.parametrize("orientation", TURNED)
def test_an_image_is_rotated_according_to_its_exif(tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = np.array(TURNED[1], dtype=np.uint8)
    Image.fromarray(stored).save(tmp_path / "t.png", exif=exif)
    assert pixels(tmp_path / "t.png")[..., 0].tolist() == TURNED[orientation]


@pytest.mark.filterwarnings("error")
def test_damaged_exif_is_ignored(tmp_path: Path) -> None:
    Image.new("RGB", (4, 3), RED).save(tmp_path / "e.jpg", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\x01\x12")
    assert pixels(tmp_path / "e.jpg").shape == (3, 4, 3)


def test_the_first_frame_of_an_animation_counts(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in (RED, WHITE)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert (pixels(tmp_path / "a.gif") == RED).all()


def test_an_image_of_one_pixel_is_accepted(tmp_path: Path) -> None:
    Image.new("RGB", (1, 1), RED).save(tmp_path / "one.png")
    assert pixels(tmp_path / "one.png").tolist() == [[[255, 0, 0]]]


def test_the_ending_of_a_name_does_not_matter(tmp_path: Path) -> None:
    Image.new("RGB", (2, 2), RED).save(tmp_path / "really.png")
    (tmp_path / "really.png").rename(tmp_path / "said.jpg")
    assert (pixels(tmp_path / "said.jpg") == RED).all()


def jpeg() -> bytes:
    out = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(out, "JPEG")
    return out.getvalue()


def floats() -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4)).save(out, "TIFF")
    return out.getvalue()


BAD = {
    "cut off": (jpeg()[:1500], "the file ends too early: image file is truncated"),
    "cut off in its header": (jpeg()[:20], "not an image in a known format"),
    "nothing": (b"", "the file is empty"),
    "text": (b"404: not found\n", "not an image in a known format"),
    "a page": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not an image in a known format"),
    "too large": (png(12_000, 12_000, 8, 2, b""), "12000 x 12000 pixels, more than"),
    "a bomb": (png(29_999, 29_999, 8, 2, b""), "more than 120,000,000 pixels"),
    "a larger bomb": (png(2**31 - 1, 2**31 - 1, 8, 2, b""), "more than 120,000,000 pixels"),
    "too wide": (png(30_001, 1, 8, 2, b""), "30001 x 1 pixels, more than 30,000 a side"),
    "floating-point": (floats(), "its pixels are floating-point numbers"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_image_is_refused_by_name_and_reason(tmp_path: Path, case: str) -> None:
    content, reason = BAD[case]
    path = tmp_path / "bad.jpg"
    path.write_bytes(content)
    with pytest.raises(BadImage) as caught:
        open_upright(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert reason in str(caught.value)


def test_a_missing_image_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadImage, match="no such image"):
        open_upright(tmp_path / "none.png")


def test_every_image_of_codis_can_be_read(shared: Path) -> None:
    for path in sorted((shared / "data" / "codis" / "images").iterdir())[:20]:
        assert max(open_upright(path).size) <= 768


@pytest.mark.parametrize("form", ["png", "jpeg"])
def test_the_same_pixels_give_the_same_bytes_whatever_their_metadata(tmp_path: Path, form: Form) -> None:
    exif = Image.Exif()
    exif[0x010E] = "a remark"
    image = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3))
    image.save(tmp_path / "plain.png")
    image.save(tmp_path / "rich.png", exif=exif, icc_profile=b"profile", dpi=(300, 300))
    for name in ("plain", "rich"):
        save(open_upright(tmp_path / f"{name}.png"), tmp_path / f"{name}.out", form)
    assert (tmp_path / "plain.out").read_bytes() == (tmp_path / "rich.out").read_bytes()


def test_png_is_lossless_and_jpeg_nearly(tmp_path: Path) -> None:
    smooth = np.add.outer(np.arange(64), np.arange(64)).astype(np.uint8)
    image = Image.fromarray(smooth).convert("RGB")
    save(image, tmp_path / "a.png", "png")
    save(image, tmp_path / "a.jpg", "jpeg")
    assert np.array_equal(pixels(tmp_path / "a.png"), np.asarray(image))
    assert np.abs(pixels(tmp_path / "a.jpg").astype(int) - np.asarray(image)).max() <= 4


def test_an_image_that_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailedError):
        save(Image.new("RGB", (1, 1)), tmp_path / "no" / "such.png", "png")
    assert list(tmp_path.iterdir()) == []
