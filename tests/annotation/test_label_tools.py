"""Items go to Label Studio and Potato, and what annotators did there comes back.

The files in `written_by_tools` were written by the tools themselves, which had imported what
`annotate export` wrote of six items and the task below:

- Label Studio 1.23.2: two users annotated by the API of the server with the results that its page sends; one
  skipped a task, and changed an annotation of the other. The server exported JSON, JSON_MIN, CSV and TSV.
- Potato 2.12.1: two users in a browser. The user_state.json of each (`instance_id_to_behavioral_data` is
  emptied), `python -m potato.export.cli` as JSONL, CSV and TSV, and `potato snapshot create`.
- Potato 1.2.2.4: its function `save_all_annotations`, with the same annotations.
"""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from sightline.annotation.decisions import judgements
from sightline.annotation.exchange import Imported, import_sheets
from sightline.annotation.export import export_project
from sightline.annotation.state import State
from sightline.annotation.store import AnnotationStore
from sightline.annotation.task import read_task
from sightline.annotation.types import Item, ItemImage, Project, Values
from sightline.errors import UserError
from sightline.store.store import Store

WRITTEN = Path(__file__).with_name("written_by_tools")

TASK = """
name = "tone"
title = "Is the answer polite?"
items = "answers"
produces = "verdicts"
question = "polite"
decides = ["verdict"]

[[shows]]
name = "image"
kind = "image"

[[shows]]
name = "the response"
kind = "text"

[[fields]]
name = "verdict"
kind = "choice"
options = [{ value = "right", label = "Polite" }, { value = "wrong", label = "Not polite" }]

[[fields]]
name = "faults"
kind = "choices"
required = false
options = [{ value = "rude", label = "Rude, or mocking" }, { value = "cold" }]

[[fields]]
name = "why"
kind = "text"
required = false
"""

MULTILINE = "Zoë says: no,\n\"never\" — 'so'"

FIRST: Mapping[tuple[str, int], Values] = {
    ("first", 1): {"verdict": "right"},
    ("first", 2): {"verdict": "wrong", "faults": ("rude",), "why": "line one\nline two"},
}
SECOND: Mapping[tuple[str, int], Values] = {
    ("second", 1): {"verdict": "wrong", "faults": ("rude", "cold"), "why": MULTILINE},
    ("second", 2): {"verdict": "right"},
}
"""What the two annotators of all files did; in Potato 2, the first one has judged item 3, too."""

THIRD_ITEM: Mapping[tuple[str, int], Values] = {("first", 3): {"verdict": "right"}}
CHANGED_BY_SECOND: Mapping[tuple[str, int], Values] = {("first", 5): {"verdict": "wrong"}}


@pytest.fixture
def store(tmp_path: Path) -> AnnotationStore:
    made = AnnotationStore(Store.open(str(tmp_path / "s.db")), time.time)
    items = [
        Item(
            number,
            texts={"the response": ("=1+1",)},
            images={"image": (ItemImage(f"images/ü&+#%{number}.png", "d"),)},
            hidden={"model": "secret"},
        )
        for number in range(1, 7)
    ]
    made.create(Project("p", read_task(TASK, "t.toml"), data="/where/my data", annotators=2), items)
    return made


def state_of(store: AnnotationStore) -> State:
    row = store.project("p")
    return State(row.project, store.items(row.number)).advance(store.entries(row.number))


def imported(store: AnnotationStore, *files: Path) -> Imported:
    return import_sheets(store, store.project("p"), state_of(store), files, 0.0)


def read(store: AnnotationStore, *files: Path) -> dict[tuple[str, int], Values]:
    """Import files; returns the judgements by annotator and item."""
    imported(store, *files)
    found = judgements(state_of(store), store.annotators(1))
    return {(one.name, one.item.number): one.entry.values for one in found}


def named(first: str, second: str, *parts: Mapping[tuple[str, int], Values]) -> dict[tuple[str, int], Values]:
    names = {"first": first, "second": second}
    return {(names[name], item): values for part in parts for (name, item), values in part.items()}


# -- Files that the tools wrote


@pytest.mark.parametrize("name", [".json", "-min.json", ".csv", "-tsv.csv"])
def test_each_export_of_label_studio_is_read_with_its_annotators(store: AnnotationStore, name: str) -> None:
    file = WRITTEN / f"label-studio-1.23.2{name}"
    assert read(store, file) == named("1", "2", FIRST, SECOND, CHANGED_BY_SECOND)
    again = imported(store, file)
    assert (again.added, again.known) == (0, 5)


