"""Annotation: a form comes back checked, annotators are compared, and the release comes out as it went in."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image

from sightline.benchmarks.iibench.records import LABELS, VALUES
from sightline.builders.annotate import (
    AnnotatedImage,
    agreement,
    group_by_image,
    iibench_records,
    output_paths,
)
from sightline.builders.annotation_form import FormLine, find_faults, initial_cells, read_forms, write_form
from sightline.builders.synthetic import generate_iibench
from sightline.cli.main import main

Capture = pytest.CaptureFixture[str]
Row = dict[str, str]

TWICE = {"dev-7": "F", "dev-9": "E", "dev-10": "E", "dev-12": "F", "dev-29": "B"}
"""Questions of the released dev split that offer one option twice, and the second letter of it."""

FILLED: Row = {
    "domain": "Life",
    "emotion": "neutral",
    "image_type": "Meme; Poster",
    "difficulty": "Easy",
    "rhetoric": " metaphor,visual  dislocation, Metaphor",
    "explanation": "It shows\nthat time flies.\n",
    "question": "What is meant?",
    **{letter: f"Meaning {letter}" for letter in "ABCDEF"},
    "answer": "c",
}


def rows(path: str | Path) -> list[Row]:
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def put(name: str, lines: list[Row]) -> str:
    with Path(name).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    return name


def run(*words: object) -> int:
    return main(["build", "annotate", *map(str, words)])


def filled(name: str, change: Mapping[str, Row] | None = None, **everywhere: str) -> str:
    """The form as somebody sends it back; `change` is by image. Its path."""
    lines = rows("form.csv")
    for line in lines:
        line.update({**FILLED, **everywhere, **(change or {}).get(line["image_url"], {})})
    return put(name, lines)


@pytest.fixture
def form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A form about four images, of which one is broken."""
    monkeypatch.chdir(tmp_path)
    Path("raw/images").mkdir(parents=True)
    for number, name in enumerate("abc"):
        Image.new("RGB", (9, 7), (number, 0, 0)).save(f"raw/images/{name}.png")
    Path("raw/images/d.png").write_bytes(b"no image")
    assert run("raw", "--write", "form.csv") == 0
    return "form.csv"


def test_the_values_of_the_labels_are_those_of_the_release(shared: Path) -> None:
    used: dict[str, set[str]] = {label: set() for label in LABELS}
    for record in json.loads((shared / "data/iibench/test.json").read_text()):
        for label in LABELS:
            said = record["meta_data"][label]
            used[label].update([said] if isinstance(said, str) else said)
    assert {label: set(values) for label, values in VALUES.items()} == used


@pytest.mark.parametrize("split", ["dev", "test"])
def test_released_records_come_back_from_a_form_field_by_field(
    split: str, shared: Path, tmp_path: Path
) -> None:
    folder = shared / "data" / "iibench"
    released = json.loads((folder / f"{split}.json").read_text())
    form = initial_cells(folder, split)
    if split == "test":  # Answers are held back, and one explanation is not a text: what a line must have.
        released = [one for one in released if isinstance(one["meta_data"]["explanation"], str)]
        for one in released:
            one["questions"][0].update(answer="A", correct_option=one["questions"][0]["options"][0])
        names = {one["local_path"] for one in released}
        form = {name: [{**line, "answer": "A"} for line in form[name]] for name in form if name in names}
    write_form(tmp_path / "form.csv", folder, form)
    agreed = put(str(tmp_path / "anna.csv"), [{**line, "by": "anna"} for line in rows(tmp_path / "form.csv")])
    lines = read_forms([Path(agreed)])
    assert (
        json.loads(msgspec.json.encode(iibench_records(group_by_image(lines), output_paths(form), split)))
        == released
    )
    found = find_faults(lines, form)
    told = {(Path(str(fault.record)).stem, fault.field) for fault in found}
    assert told == (set(TWICE.items()) if split == "dev" else {("test-169", "C")})
    assert all("is the same as" in str(fault) for fault in found)


