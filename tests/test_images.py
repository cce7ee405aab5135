"""Images are inspected before use, sent unchanged, and re-encoded only if a model requires it."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import random
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from PIL import Image

from sightline.images import (
    MAX_BYTES,
    BadImage,
    ImageLimits,
    find_image,
    inspect_found,
    inspect_image,
    own_transform,
    read_bytes,
    read_image,
    sent_size,
    transform_for,
)
from sightline.types import ImageFile, ImageRef


def _noise(size: tuple[int, int]) -> Image.Image:
    return Image.frombytes("RGB", size, random.Random(1).randbytes(3 * size[0] * size[1]))


def _encoded(kind: str) -> bytes:
    buffer = io.BytesIO()
    _noise((9, 9)).save(buffer, kind)
    return buffer.getvalue()


def _save(path: Path, size: tuple[int, int] = (40, 30), mode: str = "RGB", **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    _noise(size).convert(mode).save(path, **options)  # type: ignore[arg-type]
    return path


def _look(path: Path | str, root: Path | str = "") -> ImageFile:
    return inspect_image(ImageRef(str(path), str(root)), {})


def _png_header(width: int, height: int) -> bytes:
    """A PNG that says its size and holds nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.jpg", "JPEG"),
        ("a.png", "PNG"),
        ("a.webp", "WEBP"),
        ("a.gif", "GIF"),
        ("a.bmp", "BMP"),
        ("a.tif", "TIFF"),
    ],
)
def test_an_image_is_identified_by_its_content(tmp_path: Path, name: str, kind: str) -> None:
    path = _save(tmp_path / name).rename(tmp_path / "image.xyz")
    file = _look(path, tmp_path)
    assert (file.format, file.width, file.height) == (kind, 40, 30)
    assert file.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert file.stamp == (path.stat().st_size, path.stat().st_mtime_ns)


def test_the_mpo_of_a_phone_is_a_jpeg(tmp_path: Path) -> None:
    image, path = _noise((40, 30)), tmp_path / "a.jpg"
    image.save(path, "MPO", save_all=True, append_images=[image])
    with Image.open(path) as opened:
        assert opened.format == "MPO"
    file = _look(path)
    assert transform_for(file, ImageLimits()) == ""
    assert read_bytes(file) == ("image/jpeg", path.read_bytes())


def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    path = _save(tmp_path / "a.jpg")
    seen = replace(_look(path), digest="as it was seen before")
    assert inspect_image(ImageRef(str(path)), {str(path): seen}) is seen
    _save(path, (50, 50))
    assert inspect_image(ImageRef(str(path)), {str(path): seen}).width == 50


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.jpg", None, "no such image"),
        ("null\0byte.jpg", None, "no such image"),
        ("x" * 300 + ".jpg", None, "no such image"),
        ("empty.jpg", b"", "the file is empty"),
        ("text.jpg", b"these are words", "not an image in a known format"),
        ("page.jpg", b"%PDF-1.4\n%%EOF", "not an image in a known format"),
        ("wide.png", _png_header(60_000, 10), r"60000 x 10 pixels, more than 30,000 a side"),
        ("many.png", _png_header(12_000, 12_000), r"12000 x 12000 pixels, more than .* 120,000,000 in all"),
        ("bomb.png", _png_header(29_000, 29_000), "more than 120,000,000 pixels"),
    ],
)
def test_an_unusable_image_is_refused_with_its_name_and_the_reason(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BadImage, match=message) as error:
        _look(tmp_path / name, tmp_path)
    assert name in str(error.value)


def test_a_folder_a_pipe_and_a_huge_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.jpg").mkdir()
    os.mkfifo(tmp_path / "pipe.jpg")
    with (tmp_path / "huge.jpg").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    for name in ("folder.jpg", "pipe.jpg", "huge.jpg"):
        with pytest.raises(BadImage, match=name):
            _look(tmp_path / name)