def test_annotators_of_json_min_may_be_objects_as_in_json(store: AnnotationStore, tmp_path: Path) -> None:
    """Some servers write the user, others only its number."""
    users: dict[int, object] = {1: {"id": 1, "email": "anna@x.org"}, 2: {"id": 2}}
    rows = json.loads((WRITTEN / "label-studio-1.23.2-min.json").read_text())
    for row in rows:
        row["annotator"] = users.get(row.get("annotator"))
    file = tmp_path / "min.json"
    file.write_text(json.dumps(rows))
    assert read(store, file) == named("anna@x.org", "2", FIRST, SECOND, CHANGED_BY_SECOND)


def test_an_annotator_of_json_min_of_another_kind_is_named(store: AnnotationStore, tmp_path: Path) -> None:
    rows = json.loads((WRITTEN / "label-studio-1.23.2-min.json").read_text())
    file = tmp_path / "min.json"
    for wrong in ({"email": ["anna"]}, ["anna"]):
        rows[0]["annotator"] = wrong
        file.write_text(json.dumps(rows))
        with pytest.raises(UserError, match=r"min\.json, record entry 1, field annotator: is not a text"):
            imported(store, file)


def test_the_exports_of_label_studio_are_one_set_of_annotators(store: AnnotationStore) -> None:
    files = sorted(WRITTEN.glob("label-studio-*"))
    assert len(files) == 4
    found = imported(store, *files)
    assert (found.added, found.known) == (5, 0)


def test_an_annotation_that_another_user_changed_is_said(store: AnnotationStore) -> None:
    assert imported(store, WRITTEN / "label-studio-1.23.2.json").changed == 1
    assert state_of(store).of_item(5)[1].reason == "changed by user 2"
    assert state_of(store).of_item(1)[1].reason == ""


def test_skipped_and_open_tasks_are_counted(store: AnnotationStore) -> None:
    assert imported(store, WRITTEN / "label-studio-1.23.2-min.json").empty == 2


@pytest.mark.parametrize("name", [".jsonl", ".csv", ".tsv", "-snapshot.jsonl"])
def test_each_export_of_potato_is_read_with_its_annotators(store: AnnotationStore, name: str) -> None:
    file = WRITTEN / f"potato-2.12.1{name}"
    assert read(store, file) == named("anna", "zoë b", FIRST, SECOND, THIRD_ITEM)


def test_a_damaged_line_of_a_snapshot_is_named(store: AnnotationStore, tmp_path: Path) -> None:
    lines = (WRITTEN / "potato-2.12.1-snapshot.jsonl").read_text().splitlines()
    lines[3] = json.dumps({**json.loads(lines[3]), "value": None})
    file = tmp_path / "annotations.jsonl"
    file.write_text("\n".join(lines))
    with pytest.raises(UserError, match=r"line 4"):
        read(store, file)


def test_the_states_of_the_annotators_of_potato_are_read(store: AnnotationStore) -> None:
    files = [WRITTEN / f"potato-2.12.1-user_state-{name}.json" for name in ("anna", "zoe")]
    assert read(store, *files) == named("anna", "zoë b", FIRST, SECOND, THIRD_ITEM)


@pytest.mark.parametrize("form", ["jsonl", "csv", "tsv"])
def test_what_potato_1_wrote_is_read(store: AnnotationStore, form: str) -> None:
    assert read(store, WRITTEN / f"potato-1.2.2.4.{form}") == named("anna", "zoë b", FIRST, SECOND)


