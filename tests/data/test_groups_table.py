"""`data groups` makes the same groups file of a CSV, TSV, workbook, JSON and Parquet table with images."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import sightline
from sightline.cli.main import main
from sightline.data.groups_table import Columns, make_groups
from sightline.errors import UserError
from sightline.formats.groups import read_groups

COLUMNS = Columns("scene", "question", ("image",), "how", ("A", "B"), ("answer",), ("topic",))
Rows = list[dict[str, Any]]


def png(colour: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (9, 7), colour).save(file, "PNG")
    return file.getvalue()


def rows(image: Callable[[str], Any]) -> Rows:
    return [
        {
            "scene": scene,
            "question": f"{how} {colour}?",
            "image": image(colour),
            "how": how,
            "A": "yes",
            "B": "no",
            "answer": "B",
            "topic": colour,
        }
        for scene, colour in (("s1", "red"), ("s2", "blue"))
        for how in ("plain", "again")
    ]


def in_csv(folder: Path, delimiter: str = ",") -> Path:
    found = rows(lambda colour: f"shots/{colour}.png")
    file = folder / ("table.tsv" if delimiter == "\t" else "table.csv")
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(found[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(found)
    return file


def in_base64(folder: Path) -> Path:
    """As VLMEvalKit's tables: the image once in base64, then the index of its row."""
    found = rows(lambda colour: base64.b64encode(png(colour)).decode())
    for number, row in enumerate(found):
        row["index"] = number
        row["image"] = row["image"] if number % 2 == 0 else str(number - 1)
    file = folder / "table.tsv"
    lines = [list(found[0]), *(list(map(str, row.values())) for row in found)]
    file.write_text("".join("\t".join(line) + "\n" for line in lines))
    return file


def in_json(folder: Path) -> Path:
    file = folder / "table.jsonl"
    found = rows(lambda colour: "data:image/png;base64," + base64.b64encode(png(colour)).decode())
    file.write_text("".join(json.dumps(row) + "\n" for row in found))
    return file


def in_workbook(folder: Path) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    found = rows(lambda colour: f"shots/{colour}.png")
    for line in [list(found[0]), *(list(row.values()) for row in found)]:
        book.active.append(line)
    book.save(folder / "table.xlsx")
    return folder / "table.xlsx"


