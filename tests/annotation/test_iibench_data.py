"""II-Bench's records from what authors fill in: the release comes out as it went in; who agrees on labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image
from tests.annotation.working import command, work

from sightline.annotation.iibench_records import (
    find_faults,
    form_lines,
    group_by_image,
    iibench_records,
    output_paths,
    proposals,
)
from sightline.annotation.overview import agreement_on
from sightline.annotation.types import Annotator, Item, ItemImage
from sightline.benchmarks.iibench.data import LABELS, VALUES
from sightline.cli.main import main

Capture = pytest.CaptureFixture[str]

TWICE = {"dev-7": "F", "dev-9": "E", "dev-10": "E", "dev-12": "F", "dev-29": "B"}
"""Questions of the released dev split that offer one option twice, and the second letter of it."""


def test_the_values_of_the_labels_are_those_of_the_release(shared: Path) -> None:
    used: dict[str, set[str]] = {label: set() for label in LABELS}
    for record in json.loads((shared / "data/iibench/test.json").read_text()):
        for label in LABELS:
            said = record["meta_data"][label]
            used[label].update([said] if isinstance(said, str) else said)
    assert {label: set(values) for label, values in VALUES.items()} == used


@pytest.mark.parametrize("split", ["dev", "test"])
def test_released_records_come_back_from_what_authors_are_shown(split: str, shared: Path) -> None:
    folder = shared / "data" / "iibench"
    released = json.loads((folder / f"{split}.json").read_text())
    # Answers of test are held back, and one explanation is not a text: what a line must have.
    released = [one for one in released if isinstance(one["meta_data"]["explanation"], str)]
    lines = []
    known = proposals(folder, split)
    for one in released:
        types = one["meta_data"]["image_type"]
        one["meta_data"]["image_type"] = [types] if isinstance(types, str) else types
        values = dict(known[one["local_path"]])
        for question in one["questions"]:
            question["options"] = [option.replace("\n", " ") for option in question["options"]]
        if split == "test":
            one["questions"][0].update(answer="A", correct_option=one["questions"][0]["options"][0])
            values["answer_1"] = "A"
        item = Item(1, images={"image": (ItemImage(one["local_path"], ""),)})
        lines += form_lines(item, "anna", values)
    paths = output_paths([one["local_path"] for one in released])
    assert json.loads(msgspec.json.encode(iibench_records(group_by_image(lines), paths))) == released
    found = [(line, fault) for line in lines for fault in find_faults(line)]
    # An option of the release that stands twice is a fault.
    told = {(Path(line.image).stem, fault.field) for line, fault in found}
    assert {field for _, field in told} == ({"F", "E", "B"} if split == "dev" else {"C"})
    assert len(told) == (len(TWICE) if split == "dev" else 1)
    assert all("is the same as" in str(fault) for _, fault in found)


def test_agreement_is_the_share_of_equal_pairs_and_alpha_equals_the_value_of_the_library() -> None:
    krippendorff = pytest.importorskip("krippendorff", reason="needs the extra 'dev'")
    said = [["Life", "Life", "Art"], ["Art", "Art"], ["Life", "Society"], ["Others"]]
    votes = [(str(number), [frozenset({one}) for one in own]) for number, own in enumerate(said)]
    found = agreement_on("domain", votes)
    assert found.share.value == pytest.approx(100 * 2 / 5)
    assert (found.share.n, found.share.clusters) == (5, 3)
    codes = [[own[by] if by < len(own) else "" for own in said[:3]] for by in range(3)]
    numbers: list[list[Any]] = [
        [["Life", "Art", "Society"].index(one) if one else float("nan") for one in row] for row in codes
    ]
    theirs = krippendorff.alpha(numbers, level_of_measurement="nominal")
    assert found.alpha.value == pytest.approx(theirs)
    alone = agreement_on("domain", votes[3:])
    assert {(one.value, one.reason) for one in (alone.share, alone.alpha)} == {
        (None, "no item has two annotators")
    }


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two images of one name, in a folder and below it, in the folder in which the test works."""
    monkeypatch.chdir(tmp_path)
    Path("raw/images").mkdir(parents=True)
    for colour, path in (("red", "raw/a.png"), ("blue", "raw/images/a.png")):
        Image.new("RGB", (9, 7), colour).save(path)
    return tmp_path / "raw"


def test_labels_without_a_majority_are_judged_again_and_stay_out_until_somebody_settles_them(
    images: Path, capsys: Capture
) -> None:
    def says(annotator: Annotator, item: Item, field: str) -> str:
        return "Negative" if field == "emotion" and annotator.name != "anna" else ""

    command("annotate", "new", "author-iibench", images, "--name", "w", "--annotators", "2")
    command("annotate", "invite", "w", "anna", "ben")
    assert work("w", says) == 2 * 2 * 2, "both see what the other said, and judge once more"
    command("annotate", "export", "w", "--out", "open")
    assert not Path("open/data").exists(), "all authors disagree, and the other files are there"
    report = json.loads(Path("open/annotation.json").read_text())
    assert report["open"] == 2
    values = {(one["metric"], one["subset"]): one["value"] for one in report["metrics"]}
    assert values["agreement", "label=emotion"] == 0
    assert values["agreement", "label=domain"] == 100
    capsys.readouterr()
    command("annotate", "status", "w")
    assert "to settle: items 1, 2" in " ".join(capsys.readouterr().out.split())
    command("annotate", "invite", "w", "cleo", "--role", "adjudicator")
    assert work("w", says) == 2
    command("annotate", "export", "w", "--out", "settled")
    records = json.loads(Path("settled/data/test.json").read_text())
    assert {one["meta_data"]["emotion"] for one in records} == {"Negative"}
    assert len({one["local_path"] for one in records}) == 2, "two images of one name are both copied"
    unused = [
        one["unused_texts"] for one in json.loads(Path("settled/annotation.json").read_text())["labels"]
    ]
    assert unused == [[], []]


def test_authors_correct_the_records_of_a_folder_and_its_accepted_questions_are_run(
    images: Path, capsys: Capture
) -> None:
    command("annotate", "new", "author-iibench", images, "--name", "w")
    command("annotate", "invite", "w", "anna")
    work("w")
    command("annotate", "export", "w", "--out", "w")
    command("annotate", "new", "review", "w/data/questions.csv", "--name", "r")
    command("annotate", "invite", "r", *"bcdef")
    refused = {"options": "option 0 of 2"}
    work(
        "r",
        lambda by, item, field: (
            "no" if refused["options"] in item.texts["options"] and field == "accurate" else ""
        ),
    )
    command("annotate", "export", "r", "--out", "r")
    whole, kept = (json.loads(Path(f"{name}/data/test.json").read_text()) for name in "wr")
    assert kept == [one for one in whole if refused["options"] not in one["questions"][0]["options"]]
    assert len(kept) == 1
    capsys.readouterr()
    words = ["run", "iibench", "--data", "r/data", "--model", "baseline/chance", "--store", "s.db", "--json"]
    assert main(words) == 0
    metrics = {one["metric"]: one for one in json.loads(capsys.readouterr().out)["metrics"]}
    assert metrics["accuracy"]["n"] == 3
    known = proposals(Path("r/data"), "")
    assert {values["explanation"] for values in known.values()} <= {
        "explanation of item 1",
        "explanation of item 2",
    }
