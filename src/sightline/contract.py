"""Checks a class that enters by the registry or a plugin against the base class of its kind."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from sightline.errors import UserError
from sightline.plugins import place_of


def check_contract(kind: str, name: str, entry: object, base: type) -> None:
    """Check that a registered class fits the base class of its kind.

    Attributes must have the types that the base class declares. Methods must take the arguments of the base
    class by the same names. A base class that is a protocol need not be derived from.
    """
    whose = f"the {kind} registered as '{name}'"
    if not isinstance(entry, type) or not (getattr(base, "_is_protocol", False) or issubclass(entry, base)):
        expected = f"a class that derives from {base.__module__}.{base.__qualname__}"
        raise UserError(
            f"{whose} is not a {kind}", file=place_of(entry), found=repr(entry), expected=expected
        )
    _check_members(whose, name, entry, base)


def arguments_of(method: Any) -> list[str]:
    """List the arguments of a method.

    Returns:
        Their names; none if it cannot be called.
    """
    return list(inspect.signature(method).parameters) if callable(method) else []


@cache
def _check_members(whose: str, name: str, entry: type, base: type) -> None:
    """Raise UserError for a member that does not fit. Each class is checked once."""
    place = place_of(entry)
    for member, hint in get_type_hints(base).items():
        if not hasattr(entry, member):
            raise UserError(f"{whose} lacks an attribute", file=place, field=member, expected=_spelled(hint))
        if not _fits(getattr(entry, member), hint):
            found = repr(getattr(entry, member))
            raise UserError(
                f"{whose} has an attribute of another type",
                file=place,
                field=member,
                found=found,
                expected=_spelled(hint),
            )
    for member, method in inspect.getmembers(base, inspect.isfunction):
        ours = getattr(entry, member, None)
        if ours is None or member in getattr(entry, "__abstractmethods__", ()):
            raise UserError(
                f"{whose} lacks a method", file=place, field=member, expected=_call(member, method)
            )
        if not member.startswith("_") and arguments_of(ours) != arguments_of(method):
            raise UserError(
                f"{whose} has a method with other arguments",
                file=place_of(ours) or place,
                field=member,
                found=_call(member, ours),
                expected=_call(member, method),
            )
    if entry.name != name:  # type: ignore[attr-defined]
        raise UserError(
            f"{whose} has another name",
            file=place,
            field="name",
            found=entry.name,  # type: ignore[attr-defined]
            expected=name,
        )


def _call(name: str, method: Any) -> str:
    return f"{name}({', '.join(arguments_of(method))})" if callable(method) else f"{method!r}"


def _spelled(hint: Any) -> str:
    return (
        hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")
    )


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value has a type, looking into tuples and mappings."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if inner[-1] is Ellipsis:
            return all(_fits(item, inner[0]) for item in value)
        return len(value) == len(inner) and all(map(_fits, value, inner))
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            _fits(key, inner[0]) and _fits(item, inner[1]) for key, item in value.items()
        )
    return isinstance(value, hint if origin is None else origin)
