"""Checks of a model's arguments: `--model-arg` and `--gen` values against their types and ranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from sightline.errors import UserError, did_you_mean
from sightline.secret_text import is_secret_name

T = TypeVar("T")

_BOUNDS = (("ge", "{:g} or more"), ("gt", "more than {:g}"), ("le", "{:g} at most"))


PROTOCOL_FIELDS = ("model", "messages", "n", "stream", "tools", "functions")
"""Fields of a chat completions request that Sightline sets itself."""

CACHE_NAMES = ("prompt_cache_key",)
"""Sampling options with the name of a secret that are none."""


def refuse_protocol_fields(names: Iterable[str]) -> None:
    """Refuse sampling options that would change the request itself, or hold a secret."""
    for name in names:
        if is_secret_name(name) and name not in CACHE_NAMES:
            raise UserError(
                f"--gen {name} is a secret, which would be written to the store",
                expected="a key variable for this host in sightline.toml",
            )
        if name in PROTOCOL_FIELDS:
            raise UserError(
                f"--gen {name} is not a sampling option", expected="an option such as temperature or seed"
            )


def refuse_adapter(args: Mapping[str, Any], spec: str) -> None:
    """Refuse an adapter for a model that Sightline does not run itself."""
    if "adapter" in args:
        raise UserError(
            f"--model-arg adapter needs a model that runs in this process, and {spec} does not",
            expected="hf/ORG/NAME, hf/FOLDER or mini",
        )


def read_values(option: str, values: Mapping[str, Any], kind: type[T]) -> T:
    """Convert option values to a struct."""
    try:
        return msgspec.convert(dict(values), kind)
    except msgspec.ValidationError as error:
        name = next((name for name in values if not _is_valid(name, values[name], kind)), None)
        if name is None:
            raise UserError(f"{option}: {error}") from None
        raise _invalid(option, name, values[name], kind) from None


def _is_valid(name: str, value: object, kind: type[Any]) -> bool:
    try:
        msgspec.convert({name: value}, kind)
    except msgspec.ValidationError:
        return False
    return True


def _invalid(option: str, name: str, value: object, kind: type[Any]) -> UserError:
    struct = inspect.type_info(kind)
    fields = struct.fields if isinstance(struct, inspect.StructType) else ()
    (field_type,) = (field.type for field in fields if field.name == name)
    near = did_you_mean(value, _choices(field_type)) if isinstance(value, str) else ""
    return UserError(f"{option} {name} cannot be {value!r}{near}", expected=_allowed(field_type))


def _choices(kind: inspect.Type) -> list[str]:
    return [str(value) for value in kind.values] if isinstance(kind, inspect.LiteralType) else []


def _allowed(kind: inspect.Type) -> str:
    """Describe the values that a field accepts."""
    if isinstance(kind, inspect.Metadata):
        return str((kind.extra_json_schema or {}).get("description") or _allowed(kind.type))
    if isinstance(kind, inspect.UnionType):
        return " or ".join(
            _allowed(member) for member in kind.types if not isinstance(member, inspect.NoneType)
        )
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