def test_potato_1_names_an_annotator_by_the_folder(
    store: AnnotationStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (WRITTEN / "potato-1.2.2.4.jsonl").read_text().splitlines()[:2]
    records = [json.loads(line) for line in lines]
    for record in records:
        del record["user_id"]
        record["id"] = record.pop("instance_id")
    folder = tmp_path / "ben"
    folder.mkdir()
    (folder / "annotated_instances.jsonl").write_text("\n".join(map(json.dumps, records)))
    monkeypatch.chdir(folder)
    assert read(store, Path("annotated_instances.jsonl")) == named("ben", "", FIRST)


# -- What is exported


def exported(store: AnnotationStore, out: Path) -> Path:
    list(export_project(state_of(store), [], [], out, xlsx=False))
    return out


def test_tasks_of_label_studio_show_their_images(store: AnnotationStore, tmp_path: Path) -> None:
    out = exported(store, tmp_path / "out")
    tasks = json.loads((out / "label-studio.json").read_text())
    assert "secret" not in json.dumps(tasks)
    address = tasks[0]["data"]["image"]
    # Django decodes the query: what follows `d` is a path below LOCAL_FILES_DOCUMENT_ROOT.
    found = re.fullmatch(r"/data/local-files/\?d=([A-Za-z0-9%/._-]+)", address)
    assert found is not None
    assert unquote(found[1]) == "my data/images/ü&+#%1.png"


def test_the_configuration_of_label_studio_shows_what_the_tasks_hold(
    store: AnnotationStore, tmp_path: Path
) -> None:
    out = exported(store, tmp_path / "out")
    (task, *_) = json.loads((out / "label-studio.json").read_text())
    elements = [element.attrib for element in ElementTree.parse(out / "label-studio.xml").iter()]
    variables = {one["value"][1:] for one in elements if one.get("value", "").startswith("$")}
    assert variables == {"image", "the_response"} == task["data"].keys() - {"item"}
    named = [one["name"] for one in elements if "name" in one]
    assert len(named) == len(set(named))


def test_several_images_of_a_part_are_a_list_everywhere(store: AnnotationStore, tmp_path: Path) -> None:
    row = store.project("p")
    pair = tuple(ItemImage(f"{name}.png", "d") for name in "ab")
    items = [Item(1, images={"image": pair}), Item(2, images={"image": pair[:1]})]
    state = State(row.project, items)
    list(export_project(state, [], [], tmp_path / "out", xlsx=False))
    tasks = json.loads((tmp_path / "out" / "label-studio.json").read_text())
    assert [len(one["data"]["image"]) for one in tasks] == [2, 1]
    assert 'valueList="$image"' in (tmp_path / "out" / "label-studio.xml").read_text()
    lines = [json.loads(line) for line in (tmp_path / "out" / "potato.jsonl").read_text().splitlines()]
    assert [one["image"] for one in lines] == [["/media/a.png", "/media/b.png"], ["/media/a.png"]]
    config = json.loads((tmp_path / "out" / "potato.yaml").read_text())
    assert config["instance_display"]["fields"][0] == {"key": "image", "type": "gallery"}


def test_items_of_potato_hold_images_in_a_field_of_their_own(store: AnnotationStore, tmp_path: Path) -> None:
    out = exported(store, tmp_path / "out")
    line = json.loads((out / "potato.jsonl").read_text().splitlines()[0])
    assert unquote(line["image"]) == "/media/images/ü&+#%1.png"
    assert ("images/" in line["text"], "=1+1" in line["text"]) == (False, True)
    config = json.loads((out / "potato.yaml").read_text())
    assert config["media_directory"] == "/where/my data"
    assert {"key": "image", "type": "image"} in config["instance_display"]["fields"]
    assert [one["name"] for one in config["annotation_schemes"]] == ["verdict", "faults", "why"]


# -- Files that are refused, and what is said of others

CHOICE = {"from_name": "verdict", "value": {"choices": ["right"]}}


def studio(item: object, result: object, by: object) -> dict[str, object]:
    return {"data": {"item": item}, "annotations": [{"result": [result], "completed_by": by}]}


@pytest.mark.parametrize(
    ("item", "result", "by", "field"),
    [
        (None, CHOICE, 7, "data.item"),
        (1, CHOICE, 7, "data.item"),
        (["item-0001"], CHOICE, 7, "data.item"),
        ("item-0001", CHOICE, {"email": ["anna"]}, "annotations.completed_by"),
        ("item-0001", CHOICE, ["anna"], "annotations.completed_by"),
        ("item-0001", {**CHOICE, "value": {"choices": [{}]}}, 7, "annotations.result.verdict"),
        ("item-0001", {**CHOICE, "value": {"text": {"a": "right"}}}, 7, "annotations.result.verdict"),
        ("item-0001", {**CHOICE, "value": {"rating": 3}}, 7, "annotations.result.verdict"),
    ],
)
def test_a_field_of_label_studio_of_another_kind_is_named(
    store: AnnotationStore, tmp_path: Path, item: object, result: object, by: object, field: str
) -> None:
    file = tmp_path / "studio.json"
    file.write_text(json.dumps([studio("item-0002", CHOICE, 7), studio(item, result, by)]))
    with pytest.raises(UserError, match=rf"studio\.json, record entry 2, field {field}: "):
        imported(store, file)
    assert state_of(store).last == 0, "nothing of the file is added"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"id": None}, "id"),
        ({"instance_id": None}, "instance_id"),
        ({"id": 3}, "id"),
        ({"user_id": {}}, "user_id"),
    ],
)
def test_a_field_of_potato_of_another_kind_is_named(
    store: AnnotationStore, tmp_path: Path, changed: dict[str, object], field: str
) -> None:
    line = {"id": "item-0001", "user_id": "ben", "label_annotations": {"verdict": {"right": "1"}}}
    file = tmp_path / "potato.jsonl"
    file.write_text(json.dumps(line | changed))
    with pytest.raises(UserError, match=rf"potato\.jsonl, record line 1, field {field}: "):
        imported(store, file)


