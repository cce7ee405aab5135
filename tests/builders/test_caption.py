"""Captions: who is asked what about which image, what a reply becomes, and which file may be replaced."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image

from sightline.benchmarks.released import read_captions
from sightline.builders.read import refuse_other_captions, write_captions
from sightline.builders.sources import CheckedImages, check_images, images_in
from sightline.cli.main import main
from sightline.engine.client import EMPTY, SAMPLING, Caption, Captioner, ClientOptions, ModelClient
from sightline.errors import UserError
from sightline.formats.groups import GroupLine, write_groups
from sightline.images import ImageLimits
from sightline.models.base import Capabilities
from sightline.models.offline import OfflineModel
from sightline.store.store import Store
from sightline.text import load
from sightline.types import Answer, Failure, ImageRef, Request, Text

Reply = str | Answer | Failure


class Painter(OfflineModel):
    """Says of each image what it was told to say, by the draw; remembers what it was asked."""

    name = identity = host = "painter"

    def __init__(self, replies: Mapping[str, Sequence[Reply]] | None = None) -> None:
        self.replies = replies or {}
        self.asked: list[Request] = []

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        self.asked += requests
        for index, request in enumerate(requests):
            ((path, _),) = request.images.items()
            said = self.replies.get(Path(path).stem, ["an image"])[request.draw]
            yield index, Answer(said) if isinstance(said, str) else said


@pytest.fixture
def painter(monkeypatch: pytest.MonkeyPatch) -> Painter:
    model = Painter()
    monkeypatch.setattr("sightline.replicas.fleet.resolve", lambda *_: [model])
    return model


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Three files, two images: one lies there under two names."""
    (tmp_path / "photos" / "more").mkdir(parents=True)
    for name, colour in {"red.png": "red", "more/twin.png": "red", "blue.png": "blue"}.items():
        Image.new("RGB", (9, 7), colour).save(tmp_path / "photos" / name)
    return tmp_path / "photos"


def captioner(tmp_path: Path, *, again: bool = False, prompt: str | None = None, **more: Any) -> Captioner:
    return Captioner(
        ModelClient(
            ClientOptions(model="painter", store=str(tmp_path / "s.db"), retry_errors=again, **more), SAMPLING
        ),
        prompt,
        again=again,
    )


def described(tmp_path: Path, gallery: CheckedImages, **how: Any) -> dict[str, Caption]:
    store = Store.open(str(tmp_path / "s.db"))
    try:
        files = gallery.files.values()
        return gallery.named(asyncio.run(captioner(tmp_path, **how).describe(files, store)))
    finally:
        store.close()


# What is asked


def test_a_model_is_shown_the_image_and_then_asked_for_a_description(
    tmp_path: Path, photos: Path, painter: Painter
) -> None:
    gallery = check_images(images_in(photos))
    described(tmp_path, gallery)
    described(tmp_path, gallery, prompt="What is it?")
    for words in (load("sightline.engine")["caption"]["text"], "What is it?"):
        first, second = painter.asked[:2]
        painter.asked = painter.asked[2:]
        for request in (first, second):
            (message,) = request.messages
            image, text = message.parts
            assert isinstance(image, ImageRef)
            assert list(request.images) == [image.path]
            assert text == Text(words)
    assert not painter.asked


def test_an_image_with_two_names_is_sent_once_and_captioned_under_both(
    tmp_path: Path, photos: Path, painter: Painter
) -> None:
    painter.replies = {"red": ["red"], "twin": ["red"], "blue": ["blue"]}
    captions = described(tmp_path, check_images(images_in(photos)))
    assert {name: one.text for name, one in captions.items()} == {
        "blue.png": "blue",
        "more/twin.png": "red",
        "red.png": "red",
    }
    assert len(painter.asked) == 2
    described(tmp_path, check_images(images_in(photos)))
    assert len(painter.asked) == 2


def test_an_image_that_is_too_large_for_a_model_is_resized_and_is_another_request(
    tmp_path: Path, photos: Path, painter: Painter
) -> None:
    gallery = check_images(images_in(photos))
    described(tmp_path, gallery)
    painter.capabilities = Capabilities(limits=ImageLimits(max_side=5))
    described(tmp_path, gallery)
    sent = [{file.transform for file in request.images.values()} for request in painter.asked]
    assert sent == 2 * [{""}] + 2 * [{"jpeg-q95-side5"}]


