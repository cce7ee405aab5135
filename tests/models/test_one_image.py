"""Endpoints, local models, OCR and the viewer see the same pixels of an image, whatever its file is."""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from PIL import Image

import sightline
from sightline.evaluation.run_images import RunImages
from sightline.images import inspect_image, read_image
from sightline.models import ocr
from sightline.store.store import Store
from sightline.types import ImageRef

Pixels = Any
SCENE = np.zeros((24, 40, 3), np.uint8)
"""A picture without symmetry: a red corner, a blue edge, a ramp of grey."""
SCENE[:10, :12] = (250, 10, 20)
SCENE[:, 36:] = (15, 20, 240)
SCENE[14:, :36] = np.linspace(0, 255, 36).astype(np.uint8)[None, :, None]
GREY = np.asarray(Image.fromarray(SCENE).convert("L"))

TURNS = {
    2: np.fliplr,
    3: lambda pixels: np.rot90(pixels, 2),
    4: np.flipud,
    5: lambda pixels: pixels.transpose(1, 0, 2),
    6: lambda pixels: np.rot90(pixels, 1),
    7: lambda pixels: np.rot90(pixels, 2).transpose(1, 0, 2),
    8: lambda pixels: np.rot90(pixels, -1),
}
"""Orientation -> how an upright picture is stored under it (EXIF 2.3, tag 0x0112)."""


def save(path: Path, pixels: Pixels, mode: str = "", **options: Any) -> None:
    image = Image.fromarray(np.ascontiguousarray(pixels))
    (image.convert(mode) if mode else image).save(path, **options)


def clear(alpha: int) -> Pixels:
    """The picture in RGBA; its right half has this alpha over colours that nobody shall see."""
    pixels = np.dstack([SCENE, np.full(SCENE.shape[:2], 255, np.uint8)])
    pixels[:, 20:, 3] = alpha
    return pixels


def on_white(pixels: Pixels) -> Pixels:
    colour, alpha = pixels[..., :3].astype(float), pixels[..., 3:] / 255
    return np.round(colour * alpha + 255 * (1 - alpha)).astype(np.uint8)


def grey(pixels: Pixels) -> Pixels:
    return np.repeat(pixels[..., None], 3, axis=2)


def wave() -> list[Image.Image]:
    return [Image.fromarray(SCENE), Image.fromarray(255 - SCENE)]


def white_is_zero(levels: Pixels) -> bytes:
    """A TIFF of 16 bits in which 0 is white (TIFF 6.0, PhotometricInterpretation)."""
    height, width = levels.shape
    data: bytes = levels.astype("<u2").tobytes()
    tags = {256: width, 257: height, 258: 16, 259: 1, 262: 0, 273: 134, 277: 1, 278: height, 279: len(data)}
    tags |= {339: 1}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(tags.items()))
    head = b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + b"\0\0\0\0"
    assert len(head) == 134
    return bytes(head + data)


def draw(folder: Path) -> dict[str, tuple[Pixels, int]]:
    """Write an image of each kind. File name -> what every model must see, and how far pixels may be off."""
    right: dict[str, tuple[Pixels, int]] = {}
    folder.mkdir()
    for turn, stored in TURNS.items():
        exif = Image.Exif()
        exif[0x0112] = turn
        save(folder / f"turned-{turn}.png", stored(SCENE), exif=exif)
        save(folder / f"turned-{turn}.webp", stored(SCENE), exif=exif, lossless=True)
        save(folder / f"turned-{turn}.tif", stored(SCENE), tiffinfo={274: turn})
        save(folder / f"turned-{turn}.jpg", stored(SCENE), exif=exif, quality=98, subsampling=0)
        right |= {f"turned-{turn}.{ending}": (SCENE, 0) for ending in ("png", "webp", "tif")}
        right[f"turned-{turn}.jpg"] = (SCENE, 40)
    deep = GREY.astype(np.uint16) * 257
    for name in ("deep.png", "deep.tif", "deep.jp2"):
        save(folder / name, deep)
        right[name] = (grey(GREY), 0)
    (folder / "deep-inverted.tif").write_bytes(white_is_zero(65535 - deep))
    right["deep-inverted.tif"] = (grey(GREY), 0)
    for alpha in (0, 128):
        for ending in ("png", "webp", "tif"):
            options: Any = {"lossless": True, "exact": True} if ending == "webp" else {}
            save(folder / f"clear-{alpha}.{ending}", clear(alpha), **options)
            right[f"clear-{alpha}.{ending}"] = (on_white(clear(alpha)), 1)
    save(folder / "clear-grey.png", np.dstack([GREY, clear(0)[..., 3]]))
    right["clear-grey.png"] = (on_white(np.dstack([grey(GREY), clear(0)[..., 3]])), 0)
    palette = Image.fromarray(SCENE).quantize(16)
    colours = np.asarray(palette.convert("RGB"))
    for ending in ("png", "gif"):
        palette.save(folder / f"clear-palette.{ending}", transparency=palette.getpixel((0, 0)))
        hidden = np.asarray(palette) == palette.getpixel((0, 0))
        right[f"clear-palette.{ending}"] = (np.where(hidden[..., None], 255, colours).astype(np.uint8), 0)
    palette.save(folder / "palette.png")
    right["palette.png"] = (colours, 0)
    for ending in ("png", "webp", "tif"):
        first, second = wave()
        lossless: Any = {"lossless": True} if ending == "webp" else {}
        first.save(folder / f"moves.{ending}", save_all=True, append_images=[second], **lossless)
        right[f"moves.{ending}"] = (SCENE, 0)
    first, second = palette, Image.fromarray(255 - SCENE).quantize(16)
    first.save(folder / "moves.gif", save_all=True, append_images=[second])
    right["moves.gif"] = (colours, 0)
    save(folder / "print.jpg", SCENE, "CMYK", quality=98, subsampling=0)
    right["print.jpg"] = (SCENE, 40)
    for name, mode, off in (("print.tif", "CMYK", 1), ("lab.tif", "LAB", 12), ("lines.bmp", "", 0)):
        save(folder / name, SCENE, mode)
        right[name] = (SCENE, off)
    save(folder / "plain.jpg", SCENE, quality=98, subsampling=0)
    save(folder / "plain.png", SCENE)
    save(folder / "opaque.png", clear(255))
    return right | {"plain.jpg": (SCENE, 40), "plain.png": (SCENE, 0), "opaque.png": (SCENE, 0)}


