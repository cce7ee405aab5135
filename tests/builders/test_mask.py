"""Masks: only inside the box, as much as is said, the same again; and which objects may be masked."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sightline.builders.coco import MAX_AREA, MIN_AREA, read_instances
from sightline.builders.folder import read_manifest
from sightline.builders.mask import COLOURS, MASKINGS, pattern, read_assignment, whole_pixels
from sightline.cli.main import main
from sightline.formats.groups import GroupLine, by_group, read_groups

pytest.importorskip("pycocotools", reason="masking needs the extra `build`")

SIGHTLINE = [sys.executable, "-m", "sightline"]


def words(coco: Path, out: Path, *more: str) -> list[str]:
    found = ["build", "mask", str(coco / "instances_val2017_mini.json"), "--images", str(coco / "images")]
    return [*found, "--out", str(out), "--quiet", *more]


def content(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def coco(shared: Path) -> Path:
    return shared / "data" / "coco"


@pytest.fixture(scope="module")
def masked(coco: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("mask") / "built"
    assert main(words(coco, out, "--processes", "1")) == 0
    return out


def test_the_real_objects_between_a_tenth_and_a_quarter_of_their_image_are_eligible(coco: Path) -> None:
    raw = json.loads((coco / "instances_val2017_mini.json").read_bytes())
    sizes = {image["id"]: image["width"] * image["height"] for image in raw["images"]}
    fitting = [a for a in raw["annotations"] if MIN_AREA <= a["area"] / sizes[a["image_id"]] <= MAX_AREA]
    assert len(fitting) == 57
    instances = read_instances(coco / "instances_val2017_mini.json")
    eligible = [one for photo in instances.photos.values() for one in instances.eligible(photo)]
    assert {one.id for one in eligible} == {a["id"] for a in fitting if not a["iscrowd"]}
    assert (len(eligible), len({one.image_id for one in eligible})) == (55, 40)


@pytest.mark.slow
def test_forty_images_give_forty_groups_of_three_distinct_maskings(masked: Path) -> None:
    groups = by_group(read_groups(masked / "groups.jsonl"))
    assert len(groups) == 40
    assert read_manifest(masked).passed_over == {"images without a suitable object": 39, "crowds": 2}
    for lines in groups.values():
        assert [line.variant for line in lines] == ["original", "m0", "m1", "m2"]
        assert len({(m.labels["colour"], m.labels["lines"], m.labels["shape"]) for m in lines[1:]}) == 3
        assert len({line.cluster for line in lines}) == 1
        assert {line.references for line in lines} == {(str(lines[0].labels["category"]),)}


def pixels(masked: Path, line: GroupLine) -> Any:
    return np.array(Image.open(masked / line.images[0]))


@pytest.mark.slow
def test_a_mask_paints_only_inside_its_object_s_box_and_in_its_colour(masked: Path) -> None:
    for original, *lines in by_group(read_groups(masked / "groups.jsonl")).values():
        left, top, wide, high = original.facts["box"]
        before = pixels(masked, original)
        for line in lines:
            after = pixels(masked, line)
            changed = (before != after).any(axis=2)
            rows, columns = np.nonzero(changed)
            assert left <= columns.min() <= columns.max() + 1 <= left + wide
            assert top <= rows.min() <= rows.max() + 1 <= top + high
            assert (after[changed] == COLOURS[line.labels["colour"]]).all()  # type: ignore[index]


@pytest.mark.slow
def test_the_covered_shares_are_those_of_the_pixels(masked: Path, coco: Path) -> None:
    from pycocotools import mask

    raw = json.loads((coco / "instances_val2017_mini.json").read_bytes())
    outlines = {one["id"]: one["segmentation"] for one in raw["annotations"]}
    for _, *lines in by_group(read_groups(masked / "groups.jsonl")).values():
        for line in lines:
            left, top, right, bottom = line.facts["painted"]
            after = pixels(masked, line)
            colour = COLOURS[line.labels["colour"]]  # type: ignore[index]
            painted = np.zeros(after.shape[:2], dtype=bool)
            inside = (after[top:bottom, left:right] == colour).all(axis=2)
            shape = pattern(right - left, bottom - top, int(str(line.labels["lines"])), line.labels["shape"])  # type: ignore[arg-type]
            painted[top:bottom, left:right] = shape
            assert not (shape & ~inside).any()
            height, width = painted.shape
            drawn = mask.merge(mask.frPyObjects(outlines[line.facts["annotation"]], height, width))
            object_ = mask.decode(drawn).astype(bool)
            share = (painted & object_).sum() / object_.sum()
            assert line.facts["hidden_of_object"] == pytest.approx(share)
            assert line.facts["hidden_of_image"] == pytest.approx(painted.mean())
            lower = min(int(share * 10), 9) * 10
            assert line.labels["covered"] == f"{lower}-{lower + 10} %"


@pytest.mark.slow
def test_two_processes_and_another_run_make_the_same_files(coco: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for out, processes in ((one, "1"), (two, "2"), (two, "1")):
        assert main(words(coco, out, "--limit", "4", "--processes", processes)) == 0
        assert content(out) == content(one)


@pytest.mark.slow
def test_another_seed_makes_other_maskings(masked: Path, coco: Path, tmp_path: Path) -> None:
    assert main(words(coco, tmp_path / "other", "--seed", "1", "--limit", "1")) == 0
    ours = [line.labels for line in read_groups(tmp_path / "other" / "groups.jsonl")]
    theirs = [line.labels for line in read_groups(masked / "groups.jsonl")][: len(ours)]
    assert ours != theirs


@pytest.mark.slow
def test_killed_in_the_middle_and_started_again_it_makes_the_same(
    masked: Path, coco: Path, tmp_path: Path
) -> None:
    out = tmp_path / "killed"
    process = subprocess.Popen([*SIGHTLINE, *words(coco, out, "--processes", "2")])
    while len(list(out.glob("images/*.png"))) < 40:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert not (out / "manifest.json").exists()
    assert main(words(coco, out, "--processes", "1")) == 0
    assert content(out) == content(masked)


@given(st.integers(1, 60), st.integers(1, 60), st.sampled_from(MASKINGS))
def test_a_masking_is_bands_with_equal_gaps_within_its_shape(width: int, height: int, masking: Any) -> None:
    painted = pattern(width, height, masking.lines, masking.shape)
    whole = pattern(width, height, 1, masking.shape)
    assert not (painted & ~whole).any()
    if masking.shape == "rectangle":
        assert whole.all()
        runs = np.flatnonzero(np.diff(painted[:, 0].astype(int)) != 0).size
        assert runs <= 2 * (masking.lines - 1)
        assert height < 2 * masking.lines - 1 or runs == 2 * (masking.lines - 1)
    assert (painted == painted[:, ::-1]).all()


@given(
    st.tuples(st.floats(-50, 50), st.floats(-50, 50), st.floats(0, 90), st.floats(0, 90)),
    st.integers(1, 64),
    st.integers(1, 64),
)
def test_only_pixels_wholly_inside_the_box_and_the_image_are_painted(
    box: tuple[float, float, float, float], width: int, height: int
) -> None:
    found = whole_pixels(box, width, height)
    left, top, wide, high = box
    across = [x for x in range(width) if left <= x and x + 1 <= left + wide]
    down = [y for y in range(height) if top <= y and y + 1 <= top + high]
    if found is None:
        assert not (across and down)
    else:
        assert list(range(found.left, found.right)) == across
        assert list(range(found.top, found.bottom)) == down


SQUARE = [20, 20, 100, 20, 100, 70, 20, 70]


def instances(tmp_path: Path, **changes: Any) -> Path:
    """One image of 200 x 100 with one object of a fifth of it, and what is changed of the object."""
    Image.new("RGB", (200, 100), "grey").save(tmp_path / "a.png")
    one = {
        "id": 7,
        "image_id": 1,
        "category_id": 3,
        "bbox": [20, 20, 80, 50],
        "area": 4000,
        "iscrowd": 0,
        "segmentation": [SQUARE],
    }
    whole = {
        "images": [{"id": 1, "file_name": "a.png", "width": 200, "height": 100}],
        "annotations": [{**one, **changes}],
        "categories": [{"id": 3, "name": "cat"}],
    }
    file = tmp_path / "instances.json"
    file.write_text(
        json.dumps({name: part for name, part in whole.items() if name != changes.get("without")})
    )
    return file


def built(tmp_path: Path, file: Path) -> int:
    out = str(tmp_path / "out")
    return main(["build", "mask", str(file), "--images", str(tmp_path), "--out", out, "--quiet"])


RUNS = {"size": [100, 200], "counts": [2020, *[50, 50] * 79, 50, 20000 - 2020 - 159 * 50]}


@pytest.mark.parametrize("outline", [[SQUARE], RUNS])
def test_polygons_and_run_lengths_are_read(tmp_path: Path, outline: Any) -> None:
    assert built(tmp_path, instances(tmp_path, segmentation=outline)) == 0
    lines = read_groups(tmp_path / "out" / "groups.jsonl")
    assert len(lines) == 4
    whole = [one for one in lines if one.labels.get("lines") == "1" and one.labels["shape"] == "rectangle"]
    assert all(one.facts["hidden_of_object"] == pytest.approx(1, abs=0.05) for one in whole)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"without": "categories"}, "categories"),
        ({"without": "annotations"}, "annotations"),
        ({"bbox": None}, "bbox"),
        ({"area": "big"}, "area"),
        ({"category_id": 4}, "category_id"),
        ({"image_id": 2}, "image_id"),
        ({"iscrowd": 1}, "no image has an object that can be masked"),
        ({"area": 1000}, "no image has an object that can be masked"),
        ({"bbox": [300, 20, 80, 50]}, "contains no pixel of the image"),
        ({"bbox": [20, 20, 80, 5]}, "too few for"),
        ({"segmentation": {"size": [9, 9], "counts": [81]}}, "is of size"),
        ({"segmentation": [[1, 2]]}, "three points"),
        ({"segmentation": "x"}, "neither polygons nor a run-length"),
    ],
)
def test_objects_that_cannot_be_masked_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], message: str
) -> None:
    assert built(tmp_path, instances(tmp_path, **changes)) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out" / "groups.jsonl").exists()


def test_a_category_without_a_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = instances(tmp_path)
    file.write_text(file.read_text().replace('"name": "cat"', '"name": ""'))
    assert built(tmp_path, file) == 2
    assert "categories[0]" in capsys.readouterr().err


def test_a_missing_image_or_one_of_another_size_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = instances(tmp_path)
    Image.new("RGB", (100, 200)).save(tmp_path / "a.png")
    assert built(tmp_path, file) == 2
    assert "100 x 200 pixels, the instances file has 200 x 100" in capsys.readouterr().err
    (tmp_path / "a.png").unlink()
    assert built(tmp_path, file) == 2
    assert "no such image" in capsys.readouterr().err


def test_an_image_outside_the_folder_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    file = instances(tmp_path)
    (tmp_path / "in" / "a.png").symlink_to(tmp_path / "a.png")
    words = ["build", "mask", str(file), "--images", str(tmp_path / "in"), "--out", str(tmp_path / "out")]
    assert main(words) == 2
    assert "is outside the data folder" in capsys.readouterr().err
    file.write_text(file.read_text().replace('"a.png"', '"../a.png"'))
    assert main(words) == 2
    assert "record image 1, field file_name: is outside the folder" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def spec(tmp_path: Path, ids: list[int], category: dict[int, int], **entry: Any) -> list[str]:
    """A types/labels pair that masks these images, the first two maskings of each alike."""
    like = {"colors": "blue", "lines": 3, "draw_type": "ellipse", **entry}
    other = {"colors": "black", "lines": 1, "draw_type": "rectangle"}
    types = {f"{one:012}_{n}": other if n == 2 else like for one in ids for n in range(3)}
    labels = {f"{one:012}_{n}": category[one] for one in ids for n in range(3)}
    for name, content in (("types.json", types), ("labels.json", labels)):
        (tmp_path / name).write_text(json.dumps(content))
    return ["--spec", str(tmp_path / "types.json"), "--labels", str(tmp_path / "labels.json")]


def test_a_spec_over_known_images_builds_exactly_its_maskings(coco: Path, tmp_path: Path) -> None:
    known = read_instances(coco / "instances_val2017_mini.json")
    first = {n: known.eligible(photo) for n, photo in known.photos.items() if known.eligible(photo)}
    ids = sorted(first)[:2]
    category = {one: first[one][0].category_id for one in ids}
    absent = 999_999_999_999
    files = spec(tmp_path, [*ids, absent], {**category, absent: 1})
    assert main(words(coco, tmp_path / "out", *files)) == 0
    assert read_manifest(tmp_path / "out").dropped == {f"{absent:012}": "not in the instances file"}
    groups = by_group(read_groups(tmp_path / "out" / "groups.jsonl"))
    assert list(groups) == [f"{one:012}" for one in ids]
    for one, lines in zip(ids, groups.values(), strict=True):
        assert lines[0].references == (known.categories[category[one]],)
        found = [(m.labels["colour"], m.labels["lines"], m.labels["shape"]) for m in lines[1:]]
        assert found == [("blue", "3", "ellipse")] * 2 + [("black", "1", "rectangle")]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"colors": "pink"}, "colors.*pink.*red, blue, green"),
        ({"lines": 2}, "lines.*1, 3, 5, 7"),
        ({"draw_type": None}, "draw_type"),
    ],
)
def test_a_malformed_spec_is_refused_with_file_record_and_field(
    coco: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], entry: dict[str, Any], message: str
) -> None:
    known = read_instances(coco / "instances_val2017_mini.json")
    number = min(known.photos)
    assert main(words(coco, tmp_path / "out", *spec(tmp_path, [number], {number: 1}, **entry))) == 2
    told = capsys.readouterr().err
    assert "types.json" in told
    assert f"{number:012}_0" in told
    assert re.search(message, told), told


def test_the_authors_own_maskings_are_as_many_as_the_paper_s(shared: Path) -> None:
    authors = shared / "data" / "mmr3" / "author_labels"
    found = read_assignment(authors / "types.json", authors / "labels.json").maskings
    maskings = [one for several in found.values() for one in several]
    assert (len(found), len(maskings)) == (1500, 4500)
    # Tables 11 to 13: the n of which every accuracy there is a share.
    assert Counter(one.colour for one in maskings) == {
        "red": 746, "blue": 821, "green": 735, "yellow": 744, "white": 697, "black": 757,
    }  # fmt: skip
    assert Counter(one.lines for one in maskings) == {1: 1164, 3: 1084, 5: 1107, 7: 1145}
    assert Counter(one.shape for one in maskings) == {"rectangle": 2180, "ellipse": 2320}


def test_a_box_without_a_whole_pixel_is_not_painted() -> None:
    assert whole_pixels((1.2, 1.2, 0.7, 5), 10, 10) is None