def test_the_released_dev_split_goes_through_the_command_line_and_runs(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = shared / "data" / "iibench"
    assert run(folder, "--split", "dev", "--write", "form.csv") == 0
    lines = [{**line, "by": "anna"} for line in rows("form.csv")]
    assert run(folder, "--split", "dev", "--human", put("all.csv", lines), "--out", "out") == 2
    assert not Path("out").exists()
    released = json.loads((folder / "dev.json").read_text())
    for line, record in zip(lines, released, strict=True):
        (question,) = record["questions"]
        letter = TWICE.get(question["id"])
        if letter:
            line[letter] = question["options"]["ABCDEF".index(letter)] = "Something else."
    assert run(folder, "--split", "dev", "--human", put("anna.csv", lines), "--out", "out") == 0
    assert json.loads(Path("out/dev.json").read_text()) == released
    first = Path("out/manifest.json").read_bytes()
    assert run(folder, "--split", "dev", "--human", "anna.csv", "--out", "out") == 0
    assert Path("out/manifest.json").read_bytes() == first
    capsys.readouterr()
    words = ["run", "iibench", "--data", "out", "--split", "dev", "--model", "baseline/chance", "--json"]
    assert main([*words, "--store", "s.db"]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 35


def test_the_embedded_model_scores_the_same_on_data_that_went_through_the_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    generate_iibench(Path("drawn"), questions=1, dev=4, seed=3)
    assert run("drawn", "--split", "dev", "--write", "form.csv") == 0
    put("anna.csv", [{**line, "by": "anna"} for line in rows("form.csv")])
    assert run("drawn", "--split", "dev", "--human", "anna.csv", "--out", "out") == 0
    assert json.loads(Path("out/dev.json").read_text()) == json.loads(Path("drawn/dev.json").read_text())
    told = []
    for data in ("drawn", "out"):
        capsys.readouterr()
        words = [
            "run",
            "iibench",
            "--data",
            data,
            "--split",
            "dev",
            "--model",
            "mini",
            "--store",
            f"{data}.db",
        ]
        assert main([*words, "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        told.append([(one["metric"], one["subset"], one["value"]) for one in result["metrics"]])
    assert told[0] == told[1]


def test_a_form_has_an_empty_line_for_each_image_that_can_be_shown(form: str, capsys: Capture) -> None:
    assert [line["image_url"] for line in rows(form)] == [f"images/{name}.png" for name in "abc"]
    assert all(Path(line["image"]).is_file() for line in rows(form))
    assert run("raw", "--write", form, "--force") == 0
    assert "images/d.png" in capsys.readouterr().err
    assert run("raw", "--human", form) == 2
    assert "no line is filled in" in capsys.readouterr().err
    assert run("raw", "--write", form) == 2
    assert "exists already" in capsys.readouterr().err
    assert run("raw") == 2
    assert run("raw", "--write", "x.csv", "--out", "out") == 2


def test_labels_are_spelt_as_in_the_release_and_texts_stay_as_they_were_written(form: str) -> None:
    anna = filled("anna.csv", {"images/b.png": dict.fromkeys(FILLED, "")}, question="=What?")
    Path(anna).write_text(Path(anna).read_text().replace("=What?", "'=What?"))
    assert run("raw", "--human", anna, "--out", "out") == 0
    first, last = json.loads(Path("out/test.json").read_text())
    assert first == {
        "local_path": "images/a.png",
        "questions": [
            {
                "id": "a",
                "question": "=What?",
                "options": [f"Meaning {letter}" for letter in "ABCDEF"],
                "answer": "C",
                "correct_option": "Meaning C",
            }
        ],
        "meta_data": {
            "domain": "Life",
            "emotion": "Neutral",
            "image_type": ["Meme", "Poster"],
            "difficulty": "Easy",
            "rhetoric": ["Metaphor", "Visual Dislocation"],
            "explanation": "It shows\nthat time flies.\n",
        },
    }
    assert last["questions"][0]["id"] == "c"
    manifest = json.loads(Path("out/manifest.json").read_text())
    assert manifest["dropped"]["images/b.png"] == "no annotation"
    assert sorted(path.name for path in Path("out/images").iterdir()) == ["a.png", "c.png"]


@pytest.mark.parametrize(
    ("cells", "field", "message"),
    [
        ({"emotion": ""}, "emotion", "is empty; expected one of: Positive, Neutral, Negative"),
        ({"emotion": "Neutrall"}, "emotion", "did you mean 'Neutral'? (found 'Neutrall'); expected one of"),
        ({"domain": "Life, Art"}, "domain", "has more than one value (found 'Life, Art'); expected one of"),
        ({"rhetoric": "Exaggeration"}, "rhetoric", "did you mean 'Exaggerate'?"),
        ({"explanation": " \n"}, "explanation", "is empty; expected a text"),
        ({"question": ""}, "question", "is empty; expected a text"),
        ({"F": ""}, "F", "is empty; expected a text"),
        ({"F": "meaning  b "}, "F", "is the same as B (found 'meaning  b '); expected six different options"),
        (
            {"answer": "G"},
            "answer",
            "is not an option (found 'G'); expected the letter of the right one, A-F",
        ),
        ({"answer": ""}, "answer", "is not an option"),
        ({"answer": "AB"}, "answer", "is not an option"),
        ({"image_url": "images/z.png"}, "image_url", "is not a readable image of the folder"),
        ({"image_url": "images/d.png"}, "image_url", "is not a readable image of the folder"),
    ],
)
def test_a_fault_is_reported_with_file_line_and_field(
    cells: Row, field: str, message: str, form: str, capsys: Capture
) -> None:
    anna = filled("anna.csv", {"images/b.png": cells})
    capsys.readouterr()
    assert run("raw", "--human", anna, "--out", "out") == 2
    told = capsys.readouterr().err
    # A line of the form takes three of the file: the explanation has two line breaks.
    image = cells.get("image_url", "images/b.png")
    assert f"anna.csv, record line 5 ({image}), field {field}: " in told
    assert message in told
    assert len(told.splitlines()) == 1
    assert not Path("out").exists()


def test_all_faults_are_reported_at_once(form: str, capsys: Capture) -> None:
    change = {"images/a.png": {"answer": "7"}, "images/c.png": {"domain": "Liffe", "A": ""}}
    anna = filled("anna.csv", change)
    capsys.readouterr()
    assert run("raw", "--human", anna) == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 3
    assert all(f"field {name}: " in told for name in ("answer", "domain", "A"))


def test_an_image_may_have_three_questions_with_the_same_labels_and_no_fourth(
    form: str, capsys: Capture
) -> None:
    lines = rows(filled("anna.csv"))
    second, third = ({**lines[1], "question": question} for question in ("And why?", "And who?"))
    assert run("raw", "--human", put("anna.csv", [*lines, second, third, third]), "--out", "out") == 0
    made = json.loads(Path("out/test.json").read_text())
    assert [[one["id"] for one in record["questions"]] for record in made] == [
        ["a"],
        ["b-1", "b-2", "b-3"],
        ["c"],
    ]
    assert json.loads(Path("out/manifest.json").read_text())["probes"] == 5
    fourth = {**third, "question": "And when?", "emotion": "Negative", "explanation": "Another."}
    capsys.readouterr()
    assert run("raw", "--human", put("anna.csv", [*lines, second, third, fourth])) == 2
    emotion, explanation, many = capsys.readouterr().err.splitlines()
    assert "field emotion: differs from anna.csv, line 5, about the same image" in emotion
    assert "field explanation: differs from" in explanation
    assert "is one line too many for this image; expected 1 to 3" in many


def test_an_image_stays_open_until_more_than_half_of_the_annotators_agree(form: str, capsys: Capture) -> None:
    anna = filled("anna.csv")
    differs = {"images/b.png": {"emotion": "Positive", "rhetoric": "Contrast", "question": "Ben's?"}}
    ben = filled("ben.csv", {**differs, "images/c.png": {"rhetoric": "Visual dislocation, Metaphor"}})
    capsys.readouterr()
    both = ("--human", anna, "--human", ben)
    assert run("raw", *both, "--out", "out", "--write", "open.csv") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "open: 1, no majority for emotion of 1, rhetoric of 1" in shown
    assert [one["local_path"] for one in json.loads(Path("out/test.json").read_text())] == [
        "images/a.png", "images/c.png",
    ]  # fmt: skip
    dropped = json.loads(Path("out/manifest.json").read_text())["dropped"]
    assert dropped["images/b.png"] == "annotators disagree on emotion, rhetoric"
    (left,) = rows("open.csv")
    assert [left[name] for name in ("by", "image_url", "domain", "emotion", "rhetoric")] == [
        "", "images/b.png", "Life", "", "",
    ]  # fmt: skip
    cleo = put("cleo.csv", [{**left, "emotion": "Positive", "rhetoric": "contrast"}])
    assert run("raw", *both, "--human", cleo, "--out", "out") == 0
    _, settled, _ = json.loads(Path("out/test.json").read_text())
    labels, question = settled["meta_data"], settled["questions"][0]["question"]
    assert (labels["emotion"], labels["rhetoric"], question) == ("Positive", ["Contrast"], FILLED["question"])


def test_agreement_is_the_share_of_equal_pairs_and_alpha_equals_the_value_of_the_library() -> None:
    krippendorff = pytest.importorskip("krippendorff", reason="needs the extra 'dev'")
    said = [["Life", "Life", "Art"], ["Art", "Art"], ["Life", "Society"], ["Others"]]
    found = [
        AnnotatedImage(str(n), {str(by): (line(one),) for by, one in enumerate(own)})
        for n, own in enumerate(said)
    ]
    values = {one.metric: one for one in agreement(found) if one.subset == "label=domain"}
    assert values["agreement"].value == pytest.approx(100 * 2 / 5)
    assert (values["agreement"].n, values["agreement"].clusters) == (5, 3)
    codes = [[own[by] if by < len(own) else "" for own in said[:3]] for by in range(3)]
    numbers: list[list[Any]] = [
        [["Life", "Art", "Society"].index(one) if one else float("nan") for one in row] for row in codes
    ]
    theirs = krippendorff.alpha(numbers, level_of_measurement="nominal")
    assert values["alpha"].value == pytest.approx(theirs)
    alone = agreement(found[3:])
    assert {(one.value, one.reason) for one in alone} == {(None, "no image has two annotators")}


def line(domain: str) -> FormLine:
    return FormLine("p", "", {**FILLED, "domain": domain}, Path("f"), "line 2")


def test_accepted_lines_become_the_data_folder(form: str, capsys: Capture) -> None:
    assert run("raw", "--human", filled("anna.csv"), "--out", "drafted") == 0
    assert main(["build", "verify", "drafted/questions.csv", "--write", "list.csv"]) == 0
    assert all(Path(line["image"]).is_file() for line in rows("list.csv"))
    humans = []
    for number in range(5):
        marks = [
            {**line, "mark": "wrong" if number < 2 and line["image_url"] == "images/b.png" else "right"}
            for line in rows("list.csv")
        ]
        humans += ["--human", put(f"reviewer{number}.csv", marks)]
    verify = ["build", "verify", "drafted/questions.csv", *humans, "--not-by", "anna"]
    assert main([*verify, "--accept", "4/5", "--out", "reviewed"]) == 0
    assert run("reviewed", "--human", "reviewed/questions.csv", "--out", "mine") == 0
    whole, kept = (json.loads(Path(f"{name}/test.json").read_text()) for name in ("drafted", "mine"))
    assert kept == [one for one in whole if one["local_path"] != "images/b.png"]
    capsys.readouterr()
    words = ["run", "iibench", "--data", "mine", "--model", "baseline/chance", "--store", "s.db", "--json"]
    assert main(words) == 0
    metrics = {one["metric"]: one for one in json.loads(capsys.readouterr().out)["metrics"]}
    assert metrics["accuracy"]["n"] == 2


def test_two_nameless_forms_of_one_name_are_refused(form: str, capsys: Capture) -> None:
    Path("other").mkdir()
    anna, namesake = filled("anna.csv"), filled("other/anna.csv", emotion="Positive")
    assert run("raw", "--human", anna, "--human", anna) == 0
    capsys.readouterr()
    assert run("raw", "--human", anna, "--human", namesake) == 2
    assert "has the same file name" in capsys.readouterr().err
    Path("cut.csv").write_text("by,image_url\n,images/a.png\n")
    assert run("raw", "--human", "cut.csv") == 2
    assert "cut.csv, field domain: lacks a column" in capsys.readouterr().err


def test_a_prefilled_line_counts_only_after_an_annotator_signs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    generate_iibench(Path("drawn"), questions=1, dev=4, seed=3)
    folder = ("drawn", "--split", "dev")
    assert run(*folder, "--write", "form.csv") == 0
    capsys.readouterr()
    assert run(*folder, "--human", "form.csv") == 2
    assert "an unchanged line needs a name in by" in capsys.readouterr().err
    first, second, *others = rows("form.csv")
    changed = {**first, "question": f"{first['question']} Or not?"}
    # Spreadsheets write another line break.
    untouched = {**others[0], "explanation": others[0]["explanation"].replace("\n", "\r\n")}
    lines = [changed, {**second, "by": "Ben"}, untouched, *others[1:]]
    found = read_forms([Path(put("anna.csv", lines))])
    assert [(line.image, line.by) for line in found] == [
        (first["image_url"], "anna"),
        (second["image_url"], "Ben"),
    ]


def test_an_open_image_that_the_next_annotator_leaves_stays_open(form: str) -> None:
    anna = filled("anna.csv")
    other = {"emotion": "Positive"}
    ben = filled("ben.csv", {"images/a.png": other, "images/b.png": other})
    both = ("--human", anna, "--human", ben)
    assert run("raw", *both, "--write", "open.csv") == 0
    first, second = rows("open.csv")
    cleo = put("cleo.csv", [{**first, "emotion": "Positive"}, second])
    assert run("raw", *both, "--human", cleo, "--out", "out") == 0
    dropped = json.loads(Path("out/manifest.json").read_text())["dropped"]
    assert dropped == {
        "images/b.png": "annotators disagree on emotion",
        "images/d.png": dropped["images/d.png"],
    }


def test_unused_texts_are_reported(form: str, capsys: Capture) -> None:
    anna = filled("anna.csv", explanation="It shows  that time flies.")
    ben = filled("ben.csv", {"images/b.png": {"question": "Ben's?"}, "images/c.png": {"answer": "D"}})
    capsys.readouterr()
    assert run("raw", "--human", anna, "--human", ben, "--out", "out") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "has other texts: images/b.png by ben; images/c.png by ben" in shown
    told = json.loads(Path("out/annotation.json").read_text())["labels"]
    assert [one["unused_texts"] for one in told] == [[], ["ben"], ["ben"]]
    assert run("raw", "--human", ben, "--human", anna, "--out", "out") == 0
    questions = [one["questions"][0] for one in json.loads(Path("out/test.json").read_text())]
    assert [(one["question"], one["answer"]) for one in questions] == [
        (FILLED["question"], "C"),
        ("Ben's?", "C"),
        (FILLED["question"], "D"),
    ]


def test_images_with_one_name_inside_and_outside_images_are_both_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("raw/images").mkdir(parents=True)
    for colour, path in (("red", "raw/a.png"), ("blue", "raw/images/a.png")):
        Image.new("RGB", (9, 7), colour).save(path)
    assert run("raw", "--write", "form.csv") == 0
    anna = put("anna.csv", [{**line, **FILLED, "question": line["image_url"]} for line in rows("form.csv")])
    assert run("raw", "--human", anna, "--out", "out") == 0
    made = json.loads(Path("out/test.json").read_text())
    assert len({one["local_path"] for one in made}) == len({one["questions"][0]["id"] for one in made}) == 2
    for one in [*made, *rows("out/questions.csv")]:
        place = one.get("local_path") or one["image_url"]
        source = one["question"] if "question" in one else one["questions"][0]["question"]
        assert Path("out", place).read_bytes() == Path("raw", source).read_bytes()
    manifest = json.loads(Path("out/manifest.json").read_text())
    assert (manifest["images"], manifest["probes"]) == (2, 2)


def test_a_form_does_not_replace_annotations(form: str, capsys: Capture) -> None:
    anna = filled("anna.csv")
    before = Path(anna).read_bytes()
    capsys.readouterr()
    assert run("raw", "--human", anna, "--write", anna, "--force") == 2
    assert (
        "anna.csv: is an input of this command and would be replaced; expected another --write"
        in capsys.readouterr().err
    )
    assert Path(anna).read_bytes() == before
