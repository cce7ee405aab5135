"""Checks what an annotator filled in: a form comes from a browser, and can hold anything."""

from __future__ import annotations

from collections.abc import Sequence

from sightline.annotation.asked import Given, is_asked, options_of
from sightline.annotation.records.kinds import record_faults
from sightline.annotation.task import Field, Task
from sightline.annotation.types import Item, Values
from sightline.errors import UserError


def checked_values(task: Task, item: Item, given: Given) -> Values:
    """Check what is filled in."""
    filled = {name: [text for text in texts if text.strip()] for name, texts in given.items()}
    values: dict[str, str | tuple[str, ...]] = {}
    for field in task.fields:
        if not is_asked(field, item, filled):
            continue
        texts = filled.get(field.name, [])
        if not texts:
            if field.required:
                raise UserError("nothing is filled in", field=field.label or field.name)
            continue
        values[field.name] = _checked(field, item, texts)
    for fault in record_faults(task.records, item, values):
        raise fault
    return values


def _checked(field: Field, item: Item, texts: Sequence[str]) -> str | tuple[str, ...]:
    name = field.label or field.name
    allowed = options_of(field, item)
    for text in texts:
        if allowed and text not in allowed:
            raise UserError("is not an option", field=name, found=text, expected=", ".join(allowed))
        if len(text) > field.longest:
            raise UserError("is too long", field=name, found=len(text), expected=f"at most {field.longest:,}")
    if field.kind == "choices":
        return tuple(text for text in allowed if text in texts)
    if len(texts) > 1:
        raise UserError("holds several values", field=name, found=", ".join(texts), expected="one")
    return texts[0].strip()