def in_parquet(folder: Path) -> Path:
    """As `datasets` writes an image column: bytes and a path."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    found = rows(lambda colour: {"bytes": png(colour), "path": f"{colour}.png"})
    parquet.write_table(pyarrow.Table.from_pylist(found), folder / "table.parquet")
    return folder / "table.parquet"


@pytest.mark.parametrize(
    "write",
    [in_csv, lambda folder: in_csv(folder, "\t"), in_base64, in_json, in_workbook, in_parquet],
    ids=["csv", "tsv", "base64", "json", "xlsx", "parquet"],
)
def test_every_kind_of_table_gives_the_same_groups(write: Callable[[Path], Path], tmp_path: Path) -> None:
    (tmp_path / "shots").mkdir()
    for colour in ("red", "blue"):
        (tmp_path / f"shots/{colour}.png").write_bytes(png(colour))
    made = make_groups(write(tmp_path), COLUMNS, tmp_path / "out")
    assert (made.rows, made.groups, made.lines, made.images, made.left_out) == (4, 2, 4, 2, {})
    lines = read_groups(Path(made.file))
    assert [(line.group, line.variant, line.prompt) for line in lines] == [
        ("s1", "plain", "plain red?"),
        ("s1", "again", "again red?"),
        ("s2", "plain", "plain blue?"),
        ("s2", "again", "again blue?"),
    ]
    for line in lines:
        assert (line.options, line.references) == (("yes", "no"), ("B",))
        (image,) = line.images
        assert (tmp_path / "out" / image).read_bytes() == png(str(line.labels["topic"]))


def test_rows_that_make_no_line_are_counted_by_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.png").write_bytes(b"no image")
    (tmp_path / "red.png").write_bytes(png("red"))
    (tmp_path / "link.png").symlink_to(tmp_path.parent / "elsewhere.png")
    (tmp_path.parent / "elsewhere.png").write_bytes(png("blue"))
    table = tmp_path / "table.csv"
    table.write_text(
        "id,ask,picture,choices,right,how\n"
        'g,One?,red.png,"[""a"", ""b""]",b,1\n'
        "g,Two?,red.png,\"['a', 'b']\",\"['a', 'b']\",2\n"
        "g,Three?,red.png,,c,2\n"
        'g,Four?,red.png,"[""a"", ""b""]",c,4\n'
        "g,Five?,broken.png,,,5\n"
        "g,Six?,gone.png,,,6\n"
        "g,Seven?,../elsewhere.png,,,7\n"
        "g,Eight?,link.png,,,8\n"
        "g,Nine?,https://example.org/a.png,,,9\n"
        ",Ten?,red.png,,,10\n"
        "g,,red.png,,,11\n"
        "g,Twelve?,red.png,a,,12\n"
        "g,Thirteen?,,,,13\n"
    )
    words = ["data", "groups", str(table), "--group", "id", "--prompt", "ask", "--image", "picture"]
    words += [
        "--options",
        "choices",
        "--references",
        "right",
        "--variant",
        "how",
        "--to",
        str(tmp_path / "to"),
    ]
    assert main([*words, "--json", "--quiet"]) == 1
    made = json.loads(capsys.readouterr().out)
    assert (made["rows"], made["lines"], made["groups"], len(made["left_out"])) == (13, 2, 1, 11)
    reasons = list(made["left_out"].values())
    assert reasons[:2] == ["its group has this variant already", "has a reference that is not an option"]
    assert all("image" in reason for reason in reasons[2:7])
    assert reasons[7:9] == ["no group", "no prompt"]
    assert reasons[9:] == ["only one option: a list in one cell, or a column each", "no image"]
    lines = read_groups(Path(made["file"]))
    assert [line.references for line in lines] == [("b",), ("a", "b")]
    assert main([*words, "--quiet"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["data", "check", f"groups:{made['file']}", "--quiet"]) == 0


def test_a_column_that_does_not_exist_and_a_table_without_a_usable_row_leave_no_folder(
    tmp_path: Path,
) -> None:
    table = tmp_path / "table.csv"
    table.write_text("scene,question\n,What?\n")
    with pytest.raises(UserError, match="scenes"):
        make_groups(table, Columns("scenes", "question"), tmp_path / "out")
    with pytest.raises(UserError, match="line 2: no group"):
        make_groups(table, Columns("scene", "question"), tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv"]


def test_the_prompt_shows_options_that_the_table_keeps_in_columns(tmp_path: Path) -> None:
    """A model that never sees the options cannot choose one; yes and no need not be shown."""
    table = tmp_path / "table.csv"
    table.write_text("id,ask,A,B,right\n1,Which colour?,red,blue,A\n2,Red or blue?,red,blue,B\n")
    columns = Columns("id", "ask", options=("A", "B"), references=("right",))
    listed, shown = read_groups(Path(make_groups(table, columns, tmp_path / "out").file))
    assert (listed.prompt, listed.question) == ("Which colour?\n(A) red\n(B) blue", "Which colour?")
    assert (shown.prompt, shown.question) == ("Red or blue?", "")


def test_a_run_says_how_many_prompts_do_not_show_their_options(tmp_path: Path) -> None:
    hidden = {
        "group": "1",
        "variant": "a",
        "prompt": "Which?",
        "options": ["red", "blue"],
        "references": ["A"],
    }
    lines = [hidden, {**hidden, "variant": "b", "prompt": "red or BLUE?"}]
    lines.append({**hidden, "variant": "c", "prompt": "Red?", "options": ["yes", "no"]})
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    run = sightline.run(f"groups:{file}", model="baseline/chance", store=str(tmp_path / "s.db"))
    (note,) = [note for note in run.result.notes if "options" in note]
    assert note == "1 of 3 prompts do not show their options, so the model does not see them"
