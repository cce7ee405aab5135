"""Flags among the scores of an answer: yes-or-no readings of a response, which may be undecided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_UNDECIDED = "_undecided"


def flags(readings: Mapping[str, bool | None]) -> dict[str, float]:
    """The scores that stand for readings of a response.

    Args:
        readings: Whether something holds, by name; None if it is undecided.

    >>> flags({"refused": True, "names_shape": False, "names_lines": None})
    {'refused': 1.0, 'names_lines_undecided': 1.0}
    """
    held = {
        name: name if holds else name + _UNDECIDED for name, holds in readings.items() if holds is not False
    }
    return dict.fromkeys(held.values(), 1.0)


def flag(scores: Mapping[str, float], name: str) -> bool | None:
    """Read one flag.

    Returns:
        Whether it holds; None if it is undecided.

    >>> flag({"refused": 1.0}, "refused"), flag({}, "refused"), flag({"refused_undecided": 1.0}, "refused")
    (True, False, None)
    """
    return None if name + _UNDECIDED in scores else scores.get(name) == 1.0


def undecided_flags(scores: Mapping[str, float]) -> Iterator[str]:
    """The readings of a response that are undecided."""
    return (name.removesuffix(_UNDECIDED) for name in scores if name.endswith(_UNDECIDED))
