"""Verification: what people find wrong is dropped, what they accept is kept, what is revised comes again."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from PIL import Image

from sightline.builders.review_lists import AcceptanceRule, Mark
from sightline.builders.verify import ReviewedLine, read_table_lines, share_right, verify
from sightline.cli.main import main
from sightline.errors import UserError
from sightline.metrics.statistics import TOO_FEW

Capture = pytest.CaptureFixture[str]

HEADER = ("image_url", "instruction", "response", "category")


def put(path: Path, lines: list[dict[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    return path


def rows(path: str | Path) -> list[dict[str, str]]:
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five triplets about four images, of which three are there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine" / "images").mkdir(parents=True)
    for name in ("a", "b", "c"):
        Image.new("RGB", (9, 7), "red").save(tmp_path / "mine" / "images" / f"{name}.png")
    lines = [
        dict(
            zip(HEADER, (f"images/{name}.png", f"Name {number}, please.", f"R{number}", "time"), strict=True)
        )
        for number, name in enumerate("aabcd")
    ]
    return put(tmp_path / "mine" / "contextual_val.csv", lines)


def marked(listed: str, marks: Mapping[str, str], by: str, remark: str = "") -> str:
    """A person's copy of a list, marks by the response; its path."""
    lines = rows(listed)
    for line in lines:
        said = marks.get(line["response"], "")
        line.update(mark=said, by=by, remark=remark if said == "wrong" else "")
    return str(put(Path(f"{by}.csv"), lines))


def run(*words: object) -> int:
    return main(["build", "verify", *map(str, words)])


def test_accepted_lines_become_a_data_folder_and_rejected_ones_are_listed_with_votes_and_remarks(
    table: Path, capsys: Capture
) -> None:
    assert run(table, "--write", "list.csv") == 0
    assert [line["image"] for line in rows("list.csv")][-2:] == [str(table.parent / "images/c.png"), ""]
    anna = marked("list.csv", {"R0": "right", "R1": "right", "R2": "wrong", "R4": "right"}, "anna")
    ben = marked("list.csv", {"R0": "right", "R1": "wrong", "R2": "wrong"}, "ben", "it is green")
    assert run(table, "--human", anna, "--human", ben, "--out", "out") == 0
    assert [row["response"] for row in rows("out/contextual_val.csv")] == ["R0", "R4"]
    assert tuple(rows("out/contextual_val.csv")[0]) == HEADER
    assert sorted(path.name for path in Path("out/images").iterdir()) == ["a.png", "b.png"]
    (rejected,) = rows("out/rejected.csv")
    assert rejected["response"] == "R2"
    assert [rejected[name] for name in ("round", "right", "wrong", "remarks")] == [
        "1", "0", "2", "ben: it is green",
    ]  # fmt: skip
    report = json.loads(Path("out/verification.json").read_text())
    assert [report[name] for name in ("lines", "accepted", "rejected", "undecided")] == [5, 2, 1, 2]
    assert report["decided"][1]["accepted"] is None
    shown = " ".join(capsys.readouterr().out.split())
    assert "66.7" in shown
    assert "undecided: 2" in shown


def test_a_table_without_responses_is_refused(table: Path, capsys: Capture) -> None:
    put(table, [{name: row[name] for name in HEADER if name != "response"} for row in rows(table)])
    assert run(table, "--write", "list.csv") == 2
    assert "field response: lacks a column" in capsys.readouterr().err
    assert not Path("list.csv").exists()


def test_later_marks_join_the_folder_and_other_lines_are_refused(table: Path, capsys: Capture) -> None:
    run(table, "--write", "list.csv")
    anna = marked("list.csv", {"R0": "right"}, "anna")
    assert run(table, "--human", anna, "--out", "out") == 0
    ben = marked("list.csv", {"R3": "right"}, "ben")
    assert run(table, "--human", anna, "--human", ben, "--out", "out") == 0
    assert [row["response"] for row in rows("out/contextual_val.csv")] == ["R0", "R3"]
    fewer = put(table.parent / "fewer.csv", rows(table)[:2])
    capsys.readouterr()
    assert run(fewer, "--human", anna, "--out", "out") == 2
    assert "holds another build" in capsys.readouterr().err
    assert run(fewer, "--human", anna, "--out", str(table.parent)) == 2
    assert "fewer.csv" in capsys.readouterr().err
    assert len(rows(table)) == 5


def test_a_rejected_line_that_was_revised_is_reviewed_in_the_next_round(table: Path) -> None:
    run(table, "--write", "list.csv")
    five = [
        marked("list.csv", {"R0": "right", "R1": "right" if n < 3 else "wrong"}, f"p{n}") for n in range(5)
    ]
    humans = [word for file in five for word in ("--human", file)]
    assert run(table, *humans, "--accept", "4/5", "--out", "round1") == 0
    assert [row["response"] for row in rows("round1/contextual_val.csv")] == ["R0"]
    revised = rows("round1/rejected.csv")
    revised[0]["response"] = "R1, said better"
    put(Path("revised.csv"), revised)
    assert run("revised.csv", "--write", "list2.csv") == 0
    again = [marked("list2.csv", {"R1, said better": "right"}, f"p{n}-again") for n in range(4)]
    humans += [word for file in again for word in ("--human", file)]
    assert run(table, "revised.csv", *humans, "--accept", "4/5", "--out", "round2") == 0
    assert [row["response"] for row in rows("round2/contextual_val.csv")] == ["R0", "R1, said better"]
    decided = json.loads(Path("round2/verification.json").read_text())["decided"]
    assert [(one["round"], one["accepted"]) for one in decided if one["marks"]] == [
        (1, True), (1, False), (2, True),
    ]  # fmt: skip