@pytest.mark.parametrize("by", [None, "", {"id": None}, {"email": None}, {}])
def test_an_export_without_annotators_gets_the_name_of_its_file(
    store: AnnotationStore, tmp_path: Path, by: object
) -> None:
    file = tmp_path / "anna.json"
    file.write_text(json.dumps([studio("item-0002", CHOICE, by)]))
    assert imported(store, file).added == 1
    assert [one.name for one in store.annotators(1)] == ["anna"]
    file.write_text(json.dumps([studio("item-0002", CHOICE, by), studio("item-0002", CHOICE, by)]))
    with pytest.raises(UserError, match="twice by annotators without a name"):
        imported(store, file)


def without_names(text: str) -> str:
    rows = list(csv.DictReader(io.StringIO(text)))
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0])
    writer.writeheader()
    writer.writerows({**row, "annotator": "None"} for row in rows)
    return out.getvalue()


def test_annotators_that_a_csv_export_does_not_know_are_not_one(
    store: AnnotationStore, tmp_path: Path
) -> None:
    file = tmp_path / "project.csv"
    file.write_text(without_names((WRITTEN / "label-studio-1.23.2.csv").read_text()))
    with pytest.raises(UserError, match="twice by annotators without a name"):
        imported(store, file)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("other.json", '[{"annotations": [{"result": 3}]}]', "is no export that is read"),
        ("wrong.json", '[{"data": {}, "annotations": [{"result": 3}]}]', "neither an annotated task"),
        ("coco.json", '{"images": [], "categories": [], "annotations": []}', "is no export that is read"),
        ("history.jsonl", '{"action_type": "add_label", "user_id": "a", "instance_id": "i"}', "no export"),
        ("empty.json", "[]", "holds no judgement"),
        ("open.json", '[{"data": {"item": "item-0001"}, "annotations": []}]', "holds no judgement"),
        ("state.json", '{"user_id": "a", "instance_id_to_label_to_value": {}}', "holds no judgement"),
        ("state.json", '{"user_id": "a", "instance_id_to_label_to_value": {"item-0001": 3}}', "neither"),
        ("a.conll", "-DOCSTART- -X- O\nimages -X- _ O\n", "lacks a column"),
        ("export.zip", "PK\x03\x04", "is an archive of files"),
        ("bytes.json", b'[{"data": {"item": "item-0001\xff"}, "annotations": []}]', "UTF-8"),
    ],
)
def test_another_file_is_refused_by_name(
    store: AnnotationStore, tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=message) as error:
        imported(store, file)
    assert name in str(error.value)


def test_fields_that_the_task_does_not_have_are_said(store: AnnotationStore, tmp_path: Path) -> None:
    record = studio("item-0001", CHOICE, 7)
    record["annotations"][0]["result"].append({"from_name": "mood", "value": {"rating": 3}})  # type: ignore[index]
    (tmp_path / "a.json").write_text(json.dumps([record]))
    assert imported(store, tmp_path / "a.json").unknown == ("mood",)
    line = {"id": "item-0002", "user_id": "b", "label_annotations": {"mood": {"x": "1"}}}
    (tmp_path / "b.jsonl").write_text(json.dumps(line))
    with pytest.raises(UserError, match=r"nothing is filled in|fills in no field"):
        imported(store, tmp_path / "b.jsonl")


@pytest.mark.parametrize(("stored", "text"), [("false", "false"), ("False", "False"), ("0", "0"), (0, "0")])
def test_a_text_that_reads_like_an_unmarked_option_is_a_text(
    store: AnnotationStore, tmp_path: Path, stored: object, text: str
) -> None:
    labels = {"verdict": {"right": "right", "wrong": "false"}, "why": {"text_box": stored}}
    line = {"instance_id": "item-0001", "user_id": "b", "labels": labels}
    (tmp_path / "b.jsonl").write_text(json.dumps(line))
    assert read(store, tmp_path / "b.jsonl") == {("b", 1): {"verdict": "right", "why": text}}


def test_several_results_of_one_field_are_all_read(store: AnnotationStore, tmp_path: Path) -> None:
    record = studio("item-0001", CHOICE, 7)
    for fault in ("cold", "Rude, or mocking"):
        more = {"from_name": "faults", "value": {"choices": [fault]}}
        record["annotations"][0]["result"].append(more)  # type: ignore[index]
    (tmp_path / "a.json").write_text(json.dumps([record]))
    assert read(store, tmp_path / "a.json") == {("7", 1): {"verdict": "right", "faults": ("rude", "cold")}}
