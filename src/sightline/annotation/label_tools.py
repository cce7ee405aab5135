"""Items for Label Studio and Potato, and what annotators filled in there.

Written: tasks and a labeling configuration for Label Studio, items and a configuration for Potato. Read:
Label Studio's JSON, JSON_MIN, CSV and TSV exports; Potato's user_state.json, its exports (annotations.jsonl,
.csv and .tsv), the annotations.jsonl of its snapshots, and annotated_instances of Potato 1. Hidden facts of
items are in none of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from sightline.annotation.state import State
from sightline.annotation.task import Field, Part
from sightline.annotation.types import Item
from sightline.formats.prediction import RecordLocation, optional_text
from sightline.text import Records

Given = dict[str, list[str]]
"""What is filled in by field, also by fields that the task does not have."""


class Filled(NamedTuple):
    """What one annotator filled in for an item: where it is in the file, the key of the item, the values by
    field. `changed_by` says who else changed it last; '' for nobody.
    """

    record: str
    item: str
    annotator: str
    given: Mapping[str, list[str]]
    changed_by: str = ""
    remark: str = ""


EXPORTS = (
    "items.csv, filled in; Label Studio's export as JSON, JSON_MIN, CSV or TSV; or Potato's user_state.json, "
    "or its export as JSONL, CSV or TSV"
)


# -- Label Studio: tasks with their labeling configuration, and its exports


def label_studio_tasks(state: State) -> list[dict[str, Any]]:
    """Write the items as tasks; every task has all parts, as Label Studio requires.

    Images are paths below the folder that holds the data folder, LOCAL_FILES_DOCUMENT_ROOT of Label Studio.
    """
    folder = Path(state.project.data).name

    def url(path: str) -> str:
        return f"/data/local-files/?d={quote(f'{folder}/{path}'.lstrip('/'))}"

    return [
        {
            "data": {"item": item.key}
            | {_key(state, part): _shown(state, item, part, url) for part in _parts(state)}
        }
        for item in state.items.values()
    ]


def label_studio_config(state: State) -> str:
    """Write the labeling configuration that shows the parts and asks for the fields."""
    parts = [
        part
        for part in _parts(state)
        if any(item.texts.get(part.name) or item.images.get(part.name) for item in state.items.values())
    ]
    lines = ["<View>"]
    for part in parts:
        if part.label:
            lines.append(f"  <Header value={quoteattr(part.label)}/>")
        kind = "Image" if part.kind == "image" else "Text"
        value = "valueList" if _is_gallery(state, part) else "value"
        key = _key(state, part)
        lines.append(f"  <{kind} name={quoteattr(key)} {value}={quoteattr(f'${key}')}/>")
    to = quoteattr(_key(state, parts[0]) if parts else "item")
    for field in state.project.task.fields:
        name = f"name={quoteattr(field.name)} toName={to}"
        if field.options:
            choice = "multiple" if field.kind == "choices" else "single"
            lines.append(f'  <Choices {name} choice="{choice}" showInline="true">')
            lines += [
                f"    <Choice value={quoteattr(option.text)} alias={quoteattr(option.value)}/>"
                for option in field.options
            ]
            lines.append("  </Choices>")
        else:
            lines.append(f'  <TextArea {name} maxSubmissions="1" rows="{field.lines}"/>')
    return "\n".join([*lines, "</View>", ""])


_OF_EXPORT = {"annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "id"}
"""Fields of JSON_MIN, CSV and TSV that replace the annotator's of the same name."""


def _of_label_studio(state: State, location: RecordLocation, record: Mapping[str, Any]) -> Iterator[Filled]:
    for annotation in record["annotations"]:
        given: Given = {}
        for result in () if annotation.get("was_cancelled") else annotation["result"]:
            name, value = result["from_name"], result["value"]
            if not ({"choices", "text"} & value.keys()) and name in _fields(state):
                raise location.error(
                    "holds neither choices nor a text", field=f"annotations.result.{name}", found=value
                )
            found = value.get("choices", value.get("text", []))
            texts = _texts(found, f"annotations.result.{name}", location)
            given.setdefault(name, []).extend(_values(state, name, texts))
        by, last = annotation.get("completed_by"), annotation.get("updated_by")
        number = by.get("id") if isinstance(by, dict) else by
        annotator = _user(by, "annotations.completed_by", location)
        # "Update" changes the annotation of somebody else, and leaves it in the name of that annotator.
        is_changed = isinstance(number, int) and isinstance(last, int) and number != last
        item = _item(record["data"].get("item"), "data.item", location)
        yield Filled(location.record, item, annotator, given, f"user {last}" if is_changed else "")