@pytest.mark.parametrize("prompt", ["", " \n"])
def test_an_empty_prompt_is_refused(tmp_path: Path, painter: Painter, prompt: str) -> None:
    with pytest.raises(UserError, match="--prompt is empty"):
        captioner(tmp_path, prompt=prompt)


def test_a_model_without_images_is_refused(tmp_path: Path, painter: Painter) -> None:
    painter.capabilities = Capabilities(images=False)
    with pytest.raises(UserError, match="does not accept images"):
        captioner(tmp_path)


# What a reply becomes


def test_a_caption_is_one_line_without_the_reasoning(tmp_path: Path, photos: Path, painter: Painter) -> None:
    said = Answer("  A red wall.\n\n- no door\tin it \n", reasoning="Let me see.", finish_reason="length")
    painter.replies = {"red": [said], "twin": [said]}
    caption = described(tmp_path, check_images(images_in(photos)))["red.png"]
    assert (caption.text, caption.cut, caption.missing) == ("A red wall. - no door in it", True, "")


def test_a_failed_request_affects_no_other_caption(tmp_path: Path, photos: Path, painter: Painter) -> None:
    painter.replies = {"blue": [Failure("permanent", "it will not say")]}
    captions = described(tmp_path, check_images(images_in(photos)))
    assert (captions["blue.png"].text, captions["blue.png"].missing) == ("", "it will not say")
    assert captions["red.png"].text == captions["more/twin.png"].text == "an image"


def test_an_empty_reply_gives_no_caption_and_is_repeated_only_on_request(
    tmp_path: Path, photos: Path, painter: Painter
) -> None:
    painter.replies = {"blue": [" \n", "", "blue at last", "never asked"]}
    gallery = check_images(images_in(photos))
    for again, text, draws in (
        (False, "", [0]),
        (False, "", [0]),
        (True, "", [0, 1]),
        (False, "", [0, 1]),
        (True, "blue at last", [0, 1, 2]),
        (True, "blue at last", [0, 1, 2]),
        (False, "blue at last", [0, 1, 2]),
    ):
        caption = described(tmp_path, gallery, again=again)["blue.png"]
        assert (caption.text, caption.missing) == (text, "" if text else EMPTY)
        blue = [request.draw for request in painter.asked if "blue" in next(iter(request.images))]
        assert blue == draws


def test_an_estimate_counts_what_describing_would_send(
    tmp_path: Path, photos: Path, painter: Painter
) -> None:
    gallery = check_images(images_in(photos))
    files = gallery.files.values()
    store = Store.open(str(tmp_path / "s.db"))
    found = captioner(tmp_path).estimate(files, store)
    sizes = (photos / "red.png").stat().st_size + (photos / "blue.png").stat().st_size
    assert (found.cached + found.to_send, found.cached, found.to_send, found.image_bytes) == (2, 0, 2, sizes)
    assert not painter.asked
    painter.replies = {"blue": [""]}
    asyncio.run(captioner(tmp_path).describe(files, store))
    for again, counts in {False: (2, 2, 0, 0), True: (2, 1, 1, (photos / "blue.png").stat().st_size)}.items():
        found = captioner(tmp_path, again=again).estimate(files, store)
        assert (found.cached + found.to_send, found.cached, found.to_send, found.image_bytes) == counts
    store.close()


# Which images, under which names


def test_codis_images_are_named_by_their_image_ids(shared: Path) -> None:
    records = json.loads((shared / "data" / "codis" / "data.json").read_text())
    images = images_in(shared / "data" / "codis")
    assert set(images) == {record["image_id"] for record in records}
    assert set(check_images(images).files) == set(images)


def test_the_images_of_all_splits_of_iibench_are_named_by_their_local_paths(shared: Path) -> None:
    folder = shared / "data" / "iibench"
    records = [
        record for name in ("test", "dev") for record in json.loads((folder / f"{name}.json").read_text())
    ]
    images = images_in(folder)
    assert list(images) == list(dict.fromkeys(record["local_path"] for record in records))
    contents = {hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in images}
    assert {file.digest for file in check_images(images).files.values()} == contents


