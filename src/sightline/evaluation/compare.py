"""Differences between runs of one benchmark, group by group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.benchmarks.released import add_published, paper_of
from sightline.errors import UserError, some_of
from sightline.evaluation.folder import JudgedRun, StoredGroups, read_judged_run
from sightline.evaluation.judges import JudgedGroup, metrics_of
from sightline.evaluation.result import UNFINISHED, recompute
from sightline.evaluation.runs import name_or_number
from sightline.metrics.consistency import null_where_unknown
from sightline.metrics.flips import (
    ComparedAnswers,
    GroupPair,
    GroupPairs,
    MissingCounts,
    Pairing,
    pair_groups,
)
from sightline.metrics.significance import (
    ComparedSide,
    Comparison,
    CurrentPair,
    MarginVerdict,
    MetricSubset,
    PairedColumns,
    PairedTally,
    PairedValues,
    Significance,
    differences,
    margin_verdict,
    means_of_both,
    significance,
)
from sightline.metrics.tally import SCALES, Tally, contains_undecided, undecided_ends
from sightline.reporting.notes import different_options
from sightline.scoring.similarity import CONFUSED, UNKNOWN
from sightline.store.store import Store
from sightline.types import ImageSize, Metric, MetricValue, Outcome, Result


def compare(pairs: Sequence[tuple[JudgedRun, JudgedRun]]) -> Comparison:
    """Compare runs pair by pair, and all pairs together (such as one adapter trained from several seeds).

    The 95 % confidence intervals cover the choice of the data, not that of the seeds.
    """
    base, other = zip(*pairs, strict=True)
    _check_benchmarks([run.result for run in (*base, *other)])
    pairings = [pair_groups(first.sent, second.sent) for first, second in pairs]
    for pair, pairing in zip(pairs, pairings, strict=True):
        check_shared(pair, pairing)
    metrics, not_compared = _shared_metrics(other[0].result, base[0].result)
    answers = ComparedAnswers([pairing.pairs for pairing in pairings])
    found = PairTally(metrics, len(pairs))
    for number, pairing in enumerate(pairings):
        for groups in pairing.pairs:
            found.add(number, groups)
    base_values, other_values = (
        null_where_unknown(
            side.values(),
            [value for run in runs for value in run.result.metrics if value.metric == UNKNOWN],
            [metric for metric, _ in metrics],
        )
        for side, runs in ((found.base, base), (found.other, other))
    )

    ends = _values_at_ends(answers.pairs, metrics) if found.has_undecided else ()

    def changed(changes: Tally) -> list[MetricValue]:
        return _null_without_both(changes.values(), base_values, other_values)

    return Comparison(
        runs=tuple((first.name, second.name) for first, second in pairs),
        sides=(
            _side(base, found.sides[0], [pairing.missing[0] for pairing in pairings]),
            _side(other, found.sides[1], [pairing.missing[1] for pairing in pairings]),
        ),
        base=base_values,
        other=other_values,
        differences=changed(found.differences),
        each=[changed(one) for one in found.each],
        groups={
            metric.name: PairedColumns(found.base.terms, found.other.terms, column)
            for column, (metric, _) in enumerate(metrics)
        },
        undecided_bounds=dict(_undecided_bounds(ends, metrics)) if ends else {},
        undecided_ends=ends,
        answers=answers,
        different_samples=list(dict.fromkeys(name for pairing in pairings for name in pairing.different)),
        unchecked_samples=max(pairing.unchecked for pairing in pairings),
        image_sizes=found.image_sizes,
        differing_options=different_options([run.result for run in base], [run.result for run in other]),
        not_compared=not_compared,
        definitions={metric.name: metric.definition for metric, _ in metrics},
    )


def _shared_metrics(other: Result, base: Result) -> tuple[list[MetricPair], dict[str, str]]:
    sides = [_metrics(result) for result in (other, base)]
    shared = [(metric, sides[1][name]) for name, metric in sides[0].items() if name in sides[1]]
    reasons = {}
    for metrics, result in zip(sides, (other, base), strict=True):
        for name, metric in metrics.items():
            if any(name not in side for side in sides):
                reasons[name] = f"only {result.benchmark}:{result.setting} has it"
            if metric.needs is not None:
                reasons[name] = f"needs the answers of '{metric.needs}' too: see `sightline report`"
    return [both for both in shared if both[0].name not in reasons], reasons


def _metrics(result: Result) -> dict[str, Metric]:
    judges = result.judge.partition(" (decides")[0].split(", ")
    metrics = metrics_of(find_benchmark(result.benchmark), result.options, judges)
    return {metric.name: metric for metric in metrics}


def _null_without_both(
    differences: Iterable[MetricValue], *sides: Sequence[MetricValue]
) -> list[MetricValue]:
    missing = {
        (value.metric, value.subset): value.reason for side in sides for value in side if value.value is None
    }
    return [
        replace(
            change, value=None, n=0, clusters=0, low=None, high=None, interval=None, reason=missing[place]
        )
        if change.value is not None and (place := (change.metric, change.subset)) in missing
        else change
        for change in differences
    ]


def _values_at_ends(
    pairs: Sequence[GroupPairs], metrics: Sequence[MetricPair]
) -> list[dict[str, Mapping[str, PairedValues]]]:
    """The values of groups at both ends of what undecided verdicts allow."""
    judged = [both for both in metrics if both[0].judged == "correct"]
    ends = PairedTally(judged), PairedTally(judged)
    for number, several in enumerate(pairs):
        for pair in several:
            for end, decided in zip(ends, undecided_ends(numbered(number, pair)), strict=True):
                end.add(*decided)
    names = [metric.name for metric, _ in judged]
    return [dict(zip(names, end.values(), strict=True)) for end in ends]


def _undecided_bounds(
    ends: Sequence[Mapping[str, Mapping[str, PairedValues]]], metrics: Sequence[MetricPair]
) -> Iterator[tuple[MetricSubset, tuple[float, float]]]:
    """The lowest and the highest difference that undecided verdicts allow."""
    for metric, _ in metrics:
        means = [_mean_differences(end.get(metric.name, {}), SCALES[metric.unit]) for end in ends]
        for subset in means[0].keys() & means[1].keys():
            low, high = sorted(mean[subset] for mean in means)
            yield (metric.name, subset), (low, high)


def _mean_differences(values: Mapping[str, PairedValues], scale: float) -> dict[str, float]:
    """The mean difference by subset, in the unit of the difference."""
    return {subset: scale * float((both.after - both.before).mean()) for subset, both in values.items()}


def _side(runs: Sequence[JudgedRun], counts: SideCounts, missing: Sequence[MissingCounts]) -> ComparedSide:
    result = runs[-1].result
    results = {run.name: run.result for run in runs}
    return ComparedSide(
        runs=tuple(dict.fromkeys(run.name for run in runs)),
        task=f"{result.benchmark}:{result.setting}",
        model=result.model,
        probes=counts.probes,
        undecided=counts.undecided,
        failed=counts.failed,
        not_sent=sum(run.sent.not_sent for run in {run.name: run for run in runs}.values()),
        lacking_samples=sum(one.samples for one in missing),
        lacking_probes=sum(one.probes for one in missing),
        judge_errors=sum(one.judge_errors + one.unparsed for one in results.values()),
        trust=tuple(m for run in runs for m in run.result.metrics if m.metric in (UNKNOWN, CONFUSED)),
        spent=result.spent or None,
    )


def _check_benchmarks(results: Sequence[Result]) -> None:
    first, *others = [result.benchmark for result in results]
    for name in others:
        if name != first:
            raise UserError("the runs belong to different benchmarks", found=name, expected=first)


def check_shared(pair: tuple[JudgedRun, JudgedRun], pairing: Pairing) -> None:
    """Refuse two runs without a group in common."""
    if pairing.pairs:
        return
    names = " and ".join(run.name for run in pair)
    for run in pair:
        if not run.sent:
            raise UserError(
                f"no group of {run.name} was sent completely: the run stopped at its budget",
                expected="a run with a larger --max-requests or --max-cost",
            )
    if pairing.different:
        raise UserError(
            f"{names} hold different data for each of the {len(pairing.different)} samples that both have",
            found=some_of(pairing.different, 4),
            expected=f"runs of the same --data and --split; `sightline compare {pair[0].name} {pair[1].name} "
            "--why` says what differs. The log of another tool has the data of a run if it is scored with "
            "the questions of the run: `sightline score groups:FILE LOG --judge TOOL --columns id=FIELD`",
        )
    samples = [{sample for sample, _, _ in run.sent} for run in pair]
    if not samples[0] & samples[1]:
        raise UserError(f"{names} have no sample in common", expected="runs of the same --data and --split")
    raise UserError(
        f"{names} have no group in common: one pools the draws of several variants of a sample",
        expected="runs that group their answers in the same way (--set unchanged=on in both, or in none)",
    )


# -- Tests of the differences of a comparison: significance, and non-inferiority and equivalence in a
#    margin


def significance_of(
    comparison: Comparison, rows: Sequence[MetricValue], *, asides: bool = False
) -> dict[MetricSubset, Significance]:
    """Test the differences of a comparison for significance, corrected for testing several of them.

    With `asides`, the t test and McNemar's test are made, too.
    """
    defined = [row for row in rows if row.value is not None]
    paired = [comparison.groups[row.metric][row.subset] for row in defined]
    tests = significance(paired, asides=asides)
    return {
        (row.metric, row.subset): test
        if test.detectable is None
        else replace(test, detectable=SCALES[row.unit] * test.detectable)
        for row, test in zip(defined, tests, strict=True)
    }


def margin_verdicts(
    comparison: Comparison, rows: Sequence[MetricValue], margin: float
) -> dict[MetricSubset, MarginVerdict]:
    """Test for non-inferiority and equivalence; `margin` is in percentage points, above 0."""
    return {
        (row.metric, row.subset): margin_verdict(
            comparison.groups[row.metric][row.subset], comparison.definitions[row.metric], margin
        )
        for row in rows
        if row.value is not None
    }


# -- The values of both sides of a comparison and their differences, from pairs of groups one after
#    another

MetricPair = tuple[Metric, Metric]
"""A metric of the second runs, and the same metric of the base runs."""


class SideCounts:
    """The probes of one side: all, undecided and failed ones."""

    def __init__(self) -> None:
        self.probes = self.undecided = self.failed = 0

    def add(self, outcomes: Sequence[Outcome]) -> None:
        self.probes += len(outcomes)
        self.undecided += sum(outcome.verdict == "undecided" for outcome in outcomes)
        self.failed += sum(not outcome.answered for outcome in outcomes)


class PairTally:
    """Adds up one pair of groups at a time; of the groups only numbers are kept."""

    def __init__(self, metrics: Sequence[MetricPair], runs: int) -> None:
        self._current = CurrentPair()
        changes = differences(metrics, self._current)
        self.base, self.other = map(Tally, means_of_both(metrics, self._current))
        self.differences = Tally(changes)
        self.each = [Tally(changes) for _ in range(runs)] if runs > 1 else []
        self.sides = SideCounts(), SideCounts()
        self.has_undecided = False
        self.image_sizes: dict[str, tuple[ImageSize, ImageSize]] = {}

    def add(self, number: int, pair: GroupPair) -> None:
        pair = base, other = numbered(number, pair)
        self._current.take(pair)
        self.base.add(base, self._current.pattern)
        self.other.add(other, self._current.pattern)
        for changes in (self.differences, *self.each[number : number + 1]):
            changes.add(other, self._current.pattern)
        for side, group in zip(self.sides, pair, strict=True):
            side.add(group.outcomes)
        self.has_undecided = self.has_undecided or any(map(contains_undecided, pair))
        before, after = (_image_sizes(group.outcomes) for group in pair)
        self.image_sizes |= {
            path: (size, after[path]) for path, size in before.items() if after.get(path, size) != size
        }


def _image_sizes(outcomes: Sequence[Outcome]) -> dict[str, ImageSize]:
    """Path -> the size that was sent, where it is known."""
    return {
        path: size
        for outcome in outcomes
        for path, size in zip(outcome.images, outcome.image_sizes, strict=False)
        if size is not None
    }


def numbered(number: int, pair: GroupPair) -> GroupPair:
    """A pair without partners; the number of its pair of runs enters the names of its groups."""
    return GroupPair(*(replace(group, id=f"{number} {group.id}", partners={}) for group in pair))


# -- Comparing runs: stored runs are computed again, results folders are read; then group by group

RunName = int | Path
"""The number of a stored run, or a results folder."""


def compare_runs(
    store: Store | None,
    pairs: Sequence[tuple[RunName, RunName]],
    against: Sequence[str] = (),
    judged: dict[RunName, JudgedRun] | None = None,
) -> Comparison:
    """Compare runs pair by pair. Nothing is sent.

    Args:
        store: None if there are only folders.
        judged: The runs that were judged for another comparison; those of this one are added.
    """
    _check_distinct(store, pairs)
    runs = {} if judged is None else judged
    for name in (name for pair in pairs for name in pair):
        if name not in runs:
            runs[name] = judged_run(store, name)
    comparison = compare([(runs[base], runs[other]) for base, other in pairs])
    if not against:
        return comparison
    base, other = (runs[name].result for name in pairs[0])
    return replace(
        comparison,
        base=_with_figures(comparison.base, base, against),
        other=_with_figures(comparison.other, other, against),
    )


def _check_distinct(store: Store | None, pairs: Sequence[tuple[RunName, RunName]]) -> None:
    for base, other in pairs:
        if _resolved(base) == _resolved(other):
            name = name_or_number(store, base) if store and isinstance(base, int) else str(base)
            raise UserError(f"{name} is compared with itself", expected="two different runs")


def _resolved(name: RunName) -> RunName:
    return name.resolve() if isinstance(name, Path) else name


def _with_figures(values: Sequence[MetricValue], result: Result, against: Sequence[str]) -> list[MetricValue]:
    paper = paper_of(result.benchmark)
    rows = [] if paper is None else [paper.row(row) for row in against]
    figures = {
        (metric.metric, metric.subset): [one for one in metric.published or () if one.row in rows]
        for metric in add_published(result, *against).metrics
    }
    return [replace(value, published=figures.get((value.metric, value.subset)) or None) for value in values]


def judged_run(
    store: Store | None, name: RunName, on_group: Callable[[JudgedGroup], None] = lambda judged: None
) -> JudgedRun:
    """Judge a stored run again, or read a judged one from its folder.

    `on_group` gets the groups that are judged, with the verdicts of all judges.
    """
    if isinstance(name, Path):
        return read_judged_run(name)
    if store is None:
        raise ValueError(f"run {name} needs a store")
    _, finished = store.runs.get(name)
    if not finished:
        raise UserError(f"run {name} {UNFINISHED}", file=store.name, expected="runs that finished")
    groups = StoredGroups()

    def keep(judged: JudgedGroup) -> None:
        groups.add(judged.group)
        on_group(judged)

    result = recompute(store, name, on_group=keep)
    return JudgedRun(name=name_or_number(store, name), result=result, groups=groups)
