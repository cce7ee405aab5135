"""The page that compares runs: what changed, by label, and the groups behind each number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from sightline.errors import UserError
from sightline.outcome_index.types import ChangeList, RunSummary
from sightline.reporting.html.comparison_view import changed_group_view, comparison_view
from sightline.reporting.leading import leading_metrics
from sightline.web.addresses import number_of, read_number
from sightline.web.images import shown_images
from sightline.web.run_title import names_of_two
from sightline.web.viewer import Viewer
from sightline.web.waiting import progress_page, waiting_page

PAGE = 10
"""The groups of a page; each shows the responses of both runs."""

LIST_WORDS: dict[ChangeList, str] = {
    "lost": "lost",
    "gained": "gained",
    "both_wrong": "both wrong",
    "both_right": "both right",
    "flipped": "flipped answers",
    "undecided": "undecided",
    "unanswered": "unanswered",
    "identical": "identical responses",
}
"""List of groups -> its name, in the order of the tabs."""


def compare_page(viewer: Viewer, request: Request) -> Response:
    """Compare the first run with another one; without two runs, choose them."""
    chosen = list(dict.fromkeys(_runs(request)))
    summaries = [viewer.index.summary(run) for run in chosen]
    if len(summaries) < 2:
        return _choice(viewer, summaries)
    for summary in summaries:
        if (waiting := waiting_page(viewer, request, summary)) is not None:
            return waiting
    base, *others = summaries
    other = next((one for one in others if one.run == number_of(request, "with")), others[0])
    names = names_of_two(base.line, other.line)
    state = viewer.builds.compared(base.run, other.run)
    compared = viewer.index.comparisons.find(base.run, other.run)
    if compared is None:
        return progress_page(viewer, request, " and ".join(names), state)
    comparison = compared.summary
    shown = _list(request, comparison.lists)
    after = number_of(request, "after")
    page = compared.page(shown, after=after, limit=PAGE)
    images = shown_images(viewer, base.run, small=True)
    results = [one.result.metrics for one in (base, other) if one.result is not None]
    leading = leading_metrics(base.line.task.partition(":")[0], results)
    return viewer.page(
        "compare_page.html",
        {
            "section": "Compare",
            "a": base.line,
            "names": names,
            "b": other.line,
            "others": [one.line for one in others],
            "view": comparison_view(comparison, names, shown=leading),
            "lists": [(name, words, comparison.lists[name]) for name, words in LIST_WORDS.items()],
            "shown": shown,
            "after": after,
            "page": page,
            "groups": [changed_group_view(one, images) for one in page.rows],
            "numbers": [one.other.row.number for one in page.rows],
            "address": lambda **changed: _address(base, others, {"with": other.run, **changed}),
            "swapped": f"/compare?run={other.run}&run={base.run}",
        },
    )


def _choice(viewer: Viewer, chosen: Sequence[RunSummary]) -> Response:
    """The page that asks for the runs: those of one benchmark can be compared."""
    runs = [run.line for run in viewer.index.runs() if run.line.is_complete]
    benchmark = chosen[0].line.task.partition(":")[0] if chosen else ""
    return viewer.page(
        "compare_choice_page.html",
        {
            "section": "Compare",
            "chosen": [one.run for one in chosen],
            "runs": [run for run in reversed(runs) if benchmark in ("", run.task.partition(":")[0])],
        },
    )


def _runs(request: Request) -> list[int]:
    return [read_number("run", word) for word in request.query_params.getlist("run")]


def _list(request: Request, counts: Mapping[ChangeList, int]) -> ChangeList:
    """The list that the reader chose; the first one with groups by default."""
    wanted = request.query_params.get("show", "")
    for name in get_args(ChangeList):
        if name == wanted:
            known: ChangeList = name
            return known
    if wanted:
        raise UserError("no such list", field="show", found=wanted, expected=", ".join(get_args(ChangeList)))
    return next((name for name in LIST_WORDS if counts[name]), "lost")


def _address(base: RunSummary, others: Sequence[RunSummary], parameters: dict[str, object]) -> str:
    runs = [("run", str(one.run)) for one in (base, *others)]
    return "/compare?" + urlencode([*runs, *((name, str(value)) for name, value in parameters.items())])
