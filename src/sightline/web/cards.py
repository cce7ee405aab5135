"""Cards of groups in a gallery: the group, its image, and the beginning of its responses."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from sightline.outcome_index.run_index import RunIndex
from sightline.outcome_index.types import GroupRow
from sightline.reporting.html.group_view import ABSENCES
from sightline.types import Outcome, VerdictName
from sightline.web.images import card_image

MOST_RESPONSES = 4
"""The responses on a card; the marks show the verdicts of all."""

MOST_CHARACTERS = 80
"""The characters of a response on a card, which has one line for it."""


class CardResponse(Struct, frozen=True):
    """A response on a card."""

    verdict: VerdictName
    text: str


class Card(Struct, frozen=True):
    """A group in a gallery; `image` is the address of its image, '' without one."""

    row: GroupRow
    image: str
    responses: tuple[CardResponse, ...]


def cards(index: RunIndex, rows: Sequence[GroupRow]) -> list[Card]:
    image = card_image(index.run)
    return [
        Card(one.row, image(one.row), tuple(map(_response, one.outcomes[:MOST_RESPONSES])))
        for one in index.details(rows)
    ]


def _response(outcome: Outcome) -> CardResponse:
    text = " ".join(outcome.response[: 4 * MOST_CHARACTERS].split())
    shown = text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"
    return CardResponse(outcome.verdict, shown or ABSENCES.get(outcome.status, "[no text]"))