def _user(by: object, field: str, location: RecordLocation) -> str:
    """A user of Label Studio: a number, an address, or an object with both, of which the address counts."""
    name = by.get("email") or by.get("id") if isinstance(by, dict) else by
    return optional_text(name, field, location)


def _of_label_studio_row(
    state: State, location: RecordLocation, record: Mapping[str, Any]
) -> Iterator[Filled]:
    """Read a record of JSON_MIN, CSV or TSV: one annotation, or a task without one."""
    if lost := sorted(_OF_EXPORT & _fields(state).keys()):
        raise location.error(
            "is replaced by a field of Label Studio in JSON_MIN, CSV and TSV",
            field=lost[0],
            expected="the JSON export",
        )
    given: Given = {}
    for name in _fields(state).keys() & record.keys():
        found = _unpacked(record[name])
        parts = found if isinstance(found, list) else [found]
        cells = [one.get("choices", one.get("text", one)) if isinstance(one, dict) else one for one in parts]
        texts = [text for cell in cells for text in _texts(cell, name, location)]
        given[name] = _values(state, name, texts)
    # The CSV export writes an annotator that it does not know as Python does.
    by = _user(record["annotator"], "annotator", location)
    item = _item(record.get("item"), "item", location)
    yield Filled(location.record, item, "" if by == "None" else by, given)


def _unpacked(cell: object) -> object:
    """Several values in a cell of a CSV file are written as in JSON: {"choices": ["a", "b"]}."""
    if isinstance(cell, str) and re.match(r'\[?\{"(choices|text)":', cell):
        try:
            return json.loads(cell)
        except ValueError:
            return cell
    return cell


# -- Potato: items with their configuration, its states of annotators and its exports


def potato_items(state: State) -> list[dict[str, Any]]:
    """Write the items as data: the texts, and the images of each part as a field of its own."""

    def url(path: str) -> str:
        return f"/media/{quote(path)}"

    return [
        {"id": item.key, "text": _as_text(state, item) or item.key}
        | {_key(state, part): _shown(state, item, part, url) for part in _image_parts(state)}
        for item in state.items.values()
    ]


def potato_config(state: State, name: str) -> dict[str, Any]:
    """Write the configuration that shows the items in the file `name` and asks for the fields."""
    task = state.project.task
    shown = [
        {"key": _key(state, part), "type": "gallery" if _is_gallery(state, part) else "image"}
        for part in _image_parts(state)
    ]
    return {
        "annotation_task_name": state.project.name,
        "task_dir": ".",
        "output_annotation_dir": "annotation_output",
        "export_annotation_format": ["jsonl"],
        "data_files": [name],
        "item_properties": {"id_key": "id", "text_key": "text"},
        "media_directory": state.project.data or "media",
        "instance_display": {"fields": [*shown, {"key": "text", "type": "text"}]},
        "annotation_schemes": [_scheme(field) for field in task.fields],
    }


def _scheme(field: Field) -> dict[str, Any]:
    scheme: dict[str, Any] = {"name": field.name, "description": field.label or field.name}
    if field.required and not field.when:
        scheme["label_requirement"] = {"required": True}
    if not field.options:
        return {"annotation_type": "text", **scheme, "textarea": {"on": True, "rows": field.lines}}
    kind = "multiselect" if field.kind == "choices" else "radio"
    labels = [{"name": option.value, "displayed_label": option.text} for option in field.options]
    return {"annotation_type": kind, **scheme, "labels": labels}


Labels = Mapping[str, Mapping[str, object]]
"""Name of a scheme -> label -> what is stored of it: for an option its label, 'true' or a number."""


