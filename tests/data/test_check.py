"""`data check` counts as the papers do, and finds every image that cannot be used."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from sightline.benchmarks.base import Release
from sightline.cli.main import main
from sightline.data.check import check_data
from sightline.data.describe import describe_data
from sightline.data.pull import groups_release, pull, releases
from sightline.errors import UserError


@pytest.fixture
def folder(tmp_path: Path, source: Release, pack: Callable[..., bytes]) -> Path:
    """The small data set as it is pulled."""
    archive = tmp_path / "archive.tar.gz"
    archive.write_bytes(pack())
    return pull(source, tmp_path, origin=str(archive))[0]


def test_codis_holds_what_the_paper_counts(shared: Path) -> None:
    found = check_data(releases()["codis"], shared / "data")
    (split,) = found.splits
    assert found.sound
    assert split.released
    assert split.as_published
    assert (split.samples, split.images, split.clusters) == (353, 216, 216)
    assert split.cluster_sizes == {1: 111, 2: 82, 3: 14, 4: 9}
    assert split.labels["category"] == {
        "Temporal Information": 95,
        "Location and Orientation": 84,
        "Attributes": 75,
        "Relationships": 52,
        "Cultural Background": 47,
    }
    assert (split.duplicates, found.unreferenced) == ([], [])


@pytest.mark.slow
def test_iibench_holds_what_the_paper_counts(shared: Path) -> None:
    found = check_data(releases()["iibench"], shared / "data/iibench")
    test, dev = found.splits
    assert found.sound
    assert test.as_published
    assert dev.as_published
    assert (test.samples, test.images, test.clusters) == (1399, 1399, 1187)
    assert (dev.samples, dev.images, dev.clusters) == (35, 35, 35)
    golden = json.loads((shared / "data/iibench/golden_tables.json").read_text())
    counted = golden["denominators_test_questions"]
    assert test.labels == {label: counted[label] for label in test.labels}
    assert set(test.labels) == {"domain", "emotion", "image_type", "difficulty", "rhetoric"}
    assert sum(len(paths) - 1 for paths in test.duplicates) == 1399 - 1187
    assert found.unreferenced == []


def test_one_split_alone_can_be_checked(shared: Path) -> None:
    found = check_data(releases()["iibench"], shared / "data/iibench", "dev")
    assert [split.split for split in found.splits] == ["dev"]
    assert found.unreferenced == []


def test_images_of_equal_content_are_one_cluster(folder: Path, source: Release) -> None:
    shutil.copy(folder / "images/a.jpg", folder / "images/b.jpg")
    (split,) = check_data(source, folder).splits
    assert (split.images, split.clusters, split.cluster_sizes) == (2, 1, {3: 1})
    assert split.duplicates == [["images/a.jpg", "images/b.jpg"]]
    assert not split.as_published


def test_a_missing_image_names_the_samples_that_need_it(folder: Path, source: Release) -> None:
    (folder / "images/a.jpg").unlink()
    found = check_data(source, folder)
    (fault,) = found.splits[0].missing
    assert not found.sound
    assert (fault.image, fault.samples) == ("images/a.jpg", ("000", "002"))
    assert fault.problem == "no such image"
    assert found.splits[0].broken == []


def test_a_truncated_image_is_broken_although_it_opens(folder: Path, source: Release) -> None:
    path = folder / "images/b.jpg"
    content = path.read_bytes()
    path.write_bytes(content[:-400])
    with Image.open(path) as opened:
        assert opened.size == (256, 256)
    found = check_data(source, folder)
    (fault,) = found.splits[0].broken
    assert not found.sound
    assert (fault.image, fault.samples) == ("images/b.jpg", ("001",))
    assert fault.problem.startswith("the file ends too early: image file is truncated")
    assert found.splits[0].clusters == 2


@pytest.mark.parametrize(("stored", "problem"), [(b"", "the file is empty"), (b"hello", "not an image")])
def test_a_file_that_is_not_an_image_is_broken(
    folder: Path, source: Release, stored: bytes, problem: str
) -> None:
    (folder / "images/b.jpg").write_bytes(stored)
    (fault,) = check_data(source, folder).splits[0].broken
    assert fault.problem.startswith(problem)


def test_a_link_out_of_the_folder_is_broken(tmp_path: Path, folder: Path, source: Release) -> None:
    outside = tmp_path / "outside.jpg"
    (folder / "images/b.jpg").rename(outside)
    (folder / "images/b.jpg").symlink_to(outside)
    (fault,) = check_data(source, folder).splits[0].broken
    assert fault.problem.startswith("is outside the data folder")


def test_unreferenced_files_are_listed_and_are_no_fault(folder: Path, source: Release) -> None:
    (folder / "images/Thumbs.db").write_bytes(b"x")
    found = check_data(source, folder)
    assert found.unreferenced == ["images/Thumbs.db"]
    assert found.sound


def test_records_that_differ_from_the_release_are_reported(folder: Path, source: Release) -> None:
    records = json.loads((folder / "data.json").read_text())
    (folder / "data.json").write_text(json.dumps(records[:2]))
    (split,) = check_data(source, folder).splits
    assert (split.samples, split.released, split.as_published) == (2, False, False)


def test_a_wrong_record_is_named_before_any_image_is_read(folder: Path, source: Release) -> None:
    records = json.loads((folder / "data.json").read_text())
    del records[1]["answer"]["answer_2"]
    (folder / "data.json").write_text(json.dumps(records))
    with pytest.raises(UserError, match=r"record 001, field answer\.answer_2: object missing"):
        check_data(source, folder)


@pytest.mark.parametrize("given", [True, False])
def test_a_folder_without_records_is_refused(tmp_path: Path, source: Release, given: bool) -> None:
    with pytest.raises(UserError, match=r"data\.json"):
        check_data(source, tmp_path if given else None)


def test_a_groups_file_is_checked_line_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Image.new("RGB", (8, 8), "red").save(tmp_path / "red.png")
    Image.new("RGB", (8, 8), "blue").save(tmp_path / "blue.png")
    shutil.copy(tmp_path / "red.png", tmp_path / "again.png")
    line = {"prompt": "What?", "references": ["a"], "labels": {"kind": "k"}}
    lines = [
        {**line, "group": "a", "variant": "1", "images": ["red.png", "blue.png"]},
        {**line, "group": "a", "variant": "2", "images": ["again.png"], "labels": {"kind": ["k", "l"]}},
        {**line, "group": "b", "variant": "1", "images": ["gone.png"], "references": []},
    ]
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in lines))
    found = check_data(*groups_release(file))
    (split,) = found.splits
    assert not found.sound
    assert [(fault.image, fault.samples) for fault in split.missing] == [("gone.png", ("b, 1",))]
    assert (split.samples, split.images, split.clusters, split.group_sizes) == (3, 4, 3, {1: 1, 2: 1})
    assert split.cluster_sizes == {1: 2, 2: 1}
    assert split.labels == {"kind": {"k": 3, "l": 1}, "variant": {"1": 2, "2": 1}}
    assert split.without_reference == 1
    assert main(["data", "check", f"groups:{file}", "--quiet"]) == 1
    out = capsys.readouterr().out
    assert "2 groups, by their number of lines: 1 (1), 2 (1)" in out
    assert "no consistency, which compares the lines of a group: 1 group of one line" in out
    described = describe_data(*groups_release(file))
    shares = described.labels["kind"]["l"], described.labels["variant"]["1"]
    assert [(one.samples, one.images, one.percent) for one in shares] == [(1, 1, 25.0), (2, 3, 75.0)]
    assert (described.images, described.unreadable_images) == (3, 1)
    assert main(["data", "check", f"groups:{tmp_path / 'none.jsonl'}"]) == 2
    assert "none.jsonl: cannot be read" in capsys.readouterr().err
