"""The rule that decides whether an endpoint still has the model that gave the cached answers.

The evidence is what the server says of itself, and cached answers at temperature 0 that are asked again.
Batched servers give another text to the same request now and then, both when an answer is cached and when it
is asked again. docs/models.md states the rates of false alarms and misses; perf/endpoint_check.py measures
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from sightline.models.server_report import ServerReport

REPEATS = 2
"""How often a request is asked again whose new text differs; it differs if all its texts do."""
SHORT_CHARACTERS = 16
"""Responses of at most this length are closed answers, such as "Yes." or "The answer is B."."""


class Plan(NamedTuple):
    """How many cached answers are asked again: at first, and if the first leave it open."""

    first: int
    further: int

    @property
    def most(self) -> int:
        """Cached answers that are asked again at most."""
        return self.first + self.further

    @property
    def most_requests(self) -> int:
        """Requests that one check of an endpoint sends at most."""
        return self.most * (1 + REPEATS)


OPEN = Plan(3, 2)
CLOSED = Plan(8, 8)
"""Closed answers of two models agree by chance: more of them are compared. They cost a few tokens each."""


def choose_plan(texts: Sequence[str]) -> Plan:
    """Choose how many cached answers are asked again.

    Args:
        texts: The cached texts that can be asked again, in the order in which they are.

    Returns:
        OPEN if as many as it needs at most are longer than SHORT_CHARACTERS and differ from each other,
        otherwise CLOSED.

    >>> choose_plan(["Yes."] * 9) == CLOSED, choose_plan([f"The image shows {n} red cars." for n in range(9)])
    (True, Plan(first=3, further=2))
    """
    tried = texts[: OPEN.most]
    is_open = len(set(tried)) == len(tried) and all(len(text) > SHORT_CHARACTERS for text in tried)
    return OPEN if is_open else CLOSED


class Found(NamedTuple):
    """What asking again found: how many cached answers were compared, how many of them differ, how many could
    not be asked again (a failed request, or no room in the budget), and how many more there are.
    """

    compared: int
    differing: int
    failed: int
    further: int


Decision = Literal["same", "changed", "unsure", "incomplete", "ask further"]


def decide(plan: Plan, found: Found) -> Decision:
    """Decide from the cached answers that were asked again.

    Args:
        plan: How many are asked again.
        found: What asking again found.

    Returns:
        `changed` if enough of them differ, or the only one that exists; `same` if none differs, and
        `incomplete` if none differs of fewer than planned because others failed; `ask further` while more
        answers can decide it; otherwise `unsure`.

    >>> decide(OPEN, Found(3, 0, 0, 2)), decide(OPEN, Found(3, 1, 0, 2)), decide(OPEN, Found(5, 1, 0, 0))
    ('same', 'ask further', 'unsure')
    """
    compared, differing, failed, further = found
    if differing and differing >= _enough(compared):
        return "changed"
    is_only_one = compared == 1 and not failed and not further
    lacks_some = failed > 0 and compared < plan.first
    if further and compared < plan.most and (differing or lacks_some):
        return "ask further"
    if differing:
        return "changed" if is_only_one else "unsure"
    return "incomplete" if lacks_some else "same"


def _enough(compared: int) -> int:
    """How many of the compared answers must differ.

    One alone can be the rare variation of a batched server, at the time when it was cached: then every new
    text differs from it. Among more than five, two such answers are not rare enough.
    """
    return 2 if compared <= OPEN.most else 3


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
