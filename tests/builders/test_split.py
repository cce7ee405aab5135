"""Validation splits in proportion, against ConTextual's own: its Appendix C, its released files."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sightline.builders.split import proportional, split_table, write_split
from sightline.cli.main import main
from sightline.errors import UserError

SIZES = {
    "time": 50,
    "shopping": 50,
    "navigation-transportation": 50,
    "abstract": 50,
    "app": 50,
    "web": 50,
    "infographics": 50,
    "stvqa": 75,
    "estvqa": 81,
}


def _table(folder: Path, sizes: dict[str, int], **changes: str) -> Path:
    file = folder / "all.csv"
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, ["category", "image_url", "instruction", "response", "source"])
        writer.writeheader()
        for category, size in sizes.items():
            for number in range(size):
                row = {
                    "category": category,
                    "image_url": f"https://h/{category}/{number}.png",
                    "instruction": f'Name "it", {number}',
                    "response": f"an answer,\nof {category}",
                    "source": "mine",
                }
                writer.writerow({**row, **changes})
    return file


def _read(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 300), min_size=1), st.data())
def test_every_category_has_its_proportional_share_within_one(
    sizes: dict[str, int], data: st.DataObject
) -> None:
    whole = sum(sizes.values())
    count = data.draw(st.integers(0, whole))
    drawn = proportional(sizes, count)
    assert sum(drawn.values()) == count
    for name, size in sizes.items():
        assert 0 <= drawn[name] <= size
        assert abs(drawn[name] - size * count / whole) < 1


def test_a_sample_of_100_of_the_papers_506_has_30_and_seven_times_10(tmp_path: Path) -> None:
    split = split_table(_table(tmp_path, SIZES), 100, seed=0)
    assert split.drawn["Miscellaneous Natural Scenes"] == 30
    assert sorted(split.drawn.values()) == [10] * 7 + [30]


def test_the_released_test_split_has_the_sizes_of_the_released_val(shared: Path) -> None:
    """Appendix C's draw, on the released categories: as many of each as the released val holds."""

    def counted(name: str) -> Counter[str]:
        rows = _read(shared / f"data/contextual/contextual_{name}.csv")
        return Counter("natural" if row["category"].endswith("stvqa") else row["category"] for row in rows)

    assert proportional(counted("test"), 100) == counted("val")


def test_the_seed_decides_the_sampled_rows(tmp_path: Path) -> None:
    file = _table(tmp_path, SIZES)
    first, again, other = (split_table(file, 100, seed).chosen for seed in (0, 0, 1))
    assert first == again != other


def test_the_files_are_as_the_release_has_them(tmp_path: Path) -> None:
    split = split_table(_table(tmp_path, {"web": 6, "stvqa": 2, "estvqa": 4}), 4, seed=3)
    val, test = write_split(split, {}, tmp_path / "mine")
    assert (val.name, test.name) == ("contextual_val.csv", "contextual_test.csv")
    whole, drawn, shown = _read(tmp_path / "all.csv"), _read(val), _read(test)
    assert Counter(row["category"] == "web" for row in drawn) == {True: 2, False: 2}
    assert all(row in whole for row in drawn)
    assert [row["image_url"] for row in shown] == [row["image_url"] for row in whole]
    assert list(shown[0]) == ["category", "image_url", "instruction", "source"]
    order = [row["image_url"] for row in whole]
    assert sorted(drawn, key=lambda row: order.index(row["image_url"])) == drawn


def test_the_command_reports_the_sampled_rows_and_replaces_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["build", "split", str(_table(tmp_path, SIZES)), "--out", str(tmp_path / "mine")]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "contextual_val.csv: 100 rows (30 of 156 Miscellaneous Natural Scenes, 10 of 50 abstract" in said
    assert "contextual_test.csv: all 506 rows, without their responses" in said
    assert main(words) == 2
    assert "exists already; expected another --out, or --force" in capsys.readouterr().err
    assert main([*words, "--force"]) == 0


def with_images(folder: Path) -> Path:
    """A table of four rows about three images; one has a folder of its own, one is not there."""
    names = ("images/a.png", "images/deep/b.png", "images/a.png", "images/gone.png")
    (folder / "images" / "deep").mkdir(parents=True)
    for name, colour in (("images/a.png", "red"), ("images/deep/b.png", "blue")):
        Image.new("RGB", (9, 7), colour).save(folder / name)
    with (folder / "all.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["image_url", "instruction", "response", "category"])
        writer.writerows([name, f"Name {number}.", "it", "web"] for number, name in enumerate(names))
    return folder / "all.csv"


def test_images_next_to_the_table_are_copied_and_the_printed_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = with_images(tmp_path / "whole")
    monkeypatch.chdir(tmp_path)
    assert main(["build", "split", str(table), "--out", "data/mine", "--count", "3"]) == 0
    told = capsys.readouterr()
    assert "images: 2 in data/mine" in told.out
    assert "missing or broken: 1\n  no such image: images/gone.png" in told.err
    for name in ("images/a.png", "images/deep/b.png"):
        assert Path("data/mine", name).read_bytes() == (table.parent / name).read_bytes()
    words = ["run", "contextual", "--data", "data/mine", "--split", "test", "--model", "baseline/chance"]
    assert main([*words, "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert (result["samples"], result["errors"]) == (4, 1)


def test_images_are_added_to_what_is_there_and_replace_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = with_images(tmp_path / "whole"), tmp_path / "mine"
    (out / "images").mkdir(parents=True)
    (out / "images" / "own.png").write_text("somebody's")
    (out / "images" / "a.png").write_text("another")
    words = ["build", "split", str(table), "--count", "2", "--out"]
    assert main([*words, str(out)]) == 2
    assert "a.png: exists already" in capsys.readouterr().err
    assert not (out / "contextual_val.csv").exists()
    assert main([*words, str(out), "--force"]) == 0
    assert (out / "images" / "own.png").read_text() == "somebody's"
    assert (out / "images" / "a.png").read_bytes() == (table.parent / "images" / "a.png").read_bytes()
    assert main([*words, str(table.parent)]) == 0


@pytest.mark.parametrize(
    ("sizes", "changes", "count", "message"),
    [
        ({"web": 5}, {}, 5, "--count 5 cannot be sampled from 5 rows; expected 1 to 4"),
        ({"web": 5}, {}, 0, "--count 0 cannot be sampled"),
        ({"web": 5}, {"response": " "}, 2, "record line 2, field response: is blank"),
        ({"web": 5}, {"category": ""}, 2, "field category: is blank"),
    ],
)
def test_a_table_that_cannot_be_split_is_refused(
    tmp_path: Path, sizes: dict[str, int], changes: dict[str, str], count: int, message: str
) -> None:
    with pytest.raises(UserError) as refused:
        split_table(_table(tmp_path, sizes, **changes), count, seed=0)
    assert message in str(refused.value)


def test_a_table_in_another_layout_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("image_url,instruction,category\nu,i,web\n")
    with pytest.raises(UserError, match="field response: lacks a column"):
        split_table(tmp_path / "t.csv", 1, seed=0)


@pytest.mark.parametrize("name", ["contextual_test.csv", "contextual_val.csv"])
def test_the_only_table_with_responses_is_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    table = _table(tmp_path, {"web": 5}).rename(tmp_path / name)
    before = table.read_bytes()
    words = ["build", "split", str(table), "--out", str(tmp_path), "--count", "2"]
    assert main([*words, "--force"]) == 2
    assert (
        f"{name}: is an input of this command and would be replaced; expected another --out"
        in capsys.readouterr().err
    )
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert table.read_bytes() == before
