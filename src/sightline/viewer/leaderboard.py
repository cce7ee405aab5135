"""The leaderboard: its table of models by benchmark, its page, and the table as CSV and LaTeX."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from sightline.benchmarks.base import Against
from sightline.benchmarks.registry import benchmark_class, benchmark_names
from sightline.benchmarks.released import FEW_ERRORS, NOT_THEIRS, add_published, paper_of
from sightline.reporting.metric_pairs import spent_metrics
from sightline.reporting.notes import judge_errors, options_text
from sightline.reporting.table import (
    Cell,
    Column,
    PublishedCell,
    ReportTable,
    csv_text,
    n_cell,
    value_cell,
)
from sightline.reporting.tables import latex, leading_metrics, spent_cell
from sightline.text import counted
from sightline.types import (
    PERCENT,
    MetricDefinition,
    MetricValue,
    PublishedValue,
    Result,
    Spent,
    split_subset,
)
from sightline.viewer.addresses import with_query
from sightline.viewer.environment import without_servers
from sightline.viewer.index_types import RunSummary
from sightline.viewer.plots import NamedResult, PlotCell, PlotPoint, Scale, chance_points, measured, scale_of
from sightline.viewer.sections import ScatterSection, against
from sightline.viewer.viewer import Viewer


def leaderboard(viewer: Viewer, request: Request) -> Response:
    """Models by benchmark: the primary metric of each."""
    choice = _choice(request)
    runs = viewer.index.runs()
    table = build_leaderboard(runs, choice)
    published = [row for row in table.rows if row.kind == "published"]
    folded = [] if choice.published == "all" else published[BEST:]
    return viewer.page(
        "leaderboard_page.html",
        {
            "section": "Leaderboard",
            "table": table,
            "rows": [row for row in table.rows if row not in folded],
            "folded": len(folded),
            "remarks": remarks(table),
            "prices": _prices(table, runs),
            "choice": choice,
            "query": request.url.query,
            "waiting": len(viewer.builds.start_missing(runs)),
            "store_path": viewer.store.name,
            "link": lambda **changed: with_query(request, **changed),
        },
    )


def _prices(board: Leaderboard, runs: Sequence[RunSummary]) -> list[ScatterSection]:
    """The quality against the price of each benchmark of which several models have both."""
    results = {one.run: one.result for one in runs}
    found = []
    for nth, column in enumerate(board.columns):
        named = [
            NamedResult(row.name, result)
            for row in board.rows
            if (run := row.cells[nth].run) is not None and (result := results[run]) is not None
        ]
        section = against(Against("cost", column.metric), named) if named else None
        found += [replace(section, title=f"{column.title}: {section.title}")] if section else []
    return found


def leaderboard_csv(viewer: Viewer, request: Request) -> Response:
    board, waiting = _for_file(viewer, request)
    return _file(csv_text(csv_table(board, waiting)), "text/csv", "leaderboard.csv")


def leaderboard_latex(viewer: Viewer, request: Request) -> Response:
    board, waiting = _for_file(viewer, request)
    return _file(latex([paper_table(board, waiting)]), "text/x-tex", "leaderboard.tex")


def _for_file(viewer: Viewer, request: Request) -> tuple[Leaderboard, list[RunSummary]]:
    """The leaderboard, and the runs that are still counted: a file names them, as it does not continue."""
    runs = viewer.index.runs()
    return build_leaderboard(runs, _choice(request)), viewer.builds.start_missing(runs)


def _choice(request: Request) -> Choice:
    query = request.query_params
    return Choice(
        settings=dict(pair.split(":", 1) for pair in query.getlist("setting") if ":" in pair),
        model=query.get("model", ""),
        judge=query.get("judge", ""),
        sort=query.get("sort", ""),
        published=query.get("published", ""),
        human=query.get("human") != "off",
    )


def _file(text: str, media_type: str, name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=media_type, headers=headers)


# -- The leaderboard as a table: a row for each model, a column for each benchmark in one of its settings

BEST = 5
"""The published rows of the page, from the best; a link shows all."""

CHANCE_MODEL = "baseline/chance"
OF_OTHERS = ("split", "limit", "shuffle", "ids", *NOT_THEIRS, "data", "model_identity", "judge_sampling")
"""The listed options that say nothing about how the model was asked."""


class _Counted(Struct, frozen=True):
    """A run with its result, and the value of the column's metric."""

    summary: RunSummary
    result: Result
    value: MetricValue | None


