"""Weights, checkpoints, archives and images: whatever they hold, they are read, or refused by their name.

Nothing in them is executed, nothing is written outside a folder, and nothing is decoded that is too large.
"""

from __future__ import annotations

import gzip
import io
import os
import pickle
import struct
import tarfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from PIL import Image
from tests.hostile.damage import CONTENTS, Damage, damaged
from tests.hostile.readers import unsafe

from sightline.cli.main import main
from sightline.data.archives import InvalidReleaseError, unpack
from sightline.data.pull import releases
from sightline.errors import EnvironmentFailedError, UserError
from sightline.images import (
    MEDIA_TYPES,
    BadImage,
    ImageLimits,
    data_url,
    decode,
    inspect_image,
    read_image,
    transform_for,
)
from sightline.types import ImageRef

EXAMPLES = int(os.environ.get("SIGHTLINE_EXAMPLES", "8"))
"""How many damaged contents of a file are tried; a trial by hand takes 1,000."""

needs_torch = pytest.mark.skipif(
    None in (find_spec("torch"), find_spec("transformers")), reason="needs the extra 'adapter'"
)


class Executed:
    """As a pickle, it makes a file `executed` where it is loaded."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (Path("executed"),)


def try_damages(valid: bytes, check: Callable[[bytes], object]) -> None:
    """Call a check with many contents of a file."""

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), deadline=None)
    @given(damaged(valid))
    def run(damage: Damage) -> None:
        check(damage.content)

    run()
    for content in (*CONTENTS[:16], pickle.dumps(Executed()), pickle.dumps([1])):
        check(content)
    assert not Path("executed").exists()


def read_or_refuse(read: Callable[[], object], refusal: type[Exception], name: str) -> None:
    """Read a file; if it is refused, the message names it."""
    message = None
    try:
        read()
    except refusal as error:
        message = str(error)
    assert message is None or name in message


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Weights


@needs_torch
@pytest.mark.parametrize("name", ["adapter.json", "adapter.safetensors"])
def test_a_damaged_adapter(capsys: pytest.CaptureFixture[str], name: str) -> None:
    import torch

    from sightline.adapter.architectures import Lora
    from sightline.adapter.saved_adapter import AdapterMetadata, read_weights, save_adapter

    weights = {"first": torch.nn.Parameter(torch.zeros(3, 8)), "second": torch.nn.Parameter(torch.ones(2))}
    save_adapter(Path("adapter"), AdapterMetadata(Lora(rank=2), "sha256:0", 1), weights)

    def check(content: bytes) -> None:
        (Path("adapter") / name).write_bytes(content)
        status = main(["adapter", "show", "adapter"])
        printed = capsys.readouterr().err
        assert status in (0, 2), printed
        assert not unsafe(printed)
        if status == 2:
            assert len(printed.splitlines()) == 1
            assert name in printed
        if name == "adapter.safetensors":
            read_or_refuse(lambda: read_weights(Path("adapter")), UserError, name)

    try_damages((Path("adapter") / name).read_bytes(), check)


@needs_torch
def test_a_damaged_checkpoint_of_a_training() -> None:
    import torch

    from sightline.adapter.saved_adapter import TrainingCheckpoint

    whole = TrainingCheckpoint(Path("out"), {"seed": 1})
    whole.begin()
    whole.write({"weights": {"a": torch.zeros(3)}, "optimizer": {}, "losses": [1.0], "done": 1})

    def check(content: bytes) -> None:
        Path("out/state.pt").write_bytes(content)
        read_or_refuse(TrainingCheckpoint(Path("out"), {"seed": 1}).read, UserError, "out")

    try_damages(Path("out/state.pt").read_bytes(), check)


@needs_torch
def test_damaged_weights_of_a_style() -> None:
    import torch

    from sightline.builders.style_network import read_weights, shapes

    torch.save({name: torch.zeros(shape) for name, shape in list(shapes().items())[:3]}, "style.pth")

    def check(content: bytes) -> None:
        for name in ("style.pth", "style.bin"):
            Path(name).write_bytes(content)
            with pytest.raises(UserError, match=name.replace(".", r"\.")):
                read_weights(Path(name))

    try_damages(Path("style.pth").read_bytes(), check)


# Archives


def _tar(*members: tuple[str | tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name) if isinstance(name, str) else name
            member.size = member.size or len(content)
            archive.addfile(member, io.BytesIO(content) if member.size == len(content) else None)
    return out.getvalue()


def _link(kind: bytes, target: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo("top/data/images/link.jpg")
    member.type, member.linkname = kind, target
    return member


def _large(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    return member


def _unpacked(content: bytes) -> str:
    """Why an archive is refused; '' if it is not. Nothing is outside the folder afterwards."""
    Path("place/data").mkdir(parents=True, exist_ok=True)
    Path("place/archive").write_bytes(content)
    try:
        unpack(Path("place/archive"), releases()["codis"], Path("place/data"))
        return ""
    except InvalidReleaseError as error:
        return str(error)
    finally:
        assert {path.name for path in Path().iterdir()} == {"place"}
        assert {path.name for path in Path("place").iterdir()} == {"data", "archive"}
        assert not any(path.is_symlink() for path in Path("place/data").rglob("*"))


RECORDS, IMAGE = ("top/data/data.json", b"[]"), ("top/data/images/a.jpg", b"image")


def test_a_damaged_archive() -> None:
    plain = _tar(RECORDS, IMAGE)
    assert _unpacked(gzip.compress(plain)) == ""
    try_damages(gzip.compress(plain), _unpacked)
    try_damages(plain, lambda content: _unpacked(gzip.compress(content)))


@pytest.mark.parametrize(
    "members",
    [
        [("top/data/images/../../../../escaped.jpg", b"x")],
        [("/data/images/../../escaped.jpg", b"x")],
        [(_link(tarfile.SYMTYPE, "/etc/passwd"), b"")],
        [(_link(tarfile.SYMTYPE, ".."), b""), ("top/data/images/link.jpg/escaped.jpg", b"x")],
        [(_link(tarfile.LNKTYPE, "../../escaped.jpg"), b"")],
        [(_link(tarfile.CHRTYPE, ""), b"")],
        [(_link(tarfile.FIFOTYPE, ""), b"")],
        [(_large("top/data/images/a.jpg", 1 << 40), b"x")],
        [(_large("top/other.bin", 1 << 60), b"x")],
        [("top/data/images/" + "a/" * 3000 + "b.jpg", b"x")],
        [("top/data/images/a.jpg", b"x"), ("top/data/images/a.jpg/b.jpg", b"x")],
        [("top/data/images/a\x00b.jpg", b"x")],
    ],
)
def test_a_hostile_archive_writes_nothing_outside_its_folder(members: list[Any]) -> None:
    with suppress(EnvironmentFailedError):  # such as a path that is too long for the file system
        _unpacked(gzip.compress(_tar(RECORDS, *members)))


def test_a_zip_is_no_archive_of_a_release() -> None:
    assert "broken" in _unpacked(b"PK\x03\x04" + bytes(100))


# Images


def _picture(form: str, **options: Any) -> bytes:
    out = io.BytesIO()
    Image.effect_mandelbrot((48, 32), (-2, -1, 1, 1), 9).convert("RGB").save(out, form, **options)
    return out.getvalue()


def _png_of(width: int, height: int, rows: bytes = b"") -> bytes:
    """A PNG that declares a size, and compressed rows of any length."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def _animated(form: str) -> bytes:
    frames = [Image.new("RGB", (16, 16), (shade, 0, 0)) for shade in range(0, 250, 10)]
    out = io.BytesIO()
    frames[0].save(out, form, save_all=True, append_images=frames[1:])
    return out.getvalue()


