"""Several humans who answered one benchmark, as results of their own: average, best, worst and range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.evaluation.compare import RunName, judged_run
from sightline.evaluation.judges import HUMAN_PREFIX
from sightline.metrics.statistics import (
    LEAST_CLUSTERS,
    Estimates,
    Interval,
    cluster_positions,
    intervals,
    ratio_estimates,
    two_way_estimates,
    with_interval,
)
from sightline.metrics.tally import ALL, AS_JUDGED, SCALES, Terms, TermTable, contains_undecided
from sightline.reporting.notes import exact_text, task_of
from sightline.reporting.tables import leading_metrics
from sightline.store.store import Store
from sightline.types import Group, Metric, MetricValue, Range, Result, subset_name

AVERAGE = "all answers of the {} humans{}"
OTHERS = (
    "; its 95 % CI allows for other humans and other images (two-way clusters: Cameron, Gelbach and Miller"
    " 2011)"
)
APART = "not among them, as their options differ: {}"
UNEQUAL = "the humans answered {:,} to {:,} probes: best, worst and range compare different ones"
RANGE = "the highest minus the lowest value of the humans, column by column"
CHOSEN = "all values of the one human with the {} {}{}; its 95 % CI does not allow for the choice"
FEW = f"no confidence interval of an average over fewer than {LEAST_CLUSTERS} humans"
PARTNER = "no confidence interval of an average: the results folders do not hold the answers of '{}'"


def human_rows(results: Sequence[Result], runs: Sequence[RunName], store: Store | None) -> list[Result]:
    """Make four results of each task that at least two humans answered, judged alike: `model` names the row.

    The average and the range have no model identity: they are no run. Of a human's runs, the last one counts.
    """
    tasks: dict[str, dict[str, int]] = {}
    for nth, result in enumerate(results):
        if result.model.startswith(HUMAN_PREFIX):
            task = exact_text([*task_of(result), result.judge, result.options])
            tasks.setdefault(task, {})[result.model] = nth
    made: list[Result] = []
    for of in tasks.values():
        if len(of) > 1:
            same = [results[nth] for nth in of.values()]
            others = (one for one in results if one.model not in of and task_of(one) == task_of(same[0]))
            apart = {
                one.model.removeprefix(HUMAN_PREFIX) for one in others if one.model.startswith(HUMAN_PREFIX)
            }
            made += _rows(same, [runs[nth] for nth in of.values()], store, sorted(apart))
    return made


def _rows(
    results: Sequence[Result], runs: Sequence[RunName], store: Store | None, apart: Sequence[str]
) -> list[Result]:
    first, places = results[0], [{(m.metric, m.subset): m for m in one.metrics} for one in results]
    values = {
        where: [found[where] for found in places if where in found]
        for where in dict.fromkeys(where for found in places for where in found)
    }
    found: Mapping[tuple[str, str], Interval | str] = {}
    if len(results) >= LEAST_CLUSTERS:
        metrics = find_benchmark(first.benchmark).metrics(first.options)
        found = _intervals(metrics, [judged_run(store, run).sent.values() for run in runs])
    counts = {
        name: sum(getattr(one, name) for one in results)
        for name in ("probes", "errors", "misses", "undecided", "truncated", "not_sent", "judge_errors")
    }
    whole = replace(first, model_identity="", corrected=[], **counts)
    average = [_average(of, found.get(where, FEW)) for where, of in values.items()]
    ranged = [_range(of) for of in values.values()]
    about = AVERAGE.format(len(results), OTHERS if found else "")
    notes = [about, *([APART.format(", ".join(apart))] if apart else [])]
    answered = [one.probes - one.errors - one.not_sent for one in results]
    if len(set(answered)) > 1:
        notes.append(UNEQUAL.format(min(answered), max(answered)))
    return [
        replace(whole, model="Humans, average", metrics=average, notes=notes),
        *_chosen(results),
        replace(whole, model="Humans, range", metrics=ranged, notes=[RANGE]),
    ]


def _chosen(results: Sequence[Result]) -> list[Result]:
    """The results of the best and of the worst human, by the first (leading) metric that all have."""
    over_all = [{m.metric: m for m in one.metrics if m.subset == "all"} for one in results]
    definitions = results[0].metric_definitions
    leading = leading_metrics(results[0].benchmark, [one.metrics for one in results])
    ordered = [name for name, one in definitions.items() if one.better != "neither"]
    columns: dict[str, list[float]] = {}
    for name in dict.fromkeys((*leading, *ordered)):
        values = [found[name].value for found in over_all if name in found]
        known = [value for value in values if value is not None]
        if len(known) == len(results):
            columns[name] = known
    if not columns:
        return []
    # A tie on the first metric is broken by those that follow.
    is_lower = [definitions[name].better == "lower" for name in columns]
    scores = list(zip(*columns.values(), strict=True))
    ranks = [tuple(-x if low else x for x, low in zip(of, is_lower, strict=True)) for of in scores]
    metric = next(iter(columns))
    return [
        replace(
            results[nth],
            model=f"Humans, {word} ({results[nth].model.removeprefix(HUMAN_PREFIX)})",
            notes=[CHOSEN.format(extreme, metric, _tie(scores, nth))],
        )
        for word, extreme, nth in (
            ("best", "lowest" if is_lower[0] else "highest", ranks.index(max(ranks))),
            ("worst", "highest" if is_lower[0] else "lowest", ranks.index(min(ranks))),
        )
    ]


def _tie(scores: Sequence[tuple[float, ...]], nth: int) -> str:
    if (equal := scores.count(scores[nth])) > 1:
        return f" (the first of {equal} that are equal)"
    tied = sum(of[0] == scores[nth][0] for of in scores)
    return f" (of {tied} that are equal, by the next metrics)" if tied > 1 else ""


def _average(values: Sequence[MetricValue], interval: Interval | str) -> MetricValue:
    """The value over all answers: the mean of the humans' values, each as often as its n."""
    missing = next((one for one in values if one.value is None), None)
    if missing is not None:
        return missing
    n = sum(one.n for one in values)

    def mean(numbers: Iterable[float | None]) -> float:
        return sum((number or 0.0) * one.n for number, one in zip(numbers, values, strict=True)) / n

    opened = [one.value if one.value_if_right is None else one.value_if_right for one in values]
    has_open = any(one.value_if_right is not None for one in values)
    made = replace(
        values[0],
        value=mean([one.value for one in values]),
        n=n,
        clusters=max(one.clusters for one in values),
        low=None,
        high=None,
        interval=None,
        reason=None,
        value_decided=None,
        value_if_right=mean(opened) if has_open else None,
    )
    return with_interval(made, interval, SCALES[made.unit])


