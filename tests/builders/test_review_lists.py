"""Lists for people: what they mark is read back, and nothing else is taken for a mark."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from sightline.builders.review_lists import Mark, MarkWords, read_marks, write_list
from sightline.errors import UserError

RIGHT = MarkWords("right", "wrong")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def fill(path: Path, marks: dict[str, str], to: Path, *, by: str = "", remark: str = "") -> Path:
    """The list with marks by key, as a person saves it under another name."""
    lines = rows(path)
    for line in lines:
        line.update(mark=marks.get(line["key"], ""), by=by, remark=remark)
    with to.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    return to


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    path = tmp_path / "list.csv"
    write_list(path, {"k1": {"text": "a, b"}, "k2": {"text": "=HYPERLINK(0)"}, "k3": {"text": "c\nd"}})
    return path


def test_a_list_has_empty_cells_for_marks_and_no_formula(listed: Path) -> None:
    lines = rows(listed)
    assert [line["key"] for line in lines] == ["k1", "k2", "k3"]
    assert {line[name] for line in lines for name in ("mark", "by", "remark")} == {""}
    assert [line["text"] for line in lines] == ["a, b", "'=HYPERLINK(0)", "c\nd"]
    assert read_marks([listed], RIGHT) == {}


def test_marks_of_several_humans_are_combined_and_a_list_without_names_is_named_by_its_file(
    listed: Path, tmp_path: Path
) -> None:
    anna = fill(listed, {"k1": " Right ", "k2": "wrong"}, tmp_path / "anna.csv")
    ben = fill(listed, {"k1": "wrong"}, tmp_path / "x.csv", by="Ben", remark="it is green")
    assert read_marks([anna, ben, ben], RIGHT) == {
        "k1": [Mark(True, "anna"), Mark(False, "Ben", "it is green")],
        "k2": [Mark(False, "anna")],
    }


def test_unknown_and_contradictory_marks_are_refused_with_their_line(listed: Path, tmp_path: Path) -> None:
    odd = fill(listed, {"k2": "perhaps"}, tmp_path / "odd.csv")
    with pytest.raises(UserError, match=r"odd\.csv, record line 3, field mark.*'right', 'wrong' or nothing"):
        read_marks([odd], RIGHT)
    one = fill(listed, {"k1": "right"}, tmp_path / "one.csv", by="Ben")
    two = fill(listed, {"k1": "wrong"}, tmp_path / "two.csv", by="Ben")
    with pytest.raises(UserError, match="'Ben' has marked one item with both marks"):
        read_marks([one, two], RIGHT)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="lacks a column"):
        read_marks([tmp_path / "other.csv"], RIGHT)


def test_two_nameless_lists_of_one_name_are_not_taken_for_one_human(listed: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    one, two = (fill(listed, {"k1": "right"}, tmp_path / name / "list.csv") for name in ("first", "second"))
    with pytest.raises(UserError, match=r"second/list\.csv, record line 2, field by: .*first/list\.csv has"):
        read_marks([one, two], RIGHT)
    assert read_marks([one, one], RIGHT) == {"k1": [Mark(True, "list")]}
    named = fill(listed, {"k1": "right"}, tmp_path / "second" / "list.csv", by="Ben")
    assert len(read_marks([one, named], RIGHT)["k1"]) == 2
    fill(listed, {}, tmp_path / "second" / "list.csv")
    assert len(read_marks([one, named], RIGHT)["k1"]) == 1


def test_case_and_blanks_of_a_name_are_ignored(listed: Path, tmp_path: Path) -> None:
    """One person may not vote twice, nor against herself."""
    first = fill(listed, {"k1": "right", "k2": "wrong"}, tmp_path / "Anna B.csv")
    again = fill(listed, {"k1": "right", "k3": "wrong"}, tmp_path / "x.csv", by=" anna  b ")
    assert read_marks([first, again], RIGHT) == {
        "k1": [Mark(True, "Anna B")],
        "k2": [Mark(False, "Anna B")],
        "k3": [Mark(False, "Anna B")],
    }
    against = fill(listed, {"k2": "right"}, tmp_path / "y.csv", by="ANNA B")
    with pytest.raises(UserError, match="'Anna B' has marked one item with both marks"):
        read_marks([first, against], RIGHT)
    (tmp_path / "other").mkdir()
    namesake = fill(listed, {"k1": "wrong"}, tmp_path / "other" / "anna b.csv")
    with pytest.raises(UserError, match="has the same file name"):
        read_marks([first, namesake], RIGHT)
