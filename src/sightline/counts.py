"""Counts in messages: a number with its noun in the singular or the plural."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """Write a count.

    >>> counted(1, "fault"), counted(1200, "fault"), counted(2, "reply", "replies")
    ('1 fault', '1,200 faults', '2 replies')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
