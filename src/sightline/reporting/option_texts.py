"""Options and their values as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def options_text(values: Mapping[str, Any]) -> str:
    """Options in one line.

    >>> options_text({"size": 224, "cot": True, "stop": None})
    'size=224, cot=on, stop=null'
    """
    return ", ".join(f"{name}={option_text(value)}" for name, value in values.items())


def option_text(value: Any) -> str:
    """A value of an option as on the command line."""
    return ("off", "on")[value] if isinstance(value, bool) else compact(value)


def compact(value: Any) -> str:
    """A value of options or versions as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
