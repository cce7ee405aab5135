"""Images on a node: the shared file, or a copy that is there only while it is used."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import re
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace
from PIL import Image

from sightline.images import BadImage, inspect_image, read_bytes
from sightline.replicas.fleet import ReplicaLostError
from sightline.replicas.gather import Gather
from sightline.replicas.on_ray import RayReplica
from sightline.replicas.ray_node import Hosted, image_on_node
from sightline.types import Failure, ImageFile, ImageRef, Request, user

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


@pytest.fixture
def photo(tmp_path: Path) -> ImageFile:
    path = tmp_path / "photo.png"
    Image.new("RGB", (4, 4), "red").save(path)
    return inspect_image(ImageRef(str(path)), {})


def request_with(photo: ImageFile) -> Request:
    return Request("key", (user(ImageRef(photo.path), "What is it?"),), {}, {photo.path: photo})


class NodeWithoutFiles:
    """The handle of an actor on a node that has no files; it fails if bytes are sent to it."""

    def __init__(self) -> None:
        self.answer = self

    async def remote(self, request: Request, contents: dict[str, bytes]) -> tuple[str, Any]:
        assert not contents
        return "absent", None


@pytest.mark.parametrize("now", [None, b"another image"])
def test_an_image_that_is_gone_or_changed_is_the_failure_of_one_machine(
    photo: ImageFile, now: bytes | None
) -> None:
    Path(photo.path).unlink()
    if now is not None:
        Path(photo.path).write_bytes(now)
    with pytest.raises(BadImage) as here:
        read_bytes(photo)
    replica = RayReplica("replica 1", None, NodeWithoutFiles())
    # The second request begins at the shared path again: the node may have the files.
    for _ in range(2):
        answer = asyncio.run(replica.answer(request_with(photo)))
        assert answer == Failure("permanent", str(here.value))


def test_a_node_that_receives_other_bytes_asks_no_model(photo: ImageFile) -> None:
    moved = replace(photo, path="/absent/photo.png")
    hosted = Hosted(Gather(None))  # type: ignore[arg-type]
    kind, answer = asyncio.run(hosted.answer(request_with(moved), {moved.path: b"another image"}))
    assert (kind, answer) == ("done", Failure("permanent", "/absent/photo.png: changed during the run"))


def no_room(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_node_that_cannot_write_the_copy_names_the_file(
    photo: ImageFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = replace(photo, path="/absent/photo.png")
    content = Path(photo.path).read_bytes()
    monkeypatch.setattr(Path, "write_bytes", no_room)
    hosted = Hosted(Gather(None))  # type: ignore[arg-type]
    kind, why = asyncio.run(hosted.answer(request_with(moved), {moved.path: content}))
    assert kind == "unwritable"
    assert re.fullmatch(r"/.*image\.png: cannot be written: No space left on device; make room, .*", str(why))


def test_a_node_with_a_full_disk_is_lost_and_no_request_is_blamed(photo: ImageFile) -> None:
    class FullNode(NodeWithoutFiles):
        async def remote(self, request: Request, contents: dict[str, bytes]) -> tuple[str, Any]:
            return ("unwritable", "no room") if contents else ("absent", None)

    class Ray:
        killed: ClassVar[list[object]] = []
        kill = staticmethod(killed.append)

    node = FullNode()
    with pytest.raises(ReplicaLostError, match="no room") as lost:
        asyncio.run(RayReplica("replica 1", Ray, node).answer(request_with(photo)))
    assert not lost.value.received
    assert Ray.killed == [node]


def test_the_end_of_a_replica_ends_its_calls_and_no_call_follows(photo: ImageFile) -> None:
    """Ray answers no call of a closed connection, and a new call would make it connect by itself."""

    class BusyNode:
        def __init__(self) -> None:
            self.answer = self
            self.asked = 0

        async def remote(self, request: Request, contents: dict[str, bytes]) -> tuple[str, Any]:
            self.asked += 1
            await asyncio.sleep(600)
            raise AssertionError

    node = BusyNode()

    async def session() -> list[BaseException | None]:
        replica = RayReplica("replica 1", None, node)
        calls = [asyncio.create_task(replica.answer(request_with(photo))) for _ in range(2)]
        await asyncio.sleep(0.01)
        replica.end("its launcher has failed")
        calls.append(asyncio.create_task(replica.answer(request_with(photo))))
        await asyncio.wait(calls, timeout=10)
        return [call.exception() for call in calls]

    errors = asyncio.run(session())
    assert [str(error) for error in errors] == ["its launcher has failed"] * 3
    assert [error.received for error in errors if isinstance(error, ReplicaLostError)] == [True, True, False]
    assert node.asked == 2