def build_leaderboard(runs: Iterable[RunSummary], choice: Choice) -> Leaderboard:
    """Make the table. Of several runs of a row, the latest of those over the most samples counts."""
    counted = [(run, run.result) for run in runs if run.result is not None]
    by_benchmark: defaultdict[str, list[tuple[RunSummary, Result]]] = defaultdict(list)
    for run, result in counted:
        by_benchmark[result.benchmark].append((run, result))
    columns, cells = [], []
    unpublished: dict[str, list[str]] = {}
    for benchmark in sorted(by_benchmark, key=_place):
        column, by_row, why_unpublished = _column(benchmark, by_benchmark[benchmark], choice)
        columns.append(column)
        cells.append(by_row)
        if why_unpublished:
            unpublished.setdefault(why_unpublished, []).append(column.title)
    sort = choice.sort if any(one.benchmark == choice.sort for one in columns) else ""
    sort = sort or (columns[0].benchmark if columns else "")
    return Leaderboard(
        tuple(columns),
        tuple(_rows(columns, cells, choice, sort)),
        tuple(sorted({judge for _, result in counted for judge in _judges(result)})),
        sort,
        tuple(f"{', '.join(titles)}: {why}." for why, titles in unpublished.items()),
    )


_RowKey = tuple[str, str, str]
"""Kind, name and facts of a row."""


def _column(
    benchmark: str, runs: Sequence[tuple[RunSummary, Result]], choice: Choice
) -> tuple[LeaderColumn, dict[_RowKey, LeaderCell], str]:
    settings = {result.setting for _, result in runs}
    declared = [name for name in benchmark_class(benchmark).settings if name in settings]
    setting = choice.settings.get(benchmark, "")
    setting = setting if setting in settings else [*declared, *sorted(settings)][0]
    shown = [(run, result) for run, result in runs if result.setting == setting]
    metric = leading_metrics(benchmark, [result.metrics for _, result in shown])[0]
    latest: dict[_RowKey, _Counted] = {}
    for run, result in shown:
        earlier = latest.get(_row_key(run))
        if earlier is None or result.samples >= earlier.result.samples:
            latest[_row_key(run)] = _Counted(run, result, _value(result, metric, choice.judge))
    norm = _norm(list(latest.values()))
    definition = norm.result.metric_definitions.get(metric, MetricDefinition("", "higher", PERCENT))
    published, why_unpublished = _published(norm.result, metric, choice)
    bounds = [bound for one in latest.values() for bound in _bounds(one.value)]
    column = LeaderColumn(
        benchmark=benchmark,
        title=benchmark_class(benchmark).title.partition(":")[0] or benchmark,
        setting=setting,
        settings=tuple(sorted(settings)),
        metric=metric,
        definition=definition,
        scale=scale_of(definition.range, [*bounds, *(value.value for _, value in published)]),
        n=norm.value.n if norm.value else 0,
        chance=benchmark_class(benchmark).chance_levels.get(metric),
    )
    cells = {key: _measured_cell(one, norm, column) for key, one in latest.items()}
    cells |= {key: _published_cell(value, column, key[0]) for key, value in published}
    return column, cells, why_unpublished


def _row_key(run: RunSummary) -> _RowKey:
    return "measured", run.line.model, options_text(_own_options(run))


def _own_options(run: RunSummary) -> dict[str, Any]:
    """The options that are not the default and say how the model was asked."""
    if run.line.model == CHANCE_MODEL:
        return {}
    return {name: value for name, value in run.line.options.items() if name not in OF_OTHERS}


