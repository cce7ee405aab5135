"""Items of what authors wrote in another project: their drafts, for the other authors to check."""

from __future__ import annotations

import time

from sightline.annotation.judgements import judgements
from sightline.annotation.sources.request import MadeItems, SourceRequest
from sightline.annotation.state import State
from sightline.annotation.store import AnnotationStore
from sightline.annotation.types import Item, Values
from sightline.errors import UserError


def draft_items(request: SourceRequest) -> MadeItems:
    """Make an item of each draft of a project; a draft that a former check accepted is left out."""
    store = AnnotationStore(request.store, time.time)
    rows = [store.project(name) for name in request.sources]
    states = []
    for row in rows:
        state = State(row.project, store.items(row.number)).advance(store.entries(row.number))
        states.append(state)
    if rows[0].project.task.records == "":
        raise UserError(
            "is no project of authors", found=request.sources[0], expected="a project of author-codis"
        )
    accepted = {
        item.hidden["draft"]
        for row, state in zip(rows[1:], states[1:], strict=True)
        for item, _ in _accepted(store, row.number, state)
    }
    items = [
        Item(
            0,
            texts={name: _texts(value) for name, value in one.entry.values.items()},
            images=one.item.images,
            cluster=one.item.cluster,
            authors=(one.name,),
            hidden={"draft": draft_name(one.item.number, one.entry.values), "item": str(one.item.number)},
        )
        for one in judgements(states[0], store.annotators(rows[0].number))
    ]
    items = [item for item in items if item.hidden["draft"] not in accepted]
    return MadeItems(items, rows[0].project.benchmark, [], rows[0].project.data)


def draft_name(item: int, values: Values) -> str:
    """Name a draft by its item and content, so that a check does not outlive a revision."""
    from sightline.formats.digests import json_digest

    return f"{item}-{json_digest(sorted(values.items()))[:16]}"


def _accepted(store: AnnotationStore, number: int, state: State) -> list[tuple[Item, str]]:
    from sightline.annotation.judgements import decided

    values = decided(state, store.annotators(number))
    return [(state.items[item], value) for item, value in values.items() if value == "yes"]


def _texts(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value
