"""Which fields are asked of an item, and which values they may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sightline.annotation.task import Field
from sightline.annotation.types import Item, Values

Given = Mapping[str, Sequence[str]]
"""Name of a field -> what a form holds for it."""


def options_of(field: Field, item: Item) -> tuple[str, ...]:
    """List the values that a field of an item may have."""
    if field.options_from:
        return item.texts.get(field.options_from, ())
    return tuple(option.value for option in field.options)


def can_be_asked(field: Field, item: Item) -> bool:
    """Whether a field is asked of an item at all, whatever is filled in."""
    if field.phases and item.phase not in field.phases:
        return False
    return field.unless not in item.texts and (not field.options_from or field.options_from in item.texts)


def is_asked(field: Field, item: Item, given: Given) -> bool:
    """Whether a field is asked of an item, with what is filled in so far."""
    if not can_be_asked(field, item):
        return False
    return all(set(given.get(name, ())) & set(values) for name, values in field.when.items())


def as_given(values: Values) -> Given:
    """Turn values of the log into those of a form."""
    return {name: [value] if isinstance(value, str) else list(value) for name, value in values.items()}