def _asked_with(one: _Counted) -> str:
    """Its own options without those of the model, which make another model and no other question."""
    of_model = {"image_processor", *(one.result.options.get("model_arg") or {})}
    return options_text({k: v for k, v in _own_options(one.summary).items() if k not in of_model})


def _value(result: Result, metric: str, judge: str) -> MetricValue | None:
    """The value over all samples, by the judge that the reader chose."""
    subset = "all" if judge in ("", result.judge) else f"judge={judge}"
    return next((one for one in result.metrics if (one.metric, one.subset) == (metric, subset)), None)


def _bounds(value: MetricValue | None) -> list[float | None]:
    return [value.value, value.low, value.high] if value else []


def _norm(counted: Sequence[_Counted]) -> _Counted:
    """The run that the others are compared with: with a value, whole, with most samples and default options.

    Of several, the latest with the judge and the data that most of them have.
    """

    def conditions(one: _Counted) -> tuple[str, str]:
        return one.result.judge, one.result.data_digest

    def rank(one: _Counted) -> tuple[bool, bool, bool, bool, int, bool]:
        has_value = one.value is not None and one.value.value is not None
        is_theirs = not any(one.result.options.get(option) for option in NOT_THEIRS)
        is_whole = one.summary.line.is_complete and not {"limit", "ids"} & one.summary.line.options.keys()
        return (
            has_value,
            is_theirs,
            is_whole,
            _is_answered(one.result),
            one.result.samples,
            not _asked_with(one),
        )

    best = max(map(rank, counted))
    found = [one for one in counted if rank(one) == best]
    numbers = Counter(map(conditions, found))
    return max(enumerate(found), key=lambda at: (numbers[conditions(at[1])], at[0]))[1]


def _is_answered(result: Result) -> bool:
    return result.unanswered <= FEW_ERRORS * result.probes


def _measured_cell(one: _Counted, norm: _Counted, column: LeaderColumn) -> LeaderCell:
    value = one.value
    points = measured(value) if value else []
    return LeaderCell(
        value=value,
        plot=PlotCell(column.scale, (*points, *chance_points(column.chance)), column.definition.unit),
        facts=_facts(one, value) if value else "not judged by this judge",
        undecided=_undecided(one),
        judge=without_servers(_judge(one)) if value else "",
        judge_errors=_judge_errors(one) if value else "",
        reason=_departure(one, norm) if value else "",
        run=one.summary.run,
        spent=one.result.spent or None,
        price=_price(one),
    )


def _facts(one: _Counted, value: MetricValue) -> str:
    failed = f" · judge errors: {errors}" if (errors := _judge_errors(one)) else ""
    return f"n {value.n:,.0f} · {without_servers(_judge(one))}{failed}"


def _price(one: _Counted) -> str:
    """What the answers of a run cost, and how late they came; '' if neither is known."""
    words = {"cost": "cost {:.3g} per 1,000", "p95": "p95 {:.2g} s"}
    found = spent_metrics(one.result)
    return " · ".join(text.format(found[name].value) for name, text in words.items() if name in found)


def _judge_errors(one: _Counted) -> str:
    return judge_errors(one.result) if _judge(one) == one.result.judge else ""


def _undecided(one: _Counted) -> str:
    """What the undecided verdicts of a run could change; '' for a judge other than that of the run."""
    if_right = one.value.changed_if_right if one.value else None
    if if_right is None:
        return ""
    count = f"{one.result.undecided:,} undecided" if _judge(one) == one.result.judge else "undecided"
    return f"{count}: at most {if_right:.1f}"


