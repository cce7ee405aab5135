"""`data describe`, compared with the tables of the papers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sightline.cli.main import main
from sightline.data.describe import DataDescription, describe_data
from sightline.data.pull import groups_release, releases
from sightline.errors import UserError

Capture = pytest.CaptureFixture[str]

TABLE_1 = {
    "domain": {"Life": 516, "Art": 70, "Society": 408, "Psychology": 127, "Environment": 44, "Others": 57},
    "emotion": {"Positive": 169, "Neutral": 702, "Negative": 351},
    "difficulty": {"Easy": 708, "Middle": 385, "Hard": 129},
    "image_type": {
        "Illustration": 374,
        "Meme": 269,
        "Poster": 111,
        "Multi-panel Comic": 311,
        "Single-panel Comic": 90,
        "Logo": 59,
        "Painting": 89,
    },
}
"""II-Bench, Table 1; of the rhetoric column the paper's text lacks two cells: RHETORIC has the others."""

RHETORIC = {
    "Symbolism": 236,
    "Visual Dislocation": 71,
    "Antithesis": 27,
    "Analogy": 38,
    "Personification": 108,
    "Contrast": 226,
    "Others": 47,
}

PERCENT = {"Life": 42.23, "Environment": 3.60, "Neutral": 57.45, "Illustration": 28.70, "Meme": 20.64}


@pytest.fixture(autouse=True)
def _no_data_folder_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIGHTLINE_DATA", raising=False)


@pytest.fixture(scope="module")
def iibench(shared: Path) -> DataDescription:
    return describe_data(releases()["iibench"], shared / "data/iibench")


def test_the_counts_of_iibench_equal_table_1(iibench: DataDescription) -> None:
    assert (iibench.samples, iibench.images, iibench.unreadable_images) == (1434, 1222, 0)
    assert iibench.splits == {"test": 1399, "dev": 35}
    counted = {
        label: {value: share.images for value, share in values.items()}
        for label, values in iibench.labels.items()
    }
    assert {label: counted[label] for label in TABLE_1} == TABLE_1
    assert counted["rhetoric"].items() >= RHETORIC.items()
    shares = {value: share.percent for values in iibench.labels.values() for value, share in values.items()}
    for value, printed in PERCENT.items():
        assert shares[value] == pytest.approx(printed, abs=0.0051)


def test_the_text_lengths_of_iibench_are_close_to_table_1(iibench: DataDescription) -> None:
    """16.91, 14.05 and 170.47 words are printed; docs/reproduction.md has what the released texts give."""
    lengths = {kind: (length.texts, round(length.words, 2)) for kind, length in iibench.lengths.items()}
    assert lengths == {
        "question": (1434, 16.81),
        "option": (8604, 14.01),
        "explanation": (1433, 169.89),
    }


def test_the_counts_and_lengths_of_contextual_equal_table_2(shared: Path) -> None:
    found = describe_data(releases()["contextual"], shared / "data/contextual")
    # All of val stands in test too.
    assert (found.samples, found.splits) == (506, {"test": 506, "val": 100})
    counted = {value: share.samples for value, share in found.labels["category"].items()}
    assert sorted(counted.values()) == [50] * 7 + [156]
    assert counted["Miscellaneous Natural Scenes"] == 156
    assert round(found.lengths["question"].characters) == 65
    # 117 is printed of all 506; the release has 100 references.
    assert found.lengths["reference"].texts == 100
    assert found.lengths["reference"].characters == pytest.approx(107.8, abs=0.01)
    assert found.verbs is not None
    assert len(found.verbs.top) == 20


def test_one_split_can_be_described_alone(shared: Path) -> None:
    found = describe_data(releases()["contextual"], shared / "data/contextual", "val")
    assert (found.samples, found.splits) == (100, {"val": 100})
    counted = {value: share.samples for value, share in found.labels["category"].items()}
    assert sorted(counted.values()) == [10] * 7 + [30]  # Appendix C


def test_the_tasks_of_a_folder_are_its_splits_and_the_masks_of_the_authors_are_counted(
    shared: Path, tmp_path: Path
) -> None:
    """The authors have 1,501 groups, one more than Table 1; their masks are those of Table 11."""
    masks = json.loads((shared / "data/mmr3/author_labels/types.json").read_text())
    lines = {
        "context": [
            {"group": key[:-2], "variant": f"m{key[-1]}", "prompt": "?", "labels": {"colour": mask["colors"]}}
            for key, mask in masks.items()
        ],
        "restyling": [{"group": "g", "variant": "candy", "prompt": "Where?"}],
    }
    for task, own in lines.items():
        (tmp_path / task).mkdir()
        file = tmp_path / task / "groups.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in own))
    found = describe_data(*groups_release(tmp_path))
    assert found.groups == {"context": 1501, "restyling": 1}
    assert found.splits == {"context": 4503, "restyling": 1}
    printed = {"blue": 821, "red": 746, "green": 735, "yellow": 744, "white": 697, "black": 757}
    counted = {value: share.samples for value, share in found.labels["colour"].items()}
    assert {value: n - printed[value] for value, n in counted.items() if n != printed[value]} == {
        "blue": 1,
        "red": 1,
        "green": 1,
    }
    (alone,) = describe_data(*groups_release(tmp_path), "restyling").groups
    assert alone == "restyling"


def test_text_and_json_are_printed(shared: Path, tmp_path: Path, capsys: Capture) -> None:
    shutil.copy(shared / "data/contextual/contextual_val.csv", tmp_path)
    words = ["data", "describe", "contextual", "--data", str(tmp_path), "--quiet"]
    assert main(words) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "100 samples (val 100), 100 different images" in said
    assert "100 images could not be read and are counted by name" in said
    assert "list 8" in said
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["labels"]["category"]["web"] == {"samples": 10, "images": 10, "percent": 10.0}
    assert found["verbs"]["top"][0][:2] == ["list", 8]


def test_other_questions_have_no_verbs(shared: Path) -> None:
    found = describe_data(releases()["codis"], shared / "data/codis")
    assert (found.samples, found.images, found.verbs) == (353, 216, None)
    assert {value: share.images for value, share in found.labels["category"].items()} == {
        "Temporal Information": 70,
        "Location and Orientation": 53,
        "Attributes": 39,
        "Relationships": 36,
        "Cultural Background": 44,
    }


def test_a_wrong_call_is_an_error(tmp_path: Path, capsys: Capture) -> None:
    with pytest.raises(UserError, match="no data folder for codis"):
        describe_data(releases()["codis"], None)
    for words, message in (
        (["codis", "--to", "x"], "unknown option --to"),
        (["codis", "--split", "val", "--data", "."], "unknown split of codis 'val'"),
        (["styles"], "unknown data set 'styles'"),
    ):
        assert main(["data", "describe", *words]) == 2
        assert message in capsys.readouterr().err
