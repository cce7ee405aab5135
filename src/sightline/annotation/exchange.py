"""Items and judgements in the formats of Label Studio and Potato.

Label Studio: tasks as JSON with a labeling configuration, and annotated tasks (its "JSON" export). Potato:
items as JSON Lines, and lines of annotated_instances.jsonl. Hidden facts of items are in neither.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from sightline.annotation.state import State
from sightline.annotation.task import Field
from sightline.annotation.types import Item
from sightline.decoding import UNDECODABLE, fault
from sightline.errors import UserError
from sightline.formats.content import read_bytes

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
        where = f"record {number}"
        try:
            if "label_annotations" in record:
                yield _of_potato(state, path, where, record)
            else:
                yield from _of_label_studio(where, record)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise UserError(
                f"is neither an annotated task of Label Studio nor a line of Potato: {error!r}",
                file=path,
                record=where,
                expected="the file that the other tool exported",
            ) from None


def _of_label_studio(where: str, record: Mapping[str, Any]) -> Iterator[Filled]:
    for annotation in record.get("annotations", ()):
        if annotation.get("was_cancelled"):
            continue
        given: dict[str, list[str]] = {}
        for result in annotation["result"]:
            value = result["value"]
            found = value.get("choices", value.get("text", []))
            given[result["from_name"]] = [found] if isinstance(found, str) else list(found)
        by = annotation.get("completed_by", "")
        name = by.get("email") or str(by.get("id", "")) if isinstance(by, dict) else str(by)
        yield where, record["data"]["item"], name, "", given


def _of_potato(state: State, path: Path, where: str, record: Mapping[str, Any]) -> Filled:
    given: dict[str, list[str]] = {}
    for name, labels in record["label_annotations"].items():
        field = next((one for one in state.project.task.fields if one.name == name), None)
        if field is not None:
            given[name] = [
                _value(field, label) if field.options else str(text)
                for label, text in labels.items()
                if text and str(text).lower() != "false"
            ]
    key = record.get("instance_id", record.get("id"))
    return where, str(key), str(record.get("user_id", path.parent.name)), "", given


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
