"""The notes below a table, and the names and options of results in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from sightline.benchmarks.registry import benchmark_class, is_benchmark
from sightline.errors import some_of
from sightline.store.answers import whole
from sightline.text import counted
from sightline.types import (
    RELIABLE_CLUSTERS,
    MetricDefinition,
    MetricValue,
    PublishedValue,
    Result,
    Spent,
    is_approximate,
    split_subset,
)

COUNTS = (
    "errors",
    "misses",
    "undecided",
    "truncated",
    "not_sent",
    "empty",
    "refused",
    "unparsed",
    "judge_errors",
    "unscored",
)
"""Counts of a result; only errors are printed even if they are 0."""

_METHODS = {
    "wilson": "95 % CI: Wilson score interval with the effective number of units; samples that share an image"
    " form a cluster",
    "t": "95 % CI of metrics without bounds, and of differences of similarities: t interval with the variance"
    " between clusters",
}
"""The methods of intervals in words."""

_APPROXIMATE = (
    f"~: an approximate interval, of fewer than {RELIABLE_CLUSTERS} clusters: it may hold the true value less"
    " often than in 95 % of cases"
)

FEW_VERSIONS, LONGEST_VERSION = 3, 80
"""Versions of a server that a note lists, and their characters."""

_Key = TypeVar("_Key")
_Word = TypeVar("_Word")


def run_notes(result: Result) -> list[str]:
    """All notes on a run: counts, what limits its values, then how they came about."""
    return [counts_note(result), *caveats(result), *run_legend(result)]


def caveats(result: Result) -> list[str]:
    """What limits the values of a run, the worst first."""
    missing = []
    if result.unanswered == result.probes:
        missing = ["no probe has an answer, so there is no value"]
    elif result.errors:
        missing = [f"{without_answer(result)}: counted as not right"]
    return [
        *missing,
        *_missing_benchmark(result),
        *result.notes,
        *([_mixed_versions(result.versions.get("reported", ()))] if result.mixed_versions else []),
    ]


def without_answer(result: Result) -> str:
    """How many probes failed, or have no answer in a file.

    The probes that were not sent are not among them.
    """
    have = "has" if result.errors == 1 else "have"
    return f"{result.errors:,} of {counted(result.probes, 'probe')} {have} no answer"


def run_legend(result: Result) -> list[str]:
    """How the values of a run came about: other judges, chance, intervals, options."""
    return [
        *_other_judges(result),
        *chance_notes(result),
        *interval_notes(result.metrics),
        f"options: {options_text(effective_options(result.options)) or 'none'}",
    ]


def _mixed_versions(reported: Sequence[str]) -> str:
    """A note on the versions that servers reported; a server may report another one with each answer."""
    versions = some_of([_version(one) for one in reported[:FEW_VERSIONS]], FEW_VERSIONS, total=len(reported))
    return f"mixed versions: the server reported {counted(len(reported), 'version')}: {versions}"


def _version(reported: str) -> str:
    """A version as a note shows it: short, and once if model and fingerprint are one text."""
    half = len(reported) // 2
    text = reported[:half] if reported[:half] == reported[half + 1 :] and reported[half] == " " else reported
    return text if len(text) <= LONGEST_VERSION else f"{text[:LONGEST_VERSION]}..."


def _missing_benchmark(result: Result) -> list[str]:
    """A note if nothing can be looked up about the benchmark of a result."""
    if is_benchmark(result.benchmark):
        return []
    return [f"the benchmark {result.benchmark} is not installed: the defaults of any benchmark are used"]


def value_notes(metrics: Sequence[MetricValue]) -> list[str]:
    """Why values are null or have no interval, and what undecided verdicts could change."""
    return [*null_notes(metrics), *undecided_value_notes(metrics)]


def judge_errors(result: Result) -> str:
    """The judgements that lack a verdict, in words: missing ones and undecided ones; '' if there are none."""
    counts = {"missing": result.judge_errors, "undecided": result.unparsed}
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)


def undecided_note(result: Result, names: Iterable[str]) -> list[str]:
    """How many verdicts are undecided, and what they could change, in one line."""
    if not result.undecided:
        return []
    changes = [
        f"{m.metric} {m.changed_if_right:.1f} instead of {m.value:.1f}"
        for m in result.metrics
        if m.subset == "all" and m.metric in names
        if m.value is not None and m.changed_if_right is not None
    ]
    effect = f"; if all were right: {', '.join(changes)}" if changes else ""
    return [f"undecided verdicts ({undecided_share(result)}) count as not right{effect}"]


def null_notes(metrics: Iterable[MetricValue]) -> list[str]:
    metrics = list(metrics)
    missing = gathered(
        (m.reason or "no probe has a value for it", place(m)) for m in metrics if m.value is None
    )
    without_interval = gathered(
        (m.reason, place(m)) for m in metrics if m.value is not None and m.reason is not None
    )
    return [
        *(f"{some_of(places, 4)}: no value, {reason}" for reason, places in missing.items()),
        *(f"{some_of(places, 4)}: {reason}" for reason, places in without_interval.items()),
    ]


def first_of_rows(figures: Sequence[PublishedValue] | None) -> list[PublishedValue]:
    """The first published figure of each row: a paper may print two."""
    first = {figure.row: figure for figure in reversed(figures or ())}
    return [one for one in figures or () if first[one.row] is one]


def published_marks(metric: MetricValue) -> list[tuple[str, float]]:
    """The name and the value of each published figure that is drawn."""
    return [
        (f"{one.row}, {one.table} {one.mark}".rstrip(), one.value) for one in first_of_rows(metric.published)
    ]


def published_notes(shown: Sequence[tuple[str, PublishedValue]]) -> list[str]:
    """The notes on published figures, each behind their mark; first those on comparable figures.

    A note names its rows and places unless it holds for all figures of its table.
    """
    noted = gathered(
        ((value.mark, value.table, value.note or "not comparable"), (value.row, where))
        for where, value in shown
        if value.mark
    )
    return [
        f"{mark} {table}{_among(cells, table, shown)}: {note}"
        for (mark, table, note), cells in sorted(noted.items(), key=lambda item: item[0][0], reverse=True)
    ]


def shared_notes(by_run: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    runs = gathered((note, run) for run, notes in by_run for note in notes)
    return [
        note if len(names) == len(by_run) else f"{some_of(names, 3)}: {note}" for note, names in runs.items()
    ]


def definition_notes(names: Iterable[str], definitions: Mapping[str, MetricDefinition]) -> list[str]:
    """The legend of a table: what its metrics mean, their ranges and better directions.

    Returns:
        One line for each metric, "acc_p: pairs of which both answers are right", then one for each range and
        direction, "0 to 100 %, higher is better: acc_p, acc_q" ("all metrics" if there is only one).
    """
    listed = [name for name in dict.fromkeys(names) if name in definitions]
    by_direction: dict[str, list[str]] = {}
    for name in listed:
        by_direction.setdefault(direction(definitions[name]), []).append(name)
    return [
        *(f"{name}: {definitions[name].meaning}" for name in listed),
        *(
            f"{text}: {', '.join(metrics) if len(by_direction) > 1 else 'all metrics'}"
            for text, metrics in by_direction.items()
        ),
    ]


def direction(definition: MetricDefinition) -> str:
    """Range and better direction of a metric in words, such as "0 to 100 %, higher is better".

    >>> direction(MetricDefinition("", "neither", (-100.0, None), "points"))
    'from -100 points, neither direction is better'
    """
    better = "neither direction" if definition.better == "neither" else definition.better
    low, high = (None if bound is None else f"{bound:g}" for bound in definition.range)
    bounds = f"{low} to {high}" if low and high else f"from {low}" if low else f"up to {high}"
    unit = {"percent": " %", "points": " points", "number": ""}[definition.unit]
    return f"{f'{bounds}{unit}' if low or high else 'unbounded'}, {better} is better"


def definitions_of(results: Iterable[Result]) -> dict[str, MetricDefinition]:
    return {name: one for result in results for name, one in result.metric_definitions.items()}


def naming_notes(named: Iterable[tuple[str, str]]) -> list[str]:
    """What the names of a table stand for, in one note: 'llava is http://host/v1#llava'."""
    differing = [f"{name} is {whole}" for name, whole in named if name != whole]
    return ["; ".join(differing)] if differing else []


def chance_notes(result: Result) -> list[str]:
    measured = {m.metric for m in result.metrics}
    return [
        line for metric, line in benchmark_class(result.benchmark).chance_notes.items() if metric in measured
    ]


def interval_notes(metrics: Sequence[MetricValue]) -> list[str]:
    """How the confidence intervals of these values were made."""
    methods = {m.interval for m in metrics if m.interval is not None}
    return [
        *(words for method, words in _METHODS.items() if any(one.startswith(method) for one in methods)),
        *approximate_notes(metrics),
    ]


def approximate_notes(metrics: Iterable[MetricValue]) -> list[str]:
    """A note if an interval is approximate."""
    return [_APPROXIMATE] if any(is_approximate(metric.interval) for metric in metrics) else []


def place(metric: MetricValue) -> str:
    return metric.metric if metric.subset == "all" else f"{metric.metric} {metric.subset}"


def label_of(metric: MetricValue) -> tuple[str, str]:
    return split_subset(metric.subset)


def counts_note(result: Result, *, with_spent: bool = True) -> str:
    """The counts of a run, its judge, and what its answers took."""
    found = {name: getattr(result, name) for name in COUNTS if name == "errors" or getattr(result, name)}
    counts = ", ".join(f"{number:,} {_count_name(name, number)}" for name, number in found.items())
    sizes = f"{counted(result.samples, 'sample')}, {counted(result.probes, 'probe')}"
    spent = spent_words(result.spent or None)
    return f"{sizes}: {counts}; judged by {result.judge}" + (f"; {spent}" if spent and with_spent else "")


def _count_name(name: str, number: int) -> str:
    words = name.replace("_", " ")
    return words if number != 1 else {"misses": "miss"}.get(words, words.removesuffix("s"))


def spent_words(spent: Spent | None) -> str:
    """What an answer took, and what all of them cost; '' if nothing of it is known."""
    if not spent:
        return ""
    tokens = spent.tokens / max(spent.answers, 1)
    parts = [
        *([f"{tokens:,.0f} tokens an answer"] if spent.tokens else []),
        *([f"{spent.p50:.2g} s (p95 {spent.p95:.2g} s)"] if spent.p50 and spent.p95 else []),
        *([] if spent.cost is None else [f"cost {spent.cost:.2f}"]),
    ]
    return ", ".join(parts)


def _other_judges(result: Result) -> list[str]:
    others = gathered(
        (m.judge, m.metric) for m in result.metrics if m.judge is not None and m.judge != result.judge
    )
    return [f"{some_of(names, 4)} judged by {judge}" for judge, names in others.items()]


def undecided_value_notes(metrics: Sequence[MetricValue]) -> list[str]:
    """What undecided verdicts could change, a line for each value over all samples."""
    lines = []
    for m in metrics:
        if m.subset == "all" and m.changed_if_right is not None:
            decided = "" if m.value_decided is None else f", {m.value_decided:.1f} without undecided verdicts"
            lines.append(
                f"{place(m)}: {m.changed_if_right:.1f} if all undecided verdicts were right{decided}"
            )
    return lines


def _among(cells: Sequence[tuple[str, str]], table: str, shown: Sequence[tuple[str, PublishedValue]]) -> str:
    """The rows and places of a note among the figures of its table: '' for all of them."""
    others = {(value.row, where) for where, value in shown if value.table == table}.difference(cells)
    if not others:
        return ""
    rows = dict.fromkeys(row for row, _ in cells)
    places = _joint([where for _, where in cells], [where for row, where in others if row in rows])
    whole = rows.keys().isdisjoint(row for row, _ in others)
    return f", {', '.join(rows)}" + ("" if whole else f", {some_of(places, 4)}")


def _joint(places: Iterable[str], others: Iterable[str]) -> list[str]:
    """The places, each once; a metric's name alone ('con' for 'con colour=red') if no other place is one
    of its subsets."""
    split = {where.partition(" ")[0] for where in others}
    names = {where: where.partition(" ") for where in places}
    return list(
        dict.fromkeys(
            metric if "=" in subset and metric not in split else where
            for where, (metric, _, subset) in names.items()
        )
    )


def gathered(pairs: Iterable[tuple[_Key, _Word]]) -> dict[_Key, list[_Word]]:
    """The words of each key, in order, each once."""
    gathered: dict[_Key, dict[_Word, None]] = {}
    for key, word in pairs:
        gathered.setdefault(key, {})[word] = None
    return {key: list(words) for key, words in gathered.items()}


# -- The options that vary among several results, and short names for results


class ResultPoint(Struct, frozen=True):
    """A result and its values of the varied options."""

    result: Result
    values: Mapping[str, Any]


def result_points(results: Sequence[Result]) -> list[ResultPoint]:
    """Find the options that vary within results of one model, setting and judge.

    An option that differs between models only is not varied. An option that always changes together with
    another one, such as the repeats between Sampling and All, is left out.
    """
    options = [flat_options(result.options) for result in results]
    runs: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for result, plain in zip(results, options, strict=True):
        runs.setdefault((*task_of(result), result.model, result.judge), []).append(plain)
    names = dict.fromkeys(name for plain in options for name in plain)
    varied = [
        name
        for name in names
        if any(len({exact_text(plain.get(name)) for plain in run}) > 1 for run in runs.values())
    ]
    kept: list[str] = []
    for name in varied:
        if not any(_follows(name, other, options) for other in kept):
            kept.append(name)
    return [
        ResultPoint(result, {name: plain.get(name) for name in kept})
        for result, plain in zip(results, options, strict=True)
    ]


def task_of(result: Result) -> tuple[str, str]:
    return result.benchmark, result.setting


def row_names(points: Sequence[ResultPoint]) -> list[str]:
    """Names for the rows of results: the short model name, with the judge if judges differ."""
    short = short_names(point.result.model for point in points)
    several = len({point.result.judge for point in points}) > 1
    seen: list[tuple[str, str]] = []
    names = []
    for point in points:
        name = short[point.result.model] + (f", judge {point.result.judge}" if several else "")
        seen.append((name, exact_text([task_of(point.result), point.values])))
        again = seen.count(seen[-1])
        names.append(name if again == 1 else f"{name} ({again})")
    return names


def short_names(models: Iterable[str]) -> dict[str, str]:
    """Model names without server and organisation, where they stay distinct.

    >>> short_names(["http://localhost:8000/v1#llava", "openai/gpt-4o"])
    {'http://localhost:8000/v1#llava': 'llava', 'openai/gpt-4o': 'gpt-4o'}
    >>> short_names(["a/last", "b/last", "GPT-4 w/ caption"])
    {'a/last': 'a/last', 'b/last': 'b/last', 'GPT-4 w/ caption': 'GPT-4 w/ caption'}
    """
    whole = list(dict.fromkeys(models))
    served = [name.rpartition("#")[2] for name in whole]
    # A name with blanks has no organisation.
    ends = [
        name if " " in name else name.rstrip("/").rpartition("/")[2] or full
        for name, full in zip(served, whole, strict=True)
    ]
    return {name: end if ends.count(end) == 1 else name for name, end in zip(whole, ends, strict=True)}


def exact_text(value: Any) -> str:
    """A text that is equal for equal values only: 1 and 1.0 are equal, true and '1' are others.

    >>> exact_text({"temperature": 0.0}) == exact_text({"temperature": 0}), exact_text(True), exact_text("1")
    (True, 'true', '"1"')
    """
    return msgspec.json.encode(whole(value), order="deterministic").decode()


def _follows(name: str, other: str, options: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each value of `other` occurs with one value of `name` only."""
    together = {(exact_text(plain.get(other)), exact_text(plain.get(name))) for plain in options}
    return len(together) == len({value for value, _ in together})


