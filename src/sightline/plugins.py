"""Plugins and registered names: load a file, check its classes, name file and line in its errors."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from traceback import walk_tb
from types import ModuleType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from sightline.errors import UserError, did_you_mean

_modules: dict[str, str] = {}
"""The name of each plugin's module or package -> the file as the user named it; '' for a package."""


def load_plugin(file: str) -> ModuleType:
    path = Path(file)
    spec = importlib.util.spec_from_file_location(f"sightline_plugin_{path.stem}", path)
    if not path.is_file():
        raise UserError("there is no such file", file=file, expected="a Python file for --plugin")
    if spec is None or spec.loader is None:
        raise UserError("cannot be loaded", file=file, expected="a Python file, NAME.py, for --plugin")
    module = importlib.util.module_from_spec(spec)
    # Classes resolve their annotations in their module, which they find by its name.
    sys.modules[spec.name] = module
    _modules[spec.name] = str(path.absolute())
    try:
        spec.loader.exec_module(module)
    except UserError:
        raise
    except SyntaxError as error:
        place = f"{error.filename or file}, line {error.lineno}"
        raise UserError(f"is not valid Python: {error.msg}", file=place) from error
    except Exception as error:
        raise error_of_plugin(error) or UserError(
            f"cannot be loaded: {_spelled(error)}", file=file
        ) from error
    return module


def add_package(module: str) -> None:
    """Treat an installed package as a plugin, so that its errors are reported as its own."""
    _modules.setdefault(module.partition(".")[0], "")


def file_of(entry: object) -> str | None:
    """The absolute path of the `--plugin` file that defines a class; None if none does."""
    return _modules.get(getattr(entry, "__module__", "").partition(".")[0]) or None


def place_of(entry: object) -> str | None:
    """Where a plugin defines a class or function, such as `mine.py, line 3`; None if none does."""
    if getattr(entry, "__module__", "").partition(".")[0] in _modules:
        with suppress(OSError, TypeError):
            return f"{inspect.getsourcefile(entry)}, line {inspect.getsourcelines(entry)[1]}"  # type: ignore[arg-type]
    return None


def error_of_plugin(error: BaseException) -> UserError | None:
    """Report an exception as the plugin's, if its code raised it or called what raised it.

    Returns the error that names file, line and function of the plugin; None if no plugin took part.
    """
    place = _last_place(error)
    if place is None:
        return None
    file, line, function = place
    within = "" if function == "<module>" else f" in {function}"
    return UserError(
        f"the plugin fails{within}: {_spelled(error)}; use --debug for the traceback",
        file=f"{file}, line {line}",
    )


def error_and_line(error: BaseException) -> str:
    """Describe an exception in one line without paths, which differ between machines."""
    place = _last_place(error)
    return _spelled(error) if place is None else f"{_spelled(error)} ({Path(place[0]).name}, line {place[1]})"


def wrong_return(function: object, found: object, expected: type) -> UserError:
    """Report a function of a plugin that returned something else than its contract says."""
    name = getattr(function, "__qualname__", repr(function))
    return UserError(
        f"{name} returned something else than {expected.__name__}",
        file=place_of(function),
        found=found,
        expected=f"{expected.__module__}.{expected.__name__}",
    )


def _last_place(error: BaseException) -> tuple[str, int, str] | None:
    places = [
        (frame.f_code.co_filename, line, frame.f_code.co_qualname)
        for frame, line in walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] in _modules
    ]
    return places[-1] if places else None


def _spelled(error: BaseException) -> str:
    """An exception as Python prints it, such as `KeyError: 'x'`."""
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# -- Checks a class that enters by the registry or a plugin against the base class of its kind


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
    """List the names of a method's arguments; none if it cannot be called."""
    return list(inspect.signature(method).parameters) if callable(method) else []


@cache
def _check_members(whose: str, name: str, entry: type, base: type) -> None:
    """Raise UserError for a member that does not fit. Each class is checked once."""
    place = place_of(entry)
    for member, hint in get_type_hints(base).items():
        if not hasattr(entry, member):
            raise UserError(
                f"{whose} lacks an attribute", file=place, field=member, expected=_type_name(hint)
            )
        if not _fits(getattr(entry, member), hint):
            found = repr(getattr(entry, member))
            raise UserError(
                f"{whose} has an attribute of another type",
                file=place,
                field=member,
                found=found,
                expected=_type_name(hint),
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


def _type_name(hint: Any) -> str:
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


# -- Registered names: 'module:name' strings, so that a module is imported only when its entry is used


_EXPECTED = {
    "benchmarks": '{"NAME": CLASS}, a class that derives from sightline.benchmarks.base.Benchmark',
    "models": '{"NAME": FUNCTION}, a function of (rest, spec, options) that returns a list of models',
    "perturbations": '{"NAME": CLASS}, a class like those of sightline.builders.perturb',
    "trackers": '{"NAME": CLASS}, a class that derives from sightline.interop.tracking.Tracker',
}
"""What a plugin may define."""

plugged_in: dict[str, dict[str, Any]] = {"benchmarks": {}, "models": {}, "perturbations": {}, "trackers": {}}


def plug_in(file: str) -> None:
    """Load a Python file and register its mappings, such as `benchmarks` or `models`."""
    module = load_plugin(file)
    found = {kind: getattr(module, kind) for kind in plugged_in if hasattr(module, kind)}
    if not found:
        raise UserError(f"defines none of {', '.join(plugged_in)}", file=file, expected="a mapping of names")
    for kind, things in found.items():
        if not isinstance(things, Mapping):
            raise UserError(
                "is no mapping of names",
                file=file,
                field=kind,
                found=things,
                expected=f'{kind} = {{"NAME": CLASS}}',
            )
        for name, entry in things.items():
            if not (isinstance(name, str) and name and name.isprintable() and _can_be_called(kind, entry)):
                raise UserError(
                    "is not a name with its class or function",
                    file=file,
                    field=kind,
                    found={name: entry},
                    expected=_EXPECTED[kind],
                )
        plugged_in[kind].update(things)


def _can_be_called(kind: str, entry: object) -> bool:
    """Whether an entry can be called; what a class must have is checked when it is used."""
    if not callable(entry):
        return False
    if kind != "models":
        return True
    try:
        inspect.signature(entry).bind("rest", "spec", "options")
    except (TypeError, ValueError):  # ValueError: a type of Python itself, which makes no model
        return False
    return True


def find_entry(kind: str, name: str, built_in: Mapping[str, str]) -> Any:
    if name in plugged_in[kind]:
        return plugged_in[kind][name]
    if name in built_in:
        return load_entry(built_in[name])
    for entry in _entry_points(kind):
        if entry.name == name:
            add_package(entry.module)
            return entry.load()
    names = registered_names(kind, built_in)
    raise UserError(
        f"unknown {kind.removesuffix('s')} '{name}'{did_you_mean(name, names)}",
        expected=f"one of {', '.join(names)}, or --plugin FILE with a file that defines it",
    )


def load_entry(entry: str) -> Any:
    module, _, attribute = entry.partition(":")
    return getattr(importlib.import_module(module), attribute)


def registered_names(kind: str, built_in: Mapping[str, str]) -> list[str]:
    return sorted({*built_in, *plugged_in[kind], *(entry.name for entry in _entry_points(kind))})


@cache
def _entry_points(kind: str) -> Any:
    """What other installed packages register; read once, because all of them are searched."""
    from importlib.metadata import entry_points

    return entry_points(group=f"sightline.{kind}")
