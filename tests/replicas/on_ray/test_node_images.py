"""Images on a node: the shared file, or a copy that is there only while it is used."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import pytest

from sightline.replicas.on_ray.node_images import image_on_node

CONTENT = b"\xff\xd8 an image"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def test_a_file_with_the_content_is_used_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(CONTENT)
    with image_on_node(str(path), DIGEST, None) as found:
        assert found == str(path)
    assert path.exists()


@pytest.mark.parametrize("here", [None, b"another image"])
def test_without_the_file_the_sent_bytes_are_a_copy_that_goes_when_it_was_used(
    here: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(copies))
    path = tmp_path / "a.jpg"
    if here is not None:
        path.write_bytes(here)
    with image_on_node(str(path), DIGEST, None) as absent:
        assert absent is None
    with (
        image_on_node(str(path), DIGEST, CONTENT) as first,
        image_on_node(str(path), DIGEST, CONTENT) as second,
    ):
        for copy in (first, second):
            assert copy is not None
            assert copy.endswith(".jpg")
            assert Path(copy).read_bytes() == CONTENT
        assert first != second
    assert list(copies.iterdir()) == []