# -- Options and their values as text


def options_text(values: Mapping[str, Any]) -> str:
    """Options in one line.

    >>> options_text({"size": 224, "cot": True, "stop": None})
    'size=224, cot=on, stop=null'
    """
    return ", ".join(f"{name}={option_text(value)}" for name, value in values.items())


def option_text(value: Any) -> str:
    """A value of an option as on the command line."""
    return ("off", "on")[value] if isinstance(value, bool) else compact(value)


def compact(value: Any) -> str:
    """A value of options or versions as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


# -- The effective options of a run under flat names, and those in which runs differ

NESTED = {"sampling": "gen", "model_arg": "model-arg"}
"""The options that hold further options, and the prefix of a name that exists twice."""


def flat_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Put sampling options and arguments of the model beside all others.

    >>> flat_options({"seed": 0, "sampling": {"temperature": 0, "seed": 1}, "model_arg": {"adapter": "a"}})
    {'seed': 0, 'temperature': 0, 'gen seed': 1, 'adapter': 'a'}
    """
    flat = {name: value for name, value in options.items() if name not in NESTED}
    for nested, prefix in NESTED.items():
        for name, value in (options.get(nested) or {}).items():
            flat[f"{prefix} {name}" if name in flat else name] = value
    return flat


def effective_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run as commands print them: flat, with a value, in the order of their names.

    >>> effective_options({"seed": 0, "limit": None, "sampling": {"temperature": 0}, "cot": True})
    {'cot': True, 'seed': 0, 'temperature': 0}
    """
    flat = flat_options(options)
    return {name: flat[name] for name in sorted(flat) if flat[name] is not None}


def different_options(
    base: Sequence[Result], other: Sequence[Result]
) -> Mapping[str, tuple[Sequence[Any], Sequence[Any]]]:
    """Find what differs between two sides besides model and setting: judge, options, versions."""
    different = _differences([_comparable(one) for one in base], [_comparable(one) for one in other])
    if {one.model for one in base} == {one.model for one in other}:
        identities = (
            [{"identity of the model": one.model_identity} for one in side] for side in (base, other)
        )
        different |= _differences(*identities)
    return different


def _differences(
    base: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[Sequence[Any], Sequence[Any]]]:
    names = dict.fromkeys(name for values in (*base, *other) for name in values)
    different: dict[str, tuple[Sequence[Any], Sequence[Any]]] = {}
    for name in names:
        first, second = ({exact_text(one.get(name)): one.get(name) for one in side} for side in (base, other))
        if first.keys() != second.keys():
            different[name] = (list(first.values()), list(second.values()))
    return different


def _comparable(result: Result) -> dict[str, Any]:
    versions = {name: value for name, value in result.versions.items() if name != "reported"}
    declared = benchmark_class(result.benchmark).options
    internal = {name for name, option in declared.items() if option.internal}
    options = {name: value for name, value in result.options.items() if name not in internal}
    return {
        "judge": result.judge,
        **flat_options(options),
        **{f"version of {name}": value for name, value in versions.items()},
    }


# -- The undecided verdicts of a result in words

MANY_UNDECIDED = 0.2
"""The share of undecided verdicts above which the values of a run are ranges."""


REMEDY = "another --judge (a model, or human:FILE) decides them"


def open_end(result: Result, metric: MetricValue) -> float | None:
    """The value if all undecided verdicts were right, where that is more than sampling leaves open.

    None where few verdicts are undecided, and the value stays within its confidence interval.
    """
    end, low, high = metric.changed_if_right, metric.low, metric.high
    if end is None or metric.value is None:
        return None
    is_within = low is not None and high is not None and low <= end <= high
    is_few = result.undecided <= MANY_UNDECIDED * (result.probes - result.not_sent)
    return None if is_within and is_few else end


def undecided_warning(result: Result, names: Iterable[str]) -> list[str]:
    """Between which values undecided verdicts leave metrics, and what decides them, in one sentence."""
    ranges: list[str] = []
    for metric in result.metrics:
        end = open_end(result, metric) if metric.subset == "all" and metric.metric in names else None
        if end is not None and metric.value is not None:
            low, high = sorted((metric.value, end))
            decimals = 3 if metric.unit == "number" else 1
            lies = "between" if ranges else "lies between"
            ranges.append(f"{metric.metric} {lies} {low:.{decimals}f} and {high:.{decimals}f}")
    sent = max(result.probes - result.not_sent, 1)
    share = f"{100 * result.undecided / sent:.0f} % of the verdicts are undecided"
    return [f"{share}: {', '.join(ranges)}; {REMEDY}"] if ranges else []


def undecided_share(result: Result) -> str:
    """The number and the share of undecided verdicts among the probes that were sent."""
    sent = result.probes - result.not_sent
    return f"{result.undecided:,} of {sent:,}, {100 * result.undecided / max(sent, 1):.1f} %"
