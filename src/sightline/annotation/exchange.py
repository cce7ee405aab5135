"""Items and judgements as tables, and in the formats of Label Studio and Potato.

Label Studio: tasks as JSON with a labeling configuration, and annotated tasks (its "JSON" export). Potato:
items as JSON Lines, and lines of annotated_instances.jsonl. Hidden facts of items are in neither.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from msgspec import Struct

from sightline.annotation.decisions import judged_by_raters, judgements, settlers, wanted
from sightline.annotation.live import checked_values
from sightline.annotation.state import State
from sightline.annotation.store import AnnotationStore, ProjectRow
from sightline.annotation.task import Field
from sightline.annotation.types import Annotator, Entry, Item
from sightline.errors import UserError
from sightline.formats.files import read_bytes, text_digest
from sightline.formats.prediction import RecordLocation, optional_text
from sightline.formats.tables import csv_bytes, read_table, table_rows
from sightline.text import UNDECODABLE, fault, unescape_formula

Filled = tuple[str, str, str, str, Mapping[str, list[str]]]
"""Where it is in the file, the key of the item, the annotator, a remark, and what is filled in by field."""


def label_studio_tasks(state: State) -> list[dict[str, Any]]:
    return [{"data": {"item": item.key, **_shown(state, item)}} for item in state.items.values()]


def label_studio_config(state: State) -> str:
    """Write the labeling configuration that shows the parts and asks for the fields."""
    task = state.project.task
    parts = [part for part in task.shows if any(_cells(item, part.name) for item in state.items.values())]
    lines = ["<View>"]
    for part in parts:
        if part.label:
            lines.append(f"  <Header value={quoteattr(part.label)}/>")
        kind = "Image" if part.kind == "image" else "Text"
        lines.append(f"  <{kind} name={quoteattr(part.name)} value={quoteattr(f'${part.name}')}/>")
    to = quoteattr(parts[0].name if parts else "item")
    for field in task.fields:
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


def potato_items(state: State) -> list[dict[str, str]]:
    """Write the items as data of Potato."""
    return [{"id": item.key, "text": _as_text(state, item)} for item in state.items.values()]


def read_annotated(state: State, path: Path) -> Iterator[Filled]:
    """Read annotated tasks of Label Studio, or lines of Potato."""
    text = read_bytes(path).decode("utf-8-sig", "replace")
    try:
        if text.lstrip().startswith("["):
            records = json.loads(text)
        else:
            records = [json.loads(line) for line in text.splitlines() if line.strip()]
    except UNDECODABLE as error:
        raise UserError(f"is not JSON: {fault(error)}", file=path) from None
    for number, record in enumerate(records, start=1):
        where = str(number)
        try:
            if "label_annotations" in record:
                yield _of_potato(state, RecordLocation(path, where), record)
            else:
                yield from _of_label_studio(RecordLocation(path, where), record)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise UserError(
                f"is neither an annotated task of Label Studio nor a line of Potato: {error!r}",
                file=path,
                record=where,
                expected="the file that the other tool exported",
            ) from None


def _of_label_studio(location: RecordLocation, record: Mapping[str, Any]) -> Iterator[Filled]:
    for annotation in record.get("annotations", ()):
        if annotation.get("was_cancelled"):
            continue
        given: dict[str, list[str]] = {}
        for result in annotation["result"]:
            name, value = result["from_name"], result["value"]
            found = value.get("choices", value.get("text", []))
            listed = found if isinstance(found, list) else [found]
            given[name] = [optional_text(one, f"annotations.result.{name}", location) for one in listed]
        by = annotation.get("completed_by")
        name = (by.get("email") or by.get("id")) if isinstance(by, dict) else by
        annotator = optional_text(name, "annotations.completed_by", location)
        yield location.record, _key(record["data"]["item"], "data.item", location), annotator, "", given


def _of_potato(state: State, location: RecordLocation, record: Mapping[str, Any]) -> Filled:
    given: dict[str, list[str]] = {}
    for name, labels in record["label_annotations"].items():
        field = next((one for one in state.project.task.fields if one.name == name), None)
        if field is not None:
            given[name] = [
                _value(field, label)
                if field.options
                else optional_text(text, f"label_annotations.{name}", location)
                for label, text in labels.items()
                if text and str(text).lower() != "false"
            ]
    id_field = "instance_id" if "instance_id" in record else "id"
    annotator = optional_text(record.get("user_id"), "user_id", location) or location.file.parent.name
    return location.record, _key(record.get(id_field), id_field, location), annotator, "", given


def _key(value: object, field: str, location: RecordLocation) -> str:
    if not isinstance(value, str):
        raise location.error(
            "is not the id of an item", field=field, found=value, expected="an id such as item-0001"
        )
    return value


def _value(field: Field, label: str) -> str:
    return next((option.value for option in field.options if label in (option.value, option.text)), label)


def _cells(item: Item, part: str) -> tuple[str, ...]:
    return (*item.texts.get(part, ()), *(image.path for image in item.images.get(part, ())))


def _shown(state: State, item: Item) -> dict[str, str]:
    """Part -> what it shows; every task has all parts, as Label Studio requires."""
    return {part.name: "\n".join(_cells(item, part.name)) for part in state.project.task.shows}


def _as_text(state: State, item: Item) -> str:
    parts = [(part.label or part.name, _cells(item, part.name)) for part in state.project.task.shows]
    return "\n\n".join(f"{label}: " + "\n".join(cells) for label, cells in parts if cells)


# -- Tables of a project: what stands, what is to be filled in, and filled-in tables that come back

ITEM, BY, ACTION, REMARK = "item", "by", "action", "remark"
SEPARATOR = "; "
"""Between the values of a field that holds several."""

_ITEM = re.compile(r"item-0*(\d+)")


class Imported(Struct, frozen=True):
    """The result of an import: judgements that were added, those that were there already, and the items that
    have more judgements than they need now."""

    added: int
    known: int
    beyond: tuple[int, ...] = ()


def items_table(state: State) -> list[list[str]]:
    """The table that an annotator fills in: each item, without anything that is hidden."""
    parts = [part for part in state.project.task.shows if part.kind != "similar"]
    fields = [field.name for field in state.project.task.fields]
    header = [ITEM, BY, *fields, REMARK, "phase", *(part.name for part in parts if part.name not in fields)]
    rows = [header]
    for item in state.items.values():
        shown = [_shown_in_sheet(item, part.name) for part in parts if part.name not in fields]
        rows.append([item.key, "", *("" for _ in fields), "", item.phase, *shown])
    return rows


def judgements_table(state: State, annotators: Sequence[Annotator]) -> list[list[str]]:
    """The table of the judgements that stand, with what they are about."""
    fields = [field.name for field in state.project.task.fields]
    hidden = sorted({name for item in state.items.values() for name in item.hidden})
    about = ["phase", "stratum", "cluster", "variant", "probability", "targets"]
    rows = [[ITEM, BY, *fields, "role", "seconds", "time", *about, *hidden]]
    for one in judgements(state, annotators):
        item, entry = one.item, one.entry
        values = [_joined(entry.values.get(name, "")) for name in fields]
        place = [item.phase, item.stratum, item.cluster, item.variant, repr(item.probability)]
        rows.append(
            [
                item.key,
                one.name,
                *values,
                one.role,
                f"{entry.seconds:.1f}",
                f"{entry.time:.0f}",
                *place,
                " ".join(item.targets),
                *(_joined(item.hidden.get(name, "")) for name in hidden),
            ]
        )
    return rows


def import_sheets(
    store: AnnotationStore, row: ProjectRow, state: State, files: Sequence[Path], now: float
) -> Imported:
    """Add the judgements of filled-in tables, all or none; `now` is in seconds since 1970."""
    found: dict[tuple[str, int], tuple[str, Mapping[str, str | tuple[str, ...]]]] = {}
    names: dict[str, str] = {}
    for path in files:
        for where, name, number, values in _filled(state, path):
            names.setdefault(name.casefold(), name)
            remark, given = values
            if found.setdefault((name.casefold(), number), (remark, given))[1] != given:
                raise UserError(
                    f"'{name}' has judged one item twice, differently", file=path, record=where, field=ITEM
                )
    numbers = _annotators(store, row, names)
    entries = [
        Entry(
            0,
            number,
            numbers[name],
            "judge",
            _form(row, state, name, number, given),
            now,
            given,
            reason=remark,
        )
        for (name, number), (remark, given) in found.items()
        if not _stands(state, numbers[name], number, given)
    ]
    stored = store.append(row.number, entries)
    added = sum(entry.number > state.last for entry in stored)
    return Imported(added, len(found) - added, _beyond(state.advance(stored), store.annotators(row.number)))


def _beyond(state: State, annotators: Sequence[Annotator]) -> tuple[int, ...]:
    """The items with more judgements than they need; known values are judged by everybody."""
    judged = judged_by_raters(state, settlers(annotators))
    return tuple(
        number
        for number, item in state.items.items()
        if judged[number] > wanted(state.project, item) and not item.expected
    )


def _lines(state: State, path: Path) -> Iterator[Filled]:
    fields = state.project.task.fields
    table = read_table(_as_utf8(read_bytes(path)), path)
    for column in (ITEM, *(field.name for field in fields if field.required and not field.when)):
        if column not in table.header:
            raise UserError("lacks a column", file=path, field=column, expected="items.csv, filled in")
    for where, cells in table_rows(table, path):
        given = {}
        for field in fields:
            text = unescape_formula(cells.get(field.name, "")).strip()
            several = field.kind == "choices"
            given[field.name] = [part.strip() for part in text.split(";")] if several else [text]
        by = unescape_formula(cells.get(BY, ""))
        yield where, cells[ITEM], by, cells.get(REMARK, "").strip(), given


def _filled(
    state: State, path: Path
) -> Iterator[tuple[str, str, int, tuple[str, Mapping[str, str | tuple[str, ...]]]]]:
    """The judgements of a file: where it is, the annotator, the item, remark and values."""
    from sightline.annotation.links import check_name

    read = read_annotated if path.suffix in (".json", ".jsonl") else _lines
    for where, key, by, remark, given in read(state, path):
        if not any(any(texts) for texts in given.values()):
            continue
        match = _ITEM.fullmatch(key.strip())
        item = state.items.get(int(match[1])) if match else None
        if item is None:
            raise UserError("is no item of this project", file=path, record=where, field=ITEM, found=key)
        name = " ".join(by.split()) or path.stem
        if any(author.casefold() == name.casefold() for author in item.authors):
            raise UserError(f"'{name}' is an author of this item", file=path, record=where, field=BY)
        try:
            check_name(name)
            values = checked_values(state.project.task, item, given)
        except UserError as error:
            raise UserError(
                error.message,
                file=path,
                record=where,
                field=error.field,
                found=error.found,
                expected=error.expected,
            ) from None
        yield where, name, item.number, (remark, values)


def _annotators(store: AnnotationStore, row: ProjectRow, names: Mapping[str, str]) -> dict[str, int]:
    """Name in small letters -> number; new annotators are added, with a link that has ended."""
    from sightline.annotation.links import invite

    known = {one.name.casefold(): one.number for one in store.annotators(row.number)}
    for folded, name in names.items():
        if folded not in known:
            known[folded] = invite(store, row, name, 0.0).number
    return known


def _stands(state: State, annotator: int, item: int, values: object) -> bool:
    entry = state.of_item(item).get(annotator)
    return entry is not None and entry.action == "judge" and entry.values == values


def _form(row: ProjectRow, state: State, name: str, item: int, values: object) -> str:
    """The id of an imported judgement: one file that is imported twice at once adds it once."""
    about = (row.number, state.last, name, item, values)
    return "import-" + text_digest(repr(about))[:40]


def _shown_in_sheet(item: Item, part: str) -> str:
    images = item.images.get(part, ())
    return "\n".join((*item.texts.get(part, ()), *(image.path for image in images)))


def _joined(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else SEPARATOR.join(value)


def _as_utf8(content: bytes) -> bytes:
    """A table as spreadsheets save it: cp1252 and semicolons become UTF-8 and commas."""
    if content.startswith(b"PK\x03\x04"):
        return content
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="strict") if _is_cp1252(content) else ""
    header = text.partition("\n")[0]
    if text and ";" in header and header.count(";") > header.count(","):
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=";"))
        return csv_bytes(rows)
    return text.encode() if text else content


def _is_cp1252(content: bytes) -> bool:
    try:
        content.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return True