def test_the_images_of_a_groups_file_are_named_as_in_it(tmp_path: Path, photos: Path) -> None:
    lines = [
        GroupLine("a", "original", ("red.png",), "What is it?"),
        GroupLine("a", "m0", ("more/twin.png", "red.png"), "What is it?"),
        GroupLine("b", "words", (), "No image here."),
    ]
    write_groups(lines, photos / "groups.jsonl")
    for data in (photos, photos / "groups.jsonl"):
        assert list(images_in(data)) == ["red.png", "more/twin.png"]
    write_groups(lines[2:], tmp_path / "words.jsonl")
    with pytest.raises(UserError, match="names no image"):
        images_in(tmp_path / "words.jsonl")


def test_unreadable_images_are_reported_with_the_reason(tmp_path: Path, photos: Path) -> None:
    (photos / "empty.png").touch()
    (photos / "text.png").write_text("no image")
    (photos / "away.png").symlink_to(tmp_path / "elsewhere.png")
    gallery = check_images(images_in(photos))
    assert sorted(gallery.files) == ["blue.png", "more/twin.png", "red.png"]
    assert gallery.broken["empty.png"] == "the file is empty"
    assert gallery.broken["text.png"].startswith("not an image")
    assert gallery.broken["away.png"].startswith("is outside the data folder")


def test_missing_data_are_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder or file"):
        images_in(tmp_path / "gone")
    with pytest.raises(UserError, match="contains no image"):
        images_in(tmp_path)


# The file

CAPTIONS = {"a.png": Caption('A "quoted" wall.', "k1"), "b.png": Caption("Schön, 😀", "k2")}


def test_the_benchmark_reads_what_is_written_and_any_json_reader_does(tmp_path: Path) -> None:
    out = tmp_path / "captions.json"
    for captions in (CAPTIONS, {"a.png": CAPTIONS["a.png"]}):
        write_captions({**captions, "gone.png": Caption(missing="the call failed")}, "painter", out)
        said = {name: one.text for name, one in captions.items()}
        assert read_captions(str(out), needed=True) == said
        records = json.loads(out.read_text())
        assert {record["image_id"]: record["caption"] for record in records} == said
        assert [(record["model"], record["reply"]) for record in records] == [
            ("painter", one.key) for one in captions.values()
        ]


def test_a_file_is_replaced_by_the_command_that_wrote_it_and_by_no_other(tmp_path: Path) -> None:
    out = tmp_path / "captions.json"
    refuse_other_captions(out, {})
    write_captions({"a.png": CAPTIONS["a.png"]}, "painter", out)
    refuse_other_captions(out, CAPTIONS)
    corrected = {**CAPTIONS, "a.png": replace(CAPTIONS["a.png"], text="Corrected by a person.")}
    for other in (corrected, {"b.png": CAPTIONS["b.png"]}, {}):
        with pytest.raises(UserError, match="contains a caption that this command did not write"):
            refuse_other_captions(out, other)
        refuse_other_captions(out, other, force=True)


@pytest.mark.parametrize("content", ["", "my notes", '[{"image_id": 3}]'])
def test_a_file_without_captions_is_not_replaced(tmp_path: Path, content: str) -> None:
    out = tmp_path / "captions.json"
    out.write_text(content)
    with pytest.raises(UserError, match="contains something else"):
        refuse_other_captions(out, CAPTIONS)
    with pytest.raises(UserError, match="is a folder"):
        refuse_other_captions(tmp_path, CAPTIONS, force=True)
    with pytest.raises(UserError, match="no such folder"):
        refuse_other_captions(tmp_path / "gone" / "c.json", CAPTIONS)


def test_a_place_is_refused_for_a_model_that_sightline_does_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.new("RGB", (4, 4), "red").save(tmp_path / "a.png")
    words = ["build", "caption", str(tmp_path), "--out", str(tmp_path / "out.json"), "--on", "ray"]
    assert main([*words, "--model", "http://127.0.0.1:9/v1#m"]) == 2
    assert "--on ray has no effect" in capsys.readouterr().err
