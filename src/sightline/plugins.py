"""Plugins: load the file of one, and name the plugin's file and line in an error that its code raises."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from contextlib import suppress
from pathlib import Path
from traceback import walk_tb
from types import ModuleType

from sightline.errors import UserError

_modules: dict[str, str] = {}
"""The name of each plugin's module or package -> the file as the user named it; '' for a package."""


def load_plugin(file: str) -> ModuleType:
    """Load a Python file."""
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
    """Find the plugin file that defines a class.

    Returns:
        The absolute path of the file; None if no `--plugin` file defines the class.
    """
    return _modules.get(getattr(entry, "__module__", "").partition(".")[0]) or None


def place_of(entry: object) -> str | None:
    """Find where a class or function of a plugin is defined.

    Returns:
        File and line, such as `mine.py, line 3`; None for what no plugin defines.
    """
    if getattr(entry, "__module__", "").partition(".")[0] in _modules:
        with suppress(OSError, TypeError):
            return f"{inspect.getsourcefile(entry)}, line {inspect.getsourcelines(entry)[1]}"  # type: ignore[arg-type]
    return None


def error_of_plugin(error: BaseException) -> UserError | None:
    """Report an exception as the plugin's, if its code raised it or called what raised it.

    Returns:
        The error that names file, line and function of the plugin; None if no plugin took part.
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
    """File, line and function of the last call in a traceback that is a plugin's."""
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