def test_an_unchanged_line_keeps_its_marks(table: Path) -> None:
    run(table, "--write", "list.csv")
    anna = marked("list.csv", {"R0": "wrong"}, "anna")
    run(table, "--human", anna, "--out", "out")
    lines = read_table_lines([table, Path("out/rejected.csv")])
    assert [line.round for line in lines] == 5 * [1]
    assert run("out/rejected.csv", "--human", anna, "--out", "again") == 0
    assert (rows("again/accepted.csv"), len(rows("again/rejected.csv"))) == ([], 1)


def test_marks_do_not_apply_to_a_changed_line(table: Path, capsys: Capture) -> None:
    run(table, "--write", "list.csv")
    anna = marked("list.csv", {"R0": "right"}, "anna")
    changed = rows(table)
    changed[0]["response"] = "R0!"
    put(table, changed)
    capsys.readouterr()
    assert run(table, "--human", anna) == 2
    assert "no mark is about a line of these tables" in capsys.readouterr().err


def test_the_marks_of_an_author_can_be_excluded(table: Path, capsys: Capture) -> None:
    run(table, "--write", "list.csv")
    author = marked("list.csv", {"R0": "right"}, "author")
    capsys.readouterr()
    for spelling in ("author", " Author"):
        assert run(table, "--human", author, "--not-by", spelling) == 2
        assert "'author' has marked a line" in capsys.readouterr().err


def test_the_share_counts_decided_lines_and_has_the_published_value(table: Path) -> None:
    lines = read_table_lines([table])
    found = [ReviewedLine(line, (Mark(True, "a"),), place != 3) for place, line in enumerate(lines[1:])]
    metric = share_right([*found, ReviewedLine(lines[0], (), None)])
    assert (metric.value, metric.n, metric.clusters) == (75.0, 4, 4)
    assert (metric.low, metric.high, metric.reason) == (None, None, TOO_FEW)
    assert metric.published is not None
    assert [(one.value, one.comparable) for one in metric.published] == [(96.0, False)]
    nothing = share_right([ReviewedLine(lines[0], (), None)])
    assert (nothing.value, nothing.n) == (None, 0)
    assert nothing.reason


def test_other_data_than_contextuals_have_no_published_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    table = put(Path("questions.csv"), [{"id": "1", "question": "What does it mean?", "answer": "A"}])
    (line,) = read_table_lines([table])
    assert share_right([ReviewedLine(line, (Mark(True, "a"),), True)]).published is None
    assert run(table, "--write", "list.csv") == 0
    lines = [{**rows("list.csv")[0], "mark": "right", "by": "anna"}]
    assert run(table, "--human", put(Path("anna.csv"), lines), "--out", "out") == 0
    told = capsys.readouterr()
    assert "100.0" in told.out
    assert "96" not in told.out
    assert "ConTextual" not in told.out + told.err


def test_columns_named_like_list_columns_are_kept_and_affect_no_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content = {"key": "q1", "by": "the author", "mark": "7", "remark": "old", "image": "a.jpg"}
    table = put(Path("questions.csv"), [{**content, "question": "What?"}])
    assert run(table, "--write", "list.csv") == 0
    (shown,) = rows("list.csv")
    assert {name: shown[f"{name} (table)"] for name in content} == content
    assert (shown["mark"], shown["by"], shown["remark"], shown["image"]) == ("", "", "", "")
    filled = put(Path("ben.csv"), [{**shown, "mark": "wrong", "by": "ben"}])
    assert run(table, "--human", filled, "--out", "out") == 0
    (rejected,) = rows("out/rejected.csv")
    assert {name: rejected[name] for name in content} == content
    (decided,) = json.loads(Path("out/verification.json").read_text())["decided"]
    assert decided["marks"] == [{"yes": False, "by": "ben", "remark": ""}]


@pytest.mark.parametrize("revised", ["round1/rejected.csv", "revised.csv"])
def test_a_revised_line_keeps_its_image(table: Path, revised: str, capsys: Capture) -> None:
    run(table, "--write", "list.csv")
    anna = marked("list.csv", {"R2": "wrong", "R0": "right"}, "anna")
    assert run(table, "--human", anna, "--out", "round1") == 0
    line = {**rows("round1/rejected.csv")[0], "response": "R2, said better"}
    put(Path(revised), [line])
    if revised.startswith("round1"):
        assert run(revised, "--write", "list2.csv") == 0
        assert rows("list2.csv")[0]["image"] == "round1/images/b.png"
    assert run(table, revised, "--write", "list3.csv") == 0
    assert rows("list3.csv")[-1]["image"].endswith("images/b.png")
    ben = marked("list3.csv", {"R2, said better": "right"}, "ben")
    assert run(table, revised, "--human", anna, "--human", ben, "--out", "round2") == 0
    assert [row["response"] for row in rows("round2/contextual_val.csv")] == ["R0", "R2, said better"]
    image = table.parent / "images" / "b.png"
    assert Path("round2/images/b.png").read_bytes() == image.read_bytes()
    assert "missing or broken" not in capsys.readouterr().err


