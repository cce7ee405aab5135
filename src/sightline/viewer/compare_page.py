"""The page that compares runs: what changed, by label, and the groups behind each number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from sightline.viewer.addresses import number_of, read_number, read_word
from sightline.viewer.comparison_view import changed_group_view, comparison_view, table_of_runs
from sightline.viewer.index_types import ChangeList, IndexState, RunComparison, RunSummary
from sightline.viewer.run_index import ComparedRuns
from sightline.viewer.viewer import Viewer, names_of_two, progress_page, run_name, shown_images, waiting_page

PAGE = 10
"""The groups of a page; each shows the responses of both runs."""

CHANGE_WORDS: dict[ChangeList, str] = {
    "lost": "lost",
    "gained": "gained",
    "both_wrong": "both wrong",
    "both_right": "both right",
}
"""List of groups -> its name, in the order of the tabs. A scored group is in exactly one of them."""

AMONG_WORDS: dict[ChangeList, str] = {
    "flipped": "flipped answers",
    "undecided": "undecided",
    "unanswered": "unanswered",
    "identical": "identical responses",
}
"""The same for lists that hold groups of the first ones again."""

WITH_ITSELF = "Select two different runs: a run is not compared with itself."


def compare_page(viewer: Viewer, request: Request) -> Response:
    """Compare the first run with another one; without two runs of one benchmark, choose them."""
    asked = _runs(request)
    summaries = [viewer.index.summary(run) for run in dict.fromkeys(asked)]
    if request.query_params.get("order") == "number":
        summaries.sort(key=lambda one: one.run)
    if len(summaries) < 2:
        return _choice(viewer, summaries, WITH_ITSELF if len(asked) > 1 else "")
    if refusal := _other_benchmark(summaries):
        return _choice(viewer, summaries[:1], refusal)
    for summary in summaries:
        if (waiting := waiting_page(viewer, request, summary)) is not None:
            return waiting
    base, *others = summaries
    other = next((one for one in others if one.run == number_of(request, "with")), others[0])
    names = names_of_two(base.line, other.line)
    every = {one.run: viewer.index.comparison(base.run, one.run) for one in others}
    states = {run: viewer.builds.compared(base.run, run) for run, found in every.items() if found is None}
    for one in others:
        if one.run in states and states[one.run].step != "failed":
            title = " and ".join(names_of_two(base.line, one.line))
            return progress_page(viewer, request, title, states[one.run])
    compared = every[other.run]
    if compared is None:
        reason = states[other.run].error
        return _choice(viewer, [base], f"{names[0]} and {names[1]} cannot be compared: {reason}")
    comparison = compared.summary
    shown = _list(request, comparison.lists)
    after = number_of(request, "after")
    page = compared.page(shown, after=after, limit=PAGE)
    images = shown_images(viewer, base.run, small=True)
    view = comparison_view(comparison, names, by=request.query_params.get("metric", ""))
    fixed = {"with": other.run, "metric": view.metric}
    return viewer.page(
        "compare_page.html",
        {
            "section": "Compare",
            "a": base.line,
            "names": names,
            "b": other.line,
            **_of_runs(base, others, other, view.metric, every, states),
            "view": view,
            "changes": [(name, words, comparison.lists[name]) for name, words in CHANGE_WORDS.items()],
            "among": [(name, words, comparison.lists[name]) for name, words in AMONG_WORDS.items()],
            "links": _metric_links(base, others, comparison, {"with": other.run, "show": shown}),
            "shown": shown,
            "after": after,
            "page": page,
            "groups": [changed_group_view(one, images) for one in page.rows],
            "keys_of_groups": [one.other.row.key for one in page.rows],
            "address": lambda **changed: _address(base, others, {**fixed, **changed}),
            "swapped": f"/compare?run={other.run}&run={base.run}",
        },
    )


def _of_runs(
    base: RunSummary,
    others: Sequence[RunSummary],
    shown: RunSummary,
    metric: str,
    every: Mapping[int, ComparedRuns | None],
    states: Mapping[int, IndexState],
) -> dict[str, object]:
    """The table that compares each run with the first one, and what it lacks."""
    found: dict[str, RunComparison] = {}
    notes = []
    for one in others:
        name = f"{one.run}: {run_name(one.line)}"
        if (compared := every[one.run]) is not None:
            found[name] = compared.summary
        else:
            notes.append(f"{name}: {states[one.run].error}")
    if len(found) > 1:
        notes.append("p: for the leading metrics of all runs together; below, for the rows of each table")
    links = {
        f"{one.run}: {run_name(one.line)}": _address(base, others, {"with": one.run, "metric": metric})
        for one in others
    }
    return {
        "of_runs": table_of_runs(found, metric),
        "run_links": links,
        "shown_run": f"{shown.run}: {run_name(shown.line)}",
        "run_notes": notes,
    }


def _choice(viewer: Viewer, chosen: Sequence[RunSummary], refusal: str = "") -> Response:
    """The page that asks for the runs: those of one benchmark, the ones with the same samples first."""
    runs = [run for run in viewer.index.runs() if run.line.is_complete]
    listed = [run for run in reversed(runs) if not chosen or _benchmark(run) == _benchmark(chosen[0])]
    same = {run.run for run in listed if chosen and _samples(run) == _samples(chosen[0]) is not None}
    return viewer.page(
        "compare_choice_page.html",
        {
            "section": "Compare",
            "chosen": [one.run for one in chosen],
            "runs": [run.line for run in sorted(listed, key=lambda run: run.run not in same)],
            "same": same,
            "refusal": refusal,
        },
        400 if refusal else 200,
    )


def _other_benchmark(runs: Sequence[RunSummary]) -> str:
    """Why runs cannot be compared; '' if they are of one benchmark."""
    first, *others = runs
    other = next((run for run in others if _benchmark(run) != _benchmark(first)), None)
    if other is None:
        return ""
    return (
        f"Runs of different benchmarks cannot be compared: run {first.run} is of {_benchmark(first)}, run"
        f" {other.run} of {_benchmark(other)}. Select runs of {_benchmark(first)}."
    )


def _benchmark(run: RunSummary) -> str:
    return run.line.task.partition(":")[0]


def _samples(run: RunSummary) -> str | None:
    """The digest of the ids of the samples; None without an index."""
    return run.result.ids_digest or None if run.result else None


def _runs(request: Request) -> list[int]:
    return [read_number("run", word) for word in request.query_params.getlist("run")]


def _list(request: Request, counts: Mapping[ChangeList, int]) -> ChangeList:
    """The list that the reader chose; the first one with groups by default."""
    words = {**CHANGE_WORDS, **AMONG_WORDS}
    if wanted := request.query_params.get("show"):
        return read_word("show", wanted, words)
    return next((name for name in words if counts[name]), "lost")


def _metric_links(
    base: RunSummary, others: Sequence[RunSummary], comparison: RunComparison, parameters: dict[str, object]
) -> dict[str, str]:
    """The metrics that have values by label, with the address of the page that shows them."""
    labelled = dict.fromkeys(
        one.difference.metric for one in comparison.metrics if one.difference.subset != "all"
    )
    return {name: _address(base, others, {**parameters, "metric": name}) for name in labelled}


def _address(base: RunSummary, others: Sequence[RunSummary], parameters: dict[str, object]) -> str:
    runs = [("run", str(one.run)) for one in (base, *others)]
    return "/compare?" + urlencode([*runs, *((name, str(value)) for name, value in parameters.items())])