def _of_potato_state(state: State, location: RecordLocation, record: Mapping[str, Any]) -> Iterator[Filled]:
    """Read a user_state.json: everything of one annotator."""
    by = optional_text(record.get("user_id"), "user_id", location) or location.file.absolute().parent.name
    for key, entries in record["instance_id_to_label_to_value"].items():
        labels: dict[str, dict[str, object]] = {}
        for about, value in entries:
            labels.setdefault(about["schema"], {})[about["name"]] = value
        yield Filled(f"{location.record}, {key}", key, by, _of_labels(state, labels, location))


def _of_potato(state: State, location: RecordLocation, record: Mapping[str, Any]) -> Iterator[Filled]:
    """Read a line of an export, or of annotated_instances.jsonl, which Potato 1 kept for each annotator."""
    labels: Labels = record["labels"] if "labels" in record else record["label_annotations"]
    id_field = "instance_id" if "instance_id" in record else "id"
    by = optional_text(record.get("user_id"), "user_id", location)
    yield Filled(
        location.record,
        _item(record.get(id_field), id_field, location),
        by or ("" if "user_id" in record else location.file.absolute().parent.name),
        _of_labels(state, labels, location),
    )


def _of_potato_row(state: State, location: RecordLocation, record: Mapping[str, Any]) -> Iterator[Filled]:
    """Read a row: Potato 2 names a column `scheme.label`, Potato 1 `scheme:::label`.

    A column of the name of a scheme is Potato's choice where it stored several labels of one choice.
    """
    labels: dict[str, dict[str, object]] = {}
    for column, cell in record.items():
        if not cell or column in ("instance_id", "user_id", "user", "displayed_text"):
            continue
        name, label = _scheme_and_label(column, _fields(state))
        labels.setdefault(name, {})[label] = cell
    for name, chosen in labels.items():
        if "" in chosen:
            labels[name] = {str(chosen[""]): chosen[""]}
    by = optional_text(record.get("user_id", record.get("user")), "user_id", location)
    key = _item(record.get("instance_id"), "instance_id", location)
    yield Filled(location.record, key, by, _of_labels(state, labels, location))


def _scheme_and_label(column: str, fields: Collection[str]) -> tuple[str, str]:
    for name in sorted(fields, key=len, reverse=True):
        if column == name:
            return name, ""
        for mark in (":::", "."):
            if column.startswith(name + mark):
                return name, column.removeprefix(name + mark)
    name, _, label = column.partition(":::" if ":::" in column else ".")
    return name, label


def _of_snapshot(state: State, records: Records, path: Path) -> Iterator[Filled]:
    """Read the annotations.jsonl of a snapshot: a line for each annotator, item and scheme."""
    found: dict[tuple[str, str], tuple[RecordLocation, dict[str, dict[str, object]]]] = {}
    for where, record in records:
        location = RecordLocation(path, where)
        with _damage_named(location):
            by = optional_text(record.get("annotator"), "annotator", location)
            key = _item(record.get("item"), "item", location)
            labels = found.setdefault((by, key), (location, {}))[1]
            labels[record["schema"]] = dict(record["value"].get("labels", ()))
    for (by, key), (location, labels) in found.items():
        with _damage_named(location):
            given = _of_labels(state, labels, location)
        yield Filled(location.record, key, by, given)


def _of_labels(state: State, labels: Labels, location: RecordLocation) -> Given:
    given: Given = {}
    for name, chosen in labels.items():
        field = _fields(state).get(name)
        if field is not None and not field.options and not field.options_from:
            stored = [one for one in chosen.values() if one is not None]
            given[name] = [optional_text(one, f"labels.{name}", location) for one in stored]
        else:
            marked = {label: one for label, one in chosen.items() if _is_chosen(label, one)}
            # The options of an item may stand in a text box, of which the label is only the name.
            typed = field is not None and field.options_from and list(marked) == ["text_box"]
            texts = [optional_text(one, f"labels.{name}", location) for one in marked.values()]
            given[name] = texts if typed else _values(state, name, list(marked))
    return given


def _is_chosen(label: str, stored: object) -> bool:
    return stored == label or (bool(stored) and str(stored).lower() != "false")