def test_a_missing_or_broken_image_is_reported_and_listed_in_the_manifest(
    table: Path, capsys: Capture
) -> None:
    (table.parent / "images" / "c.png").write_text("no image")
    run(table, "--write", "list.csv")
    anna = marked("list.csv", dict.fromkeys(("R0", "R3", "R4"), "right"), "anna")
    assert run(table, "--human", anna, "--out", "out") == 0
    told = capsys.readouterr().err
    assert "images missing or broken: 2" in told
    assert "no such image: images/d.png" in told
    assert "not an image in a known format" in told
    manifest = json.loads(Path("out/manifest.json").read_text())
    assert manifest["missing"].keys() == {"images/c.png", "images/d.png"}
    assert [path.name for path in Path("out/images").iterdir()] == ["a.png"]


def test_the_folder_of_a_table_that_is_read_is_not_replaced(table: Path, capsys: Capture) -> None:
    run(table, "--write", "list.csv")
    anna = marked("list.csv", {"R0": "right", "R1": "wrong"}, "anna")
    assert run(table, "--human", anna, "--out", "round1") == 0
    before = {path: path.read_bytes() for path in Path("round1").rglob("*") if path.is_file()}
    capsys.readouterr()
    for tables in ([table, "round1/rejected.csv"], ["round1/contextual_val.csv"]):
        assert run(*tables, "--human", anna, "--out", "round1", "--force") == 2
        assert "round1: contains the input round1/" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in Path("round1").rglob("*") if path.is_file()} == before


def test_more_marks_than_the_rule_allows_are_refused(table: Path) -> None:
    lines = read_table_lines([table])
    marks = {lines[0].key: [Mark(True, str(number)) for number in range(6)]}
    with pytest.raises(UserError, match="has too many marks"):
        verify(lines, marks, AcceptanceRule(4, 5))


def test_tables_with_other_columns_and_duplicate_lines_are_refused(table: Path, tmp_path: Path) -> None:
    other = put(tmp_path / "other.csv", [{"id": "1", "question": "What?"}])
    with pytest.raises(UserError, match=r"other\.csv: has other columns"):
        read_table_lines([table, other])
    assert [line.cells for line in read_table_lines([other])] == [{"id": "1", "question": "What?"}]
    twice = put(tmp_path / "twice.csv", [*rows(table), rows(table)[0]])
    with pytest.raises(UserError, match="record line 7: occurs twice"):
        read_table_lines([twice])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "neither --write nor --human is given"),
        (["--out", "out"], "neither --write nor --human is given"),
        (["--write", "list.csv", "--out", "out"], "--out needs filled-in lists"),
        (["--human", "gone.csv"], "cannot be read"),
        (["--write", "list.csv", "--accept", "1/5"], "--accept 1/5 is not a rule"),
        (["--write", "gone/list.csv"], "no such folder"),
    ],
)
def test_a_wrong_call_is_refused_and_nothing_is_written(
    table: Path, words: list[str], message: str, capsys: Capture
) -> None:
    assert run(table, *words) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in Path().iterdir()] == ["mine"]


def test_two_images_with_one_name_are_refused_unless_they_are_equal(table: Path, capsys: Capture) -> None:
    more = Path("more")
    (more / "images").mkdir(parents=True)
    line = {**rows(table)[0], "response": "R5"}
    other = put(more / "contextual_val.csv", [line])
    image = Path(line["image_url"])
    (more / image).write_bytes((table.parent / image).read_bytes())
    assert run(table, other, "--write", "list.csv") == 0
    Image.new("RGB", (9, 7), "blue").save(more / image)
    capsys.readouterr()
    assert run(table, other, "--write", "again.csv") == 2
    assert f"more/{image}, record {image}, field image_url: differs from the image" in (
        capsys.readouterr().err
    )
    assert run(table, other, "--human", marked("list.csv", {"R0": "right"}, "anna"), "--out", "out") == 2
    assert not Path("out").exists()


@pytest.mark.parametrize("written", ["mine/contextual_val.csv", "anna.csv"])
def test_a_list_replaces_neither_a_table_nor_marks(table: Path, written: str, capsys: Capture) -> None:
    run(table, "--write", "list.csv")
    marked("list.csv", {"R0": "right"}, "anna")
    before = Path(written).read_bytes()
    capsys.readouterr()
    assert run(table, "--human", "anna.csv", "--write", written, "--force") == 2
    assert f"{written}: is an input of this command and would be replaced" in capsys.readouterr().err
    assert Path(written).read_bytes() == before