EXIF = b"Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x03\x01\x12\x00\x02\xff\xff\xff\xff\x00\x00\x00\x08"
FORMS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "JPEG2000")
IMAGES: dict[str, Callable[[], bytes]] = {
    **{form: lambda form=form: _picture(form) for form in FORMS},  # type: ignore[misc]
    "JPEG with damaged EXIF data": lambda: _picture("JPEG", exif=EXIF + b"\xff" * 40),
    "PNG with damaged EXIF data": lambda: _picture("PNG", exif=EXIF[6:] + b"\xff" * 40),
    "animated GIF": lambda: _animated("GIF"),
    "animated PNG": lambda: _animated("PNG"),
    "animated WEBP": lambda: _animated("WEBP"),
    "PNG without rows": lambda: _png_of(100, 100),
    "PNG with too many rows": lambda: _png_of(10, 10, bytes(50_000_000)),
}


def _use(path: str) -> None:
    """Do with an image all that a run does; BadImage names it."""

    def use() -> None:
        found = inspect_image(ImageRef(path, "."), {})
        decode(found)
        for limits in (ImageLimits(), ImageLimits(max_side=8), ImageLimits(("BMP",), 2000)):
            changed = replace(found, transform=transform_for(found, limits))
            data_url(changed)
            read_image(changed)

    read_or_refuse(use, BadImage, path)


@pytest.mark.parametrize("kind", IMAGES)
def test_a_damaged_image(kind: str) -> None:
    def check(content: bytes) -> None:
        for name in ("image.jpg", "image.png"):
            Path(name).write_bytes(content)
            _use(name)

    valid = IMAGES[kind]()
    check(valid)
    try_damages(valid, check)


@pytest.mark.parametrize(("width", "height"), [(60_000, 60_000), (2**31 - 1, 1), (1, 2**31 - 1), (0, 0)])
def test_an_image_that_declares_too_many_pixels_is_not_decoded(width: int, height: int) -> None:
    Path("bomb.png").write_bytes(_png_of(width, height))
    with pytest.raises(BadImage, match=r"bomb\.png"):
        inspect_image(ImageRef("bomb.png", "."), {})


def test_every_format_that_a_model_may_get_is_tried() -> None:
    others = {"AVIF", "HEIF"}  # as the installed libraries have them
    assert set(FORMS) | others == set(MEDIA_TYPES)


@given(st.binary(max_size=64))
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_any_bytes_are_no_image(content: bytes) -> None:
    Path("any.png").write_bytes(content)
    _use("any.png")