def test_an_image_outside_its_folder_is_refused(tmp_path: Path) -> None:
    data, outside = tmp_path / "data", _save(tmp_path / "outside.jpg")
    inside = _save(data / "images" / "a.jpg")
    (data / "link.jpg").symlink_to(outside)
    (data / "folder").symlink_to(tmp_path)
    (data / "within.jpg").symlink_to(inside)
    (tmp_path / "data-too").mkdir()
    near = _save(tmp_path / "data-too" / "a.jpg")
    for path in (
        data / ".." / "outside.jpg",
        data / "images" / ".." / ".." / "outside.jpg",
        data / "link.jpg",
        data / "folder" / "outside.jpg",
        outside,
        near,
        data,
        data / "images" / "..",
    ):
        with pytest.raises(BadImage, match="is outside the data folder"):
            _look(path, data)
    for path in (inside, data / "within.jpg", data / "images" / ".." / "images" / "a.jpg"):
        assert _look(path, data).width == 40


def test_the_folder_may_itself_be_a_link_or_relative_or_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _save(tmp_path / "real" / "images" / "a.jpg")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert _look(tmp_path / "link" / "images" / "a.jpg", tmp_path / "link").width == 40
    assert _look(path, "/").width == 40
    for name, width in (("one", 41), ("two", 42)):
        _save(tmp_path / name / "images" / "a.jpg", (width, 30))
        monkeypatch.chdir(tmp_path / name)
        assert _look("images/a.jpg", ".").width == width
        assert _look("images/a.jpg", "images").width == width


WHOLE = [_encoded(kind) for kind in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@given(
    st.sampled_from(WHOLE),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=4),
    st.integers(1),
)
def test_a_damaged_image_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, damage: list[tuple[int, int]], length: int
) -> None:
    content = bytearray(whole)
    for place, value in damage:
        content[place % len(content)] = value
    path = tmp_path_factory.mktemp("damaged") / "a"
    path.write_bytes(content[:length])
    with contextlib.suppress(BadImage):
        read_bytes(replace(_look(path), transform="jpeg-q95-side9"))


# What is sent


def test_an_accepted_image_is_sent_unchanged(tmp_path: Path) -> None:
    for name, media in (("a.jpg", "image/jpeg"), ("a.png", "image/png"), ("a.webp", "image/webp")):
        file = _look(_save(tmp_path / name))
        assert transform_for(file, ImageLimits()) == ""
        assert read_bytes(file) == (media, (tmp_path / name).read_bytes())


def _shown(path: Path, **limits: int) -> tuple[Image.Image, bytes]:
    file = _look(path)
    transform = transform_for(file, ImageLimits(**limits))  # type: ignore[arg-type]
    assert transform
    assert sent_size(replace(file, transform=transform)) in (
        None,
        read_image(replace(file, transform=transform)).size,
    )
    media, data = read_bytes(replace(file, transform=transform))
    assert media == "image/jpeg"
    return Image.open(io.BytesIO(data)), data


@pytest.mark.parametrize(
    ("name", "mode"),
    [("a.bmp", "RGB"), ("a.bmp", "1"), ("a.tif", "CMYK"), ("a.tif", "L"), ("a.tif", "RGBA")],
)
def test_other_formats_become_a_png_of_the_same_size(tmp_path: Path, name: str, mode: str) -> None:
    file = _look(_save(tmp_path / name, mode=mode))
    media, data = read_bytes(file)
    image = Image.open(io.BytesIO(data))
    assert (media, image.format, image.mode, image.size) == ("image/png", "PNG", "RGB", (40, 30))
    assert np.array_equal(np.asarray(image), np.asarray(read_image(file)))


def test_a_large_image_is_converted_to_a_jpeg_whose_pixels_all_models_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _look(_save(tmp_path / "a.bmp", (2100, 2000)))
    assert transform_for(file, ImageLimits()) == file.transform == "rgb-jpeg"
    media, data = read_bytes(file)
    assert media == "image/jpeg"
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), np.asarray(read_image(file)))
    monkeypatch.setattr("sightline.images.CONVERTED_BYTES", len(data) // 2)
    smaller = read_bytes(file)[1]
    assert len(smaller) <= len(data) // 2
    assert Image.open(io.BytesIO(smaller)).size == (2100, 2000)


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 1500))
def test_the_size_that_is_sent_is_known_before_the_image_is_read(width: int, height: int, side: int) -> None:
    file = ImageFile("a.png", "0" * 64, "PNG", width, height, (1, 1))
    sent = replace(file, transform=transform_for(file, ImageLimits(max_side=side)))
    image = Image.new("1", (width, height))
    image.thumbnail((side, side))
    assert sent_size(sent) == image.size
    assert sent_size(replace(file, transform="jpeg-q95-side9-bytes100")) is None


