"""Paths of images stay below their folder: the rule agrees with the one that the operating system follows."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from sightline.formats.groups import is_below

PATHS = st.lists(st.sampled_from(["a", "b.png", "..", ".", "", "...", "~", "%2e%2e"]), max_size=6).map(
    "/".join
)


@given(PATHS)
def test_a_path_is_below_its_folder_exactly_if_it_names_something_in_it(path: str) -> None:
    folder = "/somewhere/data"
    assert is_below(path) == os.path.abspath(os.path.join(folder, path)).startswith(f"{folder}/")


def test_invalid_names_are_nowhere() -> None:
    assert not is_below("a\0.png")
