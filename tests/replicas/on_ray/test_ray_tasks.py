"""Which items are in work on a cluster at a time, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sightline.builders import ray_tasks
from sightline.builders.ray_tasks import IMAGE_FILES, RayTasks, map_on_ray
from sightline.images import BadImage, inspect_image, read_image
from sightline.replicas.on_ray import Connection
from sightline.replicas.ray_node import carry_out
from sightline.types import ImageFile, ImageRef


class FakeRay:
    """A cluster of nodes with one processor each, which gets another node with each result."""

    def __init__(self) -> None:
        self.cpus = 1
        self.most_in_work: list[int] = []

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 1.0}}] * self.cpus

    def remote(self, *work: Any) -> Any:
        return work if isinstance(work[0], bytes) else self

    def options(self, **options: Any) -> FakeRay:
        return self

    def wait(self, waiting: list[Any], *, num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        if timeout:
            self.most_in_work.append(len(waiting))
            return waiting[:1], waiting[1:]
        return [], waiting

    def get(self, work: tuple[bytes, bytes | None]) -> tuple[str, str, Any]:
        self.cpus += 1
        return carry_out(*work, "10.0.0.1")

    def cancel(self, work: Any, *, force: bool) -> None:
        pass


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()

    @contextmanager
    def connected(address: str) -> Iterator[Connection]:
        yield Connection(fake, ExitStack(), own=True)

    monkeypatch.setattr(ray_tasks, "connected", connected)
    return fake


@pytest.fixture
def photos(tmp_path: Path) -> list[ImageFile]:
    for number in range(8):
        Image.new("RGB", (number + 1, 4), "red").save(tmp_path / f"{number}.png")
    return [inspect_image(ImageRef(str(path)), {}) for path in sorted(tmp_path.iterdir())]


def width_of(image: ImageFile) -> tuple[str, int | BadImage]:
    try:
        return image.path, read_image(image).width
    except BadImage as error:
        return image.path, error


@pytest.mark.parametrize(("seconds", "most"), [(1e-9, [2, 2, 4, 5, 4, 3, 2, 1]), (99.0, [2] * 7 + [1])])
def test_nodes_that_join_get_tasks_while_results_come(
    ray: FakeRay, photos: list[ImageFile], monkeypatch: pytest.MonkeyPatch, seconds: float, most: list[int]
) -> None:
    """A busy cluster is looked at too: it is never silent."""
    monkeypatch.setattr(ray_tasks, "LOOK_SECONDS", seconds)
    results = list(map_on_ray(width_of, photos, RayTasks(), IMAGE_FILES))
    assert sorted(results) == [width_of(photo) for photo in photos]
    assert ray.most_in_work == most


@pytest.mark.parametrize("now", [None, b"another image"])
def test_an_image_that_is_gone_or_changed_has_the_result_of_this_machine(
    ray: FakeRay, photos: list[ImageFile], now: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says nothing about the files of the node."""
    Path(photos[0].path).unlink()
    if now is not None:
        Path(photos[0].path).write_bytes(now)
    results = dict(map_on_ray(width_of, photos, RayTasks(), IMAGE_FILES))
    assert len(results) == len(photos)
    assert str(results[photos[0].path]) == str(width_of(photos[0])[1])
    assert isinstance(results[photos[0].path], BadImage)
    assert "does not share" not in capsys.readouterr().err