def _departure(one: _Counted, norm: _Counted) -> str:
    """Why a value is not comparable with that of the norm of its column."""
    result, other, limit = one.result, norm.result, one.summary.line.options.get("limit")
    reasons = []
    if not one.summary.line.is_complete:
        reasons.append(one.summary.line.state)
    if result.samples != other.samples:
        limited = f" (--limit {limit})" if limit else ""
        reasons.append(f"{result.samples:,} samples{limited}; the others have {other.samples:,}")
    elif limit:
        reasons.append(f"--limit {limit}")
    if result.data_digest != other.data_digest and result.samples == other.samples:
        reasons.append("other data than the other runs")
    if (asked := _asked_with(one)) != (usually := _asked_with(norm)):
        reasons.append(f"asked with {asked or 'default options'}; the others with {usually or 'the default'}")
    if (judge := _judge(one)) != (usual := _judge(norm)):
        reasons.append(f"judged by {without_servers(judge)}; the others by {without_servers(usual)}")
    if not _is_answered(result):
        reasons.append(f"{result.unanswered:,} of {result.probes:,} probes without an answer")
    return "; ".join(reasons)


def _judge(one: _Counted) -> str:
    return (one.value.judge if one.value else None) or one.result.judge


def _published(
    result: Result, metric: str, choice: Choice
) -> tuple[list[tuple[_RowKey, PublishedValue]], str]:
    """The values of the metric in the paper's main table of the setting, and why there are none.

    The main table is the first that prints the metric over all samples; later ones answer other questions.
    """
    paper = paper_of(result.benchmark)
    if paper is None:
        return [], ""
    not_theirs = next((why for option, why in NOT_THEIRS.items() if result.options.get(option)), None)
    if not_theirs is not None:
        return [], not_theirs
    beside = _value(add_published(result, *paper.row_names), metric, "")
    values = (beside.published if beside else None) or []
    main = next((table.table for table in paper.tables if result.setting in table.prints(metric)), None)
    found: dict[_RowKey, PublishedValue] = {}
    for value in values:
        if main not in (value.table, *value.also):
            continue
        is_human = value.row in paper.human_rows
        if choice.human if is_human else choice.published != "off":
            name = "Human" if value.row == paper.human else value.row.replace("_", " ")
            key = ("human", name, "") if is_human else ("published", name, "published")
            found.setdefault(key, value)
    return list(found.items()), ""


def _published_cell(value: PublishedValue, column: LeaderColumn, kind: str) -> LeaderCell:
    point = PlotPoint("human" if kind == "human" else "published", value.value)
    return LeaderCell(
        value=MetricValue(column.metric, "all", value.value, 0, 0, unit=column.definition.unit),
        plot=PlotCell(column.scale, (point, *chance_points(column.chance)), column.definition.unit),
        facts=f"{column.title}, {value.table}",
        reason="" if value.comparable else value.note or "taken under other conditions",
        remark=(value.note or "") if value.comparable else "",
        figure=value,
    )


def _rows(
    columns: Sequence[LeaderColumn],
    cells: Sequence[Mapping[_RowKey, LeaderCell]],
    choice: Choice,
    sort: str,
) -> list[LeaderRow]:
    keys = list(dict.fromkeys(key for by_row in cells for key in by_row))
    short = _without_servers(dict.fromkeys(name for kind, name, _ in keys if kind == "measured"))
    rows = [
        LeaderRow(
            kind,
            short.get(name, name) if kind == "measured" else name,
            name,
            facts,
            tuple(
                by_row.get((kind, name, facts)) or LeaderCell(None, PlotCell(column.scale, ()))
                for column, by_row in zip(columns, cells, strict=True)
            ),
        )
        for kind, name, facts in keys
        if kind == "human" or choice.model.casefold() in name.casefold()
    ]
    at = next((index for index, column in enumerate(columns) if column.benchmark == sort), 0)
    return sorted(rows, key=lambda row: _order(row, columns[at], row.cells[at]))


def _without_servers(models: Collection[str]) -> dict[str, str]:
    """The names of models without their servers, where they stay distinct."""
    short = {name: without_servers(name) for name in models}
    times = Counter(short.values())
    return {name: end if times[end] == 1 else name for name, end in short.items()}


