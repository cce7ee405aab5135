"""A manifest says what a folder holds, and is believed only where it is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline.builders.folder import (
    BuildManifest,
    describe_difference,
    read_excluded,
    read_manifest,
    write_manifest,
)
from sightline.errors import UserError
from sightline.formats.files import file_digest, json_digest

MANIFEST = BuildManifest(
    kind="mask",
    settings={"seed": 1},
    versions={"sightline": "1"},
    groups=1,
    probes=3,
    images=3,
    fingerprint="f",
    dropped={"b": "the file is empty"},
    sources={"a": "d1", "c": "d1", "d": "d2"},
    made={"groups.jsonl": "d3"},
)


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_manifest(MANIFEST, tmp_path)
    assert read_manifest(tmp_path) == MANIFEST


@pytest.mark.parametrize("text", ["", "{", '{"kind": "mask"}', "[]", '{"kind": 1}', "\x00"])
def test_a_file_that_is_not_a_manifest_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(UserError) as caught:
        read_manifest(tmp_path)
    assert str(tmp_path / "manifest.json") in str(caught.value)


def test_an_image_of_several_sources_is_compared_once(tmp_path: Path) -> None:
    folder = tmp_path / "train"
    folder.mkdir()
    write_manifest(MANIFEST, folder)
    (apart,), held = read_excluded([folder])
    assert (apart.folder, apart.images) == ("train", 2)
    assert apart.manifest == file_digest(folder / "manifest.json")
    assert held == {"d1": "train", "d2": "train"}


def test_a_fingerprint_does_not_depend_on_the_order_of_keys() -> None:
    assert json_digest({"a": 1, "b": {"c": 2, "d": 3}}) == json_digest({"b": {"d": 3, "c": 2}, "a": 1})
    assert json_digest({"a": 1}) != json_digest({"a": 2})


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ({"kind": "mask", "settings": {"seed": 1}, "versions": {}}, ""),
        ({"kind": "restyle"}, "kind 'restyle' instead of 'mask'"),
        ({"kind": "mask", "settings": {"seed": 2}, "versions": {"pillow": "9"}},
         "seed 2 instead of 1, pillow '9' instead of None"),
        ({"kind": "mask", "settings": {}, "versions": {}}, "seed None instead of 1"),
        ([], "kind [] instead of 'mask'"),
    ],
)  # fmt: skip
def test_the_difference_of_two_builds_is_described(old: object, words: str) -> None:
    assert describe_difference(old, {"kind": "mask", "settings": {"seed": 1}, "versions": {}}) == words