# -- Which export a file is


def filled_in_records(state: State, records: Records, path: Path) -> Iterator[Filled]:
    """Read an export in JSON.

    Raises:
        UserError: The file is another one, or damaged.
    """
    if records and {"annotator", "item", "schema", "value"} <= records[0][1].keys():
        yield from _of_snapshot(state, records, path)
        return
    for where, record in records:
        location = RecordLocation(path, where)
        with _damage_named(location):
            found = list(_read_record(state, location, record))
        yield from found


def filled_in_rows(state: State, rows: Records, path: Path) -> Iterator[Filled]:
    """Read an export as CSV or TSV."""
    for where, record in rows:
        location = RecordLocation(path, where)
        read = _of_label_studio_row if "annotation_id" in record else _of_potato_row
        yield from read(state, location, record)


def is_export(header: Collection[str]) -> bool:
    """Whether a table is an export of Label Studio or Potato."""
    columns = set(header)
    return {"annotation_id", "annotator"} <= columns or (
        "instance_id" in columns and bool({"user_id", "user"} & columns)
    )


def _read_record(state: State, location: RecordLocation, record: Mapping[str, Any]) -> Iterator[Filled]:
    if "instance_id_to_label_to_value" in record:
        return _of_potato_state(state, location, record)
    if "label_annotations" in record or {"instance_id", "labels"} <= record.keys():
        return _of_potato(state, location, record)
    if {"annotations", "data"} <= record.keys():
        return _of_label_studio(state, location, record)
    if {"annotation_id", "annotator"} <= record.keys():
        return _of_label_studio_row(state, location, record)
    raise location.error(
        "is no export that is read", found=f"the fields {', '.join(record)}", expected=EXPORTS
    )


@contextmanager
def _damage_named(location: RecordLocation) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise location.error(
            f"is neither an annotated task of Label Studio nor a record of Potato: {error!r}",
            expected="the file that the other tool exported",
        ) from None


def _item(value: object, field: str, location: RecordLocation) -> str:
    if not isinstance(value, str):
        raise location.error(
            "is not the id of an item", field=field, found=value, expected="an id such as item-0001"
        )
    return value


def _texts(value: object, field: str, location: RecordLocation) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    return [optional_text(one, field, location) for one in listed]


def _values(state: State, name: str, labels: Sequence[str]) -> list[str]:
    """The values of options, of which a tool may store the text that it shows."""
    field = _fields(state).get(name)
    values = {} if field is None else {option.text: option.value for option in field.options}
    known = set(values.values())
    return [label if label in known else values.get(label, label) for label in labels]


def _fields(state: State) -> dict[str, Field]:
    return {field.name: field for field in state.project.task.fields}


# -- What of an item is shown


def _parts(state: State) -> list[Part]:
    return [part for part in state.project.task.shows if part.kind != "similar"]


def _image_parts(state: State) -> list[Part]:
    return [
        part
        for part in _parts(state)
        if part.kind == "image" and any(item.images.get(part.name) for item in state.items.values())
    ]


def _is_gallery(state: State, part: Part) -> bool:
    """Whether an item has several images in this part: all items then hold a list."""
    return part.kind == "image" and any(
        len(item.images.get(part.name, ())) > 1 for item in state.items.values()
    )


def _key(state: State, part: Part) -> str:
    """The name of a part in data of other tools, where it is a variable, and differs from those of fields."""
    key = re.sub(r"\W", "_", part.name, flags=re.ASCII)
    taken = {*_fields(state), *_OF_EXPORT, "item", "text"}
    return f"shown_{key}" if key in taken else key


def _shown(state: State, item: Item, part: Part, url: Callable[[str], str]) -> str | list[str]:
    images = [url(image.path) for image in item.images.get(part.name, ())]
    if _is_gallery(state, part):
        return images
    return "\n".join((*item.texts.get(part.name, ()), *images))


def _as_text(state: State, item: Item) -> str:
    parts = [(part.label or part.name, item.texts.get(part.name, ())) for part in _parts(state)]
    return "\n\n".join(f"{label}: " + "\n".join(texts) for label, texts in parts if texts)