@pytest.mark.parametrize("ending", ["jpg", "png", "webp"])
def test_an_opaque_upright_image_is_inspected_without_being_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    path = _save(tmp_path / f"a.{ending}", exif=b"Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0")
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda *_: pytest.fail("decoded"))
    assert _look(path).transform == ""


def test_a_converted_image_that_is_also_reduced_is_reduced_from_the_same_pixels(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    path = _save(tmp_path / "a.png", (60, 40), exif=exif)
    file = _look(path)
    assert (file.width, file.height, file.transform) == (40, 60, "rgb-png")
    limits = ImageLimits(max_side=30)
    reduced = replace(file, transform=transform_for(file, limits))
    assert reduced.transform == "rgb-jpeg-q95-side30"
    assert transform_for(reduced, ImageLimits()) == own_transform(reduced) == "rgb-png"
    assert read_image(reduced).size == sent_size(reduced) == (20, 30)


def test_the_orientation_of_a_png_counts_wherever_its_chunk_is(tmp_path: Path) -> None:
    """After the pixels too, where the standard allows it (PNG third edition, 11.3.4.5)."""
    path = _save(tmp_path / "a.png", (40, 20))
    turned = Image.Exif()
    turned[0x0112] = 8
    body = b"eXIf" + turned.tobytes().removeprefix(b"Exif\0\0")
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    whole = path.read_bytes()
    path.write_bytes(whole[:-12] + chunk + whole[-12:])
    file = _look(path)
    assert (file.width, file.height, file.transform) == (20, 40, "rgb-png")
    assert read_image(file).size == (20, 40)


@pytest.mark.parametrize(("depth", "row"), [(1, 0x40), (2, 0x1B), (4, 0x12), (8, 0), (16, 0)])
def test_the_transparent_grey_of_a_png_is_white_at_any_depth(tmp_path: Path, depth: int, row: int) -> None:
    """The key is a sample of the image's own depth (PNG, 11.3.2.1)."""
    rows = {8: b"\0\0\1", 16: b"\0\0\0\2\1"}.get(depth, bytes([0, row]))
    key = {1: 1, 2: 1, 4: 2, 8: 1, 16: 513}[depth]
    width = 2

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, 1, depth, 0, 0, 0, 0)
    parts = [
        (b"IHDR", header),
        (b"tRNS", struct.pack(">H", key)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts))
    first, second = np.asarray(read_image(_look(tmp_path / "a.png")))[0, :, 0].tolist()
    assert first < 255
    assert second == 255


def test_an_image_that_is_too_large_is_reduced(tmp_path: Path) -> None:
    path = _save(tmp_path / "a.png", (400, 300))
    assert _shown(path, max_side=100)[0].size == (100, 75)
    image, data = _shown(path, max_bytes=20_000)
    assert len(data) <= 20_000
    assert image.width / image.height == pytest.approx(4 / 3, abs=0.05)
    assert len(data) > 10_000


def test_the_transform_is_part_of_the_file(tmp_path: Path) -> None:
    file = _look(_save(tmp_path / "a.png", (400, 300)))
    every = [ImageLimits(), ImageLimits(max_side=100), ImageLimits(max_side=200)]
    every += [
        ImageLimits(max_bytes=9_000),
        ImageLimits(max_bytes=8_000),
        ImageLimits(formats=("JPEG",)),
    ]
    assert len({transform_for(file, limits) for limits in every}) == len(every)


def test_transparency_becomes_white_and_rotation_is_applied(tmp_path: Path) -> None:
    Image.new("RGBA", (8, 8), (255, 0, 0, 0)).save(tmp_path / "clear.png")
    image, _ = _shown(tmp_path / "clear.png", max_side=4)
    assert min(image.getpixel((2, 2))) > 250  # type: ignore[arg-type]
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (40, 20)).save(tmp_path / "turned.jpg", exif=exif)
    assert _shown(tmp_path / "turned.jpg", max_side=30)[0].size == (15, 30)


