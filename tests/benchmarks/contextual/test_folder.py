"""The image of every url of ConTextual has a place of its own, inside the data folder."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.benchmarks.contextual.data import image_path

CLOCK = "https://textvision-data-quality.s3.us-west-1.amazonaws.com/time-images/thb_8411.jpg"


def test_the_released_urls_have_paths_of_their_own_that_any_file_system_takes(shared: Path) -> None:
    for split in ("test", "val"):
        with (shared / f"data/contextual/contextual_{split}.csv").open(newline="") as stream:
            urls = [row["image_url"] for row in csv.DictReader(stream)]
        paths = [image_path(url) for url in urls]
        assert len({path.casefold() for path in paths}) == len(urls)
        # Below the host, letter for letter: nothing of the released urls needs an escape that it has not.
        assert paths == [f"images/{url.split('/', 3)[3]}" for url in urls]


@given(st.one_of(st.text(), st.text().map("https://host/".__add__), st.text().map("http://h/a/".__add__)))
def test_no_url_leads_out_of_the_folder(url: str) -> None:
    path = image_path(url)
    steps = path.split("/")
    assert not os.path.isabs(path)
    assert not {"", ".", ".."} & set(steps)
    assert "\0" not in path
    assert os.path.normpath(os.path.join("/data", path)).startswith("/data/")


@given(st.lists(st.text(max_size=300), max_size=8))
def test_the_names_of_urls_are_plain_and_short(parts: list[str]) -> None:
    path = image_path("https://host/" + "/".join(parts))
    assert path.isascii()
    assert path.startswith("images/")
    assert all(0 < len(step) <= 255 and not step.startswith(".") for step in path.split("/"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://h/a/x.jpg", "https://h/b/x.jpg"),
        ("https://h/a%2Fx.jpg", "https://h/a/x.jpg"),
        ("https://h/x.jpg?w=1", "https://h/x.jpg?w=2"),
        ("https://h/a//x.jpg", "https://h/a/x.jpg"),
        ("https://h/%2e%2e/x", "https://h/../x"),
        (f"https://h/{'a' * 300}b", f"https://h/{'a' * 300}c"),
        ("https://h/x y", "https://h/x%y"),
    ],
)
def test_urls_that_differ_have_paths_that_differ(one: str, other: str) -> None:
    assert image_path(one) != image_path(other)


def test_a_fragment_is_no_part_of_the_path_and_drawn_data_have_paths_already() -> None:
    assert image_path(f"{CLOCK}#2") == image_path(CLOCK) == "images/time-images/thb_8411.jpg"
    assert image_path("images/val-001.png#3") == image_path("images/val-001.png") == "images/val-001.png"
    assert image_path("images/my image.png") == "images/my image.png"
