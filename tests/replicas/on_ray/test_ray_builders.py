"""Builders on a Ray cluster: the same bytes as in one process, whatever node is lost on the way."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image
from tests.replicas.on_ray.conftest import TwoNodes, kill_when
from tests.replicas.on_ray.node_functions import Vanish, lacking, size_of

from sightline.builders import ray_tasks
from sightline.builders.ray_tasks import IMAGE_FILES, RayTasks, map_on_ray
from sightline.builders.run import BuildSpec, Execution, build
from sightline.builders.sources import check_images, folder_sources
from sightline.cli.main import main
from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.files import file_digest
from sightline.types import ImageFile, ImageRef

pytestmark = pytest.mark.cluster


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eight images of noise, named by a path that is relative to the working folder."""
    monkeypatch.chdir(tmp_path)
    Path("photos").mkdir()
    for number in range(8):
        pixels = np.random.default_rng(number).integers(0, 256, (500, 500, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(f"photos/p{number}.png")
    return Path("photos")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_build_restyle_gives_the_same_bytes_when_a_node_is_lost(
    nodes: TwoNodes, photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["build", "restyle", str(photos), "--style", "grayscale", "--quiet"]
    assert main([*words, "--out", "one", "--processes", "1"]) == 0
    killed = kill_when(lambda: any(Path("ray").glob("images/*.png")), nodes)
    assert main([*words, "--out", "ray", "--on", f"ray:{nodes.address}"]) == 0
    killed.join()
    assert contents(Path("ray")) == contents(Path("one"))
    assert "raylet" not in capsys.readouterr().out


def test_an_item_that_ends_each_of_its_workers_is_named_and_the_rest_is_kept(
    nodes: TwoNodes, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_tasks, "MAX_LOSSES", 2)
    on_ray = Execution(ray=RayTasks(address=nodes.address))
    spec = BuildSpec(kind="copies", settings={})
    sources = folder_sources(photos)[:4]
    with pytest.raises(EnvironmentFailedError, match=r"photos/p0\.png: 2 workers ended"):
        build(sources, Vanish("p0"), Path("ray"), spec, execution=on_ray)
    assert len(list(Path("ray/images").iterdir())) > 0
    build(sources, Vanish(""), Path("ray"), spec, execution=on_ray)
    build(sources, Vanish(""), Path("one"), spec)
    assert contents(Path("ray")) == contents(Path("one"))


def files_of(folder: Path) -> list[ImageFile]:
    paths = sorted(folder.iterdir())
    return list(check_images({path.name: ImageRef(str(path)) for path in paths}).files.values())


def test_a_node_without_the_file_gets_its_bytes(
    nodes: TwoNodes, photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nodes that do not have the working folder do not find relative paths."""
    images = files_of(photos)[:3]
    monkeypatch.setattr("sightline.builders.ray_tasks.os.getcwd", lambda: "/absent")
    broken = ImageFile(str(photos / "broken.png"), "", "PNG", 1, 1, (4, 0))
    Path(broken.path).write_bytes(b"text")
    broken = replace(broken, digest=file_digest(broken.path))
    found = dict(map_on_ray(size_of, [*images, broken], RayTasks(address=nodes.address), IMAGE_FILES))
    assert sorted(map(str, found.values()))[:3] == ["500", "500", "500"]
    assert any(str(error).startswith(f"{broken.path}: ") for error in found.values())
    assert "does not share the images" in capsys.readouterr().err


def test_an_error_names_the_node(nodes: TwoNodes, photos: Path) -> None:
    image = files_of(photos)[0]
    wrong = ImageFile(image.path, image.digest, "PNG", 1, 1, image.stamp)
    tasks = RayTasks(address=nodes.address)
    with pytest.raises(UserError, match=r"^node 127\.0\.0\.\d+: .*lacks"):
        list(map_on_ray(lacking, [wrong], tasks, IMAGE_FILES))


def test_a_task_that_fits_no_node_is_refused(nodes: TwoNodes, photos: Path) -> None:
    with pytest.raises(UserError, match="no node of the Ray cluster has 64 CPUs"):
        list(map_on_ray(size_of, files_of(photos), RayTasks(address=nodes.address, cpus=64), IMAGE_FILES))


@pytest.mark.slow
def test_build_equivalence_gives_the_same_bytes(
    nodes: TwoNodes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sentence_transformers", reason="needs the extra `local`")
    import torch

    # Imported here, because the nodes do not need it.
    from tests.builders.test_equivalence import rephrased

    built = rephrased(tmp_path / "rephrased", 3)
    words = ["build", "equivalence", str(built), "--similarity", "--json", "--quiet"]
    # A task has one thread; with another number, sums have another order.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert main(words) == 0
    finally:
        torch.set_num_threads(threads)
    here = capsys.readouterr().out
    assert main([*words, "--on", f"ray:{nodes.address}"]) == 0
    assert capsys.readouterr().out == here


@pytest.mark.slow
def test_build_read_gives_the_same_bytes_when_a_node_is_lost(
    nodes: TwoNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rapidocr", reason="needs the extra `ocr`")
    from PIL import ImageDraw

    monkeypatch.chdir(tmp_path)
    Path("signs").mkdir()
    for text in ("OPEN", "EXIT 12", "Main Street", "Bakery", "No parking"):
        sign = Image.new("RGB", (320, 96), "white")
        ImageDraw.Draw(sign).text((20, 20), text, fill="black", font_size=40)
        sign.save(f"signs/{text}.png")
    words = ["build", "read", "signs", "--quiet"]
    assert main([*words, "--out", "one.jsonl", "--store", "one.db", "--processes", "1"]) == 0
    killed = kill_when(lambda: readings(Path("ray.db")) > 0, nodes)
    words += ["--on", f"ray:{nodes.address}"]
    assert main([*words, "--out", "ray.jsonl", "--store", "ray.db"]) == 0
    killed.join()
    assert Path("ray.jsonl").read_bytes() == Path("one.jsonl").read_bytes()


def readings(store: Path) -> int:
    """The images whose text a store has."""
    if not store.exists():
        return 0
    with closing(sqlite3.connect(store)) as connection:
        try:
            [(count,)] = connection.execute("SELECT count(*) FROM readings")
        except sqlite3.OperationalError:  # The tables are not created yet.
            return 0
        return int(count)
