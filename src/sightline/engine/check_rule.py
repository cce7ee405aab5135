"""The rule that decides whether an endpoint still has the model that gave the cached answers.

The evidence is what the server says of itself, and cached answers at temperature 0 that are asked again.
Batched servers give another text to the same request now and then, both when an answer is cached and when it
is asked again. docs/models.md states the rates of false alarms and misses; perf/endpoint_check.py measures
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from sightline.models.server_report import ServerReport

FIRST = 3
"""Cached answers that are asked again at first."""
FURTHER = 2
"""Cached answers that are asked again if exactly one of the first differs."""
REPEATS = 2
"""How often a request is asked again whose new text differs; it differs if all its texts do."""
MOST_REQUESTS = max(FIRST * (1 + REPEATS), FIRST + REPEATS + FURTHER * (1 + REPEATS))
"""Requests that one check of an endpoint sends at most."""
ENOUGH = 2
"""Differing answers that show a change. One alone can be the rare variation of a batched server, at the time
when it was cached: then every new text differs from it."""

Decision = Literal["same", "changed", "unsure", "ask further"]


def decide(compared: int, differing: int, further: int) -> Decision:
    """Decide from the cached answers that were asked again.

    Args:
        compared: How many were asked again, 1 or more.
        differing: How many of them differ.
        further: How many more could be asked again.

    Returns:
        `same` if none differs. `changed` if two differ, or the only one that exists. If one of several
        differs, `ask further` while there are more and fewer than FIRST + FURTHER were compared, then
        `unsure`.

    >>> decide(3, 0, 2), decide(3, 1, 2), decide(5, 1, 0), decide(5, 2, 0), decide(1, 1, 0)
    ('same', 'ask further', 'unsure', 'changed', 'changed')
    """
    if differing == 0:
        return "same"
    if differing >= ENOUGH:
        return "changed"
    if further and compared < FIRST + FURTHER:
        return "ask further"
    return "changed" if compared == 1 else "unsure"


def report_changes(earlier: Iterable[ServerReport], now: ServerReport) -> list[str]:
    """List what a server says otherwise than at the time of the cached answers.

    Args:
        earlier: What it said at that time, if it was recorded.
        now: What it says now.

    Returns:
        Texts such as "root is b, was a"; a field that one of two reports lacks is no change, except that the
        server no longer lists the model.
    """
    changes: dict[str, None] = {}
    for report in earlier:
        if report.id is not None and now.id is None:
            changes[f"it no longer lists the model {report.id}"] = None
        for field in ("root", "max_model_len"):
            before, current = getattr(report, field), getattr(now, field)
            if before is not None and current is not None and before != current:
                changes[f"{field} is {current}, was {before}"] = None
    return list(changes)