def _range(values: Sequence[MetricValue]) -> MetricValue:
    known = [one.value for one in values if one.value is not None]
    return MetricValue(
        values[0].metric,
        values[0].subset,
        max(known) - min(known) if len(known) == len(values) else None,
        len(known),
        values[0].clusters,
        unit=values[0].unit,
        reason=None if len(known) == len(values) else "a human has no value",
    )


def _intervals(
    metrics: Sequence[Metric], humans: Sequence[Iterable[Group]]
) -> dict[tuple[str, str], Interval | str]:
    """The interval of each metric in each subset over the answers of all humans, before scaling."""
    table = TermTable(metrics)
    cells: dict[tuple[int, str], None] = {}
    for number, groups in enumerate(humans):
        for group in groups:
            cell = number, group.cluster or group.id
            cells[cell] = None
            own = replace(group, cluster=f"{number} {cell[1]}")
            table.add(own, has_undecided=contains_undecided(group))
    table.end()
    by_human = np.array([number for number, _ in cells])
    by_image = cluster_positions([image for _, image in cells])
    names = {ALL: "all"} | {
        number: subset_name(name, value) for number, name, value in table.subsets.ordered()
    }

    def estimates(terms: Terms) -> Estimates:
        found = table.table(terms, list(names), AS_JUDGED)
        return ratio_estimates(found.sums, found.counts)

    made: dict[tuple[str, str], Interval | str] = {}
    for column, metric in enumerate(metrics):
        terms = table.of(column)
        if metric.needs and not len(terms.sums):
            made |= {(metric.name, subset): PARTNER.format(metric.needs) for subset in names.values()}
            continue
        first, second = (
            estimates(terms._replace(clusters=positions[terms.clusters]))
            for positions in (by_human, by_image)
        )
        crossed = two_way_estimates(first, second, estimates(terms))
        low, high = (None if bound is None else bound / SCALES[metric.unit] for bound in metric.range)
        bounds: Range = (None, None) if metric.unit == "points" else (low, high)
        found = intervals(crossed, [bounds] * len(names), graded=metric.graded)
        made |= {(metric.name, subset): one for subset, one in zip(names.values(), found, strict=True)}
    return made
