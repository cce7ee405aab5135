"""Differences between runs of one benchmark, group by group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from sightline.errors import UserError, some_of
from sightline.metric_types import Metric, MetricValue, Result
from sightline.metrics.confusion import CONFUSED
from sightline.metrics.difference import Counterpart, difference, mean_of_shared_groups, paired
from sightline.metrics.scenarios import contains_undecided, if_right, if_wrong
from sightline.metrics.tally import SCALES, tally
from sightline.registry import benchmark as find_benchmark
from sightline.results.comparison import ComparedSide, Comparison, MetricSubset
from sightline.results.flips import answer_changes
from sightline.results.judged_run import JudgedRun
from sightline.results.pairing import GroupPair, MissingCounts, Pairing, pair_groups
from sightline.results.run_options import different_options
from sightline.types import Group, GroupKey

MetricPair = tuple[Metric, Metric]
"""A metric of the second runs, and the same metric of the base runs."""


def compare(pairs: Sequence[tuple[JudgedRun, JudgedRun]]) -> Comparison:
    """Compare runs pair by pair, and all pairs together (such as one adapter trained from several seeds).

    The 95 % confidence intervals cover the choice of the data, not that of the seeds.

    Args:
        pairs: The judged runs: first the base, then the run that is compared with it.

    Returns:
        The values on both sides and their differences, all as means over the groups with a value in both.

    Raises:
        UserError: The runs belong to different benchmarks, or share no group of the same data.
    """
    base, other = zip(*pairs, strict=True)
    _check_benchmarks([run.result for run in (*base, *other)])
    pairings = [pair_groups(sent_groups(first), sent_groups(second)) for first, second in pairs]
    for pair, pairing in zip(pairs, pairings, strict=True):
        _check_shared(pair, pairing)
    numbered = [_numbered(number, pairing.pairs) for number, pairing in enumerate(pairings)]
    every = [pair for several in numbered for pair in several]
    earlier, later = [pair.base for pair in every], [pair.other for pair in every]
    before, after = _counterparts(every)
    metrics, not_compared = _shared_metrics(other[0].result, base[0].result)
    changes = [difference(*both, before) for both in metrics]
    base_values = tally(earlier, [mean_of_shared_groups(there, here, after) for here, there in metrics])
    other_values = tally(later, [mean_of_shared_groups(here, there, before) for here, there in metrics])

    def differences(groups: Iterable[Group]) -> list[MetricValue]:
        return _null_without_both(tally(groups, changes), base_values, other_values)

    return Comparison(
        runs=tuple((first.name, second.name) for first, second in pairs),
        sides=(_side(base, earlier, pairings, 0), _side(other, later, pairings, 1)),
        base=base_values,
        other=other_values,
        differences=differences(later),
        each=[differences(pair.other for pair in several) for several in numbered] if len(pairs) > 1 else [],
        groups={metric.name: paired(later, metric, there, before) for metric, there in metrics},
        undecided_bounds=dict(_undecided_bounds(every, metrics)),
        answers=[
            change
            for number, pairing in enumerate(pairings)
            for change in answer_changes(number, pairing.pairs)
        ],
        different_samples=list(dict.fromkeys(name for pairing in pairings for name in pairing.different)),
        unchecked_samples=max(pairing.unchecked for pairing in pairings),
        differing_options=different_options([run.result for run in base], [run.result for run in other]),
        not_compared=not_compared,
        definitions={metric.name: metric.definition for metric, _ in metrics},
    )


def sent_groups(run: JudgedRun) -> dict[GroupKey, Group]:
    """Take the groups of a run whose probes were all sent; metrics leave out all others.

    Args:
        run: The run.

    Returns:
        The groups by their keys.
    """
    return {key: group for key, group in run.groups.items() if group.sent}


def _count_not_sent(run: JudgedRun) -> int:
    return sum(outcome.status == "not_sent" for group in run.groups.values() for outcome in group)


def _numbered(number: int, pairs: Iterable[GroupPair]) -> list[GroupPair]:
    """The groups without partners; the number of their pair of runs enters their names."""
    return [
        GroupPair(*(replace(group, id=f"{number} {group.id}", partners={}) for group in pair))
        for pair in pairs
    ]


def _counterparts(pairs: Iterable[GroupPair]) -> tuple[Counterpart, Counterpart]:
    """From a group of the second runs to that of the first, and the reverse."""
    earlier = {pair.other.key: pair.base for pair in pairs}
    later = {pair.base.key: pair.other for pair in pairs}
    return (lambda group: earlier[group.key]), (lambda group: later[group.key])


def _shared_metrics(other: Result, base: Result) -> tuple[list[MetricPair], dict[str, str]]:
    """The metrics of both results, and the reason why each of the others is not compared."""
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
    metrics = find_benchmark(result.benchmark).metrics(result.options)
    return {metric.name: metric for metric in metrics}


def _null_without_both(
    differences: Iterable[MetricValue], *sides: Sequence[MetricValue]
) -> list[MetricValue]:
    """The differences; null with the reason where one side has no value."""
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


def _undecided_bounds(
    pairs: Sequence[GroupPair], metrics: Sequence[MetricPair]
) -> Iterator[tuple[MetricSubset, tuple[float, float]]]:
    """The differences if all undecided verdicts of one side were right and those of the other wrong.

    A group of which both runs hold the same answers, judged alike, is the same whatever the verdicts are.
    """
    if not any(contains_undecided(group) for pair in pairs for group in pair):
        return
    gain = [
        pair if _is_same(pair) else GroupPair(if_wrong(pair.base), if_right(pair.other)) for pair in pairs
    ]
    loss = [
        pair if _is_same(pair) else GroupPair(if_right(pair.base), if_wrong(pair.other)) for pair in pairs
    ]
    for metric, base in metrics:
        if metric.judged != "correct":
            continue
        means = [_mean_differences(case, metric, base) for case in (gain, loss)]
        for subset in means[0].keys() & means[1].keys():
            low, high = sorted(mean[subset] for mean in means)
            yield (metric.name, subset), (low, high)


def _is_same(pair: GroupPair) -> bool:
    """Whether both runs hold the same answers of a group, with the same verdicts of the same judges."""
    base, other = ([(one.key, one.verdict, one.judge) for one in group] for group in pair)
    return base == other


def _mean_differences(pairs: Sequence[GroupPair], metric: Metric, base: Metric) -> dict[str, float]:
    """The mean difference by subset, in the unit of the difference."""
    before, _ = _counterparts(pairs)
    values = paired((pair.other for pair in pairs), metric, base, before)
    scale = SCALES[metric.unit]
    return {subset: scale * float((both.after - both.before).mean()) for subset, both in values.items()}


def _side(
    runs: Sequence[JudgedRun], groups: Sequence[Group], pairings: Sequence[Pairing], position: int
) -> ComparedSide:
    """One side: the runs at this position of each pair, and their groups."""
    result = runs[-1].result
    outcomes = [outcome for group in groups for outcome in group]
    missing: list[MissingCounts] = [pairing.missing[position] for pairing in pairings]
    return ComparedSide(
        runs=tuple(dict.fromkeys(run.name for run in runs)),
        task=f"{result.benchmark}:{result.setting}",
        model=result.model,
        probes=len(outcomes),
        undecided=sum(outcome.verdict == "undecided" for outcome in outcomes),
        failed=sum(not outcome.answered for outcome in outcomes),
        not_sent=sum(map(_count_not_sent, {run.name: run for run in runs}.values())),
        lacking_samples=sum(one.samples for one in missing),
        lacking_probes=sum(one.probes for one in missing),
        confused=tuple(m for run in runs for m in run.result.metrics if m.metric == CONFUSED),
    )


def _check_benchmarks(results: Sequence[Result]) -> None:
    """Raise UserError unless all results belong to one benchmark."""
    first, *others = [result.benchmark for result in results]
    for name in others:
        if name != first:
            raise UserError("the runs belong to different benchmarks", found=name, expected=first)


def _check_shared(pair: tuple[JudgedRun, JudgedRun], pairing: Pairing) -> None:
    """Raise UserError if two runs share no group of the same data."""
    names = f"{pair[0].name} and {pair[1].name}"
    if pairing.pairs:
        return
    for run in pair:
        if not sent_groups(run):
            raise UserError(
                f"no group of {run.name} was sent completely: the run stopped at its budget",
                expected="a run with a larger --max-requests or --max-cost",
            )
    if pairing.different:
        raise UserError(
            f"{names} hold different data for each of the {len(pairing.different)} samples that both have",
            found=some_of(pairing.different, 4),
            expected="runs of the same --data and --split",
        )
    samples = [{group.id for group in sent_groups(run).values()} for run in pair]
    if not samples[0] & samples[1]:
        raise UserError(f"{names} have no sample in common", expected="runs of the same --data and --split")
    raise UserError(
        f"{names} have no group in common: one pools the draws of several variants of a sample",
        expected="runs that group their answers in the same way (--unchanged in both, or in none)",
    )
