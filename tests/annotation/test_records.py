"""Exports of records: an empty project has its files, and a faulty record blocks nobody else's."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path

import pytest
from PIL import Image
from tests.annotation.working import command, work

from sightline.annotation.iibench_records import faults
from sightline.annotation.live import Form, LiveProject
from sightline.annotation.store import AnnotationStore
from sightline.annotation.types import Entry, Given
from sightline.errors import UserError
from sightline.store.store import Store

SIX = [f"option {letter}" for letter in "ABCDEF"]


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three images in the folder in which the test works."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(3):
        Image.new("RGB", (40, 20), (80 * number, 0, 0)).save(folder / f"{number}.png")
    return folder


def opened(name: str) -> tuple[AnnotationStore, LiveProject]:
    annotations = AnnotationStore(Store.open("sightline.db"), time.time)
    return annotations, LiveProject(annotations, annotations.project(name), time.time)


def test_a_cross_check_without_an_accepted_draft_has_its_files(images: Path) -> None:
    people = ("a", "b", "c")
    command("annotate", "new", "author-codis", images, "--name", "drafts")
    command("annotate", "invite", "drafts", *people)
    command("annotate", "export", "drafts", "--out", "nothing")
    assert json.loads(Path("nothing/data/data.json").read_text()) == []
    drafts = work("drafts")
    command("annotate", "new", "cross-check", "drafts", "--name", "check")
    command("annotate", "invite", "check", *people)
    for out, returned in (("before", 0), ("after", drafts)):
        command("annotate", "export", "check", "--out", out)
        assert json.loads(Path(out, "funnel.json").read_text())["returned"] == returned
        rows = list(csv.DictReader(Path(out, "returned.csv").read_text().splitlines()))
        assert len({row["item"] for row in rows}) == returned
        if out == "before":
            work("check", lambda _, __, field: "no" if field == "minor" else "")


def test_triplets_without_an_author_are_an_empty_table(images: Path) -> None:
    command("annotate", "new", "author-contextual", images, "--name", "write")
    command("annotate", "export", "write", "--out", "out")
    assert len(Path("out/data/contextual_val.csv").read_text().splitlines()) == 1


def test_authors_in_two_groups_write_their_categories_and_review_those_of_the_others(images: Path) -> None:
    """ConTextual, section 2.3: the authors form two groups, and each reviews what the other wrote."""
    groups = {"anna": ("web", "time"), "ben": ("time", "web")}
    for number, category in enumerate(("web", "web", "time")):
        (images / category).mkdir(exist_ok=True)
        (images / f"{number}.png").rename(images / category / f"{number}.png")
    command("annotate", "new", "author-contextual", images, "--name", "write")
    for name, (own, _) in groups.items():
        command("annotate", "invite", "write", name, "--stratum", own)
    work("write", lambda annotator, item, field: item.stratum if field == "category" else "")
    command("annotate", "export", "write", "--out", "out")
    written = ["out/data/contextual_val.csv", "--data", "out/data"]
    command("annotate", "new", "verify", *written, "--name", "check", "--annotators", "1")
    for name, (_, others) in groups.items():
        command("annotate", "invite", "check", name, "--stratum", others)
    work("check")
    judged: dict[str, set[tuple[str, str]]] = {}
    for project in ("write", "check"):
        annotations, live = opened(project)
        names = {one.number: one.name for one in live.annotators()}
        entries = annotations.entries(live.row.number)
        judged[project] = {(live.state.items[one.item].stratum, names[one.annotator]) for one in entries}
        assert len(entries) == 3
    assert judged == {
        "write": {("web", "anna"), ("time", "ben")},
        "check": {("time", "anna"), ("web", "ben")},
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"options_1": ["\n".join([*SIX[:3], "Option  A", *SIX[4:]])]},
            "question 1, field D: is the same as A",
        ),
        ({"options_1": ["\n".join(SIX[:5])]}, "question 1, field F: is empty"),
        ({"options_1": ["\n".join([*SIX, "seventh"])]}, "question 1, field options: are too many"),
        ({"question_2": [""]}, "question 2, field question: is empty"),
    ],
)
def test_the_page_refuses_what_the_export_would_leave_out(images: Path, change: Given, message: str) -> None:
    command("annotate", "new", "author-iibench", images, "--name", "write")
    command("annotate", "invite", "write", "anna")
    _, live = opened("write")
    [anna] = live.annotators()
    good = _filled(live)
    item = live.next_item(anna)
    assert item is not None
    with pytest.raises(UserError, match=message) as refused:
        live.submit(anna, Form("1", item.number, "judge", {**good, **change}))
    assert "png" not in str(refused.value)
    assert live.submit(anna, Form("2", item.number, "judge", good)).action == "judge"
    assert list(faults(item, live.refresh().of_item(item.number)[anna.number].values)) == []


def test_a_faulty_record_is_left_out_and_named_and_the_others_are_written(images: Path) -> None:
    command("annotate", "new", "author-iibench", images, "--name", "write")
    command("annotate", "invite", "write", "anna")
    work("write")
    annotations, live = opened("write")
    [anna] = live.annotators()
    values = live.refresh().of_item(2)[anna.number].values
    faulty = {**values, "options_1": "same\n" * 6}
    annotations.append(live.row.number, [Entry(0, 2, anna.number, "judge", "x", time.time(), faulty)])
    command("annotate", "export", "write", "--out", "out")
    records = json.loads(Path("out/data/test.json").read_text())
    assert len(records) == 2
    rows = list(csv.DictReader(Path("out/left_out.csv").read_text().splitlines()))
    assert {(row["item"], row["author"]) for row in rows} == {("2", "anna")}
    assert "is the same as A" in rows[0]["fault"]


def _filled(live: LiveProject) -> dict[str, list[str]]:
    """A form without a fault."""
    texts = {"options_1": "\n".join(SIX), "options_2": "\n".join(SIX), "options_3": ""}
    given = {}
    for field in live.row.project.task.fields:
        text = field.options[0].value if field.options else texts.get(field.name, f"text of {field.name}")
        given[field.name] = [text]
    return given | {"question_3": [""], "answer_3": []}
