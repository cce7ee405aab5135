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


def kit_table(path: Path, *rows: dict[str, str]) -> str:
    """A table of VLMEvalKit: image is base64, a list of it, or the index of the row that holds it."""
    names = ["index", "image", "hint", "question", "A", "B", "C", "answer", "category", "split"]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, delimiter="\t")
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def test_the_columns_and_the_prompt_of_a_table_of_vlmevalkit_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prompts are what its ImageMCQDataset.build_prompt makes of these rows."""
    monkeypatch.chdir(tmp_path)
    red, blue = (base64.b64encode(png(colour)).decode() for colour in ("red", "blue"))
    common = {"question": "Which?", "A": "[0, 1]", "B": "(0, 1)", "answer": "B", "split": "dev"}
    table = kit_table(
        tmp_path / "Bench_DEV.tsv",
        {"index": "7", "image": "9", "category": "maths", **common},
        {"index": "8", "image": red, "hint": "Look.", "question": "How many?", "answer": "two"},
        {"index": "9", "image": json.dumps([red, blue]), "hint": "Think.", "C": "none", **common},
    )
    assert main(["data", "groups", table, "--quiet"]) == 0
    lines = read_groups(tmp_path / "data/Bench_DEV/groups.jsonl")
    listed = "Question: Which?\nOptions:\nA. [0, 1]\nB. (0, 1)\n"
    end = "Please select the correct answer from the options above. \n"
    assert [line.prompt for line in lines] == [
        f"{listed}{end}",
        "Hint: Look.\nHow many?",
        f"Hint: Think.\n{listed}C. none\n{end}",
    ]
    assert [(line.group, line.references, line.options) for line in lines] == [
        ("7", ("B",), ("[0, 1]", "(0, 1)")),
        ("8", ("two",), ()),
        ("9", ("B",), ("[0, 1]", "(0, 1)", "none")),
    ]
    assert lines[0].labels == {"category": "maths", "split": "dev"}
    sent = [[(tmp_path / "data/Bench_DEV" / name).read_bytes() for name in line.images] for line in lines]
    assert sent == [[png("red"), png("blue")], [png("red")], [png("red"), png("blue")]]


def test_the_text_of_an_option_is_one_answer_and_a_list_of_texts_is_several(tmp_path: Path) -> None:
    """Without options, VLMEvalKit takes a list as several answers (process_line of vqa_eval.py)."""
    red = base64.b64encode(png("red")).decode()
    intervals = {"image": red, "question": "Which?", "A": "[0, 1]", "B": "[1, 2]"}
    table = kit_table(
        tmp_path / "bench.tsv",
        {"index": "1", **intervals, "answer": "[0, 1]"},
        {"index": "2", **intervals, "answer": "['A', 'B']"},
        {"index": "3", "image": red, "question": "How many?", "answer": "['two', '2']"},
    )
    lines = read_groups(Path(make_groups(Path(table), Columns(), tmp_path / "out").file))
    assert [line.references for line in lines] == [("[0, 1]",), ("A", "B"), ("two", "2")]


def test_rows_of_vlmevalkit_that_lack_an_image_or_an_option_are_left_out(tmp_path: Path) -> None:
    red = base64.b64encode(png("red")).decode()
    table = kit_table(
        tmp_path / "bench.tsv",
        {"index": "1", "image": red, "question": "Fine?", "A": "yes", "B": "no", "answer": "A"},
        {"index": "2", "image": red, "question": "Which letter?", "A": "yes", "C": "no", "answer": "C"},
        {"index": "3", "image": "4", "question": "Whose image?"},
        {"index": "4", "image": "", "question": "No image?"},
    )
    made = make_groups(Path(table), Columns(), tmp_path / "out")
    assert made.left_out == {
        "line 3": "an option before others is empty",
        "line 4": "no image",
        "line 5": "no image",
    }


def test_columns_that_are_neither_named_nor_those_of_vlmevalkit_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "table.csv").write_text("id,ask\ng,One?\n")
    words = ["data", "groups", str(tmp_path / "table.csv"), "--to", str(tmp_path)]
    assert main([*words, "--quiet"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert all(word in said for word in ("table.csv", "id, ask", "--group COLUMN and --prompt COLUMN"))
    assert main([*words, "--group", "id", "--quiet"]) == 2
