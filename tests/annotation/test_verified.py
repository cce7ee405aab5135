"""Verification: what humans find wrong is dropped, what they accept is kept, what is revised comes again."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from PIL import Image
from tests.annotation.working import command, work

from sightline.annotation.other_items import read_table_lines
from sightline.annotation.record_tables import Mark, ReviewedLine, share_right
from sightline.annotation.types import Annotator, Item
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


def verified(
    name: str, *tables: str | Path, wrong: dict[str, set[str]], people: str = "anna ben cleo"
) -> Path:
    """The folder of a project in which humans mark responses wrong: response -> who; the others are right."""

    def says(annotator: Annotator, item: Item, field: str) -> str:
        found = annotator.name in wrong.get(item.texts["response"][0], ())
        return ("wrong" if found else "right") if field == "decision" else "it is green" if found else ""

    command("annotate", "new", "verify", *tables, "--name", name, "--annotators", str(len(people.split())))
    command("annotate", "invite", name, *people.split())
    work(name, says)
    command("annotate", "export", name, "--out", name)
    return Path(name)


def test_accepted_lines_become_a_data_folder_and_rejected_ones_come_again_when_they_are_revised(
    table: Path, capsys: Capture
) -> None:
    wrong = {"R1": {"anna"}, "R2": {"anna", "ben"}, "R4": {"anna", "ben", "cleo"}}
    out = verified("one", table, wrong=wrong)
    assert [row["response"] for row in rows(out / "verified/contextual_val.csv")] == ["R0", "R1", "R3"]
    assert tuple(rows(out / "verified/contextual_val.csv")[0]) == HEADER
    assert sorted(path.name for path in (out / "verified/images").iterdir()) == ["a.png", "b.png", "c.png"]
    rejected = rows(out / "verified/rejected.csv")
    assert [[one[name] for name in ("response", "round", "right", "wrong")] for one in rejected] == [
        ["R2", "1", "1", "2"],
        ["R4", "1", "0", "3"],
    ]
    assert rejected[0]["remarks"].startswith("anna: it is green; ben: it is green; cleo: ")
    shown = " ".join(capsys.readouterr().out.split())
    assert "60.0 % of 5 decided lines are right (published: 96 %)" in shown
    assert "images missing or broken: images/d.png" in shown
    put(out / "revised.csv", [{**rejected[0], "response": "R2, said better"}])
    again = verified("two", table, out / "revised.csv", wrong=wrong)
    assert [row["response"] for row in rows(again / "verified/contextual_val.csv")] == [
        "R0", "R1", "R3", "R2, said better",
    ]  # fmt: skip
    decided = json.loads((again / "verified/verification.json").read_text())["decided"]
    assert [one["round"] for one in decided] == [1, 1, 1, 1, 1, 2]
    image = table.parent / "images" / "b.png"
    assert (again / "verified/images/b.png").read_bytes() == image.read_bytes()
    assert [line.round for line in read_table_lines([table, out / "verified/rejected.csv"])] == 5 * [1]
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    command("annotate", "new", "verify", out / "verified/contextual_val.csv", "--name", "three")
    assert main(["annotate", "export", "three", "--out", str(out)]) == 2
    assert "verified: contains the input" in capsys.readouterr().err
    assert {
        path: path.read_bytes() for path in before if path.suffix == ".csv" and "verified" in str(path)
    } == {
        path: content for path, content in before.items() if path.suffix == ".csv" and "verified" in str(path)
    }, "the table that is read is not replaced"


def test_a_table_without_responses_is_refused(table: Path, capsys: Capture) -> None:
    put(table, [{name: row[name] for name in HEADER if name != "response"} for row in rows(table)])
    assert main(["annotate", "new", "verify", str(table), "--name", "v"]) == 2
    assert "field response: lacks a column" in capsys.readouterr().err


def test_nobody_marks_their_own_lines(table: Path) -> None:
    put(table, [{**row, "by": " Anna"} for row in rows(table)])
    out = verified("v", table, wrong={}, people="anna ben")
    marks = json.loads((out / "verified/verification.json").read_text())["decided"][0]["marks"]
    assert [mark["by"] for mark in marks] == ["ben"]


def test_a_table_that_changed_since_the_project_began_is_refused(table: Path, capsys: Capture) -> None:
    verified("v", table, wrong={})
    put(table, [{**row, "response": row["response"] + "!"} for row in rows(table)])
    assert main(["annotate", "export", "v", "--out", "again"]) == 2
    assert "a line of the project is not there any more" in capsys.readouterr().err


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


def test_tables_with_other_columns_and_duplicate_lines_are_refused(table: Path, tmp_path: Path) -> None:
    other = put(tmp_path / "other.csv", [{"id": "1", "question": "What?"}])
    with pytest.raises(UserError, match=r"other\.csv: has other columns"):
        read_table_lines([table, other])
    assert [line.cells for line in read_table_lines([other])] == [{"id": "1", "question": "What?"}]
    twice = put(tmp_path / "twice.csv", [*rows(table), rows(table)[0]])
    with pytest.raises(UserError, match="record line 7: occurs twice"):
        read_table_lines([twice])


def test_two_images_with_one_name_are_refused_unless_they_are_equal(table: Path) -> None:
    more = Path("more")
    (more / "images").mkdir(parents=True)
    line = {**rows(table)[0], "response": "R5"}
    other = put(more / "contextual_val.csv", [line])
    image = Path(line["image_url"])
    (more / image).write_bytes((table.parent / image).read_bytes())
    assert len(read_table_lines([table, other])) == 6
    Image.new("RGB", (9, 7), "blue").save(more / image)
    with pytest.raises(UserError, match="differs from the image"):
        read_table_lines([table, other])
