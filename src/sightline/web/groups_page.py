"""The pages of groups: a list with filters, a group, and the export of a list."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from sightline.errors import UserError
from sightline.formats.jsonl import answer_line
from sightline.outcome_index.group_filter import CHOICES, LABEL, GroupFilter, filter_of
from sightline.outcome_index.orders import Order
from sightline.outcome_index.types import Facet, RunSummary
from sightline.reporting.html.group_view import group_view
from sightline.results.stored_run import read_stored_run
from sightline.web.addresses import number_of, read_word
from sightline.web.cards import cards
from sightline.web.command import ask_again
from sightline.web.images import shown_images
from sightline.web.viewer import Viewer
from sightline.web.waiting import with_index

FIELD_WORDS = {
    "right": "Answers right",
    "consistency": "Consistency",
    "verdict": "Verdict of any answer",
    "judges": "Judges",
    "length": "Words of the longest response",
}
"""Field of a filter -> its heading."""

VALUE_WORDS = {
    ("consistency", "inconsistent"): "inconsistent, or same answer twice",
    ("consistency", "incomparable"): "single answer",
    ("consistency", "undecided"): "undecided, or an answer missing",
    ("right", "undecided"): "undecided, or an answer missing",
}
"""Field and value of a filter -> its words, where the value is not enough."""

ORDER_WORDS: Mapping[Order, str] = {
    "informative": "most informative first",
    "data": "order of the data",
    "length": "longest response first",
    "similarity": "least similar first",
}
"""Order of groups -> its words."""


@with_index
def groups_page(viewer: Viewer, request: Request, summary: RunSummary) -> Response:
    """The groups of a run, the most informative first."""
    shown = _shown(request)
    after = number_of(request, "after")
    index = viewer.index.open(summary.run)
    page = index.page(shown.wanted, after, order=shown.order)
    return viewer.page(
        "groups_page.html",
        {
            "section": "Runs",
            "run": summary.line,
            "groups": summary.groups,
            "wanted": shown.wanted,
            "query": shown.query,
            "order": shown.order,
            "orders": [(name, ORDER_WORDS[name]) for name in index.orders],
            "page": page,
            "cards": cards(index, page.rows),
            "after": after,
            "facets": index.facets(shown.wanted).facets,
            "heading": lambda facet: facet.label or FIELD_WORDS[facet.name],
            "is_chosen": lambda facet, value: is_chosen(shown.wanted, facet, value),
            "toggled": lambda facet, value: _address(summary, shown, toggled(shown.wanted, facet, value)),
            "words": lambda facet, value: VALUE_WORDS.get((facet.name, value), value),
        },
    )


@with_index
def group_page(viewer: Viewer, request: Request, summary: RunSummary) -> Response:
    """A group: every probe beside the others."""
    number, shown = request.path_params["number"], _shown(request)
    index = viewer.index.open(summary.run)
    detail = index.group(number)
    return viewer.page(
        "group_page.html",
        {
            "section": "Runs",
            "run": summary.line,
            "group": group_view(detail, shown_images(viewer, summary.run)),
            "neighbours": index.neighbours(number, shown.wanted, shown.order),
            "query": shown.query,
            "json": b"\n".join(map(answer_line, detail.outcomes)).decode(),
            "again": ask_again(
                read_stored_run(viewer.store, summary.run),
                summary.line,
                viewer.store.name if viewer.is_lasting else "",
            ),
            "asked": summary.result.probes if summary.result else 0,
            "unanswered": summary.result.unanswered if summary.result else 0,
        },
    )


@with_index
def export_answers(viewer: Viewer, request: Request, summary: RunSummary) -> Response:
    """The answers of the groups that a filter selects, as answers.jsonl has them."""
    wanted = _shown(request).wanted
    return StreamingResponse(
        viewer.index.open(summary.run).answer_lines(wanted),
        media_type="application/x-ndjson",
        headers={"content-disposition": f'attachment; filename="answers-{summary.run}.jsonl"'},
    )


def is_chosen(wanted: GroupFilter, facet: Facet, value: str) -> bool:
    if facet.label:
        return (facet.label, value) in wanted.labels
    return bool(getattr(wanted, facet.name) == value)


def toggled(wanted: GroupFilter, facet: Facet, value: str) -> GroupFilter:
    chosen = is_chosen(wanted, facet, value)
    if not facet.label:
        return replace(wanted, **{facet.name: None if chosen else value})
    others = tuple(pair for pair in wanted.labels if pair[0] != facet.label)
    return replace(wanted, labels=others if chosen else (*others, (facet.label, value)))


def is_parameter(name: str) -> bool:
    """Whether the pages of groups have a parameter of this name."""
    return name in (*CHOICES, "search", "order", "after") or name.startswith(LABEL)


class _Shown(Struct, frozen=True):
    """Which groups a list shows, and in which order."""

    wanted: GroupFilter
    order: Order

    @property
    def query(self) -> str:
        """Both as the query of an address."""
        order = [] if self.order == "informative" else [("order", self.order)]
        return urlencode([*self.wanted.to_query(), *order])


def _shown(request: Request) -> _Shown:
    unknown = next((name for name in request.query_params if not is_parameter(name)), None)
    if unknown is not None:
        raise UserError(
            "no such filter", field=unknown, expected=f"{', '.join(CHOICES)}, {LABEL}NAME or search"
        )
    order = read_word("order", request.query_params.get("order") or "informative", ORDER_WORDS)
    return _Shown(filter_of(request.query_params.multi_items()), order)


def _address(summary: RunSummary, shown: _Shown, wanted: GroupFilter) -> str:
    query = replace(shown, wanted=wanted).query
    return f"/runs/{summary.run}/groups" + (f"?{query}" if query else "")