@pytest.fixture
def endpoint() -> Iterator[tuple[str, dict[str, tuple[str, bytes]]]]:
    """The name of a model at a loopback server, and what it got: prompt -> media type and bytes."""
    got: dict[str, tuple[str, bytes]] = {}

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            image, text = body["messages"][-1]["content"]
            media, _, data = image["image_url"]["url"].removeprefix("data:").partition(";base64,")
            got[text["text"]] = (media, base64.b64decode(data))
            usage = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"image_tokens": 5}}
            choice = {"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
            reply = json.dumps({"choices": [choice], "usage": usage, "model": "m"}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1#m", got
        server.shutdown()


def evaluate(folder: Path, names: list[str], model: str, out: str = "out", **options: Any) -> dict[str, Any]:
    """Ask a model about each image. The file name -> its line of answers.jsonl."""
    lines = [{"group": n, "variant": "v", "images": [n], "prompt": n, "references": ["x"]} for n in names]
    (folder / "groups.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    sightline.run(
        f"groups:{folder / 'groups.jsonl'}",
        model=model,
        store=str(folder / "s.db"),
        out=str(folder / out),
        set={"embedder": "none"},
        **options,
    )
    written = (folder / out / "answers.jsonl").read_text().splitlines()
    return {line["sample"]: line for line in map(json.loads, written)}


def far(found: Pixels, right: Pixels) -> int:
    assert found.shape == right.shape
    return int(np.abs(found.astype(int) - right.astype(int)).max())


@pytest.mark.slow
def test_every_kind_of_image_is_the_same_picture_for_every_model(
    tmp_path: Path,
    endpoint: tuple[str, dict[str, tuple[str, bytes]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("transformers", reason="needs the extra local")
    folder = tmp_path / "images"
    right = draw(folder)
    url, got = endpoint
    answers = evaluate(folder, list(right), url)
    processed: dict[str, Pixels] = {}

    def handed(file: Any) -> Any:
        processed[Path(file.path).name] = np.asarray(image := read_image(file))
        return image

    monkeypatch.setattr("sightline.models.local.encode.read_image", handed)
    evaluate(folder, list(right), "mini", "mini")
    store = Store.open(str(folder / "s.db"))
    with_store = RunImages(store, [folder])
    for name, (pixels, most) in right.items():
        sent = np.asarray(Image.open(io.BytesIO(got[name][1])).convert("RGB"))
        assert far(sent, pixels) <= most, name
        assert np.array_equal(sent, processed[name]), name
        shown = with_store.content(name, "")
        assert np.array_equal(sent, np.asarray(Image.open(io.BytesIO(shown.body)).convert("RGB"))), name
        assert answers[name]["image_sizes"] == [[sent.shape[1], sent.shape[0]]], name
        assert answers[name]["usage"]["image_tokens"] == 5
        # What a server that reads neither EXIF nor alpha nor frames makes of the bytes.
        raw = Image.open(io.BytesIO(got[name][1]))
        assert raw.getexif().get(0x0112, 1) == 1
        assert not getattr(raw, "is_animated", False)
        assert name == "opaque.png" or not raw.has_transparency_data
    store.close()
    for name in ("plain.jpg", "plain.png", "opaque.png", "palette.png"):
        assert got[name][1] == (folder / name).read_bytes()


def test_ocr_gets_the_pixels_that_an_endpoint_gets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rapidocr", reason="needs the extra ocr")
    right = draw(tmp_path / "images")
    seen: list[Pixels] = []

    class Blind:
        txts = None

        def __init__(self, pixels: Pixels) -> None:
            seen.append(pixels[:, :, ::-1])

    monkeypatch.setattr(ocr, "_engine", lambda *_: Blind)
    reader = ocr.RapidOcr(threads=1)
    for name in right:
        file = inspect_image(ImageRef(str(tmp_path / "images" / name)), {})
        reader.read(file)
        assert np.array_equal(seen[-1], np.asarray(read_image(file))), name


def test_what_an_image_hides_from_every_model_is_said(
    tmp_path: Path, endpoint: tuple[str, dict[str, tuple[str, bytes]]]
) -> None:
    folder = tmp_path / "images"
    draw(folder)
    white = clear(0)
    white[:, 20:, :3] = 255
    save(folder / "white.png", white)
    # 12 bits of a sensor, stored as 16.
    Image.fromarray(np.full((20, 30), 4095, np.uint16)).save(folder / "dark.png")
    Image.fromarray(np.full((20, 30), 4095, np.uint16)).save(folder / "dark.tif")
    names = [
        "dark.png",
        "dark.tif",
        "clear-0.png",
        "clear-palette.gif",
        "white.png",
        "opaque.png",
        "moves.gif",
        "moves.tif",
        "deep.png",
    ]
    evaluate(folder, names, endpoint[0])
    notes = json.loads((folder / "out" / "metrics.json").read_text())["notes"]
    assert [note for note in notes if "every model" in note] == [
        "2 images of more than 8 bits without a level above a quarter of white, which every model sees dark: "
        "dark.png, dark.tif",
        "2 images with transparent pixels, which every model sees on white: clear-0.png, clear-palette.gif",
        "2 images with several frames or pages, of which every model sees the first: moves.gif, moves.tif",
    ]


@pytest.mark.parametrize(
    ("levels", "reason"),
    [
        (np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4), "floating-point numbers"),
        (np.arange(16, dtype=np.int32).reshape(4, 4), "signed 32-bit numbers"),
    ],
)
def test_an_image_without_a_known_white_is_an_error_of_its_sample(
    tmp_path: Path, endpoint: tuple[str, dict[str, tuple[str, bytes]]], levels: Pixels, reason: str
) -> None:
    folder = tmp_path / "images"
    draw(folder)
    save(folder / "measured.tif", levels)
    answers = evaluate(folder, ["measured.tif", "plain.png"], endpoint[0])
    assert answers["measured.tif"]["status"] == "error"
    assert "measured.tif: its pixels are" in answers["measured.tif"]["error"]
    assert reason in answers["measured.tif"]["error"]
    assert set(endpoint[1]) == {"plain.png"}


def test_a_comparison_says_which_images_two_runs_saw_in_other_sizes(
    tmp_path: Path, endpoint: tuple[str, dict[str, tuple[str, bytes]]]
) -> None:
    from sightline.cli.main import main

    folder = tmp_path / "images"
    draw(folder)
    names = ["plain.png", "turned-6.png", "clear-0.png"]
    evaluate(folder, names, endpoint[0], "whole")
    lines = evaluate(folder, names, endpoint[0], "small", model_arg={"max_side": 30})
    assert [line["image_sizes"] for line in lines.values()] == [[[30, 18]]] * 3
    with pytest.MonkeyPatch.context() as patch:
        out = io.StringIO()
        patch.setattr("sys.stdout", out)
        main(["compare", str(folder / "whole"), str(folder / "small"), "--json"])
    assert "saw 3 images in other sizes, first plain.png: 40 x 24, then 30 x 18 pixels" in out.getvalue()


def test_a_scene_of_16_bits_is_that_of_8_bits_and_a_turned_bar_stands_left(shared: Path) -> None:
    folder = shared / "cases" / "replies-and-files" / "images"
    if not folder.is_dir():
        pytest.skip(f"no cases at {folder}")
    for scene in ("scene1", "scene3"):
        eight, sixteen = (
            read_image(inspect_image(ImageRef(str(folder / f"{scene}-{bits}bit.png")), {}))
            for bits in (8, 16)
        )
        assert np.array_equal(np.asarray(eight), np.asarray(sixteen))
    for name, transform in (("bar-plain.jpg", ""), ("bar-6.jpg", "rgb-png")):
        file = inspect_image(ImageRef(str(folder / name)), {})
        pixels = np.asarray(read_image(file)).astype(int)
        assert (file.transform, (file.height, file.width)) == (transform, pixels.shape[:2])
        red, green = pixels[..., 0].mean(axis=0), pixels[..., 1].mean(axis=0)
        assert int(np.argmax(red - green)) < file.width // 4
