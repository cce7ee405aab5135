"""Images on a node: the shared file, or a copy that is there only while it is used."""

from __future__ import annotations

import errno
import hashlib
import tempfile
from pathlib import Path
from typing import Any

import pytest

from sightline.errors import EnvironmentFailedError
from sightline.images import BadImage
from sightline.replicas.ray_node import image_on_node

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


def test_bytes_of_another_image_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    with pytest.raises(BadImage, match=r"a\.jpg: changed"), image_on_node(str(path), DIGEST, b"another"):
        pass


def no_room(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_node_that_cannot_write_the_copy_names_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "write_bytes", no_room)
    why = r"/.*image\.jpg: cannot be written: No space left on device; make room, .*"
    with pytest.raises(EnvironmentFailedError, match=why), image_on_node("/absent/a.jpg", DIGEST, CONTENT):
        pass
