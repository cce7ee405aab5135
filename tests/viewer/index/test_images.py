"""Images are shown only from the data folder, and only if they are the ones that were sent."""

from __future__ import annotations

import io
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from PIL import Image
from tests.viewer.index.conftest import write_lines

import sightline
from sightline.evaluation.run_images import SIDE, ImageContent, ImageError
from sightline.store.store import Store
from sightline.viewer.index import OutcomeIndex


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A groups file with a JPEG and a TIFF."""
    folder = tmp_path / "data"
    (folder / "images").mkdir(parents=True)
    for name, color in (("a.jpg", "red"), ("b.tiff", "blue")):
        Image.new("RGB", (800, 400), color).save(folder / "images" / name)
    lines = [
        {"group": name, "prompt": "Which colour?", "images": [f"images/{name}"], "references": ["red"]}
        for name in ("a.jpg", "b.tiff")
    ]
    write_lines(folder / "groups.jsonl", [{**line, "variant": "v"} for line in lines])
    return folder


@pytest.fixture
def store(data: Path, tmp_path: Path) -> Store:
    """A store with a run of both."""
    url = str(tmp_path / "s.db")
    sightline.run(f"groups:{data / 'groups.jsonl'}", model="baseline/chance", store=url)
    return Store.open(url)


def indexed(store: Store, *data: Path) -> OutcomeIndex:
    index = OutcomeIndex(store, data)
    index.build(1)
    return index


def content(index: OutcomeIndex, digest: str) -> ImageContent:
    return index.images(1).content(index.open(1).image_path(digest), digest)


def thumbnail(index: OutcomeIndex, digest: str) -> bytes:
    return index.images(1).thumbnail(index.open(1).image_path(digest), digest)


def digest(index: OutcomeIndex, number: int) -> str:
    ((image,),) = index.open(1).group(number).images
    row = index.open(1).group(number).row
    assert row.image == image
    return image.digest


def test_an_image_is_shown_as_it_was_sent(store: Store, data: Path) -> None:
    index = indexed(store)
    assert content(index, digest(index, 1)) == ("image/jpeg", (data / "images" / "a.jpg").read_bytes())


def test_a_format_that_browsers_do_not_show_becomes_png(store: Store) -> None:
    index = indexed(store)
    kind, body = content(index, digest(index, 2))
    with Image.open(io.BytesIO(body)) as image:
        assert (kind, image.format, image.size) == ("image/png", "PNG", (800, 400))
        assert image.getpixel((1, 1)) == (0, 0, 255)


def test_a_thumbnail_is_made_once(store: Store, data: Path) -> None:
    index = indexed(store)
    first = thumbnail(index, digest(index, 1))
    with Image.open(io.BytesIO(first)) as image:
        assert (image.format, image.size) == ("WEBP", (SIDE, SIDE // 2))
    shutil.rmtree(data / "images")
    assert thumbnail(index, digest(index, 1)) == first
    assert len(list((store.database.index_folder / "thumbnails").iterdir())) == 1


def test_an_image_that_changed_is_reported_and_not_shown(store: Store, data: Path) -> None:
    index = indexed(store)
    sent = digest(index, 1)
    Image.new("RGB", (800, 400), "green").save(data / "images" / "a.jpg")
    for show in (content, thumbnail):
        with pytest.raises(ImageError, match=rf"not the image that was sent.*found .*expected {sent}"):
            show(index, sent)


def test_a_folder_that_moved_is_named_by_data(store: Store, data: Path, tmp_path: Path) -> None:
    sent = digest(indexed(store), 1)
    moved = data.rename(tmp_path / "moved")
    with pytest.raises(ImageError, match=r"no such image; expected .*--data DIR"):
        content(indexed(store), sent)
    assert content(indexed(store, moved), sent).body == (moved / "images" / "a.jpg").read_bytes()


def test_a_link_out_of_the_data_folder_is_refused(store: Store, data: Path, tmp_path: Path) -> None:
    sent = digest(indexed(store), 1)
    outside = (data / "images" / "a.jpg").rename(tmp_path / "a.jpg")
    (data / "images" / "a.jpg").symlink_to(outside)
    with pytest.raises(ImageError, match="outside the data folder"):
        content(indexed(store), sent)


@pytest.mark.parametrize("path", ["../a.jpg", "/etc/passwd", "images/../../a.jpg", "a\0b"])
def test_a_path_out_of_the_data_folder_is_refused(path: str, store: Store, tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.jpg")
    index = indexed(store)
    sent = digest(index, 1)
    with closing(sqlite3.connect(store.database.index_folder / "1.db")) as connection, connection:
        connection.execute("UPDATE images SET path = ? WHERE digest = ?", (path.encode(), sent))
    with pytest.raises(ImageError, match=r"outside the data folder|no such image"):
        content(index, sent)


@pytest.mark.parametrize("name", ["0" * 64, "..", "A" * 64, "x"])
def test_an_image_that_the_run_did_not_send_is_an_error(name: str, store: Store) -> None:
    with pytest.raises(ImageError, match="no such image"):
        content(indexed(store), name)
