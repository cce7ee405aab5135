"""The values of a model's options, and what is said of one that an option cannot have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from sightline.errors import UserError, did_you_mean

T = TypeVar("T")

_BOUNDS = (("ge", "{:g} or more"), ("gt", "more than {:g}"), ("le", "{:g} at most"))


def read_values(option: str, values: Mapping[str, Any], kind: type[T]) -> T:
    """The values as a struct whose fields all have defaults; `option` is what the command line calls them.

    Raises UserError for the first one that its field cannot have, with what it can.
    """
    try:
        return msgspec.convert(dict(values), kind)
    except msgspec.ValidationError as error:
        name = next((name for name in values if not _can_be(name, values[name], kind)), None)
        if name is None:
            raise UserError(f"{option}: {error}") from None
        raise _wrong(option, name, values[name], kind) from None


def _can_be(name: str, value: object, kind: type[Any]) -> bool:
    try:
        msgspec.convert({name: value}, kind)
    except msgspec.ValidationError:
        return False
    return True


def _wrong(option: str, name: str, value: object, kind: type[Any]) -> UserError:
    struct = inspect.type_info(kind)
    fields = struct.fields if isinstance(struct, inspect.StructType) else ()
    (wanted,) = (field.type for field in fields if field.name == name)
    near = did_you_mean(value, _choices(wanted)) if isinstance(value, str) else ""
    return UserError(f"{option} {name} cannot be {value!r}{near}", expected=_allowed(wanted))


def _choices(kind: inspect.Type) -> list[str]:
    return [str(value) for value in kind.values] if isinstance(kind, inspect.LiteralType) else []


def _allowed(kind: inspect.Type) -> str:
    """What a field can be, in words."""
    if isinstance(kind, inspect.Metadata):
        return str((kind.extra_json_schema or {}).get("description") or _allowed(kind.type))
    if isinstance(kind, inspect.UnionType):
        return " or ".join(_allowed(one) for one in kind.types if not isinstance(one, inspect.NoneType))
    if isinstance(kind, inspect.LiteralType):
        return f"one of {', '.join(_choices(kind))}"
    if isinstance(kind, inspect.BoolType):
        return "true or false"
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        bounds = [
            words.format(getattr(kind, name)) for name, words in _BOUNDS if getattr(kind, name) is not None
        ]
        number = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
        return ", ".join([number, *bounds])
    return "text"
