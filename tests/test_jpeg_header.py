"""The size of a JPEG file is Pillow's wherever it is read without Pillow."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pytest
from PIL import Image

from sightline.jpeg_header import jpeg_size

SIZE = (40, 30)


def _jpeg(mode: str = "RGB", **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, SIZE).save(buffer, "JPEG", **options)
    return buffer.getvalue()


def _exif() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif.tobytes()


def _of_a_phone() -> bytes:
    buffer, image = io.BytesIO(), Image.new("RGB", SIZE)
    image.save(buffer, "MPO", save_all=True, append_images=[image])
    return buffer.getvalue()


ORDINARY = [
    _jpeg(),
    _jpeg("L"),
    _jpeg(progressive=True),
    _jpeg(comment=b"a comment"),
    _jpeg(restart_marker_rows=1, optimize=True),
]
OTHERS = [_jpeg("CMYK"), _jpeg(exif=_exif()), _jpeg(icc_profile=b"0" * 200), _of_a_phone()]
"""They have an Adobe segment, Exif, a colour profile, and several images."""


def _size_by_pillow(content: bytes) -> tuple[int, int] | None:
    try:
        with Image.open(io.BytesIO(content)) as image:
            return image.size if image.format in ("JPEG", "MPO") else None
    except Exception:  # Pillow's readers raise any exception for a damaged file
        return None


@pytest.mark.parametrize("content", ORDINARY)
def test_an_ordinary_file_needs_no_pillow(content: bytes) -> None:
    assert jpeg_size(content) == SIZE


@pytest.mark.parametrize("content", [*OTHERS, b"", b"\x89PNG\r\n\x1a\n", ORDINARY[0][:100]])
def test_any_other_file_is_left_to_pillow(content: bytes) -> None:
    assert jpeg_size(content) is None


def _segments(content: bytes) -> list[bytes]:
    """The parts of a file: start, each segment, the first scan with all that follows."""
    parts, at = [content[:2]], 2
    while content[at + 1] != 0xDA:
        length = int.from_bytes(content[at + 2 : at + 4], "big")
        parts.append(content[at : at + 2 + length])
        at += 2 + length
    return [*parts, content[at:]]


def _shortened(segment: bytes, length: int) -> bytes:
    return segment[:2] + (length + 2).to_bytes(2, "big") + segment[4 : 4 + length]


def _changed_bytes(content: bytes) -> Iterator[bytes]:
    for place in range(len(content) - len(_segments(content)[-1]) + 20):
        before = content[place]
        for value in {0, 1, 0x10, 0x80, 0xFF, before ^ 1, (before + 1) % 256} - {before}:
            yield content[:place] + bytes([value]) + content[place + 1 :]


def _changed_segments(content: bytes) -> Iterator[bytes]:
    parts = _segments(content)
    inserted = [
        b"\xff\xc0\x00\x0b\x08\x00\x63\x00\x63\x01\x01\x11\x00",
        b"\xff\xc0\x00\x0e\x08\x00\x63\x00\x63\x02\x01\x11\x00\x02\x11\x00",
        b"\xff\xfe\x00\x00",
        b"\xff\xda\x00\x00",
        b"\x00",
        b"\xff",
    ]
    for place in range(1, len(parts)):
        before, part, after = b"".join(parts[:place]), parts[place], b"".join(parts[place + 1 :])
        yield before + after
        yield before + part + part + after
        for extra in inserted:
            yield before + extra + part + after
            yield before + extra + after
        for length in range(min(len(part) - 4, 140)):
            yield before + _shortened(part, length) + after
            yield before + part[: length + 1]


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize("change", [_changed_bytes, _changed_segments])
@pytest.mark.parametrize("content", ORDINARY + OTHERS)
def test_a_size_is_never_read_that_pillow_does_not_read(
    content: bytes, change: Callable[[bytes], Iterator[bytes]]
) -> None:
    read = 0
    for damaged in change(content):
        size = jpeg_size(damaged)
        assert size is None or size == _size_by_pillow(damaged)
        read += size is not None
    assert read or content in OTHERS