def test_a_file_that_changes_after_its_inspection_is_not_sent(tmp_path: Path) -> None:
    path = _save(tmp_path / "a.jpg")
    file = _look(path)
    _save(path, (50, 50))
    with pytest.raises(BadImage, match="changed during"):
        read_bytes(file)
    path.unlink()
    with pytest.raises(BadImage, match="No such file"):
        read_bytes(file)


def test_a_file_that_changes_between_its_look_and_its_inspection_is_refused(tmp_path: Path) -> None:
    path = _save(tmp_path / "a.jpg")
    found = find_image(ImageRef(str(path)))
    with path.open("ab") as handle:
        handle.write(b"more")
    with pytest.raises(BadImage, match="changed during"):
        inspect_found(found, {})


def test_an_image_is_read_whole_however_little_the_system_gives_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, read = _save(tmp_path / "a.jpg"), os.read
    monkeypatch.setattr(os, "read", lambda handle, size: read(handle, min(size, 100)))
    file = _look(path)
    assert read_bytes(file)[1] == path.read_bytes()
    assert file.digest == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("kind", ["JPEG", "progressive", "PNG", "WEBP", "GIF"])
def test_a_truncated_image_is_refused_before_it_is_sent(tmp_path: Path, kind: str) -> None:
    options = {"progressive": True} if kind == "progressive" else {}
    form = "JPEG" if kind == "progressive" else kind
    file = io.BytesIO()
    exif = Image.Exif()
    exif[0x010E] = "\xff\xd9"  # an end marker within the EXIF data
    noise = Image.effect_noise((90, 70), 50).convert("RGB")
    noise.save(file, form, **options, **({"exif": exif} if form == "JPEG" else {}))
    whole, path = file.getvalue(), tmp_path / "a"
    path.write_bytes(whole + b"\0" * 3)
    assert _look(path).width == 90
    for part in (0.5, 0.8, 0.95):
        path.write_bytes(whole[: int(len(whole) * part)])
        with pytest.raises(BadImage, match=r"ends too early|not an image"):
            _look(path)


def test_a_truncated_image_is_refused_when_it_is_decoded(tmp_path: Path) -> None:
    path = _save(tmp_path / "a.bmp", (100, 100))
    path.write_bytes(path.read_bytes()[:500])
    file = _look(path)
    with pytest.raises(BadImage, match="cannot be decoded"):
        read_image(file)
    with pytest.raises(BadImage, match="cannot be decoded"):
        read_bytes(replace(file, transform=transform_for(file, ImageLimits())))


@pytest.mark.parametrize(("form", "ending"), [("AVIF", "avif"), ("JPEG2000", "jp2"), ("HEIF", "heic")])
def test_every_format_of_phones_and_archives_reaches_a_model_as_one_that_it_accepts(
    tmp_path: Path, form: str, ending: str
) -> None:
    if form == "HEIF":
        pytest.importorskip("pillow_heif").register_heif_opener()
    path = tmp_path / f"a.{ending}"
    Image.effect_noise((40, 30), 50).convert("RGB").save(path, form)
    file = inspect_image(ImageRef(str(path)), {})
    assert (file.format, file.width, file.height) == (form, 40, 30)
    sent = replace(file, transform=transform_for(file, ImageLimits()))
    media, data = read_bytes(sent)
    assert media == "image/png"
    assert Image.open(io.BytesIO(data)).size == read_image(sent).size == (40, 30)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x00\x00\x00\x18ftypheic\x00\x00", r"is a HEIC image; expected pip install 'sightline\[heif\]'"),
        (b"\xff\x0a\x00", "JPEG XL; expected a JPEG or PNG"),
        (b"%PDF-1.4", "PDF; expected a JPEG or PNG"),
    ],
)
def test_a_format_that_cannot_be_read_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, message: str
) -> None:
    monkeypatch.setattr("sightline.images.find_spec", lambda name: None)
    path = tmp_path / "a.jpg"
    path.write_bytes(content)
    with pytest.raises(BadImage, match=message):
        inspect_image(ImageRef(str(path)), {})