def _order(row: LeaderRow, column: LeaderColumn, cell: LeaderCell) -> tuple[bool, bool, float, str]:
    """Humans first, values from the best to the worst, rows without a value last."""
    value = cell.value.value if cell.value else None
    sign = 1 if column.definition.better == "lower" else -1
    return row.kind != "human", value is None, sign * (value or 0.0), row.name


def _judges(result: Result) -> set[str]:
    parts = (split_subset(metric.subset) for metric in result.metrics)
    return {result.judge, *(name for label, name in parts if label == "judge")}


def _place(benchmark: str) -> tuple[bool, str]:
    """Benchmarks of papers first, in alphabetical order."""
    return benchmark not in benchmark_names() or paper_of(benchmark) is None, benchmark


# -- The leaderboard in words and files: why values are not comparable; CSV and LaTeX

MOST_NAMES = 4
"""A note names so many rows, and counts the others."""

INTERVALS = "intervals: 95 % CI over clusters, which are groups that share a source image"
TITLE = "Leaderboard: the primary metric of each benchmark"


class Remark(NamedTuple):
    """A note on some cells of a column: its mark, its title, and words with the rows that they concern."""

    mark: str
    title: str
    words: str


def remarks(board: Leaderboard) -> list[Remark]:
    """Why values are not comparable with the others of their column, and what else to know about them."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row, column, cell in board.entries():
        if cell.reason:
            found.setdefault(("≠", f"{column.title}, not comparable", cell.reason), []).append(row.name)
        elif cell.remark:
            found.setdefault(("†", column.title, cell.remark), []).append(row.name)
    made = [Remark(mark, title, f"{_names(names)}: {words}") for (mark, title, words), names in found.items()]
    return sorted(made, key=lambda one: one.mark, reverse=True)


COUNTING = "being counted; load the file again"


def csv_table(board: Leaderboard, waiting: Sequence[RunSummary] = ()) -> ReportTable:
    """Everything that the leaderboard shows, a row for each value, and one for each run that waits for it."""
    columns = (
        *(_text(name) for name in ("model", "kind", "options", "benchmark", "setting", "metric", "unit")),
        Column("value", "value", ""),
        Column("count", "n", "n"),
        *(
            _text(name)
            for name in ("undecided", "judge", "judge errors", "source", "not comparable", "remark")
        ),
        Column("count", "run", "run"),
        Column("count", "tokens", "tokens"),
        *(Column("value", name, name) for name in ("cost", "p50", "p95")),
    )
    return ReportTable(TITLE, columns, (*_csv_rows(board), *map(_waiting_row, waiting)))


def paper_table(board: Leaderboard, waiting: Sequence[RunSummary] = ()) -> ReportTable:
    """The leaderboard as papers print it: a row for each model, a column for each benchmark."""
    columns = [Column("text", "Model", "model")]
    for one in board.columns:
        unit = {"percent": "%", "points": "points", "number": ""}[one.definition.unit]
        heads = f"{one.title} ({one.setting})", f"{one.metric} {unit}".rstrip()
        columns += [
            Column("value", "\n".join(heads), f"{one.benchmark} {one.metric}"),
            Column("count", f"{heads[0]}\nn", f"{one.benchmark} n"),
        ]
    rows = tuple(
        (f"{row.name} ({row.facts})" if row.facts else row.name, *_cells(row.cells)) for row in board.rows
    )
    notes = [f"{one.mark.replace('≠', '*')} {one.title}: {one.words}" for one in remarks(board)]
    judges = dict.fromkeys(
        f"{column.title}: judged by {cell.judge}" for _, column, cell in board.entries() if cell.judge
    )
    undecided = [
        f"{column.title}, {row.name}: undecided verdicts count as not right; {cell.undecided}"
        for row, column, cell in board.entries()
        if cell.undecided
    ]
    failed = [
        f"{column.title}, {row.name}: judge errors: {cell.judge_errors}"
        for row, column, cell in board.entries()
        if cell.judge_errors
    ]
    missing = [f"run {one.run}, {one.line.model}: {COUNTING}" for one in waiting]
    return ReportTable(
        TITLE, tuple(columns), rows, (*missing, INTERVALS, *judges, *undecided, *failed, *board.notes, *notes)
    )


def _csv_rows(board: Leaderboard) -> Iterator[tuple[Cell, ...]]:
    for row, column, cell in board.entries():
        if cell.value is not None:
            measured = row.kind == "measured"
            yield (
                *(row.model, row.kind, row.facts, column.benchmark, column.setting),
                *(column.metric, column.definition.unit),
                value_cell(cell.value),
                n_cell(cell.value) if measured else None,
                *(
                    cell.undecided,
                    cell.judge,
                    cell.judge_errors,
                    "" if measured else cell.facts,
                    cell.reason,
                    cell.remark,
                ),
                cell.run,
                cell.spent.tokens if cell.spent else None,
                *(spent_cell(cell.spent, name) for name in ("cost", "p50", "p95")),
            )


def _waiting_row(one: RunSummary) -> tuple[Cell, ...]:
    benchmark, _, setting = one.line.task.partition(":")
    named = (one.line.model, "measured", options_text(_own_options(one)), benchmark, setting)
    return (*named, *(None,) * 8, COUNTING, None, one.run, *(None,) * 4)


def _cells(cells: tuple[LeaderCell, ...]) -> Iterator[Cell]:
    for cell in cells:
        if cell.figure is not None and cell.value is not None:
            yield from (PublishedCell(cell.figure, None, cell.value.unit), None)
        elif cell.value is None or cell.value.value is None:
            yield from (None, None)
        else:
            yield from (value_cell(cell.value), n_cell(cell.value))


def _names(names: list[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {counted(more, 'other row')}" if more > 0 else "")


def _text(name: str) -> Column:
    return Column("text", name, name)


# -- The records of the leaderboard: what the reader chose, columns, rows and cells


class Choice(Struct, frozen=True):
    """What the reader chose."""

    settings: Mapping[str, str]
    model: str = ""
    judge: str = ""
    sort: str = ""
    published: str = ""
    """'' for the best BEST of the page and all of the files, `all`, or `off`."""
    human: bool = True


class LeaderColumn(Struct, frozen=True):
    """A column: a benchmark in one of its settings."""

    benchmark: str
    title: str
    setting: str
    settings: tuple[str, ...]
    metric: str
    definition: MetricDefinition
    scale: Scale
    n: float
    chance: float | None


class LeaderCell(Struct, frozen=True):
    """A value in the table, None if there is none. `facts`: n and the judge, or the table of the paper."""

    value: MetricValue | None
    plot: PlotCell
    facts: str = ""
    undecided: str = ""
    judge_errors: str = ""
    judge: str = ""
    reason: str = ""
    remark: str = ""
    run: int | None = None
    figure: PublishedValue | None = None
    spent: Spent | None = None
    price: str = ""


class LeaderRow(Struct, frozen=True):
    """A row: a model, as measured or as published, or humans. `cells` are in the order of the columns."""

    kind: str
    name: str
    model: str
    facts: str
    cells: tuple[LeaderCell, ...]


class LeaderEntry(NamedTuple):
    """A cell with its row and its column."""

    row: LeaderRow
    column: LeaderColumn
    cell: LeaderCell


class Leaderboard(Struct, frozen=True):
    """The whole table; `judges` are those that a reader can choose, `notes` concern the whole table."""

    columns: tuple[LeaderColumn, ...]
    rows: tuple[LeaderRow, ...]
    judges: tuple[str, ...]
    sort: str
    notes: tuple[str, ...]

    @property
    def signs(self) -> list[str]:
        """The kinds of points that its plots have, for the legend."""
        return list(dict.fromkeys(point.kind for one in self.entries() for point in one.cell.plot.points))

    def entries(self) -> Iterator[LeaderEntry]:
        for row in self.rows:
            for column, cell in zip(self.columns, row.cells, strict=True):
                yield LeaderEntry(row, column, cell)
