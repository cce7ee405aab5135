"""What `report`, `compare` and `export` give, on the command line and in Python alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations, permutations
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.benchmarks.registry import benchmark_class
from sightline.benchmarks.released import add_published
from sightline.engine.limits import Counts
from sightline.errors import UserError, unknown_name
from sightline.evaluation.compare import (
    RunName,
    check_shared,
    compare,
    compare_runs,
    judged_run,
    margin_verdicts,
    significance_of,
)
from sightline.evaluation.folder import (
    JudgedRun,
    is_stored,
    is_sweep,
    read_judged_run,
    read_result,
    read_sweep,
)
from sightline.evaluation.human_rows import human_rows
from sightline.evaluation.result import recompute
from sightline.evaluation.runs import find_run, latest_finished_run, name_or_number, read_stored_run
from sightline.formats.groups import ORIGINAL
from sightline.metrics.consistency import null_where_unknown
from sightline.metrics.flips import pair_groups
from sightline.metrics.significance import Comparison, corrected_together
from sightline.metrics.tally import tally
from sightline.metrics.variants import VARIANT, AnswerCount, by_variant, frequent_answers
from sightline.reporting.causes import causes_tables, find_causes
from sightline.reporting.comparison import (
    ComparedRuns,
    check_label,
    check_rows,
    compared_metrics,
    different_notes,
    humans_tables,
    lacking_notes,
    rows_of,
)
from sightline.reporting.notes import ResultPoint, different_options, options_text, result_points
from sightline.reporting.over_models import ImageRow, image_table, over_models
from sightline.reporting.pivot import pivot as pivot_tables
from sightline.reporting.pivot import settings_tables
from sightline.reporting.table import ReportTable
from sightline.reporting.tables import first_view, leading_metrics, summary
from sightline.reporting.variants import (
    Lead,
    answers_table,
    leads,
    order_table,
    repeats_table,
    variant_tables,
)
from sightline.scoring.letters import right_positions
from sightline.scoring.similarity import UNKNOWN
from sightline.store.store import Store
from sightline.types import MetricValue, Result, split_subset

ResultsOf = Callable[[Store, Sequence[int]], list[Result]]
"""Makes the results of runs of a store."""


@contextmanager
def opened_runs(words: Sequence[str], url: str) -> Iterator[tuple[list[RunName], Store | None]]:
    """Find the run or the results folder that each word means; the store is None if only folders are named.

    Without words, it is the latest run that finished.
    """
    stored = [is_stored(word, url) for word in words]
    store = Store.open(url, create=False) if any(stored) or not words else None
    try:
        if store is None:
            yield [Path(word) for word in words], None
        elif not words:
            yield [latest_finished_run(store)[0].number], store
        else:
            named = zip(words, stored, strict=True)
            yield [find_run(store, word) if held else Path(word) for word, held in named], store
    finally:
        if store is not None:
            store.close()


# -- The tables of runs


class ReportedRuns(NamedTuple):
    """The results of runs and of the points of sweeps, with the names that the tables give them.

    `points` hold the results with the values of their varied options. If `has_sweep`, some come of a sweep.
    `counts` are the requests of runs of the store. `humans` are rows made of the results of several humans.
    """

    results: list[Result]
    names: list[str]
    points: list[ResultPoint]
    has_sweep: bool
    counts: Mapping[str, Counts]
    humans: list[Result]

    def tables(
        self,
        by: str | None = None,
        *,
        pivot: bool = False,
        whole: bool = True,
        metrics: Sequence[str] = (),
    ) -> list[ReportTable]:
        """The tables; only the named `metrics`, or if it need not be the `whole` the leading ones, if any."""
        if pivot or self.has_sweep:
            points = result_points([*self.results, *self.humans]) if self.humans else self.points
            return pivot_tables(points, by, metrics)
        of_humans = humans_tables(self.humans, by, metrics, whole=whole)
        if metrics or not whole:
            return [*first_view(self.results, by, self.names, metrics), *of_humans]
        several = over_models(self.results) if len(self.results) > 1 else []
        return [
            *summary(self.results, by, self.names),
            *of_humans,
            *several,
            *([] if by else settings_tables(self.points)),
        ]


def report_runs(
    words: Sequence[str],
    url: str,
    against: Sequence[str] = (),
    results_of: ResultsOf | None = None,
    by: str | None = None,
) -> ReportedRuns:
    """Read results folders and sweeps, and make the results of runs of the store, in the order of the words.

    Args:
        words: Numbers and names of runs, and folders; none for the latest run that finished.
        against: Rows of the paper to compare with; none takes those that the run named.
        results_of: Makes the results of the runs of the store; None: judges and counts them again.
        by: The label of the tables; the values of `variant` are made on request.
    """
    points: list[ResultPoint] = []
    names: list[str] = []
    counts: dict[str, Counts] = {}

    def recomputed(store: Store, numbers: Sequence[int]) -> list[Result]:
        # Without a number, the result says which later run did not finish.
        if by == VARIANT:
            return [_with_rows(_with_variants(judged_run(store, number)), against) for number in numbers]
        return [recompute(store, number if words else None, against) for number in numbers]

    def read(folder: Path) -> Result:
        return _with_variants(read_judged_run(folder)) if by == VARIANT else read_result(folder)

    with opened_runs(words, url) as (runs, store):
        numbers = [run for run in runs if isinstance(run, int)]
        stored = iter((results_of or recomputed)(store, numbers) if store is not None else ())
        for run in runs:
            if isinstance(run, Path):
                swept = _points_of(run) if is_sweep(run) else [ResultPoint(read(run), {})]
                points += [ResultPoint(_with_rows(one.result, against), one.values) for one in swept]
                names += [
                    f"{run}: {options_text(one.values)}" if is_sweep(run) else str(run) for one in swept
                ]
            elif store is not None:
                points.append(ResultPoint(next(stored), {}))
                names.append(name_or_number(store, run))
                counts[f"run {run}"] = read_stored_run(store, run).counts
        results = [point.result for point in points]
        sweeps = [isinstance(run, Path) and is_sweep(run) for run in runs]
        humans = [] if any(sweeps) else human_rows(results, runs, store)
    # A sweep records its varied options; those of other results are the options that differ.
    return ReportedRuns(
        results, names, points if sweeps == [True] else result_points(results), any(sweeps), counts, humans
    )


def _points_of(sweep: Path) -> list[ResultPoint]:
    return [ResultPoint(point.result, point.values) for point in read_sweep(sweep).points if point.result]


def _with_rows(result: Result, against: Sequence[str]) -> Result:
    return add_published(result, *against) if against else result


# -- Within the groups of a run


def _with_variants(run: JudgedRun) -> Result:
    """The result of a run with the values of each variant: subsets that metrics.json does not hold."""
    result = run.result
    every = find_benchmark(result.benchmark).metrics(result.options)
    metrics = [metric for metric in every if metric.needs is None]
    counted = tally(map(by_variant, run.sent.values()), metrics)
    values = [value for value in counted if split_subset(value.subset)[0] == VARIANT]
    unknown = [value for value in result.metrics if value.metric == UNKNOWN]
    definitions = {metric.name: metric.definition for metric in metrics}
    return replace(
        result,
        metrics=[*result.metrics, *null_where_unknown(values, unknown, metrics)],
        metric_definitions={**definitions, **result.metric_definitions},
    )


def group_tables(
    words: Sequence[str],
    url: str,
    *,
    by: str | None = None,
    answers: int = 0,
    why: bool = False,
    clean: str | None = None,
    repeats: bool = False,
) -> list[ReportTable]:
    """The tables of the groups of each run; the answers to one task of several runs in one table.

    Several runs of one task with a clean variant have a table of their order under the others, too.

    Args:
        by: A label, under each value of which the answers are listed.
        answers: The most frequent answers that are listed; 0 for no list.
        why: Whether the variants are compared with each other.
        clean: The variant beside which the others are put; None for every two.
        repeats: Whether the answers to repeated requests are compared.
    """
    tables: list[ReportTable] = []
    counted: dict[str, dict[str, list[AnswerCount]]] = {}
    of_tasks: dict[str, list[JudgedRun]] = {}
    with opened_runs(words, url) as (runs, store):
        for name in runs:
            run = judged_run(store, name)
            task = f"{run.result.benchmark}:{run.result.setting}"
            title = f"{task}, {run.name}"
            if why:
                groups = list(run.sent.values())
                variants = {outcome.variant for group in groups for outcome in group}
                if clean == ORIGINAL and clean not in variants:
                    raise UserError(
                        f"unknown variant '{clean}': lines of `{clean}` in a groups file are not sent",
                        expected=f"one of {', '.join(sorted(variants))}, "
                        "or another name for these lines, which makes them a variant",
                    )
                if clean is not None and clean not in variants:
                    raise unknown_name("variant", clean, variants)
                tables += variant_tables(title, groups, run.result, clean)
                of_tasks.setdefault(task, []).append(run)
            if repeats:
                tables.append(repeats_table(title, run.sent.values()))
            if answers:
                labelled = list(map(by_variant, run.sent.values()))
                known = {label for group in labelled for outcome in group for label in outcome.labels}
                if by is not None and by not in known:
                    raise unknown_name("label", by, known)
                counted.setdefault(task, {})[run.name] = frequent_answers(labelled, answers, by)
        if clean is not None:
            tables += [
                _order_table(task, several, clean) for task, several in of_tasks.items() if len(several) > 1
            ]
    for task, of_runs in counted.items():
        title = task if len(of_runs) > 1 else f"{task}, {next(iter(of_runs))}"
        tables.append(answers_table(title, of_runs, by))
    return tables


def _order_table(task: str, runs: Sequence[JudgedRun], clean: str) -> ReportTable:
    found: list[Lead] = []
    missing: set[tuple[str, str]] = set()
    left_out: list[str] = []
    for first, second in combinations(runs, 2):
        pairing = pair_groups(first.sent, second.sent)
        check_shared((first, second), pairing)
        found += leads(pairing, (first.name, second.name), clean)
        for names, lacking in zip(permutations((first.name, second.name)), pairing.missing, strict=True):
            left_out += lacking_notes(names[0], lacking.samples, lacking.probes, names[1])
        left_out += different_notes(pairing.different, f"{first.name} and {second.name}")
        missing |= {
            (run.name, outcome.key)
            for pair in pairing.pairs
            for run, group in zip((first, second), pair, strict=True)
            for outcome in group
            if not outcome.answered
        }
    return order_table(task, found, clean, len(missing), left_out)


# -- What the image adds: runs with their images against runs of the same model without


def without_image_tables(words: Sequence[str], url: str, metrics: Sequence[str] = ()) -> list[ReportTable]:
    """A table of each run without images and the run with images that differs least from it otherwise.

    Args:
        metrics: The compared metrics; none for the first leading one of each benchmark.
    """
    with opened_runs(words, url) as (names, store):
        runs = [judged_run(store, name) for name in names]
    rows: list[ImageRow] = []
    for hidden in filter(_sends_no_image, runs):
        shown = [one for one in runs if _is_shown_to(one, hidden)]
        if shown:
            best = min(shown, key=lambda one: len(_differing_options(one, hidden)))
            rows += _image_rows(best, hidden, metrics)
    if not rows:
        raise UserError(
            "no model has both a run with its images and one without them",
            expected="both, such as iibench and iibench:no-image, or mmr3:context with and without"
            " --set image=off",
        )
    return [image_table(rows)]


def _sends_no_image(run: JudgedRun) -> bool:
    return run.result.options.get("image") in (False, "none")


def _is_shown_to(run: JudgedRun, hidden: JudgedRun) -> bool:
    """Whether a run has images, and the model and benchmark of one without them."""
    first, second = run.result, hidden.result
    same = (first.benchmark, first.model_identity) == (second.benchmark, second.model_identity)
    return same and not _sends_no_image(run)


def _differing_options(shown: JudgedRun, hidden: JudgedRun) -> list[str]:
    return [name for name in different_options([shown.result], [hidden.result]) if name != "image"]


def _image_rows(shown: JudgedRun, hidden: JudgedRun, metrics: Sequence[str]) -> Iterator[ImageRow]:
    result = shown.result
    comparison = compare([(hidden, shown)])
    names = metrics or leading_metrics(result.benchmark, [result.metrics])[:1]
    sides = [
        {one.metric: one for one in side if one.subset == "all"}
        for side in (comparison.other, comparison.base, comparison.differences)
    ]
    for name in names:
        if any(name not in side for side in sides):
            raise unknown_name("metric", name, sides[0])
        yield ImageRow(
            task=f"{result.benchmark}:{result.setting}",
            model=result.model,
            values=tuple(side[name] for side in sides),
            chance=_chance(shown, name),
            others=_differing_options(shown, hidden),
        )


def _chance(run: JudgedRun, metric: str) -> float | None:
    """What guessing gives: the declared level, or the share of right options where each question has them."""
    declared = benchmark_class(run.result.benchmark)
    if metric in declared.chance_levels or metric != declared.leading_metrics[0]:
        return declared.chance_levels.get(metric)
    scored = [outcome for group in run.sent.values() for outcome in group if outcome.scored]
    if not scored or not all(outcome.options for outcome in scored):
        return None
    shares = [len(right_positions(one.references, one.options)) / len(one.options) for one in scored]
    return 100 * sum(shares) / len(shares)


# -- The comparison of runs


def compare_words(
    base: Sequence[str],
    others: Sequence[Sequence[str]],
    url: str,
    *,
    metrics: Sequence[str] = (),
    by: str | None = None,
    against: Sequence[str] = (),
    margin: float | None = None,
    all_tests: bool = True,
) -> list[ComparedRuns]:
    """Compare runs and results folders with a base; the p-values are corrected for all rows together.

    Args:
        others: What is compared with the base. Of several runs that are compared together, each is compared
            with its own base run, or all with the only one.
    """
    for other in others:
        if not base or len(base) not in (1, len(other)):
            raise UserError(
                f"compare: {len(base)} base runs and {len(other)} compared runs",
                expected="one base run, or the same number of both",
            )
    words = [*base, *(word for other in others for word in other)]
    found: list[tuple[Comparison, Sequence[MetricValue]]] = []
    with opened_runs(words, url) as (runs, store):
        judged: dict[RunName, JudgedRun] = {}
        rest = iter(runs[len(base) :])
        for other in others:
            bases = runs[: len(base)] if len(base) > 1 else runs[:1] * len(other)
            comparison = compare_runs(store, [(one, next(rest)) for one in bases], against, judged)
            shown = compared_metrics(metrics, comparison, by)
            check_label(by, [comparison])
            rows = rows_of(comparison, shown, by)
            check_rows(metrics, rows, comparison)
            found.append((comparison, rows))
    tests = [significance_of(comparison, rows, asides=all_tests) for comparison, rows in found]
    return [
        ComparedRuns(
            comparison,
            rows,
            corrected,
            None if margin is None else margin_verdicts(comparison, rows, margin),
            margin or 0.0,
        )
        for (comparison, rows), corrected in zip(found, corrected_together(tests), strict=True)
    ]


def why_tables(base: str, other: str, url: str, *, full: bool) -> list[ReportTable]:
    """Tables of where two runs of the same items differ, whatever data they name."""
    with opened_runs([base, other], url) as (names, store):
        first, second = (judged_run(store, name) for name in names)
    if first.result.benchmark != second.result.benchmark:
        found, expected = second.result.benchmark, first.result.benchmark
        raise UserError("the runs belong to different benchmarks", found=found, expected=expected)
    pairing = pair_groups(first.sent, second.sent, whatever_data=True)
    check_shared((first, second), pairing)
    causes = find_causes((first.name, second.name), first.sent, second.sent, pairing)
    tasks = dict.fromkeys(f"{one.benchmark}:{one.setting}" for one in (first.result, second.result))
    return causes_tables(causes, " and ".join(tasks), full=full)
