"""The pages of groups: a list with filters, a gallery, a group, the export, and commands to ask again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.benchmarks.registry import is_benchmark
from sightline.errors import UserError
from sightline.evaluation.folder import group_metrics, group_of_lines
from sightline.evaluation.runs import RunLine, StoredRun, read_stored_run
from sightline.evaluation.spec import RunOptions, declared_options
from sightline.formats.jsonl import answer_line
from sightline.metrics.flips import pair_groups, probe_pairs
from sightline.metrics.tally import group_values
from sightline.reporting.notes import NESTED, option_text
from sightline.scoring.scorer import Explanation, explanations
from sightline.text import counted
from sightline.types import Group, GroupKey, Outcome, Verdict, VerdictName
from sightline.viewer.addresses import group_address, number_of, read_word
from sightline.viewer.group_view import ABSENCES, group_view
from sightline.viewer.index_entry import read_lines
from sightline.viewer.index_types import (
    CHOICES,
    LABEL,
    Facet,
    GroupDetail,
    GroupFilter,
    GroupRow,
    Order,
    RunSummary,
    filter_of,
)
from sightline.viewer.run_index import RunIndex
from sightline.viewer.viewer import Viewer, card_image, shown_images, with_index

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
    query, shown = request.query_params, _shown(request, "id", "draw", "pooled")
    index = viewer.index.open(summary.run)
    row = index.find(query.get("id", ""), number_of(request, "draw") or 0, query.get("pooled", ""))
    (detail,) = index.details([row])
    neighbours = index.neighbours(row.number, shown.wanted, shown.order)
    previous, following = (index.rows([one] if one else []) for one in (neighbours.previous, neighbours.next))
    run = read_stored_run(viewer.store, summary.run)
    store = viewer.store.name if viewer.is_lasting else ""
    return viewer.page(
        "group_page.html",
        {
            "section": "Runs",
            "run": summary.line,
            "group": group_view(detail, shown_images(viewer, summary.run), _explained(run, detail)),
            "values": _values(run, detail.row.key, detail.outcomes, detail.verdicts),
            "previous": next(iter(previous), None),
            "next": next(iter(following), None),
            "others": _in_other_runs(viewer, summary, detail),
            "query": shown.query,
            "json": b"\n".join(map(answer_line, detail.outcomes)).decode(),
            "again": None if run.file is not None else ask_again(run, summary.line, store, row.sample),
            "unanswered": summary.result.unanswered if summary.result else 0,
        },
    )


def _values(
    run: StoredRun, key: GroupKey, outcomes: tuple[Outcome, ...], verdicts: tuple[Verdict, ...]
) -> dict[str, float | None]:
    """The leading metrics of a group with several answers, as groups.csv has them."""
    description = run.description
    if len(outcomes) == 1 or not is_benchmark(description.benchmark):
        return {}
    benchmark = find_benchmark(description.benchmark)
    metrics = group_metrics(benchmark, _options_of(run, benchmark))
    group = group_of_lines(benchmark, key, outcomes, verdicts, description.decide)
    names = [metric.name for metric in metrics]
    return dict(zip(names, group_values(group, metrics), strict=True)) if group.sent else {}


def _options_of(run: StoredRun, benchmark: Benchmark) -> dict[str, Any]:
    chosen = {name: option.default for name, option in benchmark.options.items()}
    return {**chosen, **run.description.benchmark_options}


def _explained(run: StoredRun, detail: GroupDetail) -> list[Explanation]:
    """Explain the verdicts of the rules; those of other judges stand on the page with their replies."""
    description = run.description
    if not is_benchmark(description.benchmark):
        return []  # its plugin is not loaded
    benchmark = find_benchmark(description.benchmark)
    scorers = benchmark.scorers(_options_of(run, benchmark))
    group = _group(detail.row, detail.outcomes)
    return explanations(group, benchmark.cases(group), scorers, detail.verdicts)


def _group(row: GroupRow, outcomes: tuple[Outcome, ...]) -> Group:
    return Group(row.sample, row.draw, outcomes[0].cluster, outcomes, pooled=row.pooled)


# -- The same group in the other runs of its benchmark

MOST_RUNS = 12
"""The other runs that the page of a group shows, the latest first."""


class GroupInRun(Struct, frozen=True):
    """A group in another run: its answers to the probes of the shown one, None where it has none.

    `values`: the leading metrics of the group there.
    """

    line: RunLine
    address: str
    answers: tuple[Outcome | None, ...]
    values: Mapping[str, float | None]


class GroupInRuns(Struct, frozen=True):
    """A group in the other runs; `compared` is the address that compares them, `notes` what is left out."""

    runs: tuple[GroupInRun, ...]
    compared: str
    notes: tuple[str, ...]


def _in_other_runs(viewer: Viewer, summary: RunSummary, detail: GroupDetail) -> GroupInRuns:
    """Find a group in other runs, by the rules of `sightline compare`."""
    base = _group(detail.row, detail.outcomes)
    benchmark = summary.line.task.partition(":")[0]
    others = [
        one
        for one in reversed(viewer.index.runs())
        if one.run != summary.run and one.line.task.partition(":")[0] == benchmark
    ]
    waiting = viewer.builds.start_missing(others)
    found: list[GroupInRun] = []
    more = different = 0
    for other in others:
        if other.result is None:
            continue
        index = viewer.index.open(other.run)
        numbers = index.numbers_of_samples([base.id])
        lines = map(read_lines, index.lines(numbers))
        read = {row.key: (_group(row, of[0]), of) for row, of in zip(index.rows(numbers), lines, strict=True)}
        pairing = pair_groups({base.key: base}, {key: group for key, (group, _) in read.items()})
        different += bool(pairing.different)
        for pair in pairing.pairs:
            if len(found) == MOST_RUNS:
                more += 1
                continue
            answers = {(one.variant, one.draw): answer for one, answer in probe_pairs(pair)}
            key = pair.other.key
            found.append(
                GroupInRun(
                    other.line,
                    group_address(key, other.run),
                    tuple(answers.get((one.variant, one.draw)) for one in base),
                    _values(read_stored_run(viewer.store, other.run), key, *read[key][1]),
                )
            )
    notes = (
        f"{counted(more, 'earlier run')} not shown" if more else "",
        f"{counted(different, 'run')} left out: the sample has other data there" if different else "",
        f"{counted(len(waiting), 'run')} being indexed: load the page again" if waiting else "",
    )
    runs = [("run", one) for one in (summary.run, *(one.line.number for one in found))]
    return GroupInRuns(tuple(found), f"/compare?{urlencode(runs)}", tuple(filter(None, notes)))


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
        order = [] if self.order == "informative" else [("order", self.order)]
        return urlencode([*self.wanted.to_query(), *order])


def _shown(request: Request, *others: str) -> _Shown:
    """The filter and order of an address; `others` are the names of its other parameters."""
    names = [name for name in request.query_params if name not in others]
    unknown = next((name for name in names if not is_parameter(name)), None)
    if unknown is not None:
        raise UserError(
            "no such filter", field=unknown, expected=f"{', '.join(CHOICES)}, {LABEL}NAME or search"
        )
    order = read_word("order", request.query_params.get("order") or "informative", ORDER_WORDS)
    return _Shown(filter_of(request.query_params.multi_items()), order)


def _address(summary: RunSummary, shown: _Shown, wanted: GroupFilter) -> str:
    query = replace(shown, wanted=wanted).query
    return f"/runs/{summary.run}/groups" + (f"?{query}" if query else "")


# -- Cards of groups in a gallery: the group, its image, and the beginning of its responses

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


# -- The commands that ask the model of a run again: one group, or all probes without an answer

DIR = "DIR"
"""Stands for a data folder that the store does not keep."""


SELECTION = ("ids", "limit", "shuffle")
"""The options that select groups."""


class AskAgain(Struct, frozen=True):
    """Commands that repeat a run, or one group of it."""

    failed: str
    group: str


def ask_again(run: StoredRun, line: RunLine, store: str, sample: str) -> AskAgain:
    folder = run.folders[0] if len(run.folders) == 1 else DIR
    start = ["sightline", "run", run.task, "--model", line.model, "--data", folder]
    if tuple(line.judges) != ("rules",):
        start += [word for judge in line.judges for word in ("--judge", judge)]
    given = (run.description.options, run.description.benchmark_options)
    of_store = ["--store", store] if store else []
    fresh = run.description.options.get("fresh")
    kept = ["--fresh", str(fresh)] if fresh else []
    without = {name: value for name, value in line.options.items() if name not in SELECTION}
    return AskAgain(
        failed=shlex.join([*start, *_options(*given, line.options), *of_store, *kept, "--retry-errors"]),
        group=shlex.join(
            [
                *(*start, "--ids", sample, *_options(*given, without), *of_store),
                *("--fresh", f"{fresh}-again" if fresh else "again"),
            ]
        ),
    )


def _options(
    effective: Mapping[str, Any], of_benchmark: Mapping[str, Any], listed: Mapping[str, Any]
) -> Iterator[str]:
    """The words of the options that differ from the defaults; others are no options of the command."""
    nested = {name: effective.get(name) or {} for name in NESTED}
    declared = {option.name for option in declared_options(RunOptions)} - {"fresh"}
    for name, value in listed.items():
        plain = name.removeprefix("gen ").removeprefix("model-arg ")
        place = next((place for place, values in nested.items() if plain in values), None)
        if name in declared:
            if value is not None and value is not False:
                yield f"--{name.replace('_', '-')}"
                yield from () if value is True else (option_text(value),)
        elif name in of_benchmark:
            yield from ("--set", f"{name}={option_text(value)}")
        elif place is not None:
            yield from (f"--{NESTED[place]}", f"{plain}={option_text(value)}")
    yield from _judge_sampling(list((effective.get("judge_sampling") or {}).values()))
    for kind, source in (effective.get("captioned_by") or {}).items():
        if kind in ("model", "file"):
            yield from ("--captioner" if kind == "model" else "--captions", str(source))


def _judge_sampling(by_judge: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The sampling that all judge models share, as the command line states it for all of them."""
    for name, value in by_judge[0].items() if by_judge else ():
        if all(other.get(name) == value for other in by_judge):
            yield from ("--judge-gen", f"{name}={option_text(value)}")
