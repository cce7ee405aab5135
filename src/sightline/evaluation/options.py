"""The effective options of an evaluation, its description, and the conditions of `--fail-if`."""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.base import FILE, Benchmark, BenchmarkOption, Setting, defaults
from sightline.benchmarks.registry import benchmark_class, benchmark_names
from sightline.config import Price
from sightline.errors import UserError, did_you_mean, holds_secret, some_of, unknown_name
from sightline.evaluation.spec import Decide, Spec
from sightline.images import ImageLimits
from sightline.metrics.tally import NO_ANSWER
from sightline.models.base import check_request_limits, refuse_protocol_fields
from sightline.reporting.notes import undecided_share
from sightline.scoring.reasoning import check_names
from sightline.types import MetricDefinition, MetricValue, Result

if TYPE_CHECKING:
    from sightline.metrics.significance import Comparison, MarginVerdict, MetricSubset, Significance

    Verdicts = Mapping[MetricSubset, MarginVerdict]

_RANGES = {
    "temperature": (0.0, sys.float_info.max),
    "top_p": (0.0, 1.0),
    "max_tokens": (1.0, sys.float_info.max),
}
"""Sampling options that every server supports, and the bounds of their values."""


class EffectiveOptions(Struct, frozen=True):
    """The effective options of the benchmark, and the sampling options that are sent."""

    benchmark: Mapping[str, Any]
    sampling: Mapping[str, Any]


def setting_of(benchmark: Benchmark, task: str) -> Setting:
    name = task.partition(":")[2] or next(iter(benchmark.settings))
    setting = benchmark.settings.get(name)
    if setting is None and FILE in benchmark.settings:
        any_file = benchmark.settings[FILE]
        return replace(any_file, name=name, options={**any_file.options, "file": name})
    if setting is None:
        raise unknown_name(f"setting of {benchmark.name}", name, benchmark.settings)
    return setting


def variant_of(benchmark: Benchmark, setting: Setting) -> str:
    """The variant of an answer whose file names none."""
    named = benchmark.options.get("variant")
    return str(setting.options.get("variant", named.default if named else setting.name))


def effective(benchmark: Benchmark, setting: Setting, spec: Spec) -> EffectiveOptions:
    """Combine and check the options; None removes a sampling option from the request."""
    _check_counts(spec)
    _refuse_secrets(spec)
    options = defaults(benchmark, setting)
    for name, value in spec.set.items():
        check_option(benchmark.options, name, value, benchmark.name)
        options[name] = value
    options["seed"] = spec.seed
    preset: Mapping[str, Any] = {}
    if spec.preset is not None:
        if spec.preset not in benchmark.presets:
            raise unknown_name(f"--preset of {benchmark.name}", spec.preset, benchmark.presets)
        preset = benchmark.presets[spec.preset]
    sampling = {**setting.sampling, **preset, **spec.gen}
    refuse_protocol_fields(spec.gen)
    refuse_protocol_fields(spec.judge_gen)
    _check_sampling(sampling)
    return EffectiveOptions(options, {name: value for name, value in sampling.items() if value is not None})


_MAY_HOLD_SECRETS = {"store", "track_arg", "gen", "judge_gen", "model_arg"}
"""What results do not show, or what has a check of its own, with a better remedy."""


def _refuse_secrets(spec: Spec) -> None:
    """Refuse a secret in what results, exports and trackers show."""
    for name, value in vars(spec).items():
        if name not in _MAY_HOLD_SECRETS and holds_secret(value):
            raise UserError(
                f"--{name.replace('_', '-')} contains a secret, which would be written to the results",
                expected="a value without a password or API key",
            )


def check_option(options: Mapping[str, BenchmarkOption], name: str, value: Any, owner: str) -> None:
    if name not in options:
        having = [other for other in benchmark_names() if name in benchmark_class(other).options]
        if having:
            names = ", ".join(sorted(options)) or "none"
            raise UserError(
                f"unknown option of {owner} '{name}': it is an option of {' and '.join(having)}",
                expected=f"one of {names}",
            )
        raise unknown_name(f"option of {owner}", name, options)
    option = options[name]
    if not option.allows(value):
        texts = [choice for choice in option.choices or () if isinstance(choice, str)]
        near = did_you_mean(str(value), texts)
        raise UserError(f"--set {name}={value} is not allowed{near}", expected=option.allowed)


def split_of(benchmark: Benchmark, spec: Spec) -> str:
    split = spec.split or benchmark.splits[0]
    if split not in benchmark.splits:
        raise unknown_name(f"split of {benchmark.name}", split, benchmark.splits)
    return split


def _check_sampling(sampling: Mapping[str, Any]) -> None:
    """Raise UserError for a value that no server accepts; names that are not in _RANGES pass."""
    for name, (least, most) in _RANGES.items():
        value = sampling.get(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and least <= value <= most):
            expected = f"a number from {least:g}" + (f" to {most:g}" if most <= 1 else "")
            raise UserError(f"--gen {name}={value} is out of range", expected=expected)


def reasoning_names(spec: Spec) -> tuple[str, ...]:
    return tuple(name.strip() for names in spec.reasoning_tags for name in names.split(","))


def recorded_tags(description: EvaluationDescription) -> tuple[str, ...]:
    """The tags of --reasoning-tags with which an evaluation was made."""
    return tuple(description.options.get("reasoning_tags", ()))


def _check_counts(spec: Spec) -> None:
    check_request_limits(spec.concurrency, spec.max_requests, spec.max_cost)
    check_names(reasoning_names(spec))
    counts = {
        "--repeats": spec.repeats,
        "--limit": spec.limit,
        "--judge-repeats": spec.judge_repeats,
        "--retry-truncated": spec.retry_truncated,
    }
    for name, value in counts.items():
        if value is not None and value < 1:
            raise UserError(f"{name} {value} is too small", expected="at least 1")
    if spec.seed < 0:
        raise UserError(f"--seed {spec.seed} is negative", expected="0 or more")
    if spec.shuffle and spec.limit is None:
        raise UserError("--shuffle has no effect without --limit", expected="--limit N with --shuffle")
    if spec.ids and spec.limit is not None:
        raise UserError("--ids and --limit both select groups", expected="one of them")


# -- The description of an evaluation, which results report and the store keeps for each run


class JudgeModel(Struct, frozen=True):
    """A model that judges: its identity, its sampling options and its limits of images.

    The store keeps it for each run.
    """

    identity: str
    sampling: Mapping[str, Any]
    limits: ImageLimits = msgspec.field(default_factory=ImageLimits)


class EvaluationDescription(Struct, frozen=True, kw_only=True):
    """What a result reports about its evaluation besides counts and metrics.

    `benchmark_options` are the effective options of the benchmark, `options` those and all others.
    `data_digest` is the digest of the samples, `ids_digest` that of their ids; `planned_samples` is their
    number. `price` is that of the model; None if it is unknown.
    """

    benchmark: str
    setting: str
    model: str
    identity: str
    judges: tuple[str, ...]
    decide: Decide
    judge_repeats: int = 1
    benchmark_options: Mapping[str, Any]
    options: Mapping[str, Any]
    data_digest: str
    planned_samples: int
    against: tuple[str, ...] = ()
    notes: list[str] = msgspec.field(default_factory=list)
    ids_digest: str = ""
    price: Price | None = None


def judge_names(description: EvaluationDescription) -> str:
    """Name the judges of an evaluation, as `judge` in metrics.json does."""
    names = ", ".join(description.judges)
    return f"{names} (decides: {description.decide})" if len(description.judges) > 1 else names


# -- Conditions of `--fail-if` on one result (`acc_p<30`) or on a comparison (`worse`, `acc_p: lower`)

FORMS = (
    "METRIC<NUMBER, as in acc_p<30, acc_p[category=Attributes]<=20.5 or acc_p.high<30 (`sightline compare` "
    "accepts --fail-if worse for two runs)"
)

BOUNDS = ("value", "low", "high")
"""The numbers of a metric that a condition may compare: its value, and the bounds of its interval."""

_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_METRIC_AND_REST = re.compile(r"\s*(\w*)\s*(?:\[(.+)\])?\s*(.*)", re.DOTALL)
_COMPARED = re.compile(r"(?:\.(?P<bound>\w+))?\s*(?P<sign>[<>]=?)(?P<number>.*)")


class ConditionParts(NamedTuple):
    """A metric ('' if none is named), its subset ('all' by default), and the rest of a condition."""

    metric: str
    subset: str
    rest: str


class Condition(Struct, frozen=True):
    """A comparison of a metric, or of a bound of its interval, with a number; `text` is how it was given."""

    text: str
    metric: str
    subset: str
    bound: str
    sign: str
    number: float

    def met(self, result: Result) -> str | None:
        """Check the condition.

        The condition also holds if there is no number, or if the value would meet it with all undecided
        verdicts right: the line then says that it could hold.

        Returns:
            Why the condition holds, so that the command fails; None if it does not hold.
        """
        values = {metric.subset: metric for metric in result.metrics if metric.metric == self.metric}
        metric = values.get(self.subset)
        if metric is None:
            return f"{self.text}: there is no such number{_other_subsets(values)}"
        number = getattr(metric, self.bound)
        if number is None:
            return f"{self.text}: there is no number to compare ({metric.reason or 'no confidence interval'})"
        if_right = metric.changed_if_right
        could_hold = self.bound == "value" and if_right is not None and self._compares(if_right)
        if not self._compares(number) and not could_hold:
            return None
        line = f"{self.text}: it is {_distinct(number, self.number)}"
        if if_right is not None:
            changed = "" if self.bound == "value" else "the value "
            line += f", or {changed}{_distinct(if_right, self.number)} if all undecided verdicts"
            line += f" ({undecided_share(result)}) were right"
        if result.not_sent:
            line += f"; {result.not_sent:,} of {result.probes:,} probes were not sent"
        return line

    def _compares(self, number: float) -> bool:
        return _SIGNS[self.sign](number, self.number)


def parse_conditions(texts: Iterable[str]) -> tuple[Condition, ...]:
    return tuple(_parse(text) for text in texts)


def check_condition_metrics(conditions: Iterable[Condition], names: Collection[str]) -> None:
    for condition in conditions:
        if condition.metric not in names:
            raise unknown_name("metric in --fail-if", condition.metric, names)


def conditions_met(conditions: Iterable[Condition], result: Result) -> tuple[str, ...]:
    return tuple(filter(None, (condition.met(result) for condition in conditions)))


def split_condition(text: str) -> ConditionParts:
    """Split a condition into the number that it is about and the rest.

    >>> split_condition("acc_p[category=Attributes] <= 20.5")
    ConditionParts(metric='acc_p', subset='category=Attributes', rest='<= 20.5')
    >>> split_condition("miss: higher")
    ConditionParts(metric='miss', subset='all', rest=': higher')
    """
    metric, subset, rest = _METRIC_AND_REST.findall(text)[0]
    return ConditionParts(metric, subset or "all", rest)


def _parse(text: str) -> Condition:
    metric, subset, rest = split_condition(text)
    form = _COMPARED.fullmatch(rest)
    if form is None or not metric:
        raise UserError(f"--fail-if {text!r} is not a condition on a number", expected=FORMS)
    bound = form["bound"] or "value"
    if bound not in BOUNDS:
        raise UserError(f"--fail-if {text!r}: no metric has .{bound}", expected=".low, .high, or neither")
    try:
        number = float(form["number"])
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UserError(f"--fail-if {text!r} has no number", found=form["number"].strip(), expected=FORMS)
    return Condition(text.strip(), metric, subset, bound, form["sign"], number)


def _other_subsets(subsets: Iterable[str]) -> str:
    names = list(subsets)
    return f", only for {some_of(names, 4)}" if names else ""


def _distinct(value: float, number: float) -> str:
    """A value with at least two decimals, and as many as distinguish it from a number."""
    return next((f"{value:.{n}f}" for n in range(2, 12) if round(value, n) != round(number, n)), f"{value:g}")


# -- Conditions of `--fail-if` on a comparison of runs, such as `worse` or `acc_p: lower`

Direction = Literal["worse", "lower", "higher", "not-non-inferior", "not-equivalent"]

_OF_MARGIN = {"not-non-inferior": "non-inferior", "not-equivalent": "equivalent"}
"""The conditions on the verdicts of --margin, and the claim that each needs."""

COMPARISON_FORMS = (
    "worse, 'METRIC: worse', or 'METRIC[LABEL=VALUE]: lower' or higher, with --margin not-non-inferior or "
    "not-equivalent (`sightline report RUN --fail-if` "
    "compares one run with a number)"
)


class DifferenceCondition(Struct, frozen=True):
    """A significant difference in one direction, or a claim about a margin that does not hold, in one row of
    a table, or (`metric` None) in any row. `verdicts` are those of the margin, if there is one."""

    text: str
    metric: str | None
    subset: str
    direction: str
    definitions: Mapping[str, MetricDefinition]
    verdicts: Verdicts | None = None

    def met(
        self,
        rows: Iterable[MetricValue],
        tests: Mapping[MetricSubset, Significance],
        undecided_bounds: Mapping[MetricSubset, tuple[float, float]] | None = None,
        *,
        not_applicable: Collection[MetricSubset] = (),
    ) -> list[str]:
        """Check the condition. It also holds for a row without a difference: what is not measured fails.

        A condition on any row leaves out the rows that neither run can have, unless no other row is there.
        """
        lines = []
        for row in self._affected(rows, not_applicable):
            name = row.metric if row.subset == "all" else f"{row.metric}[{row.subset}]"
            test = tests.get((row.metric, row.subset))
            if test is None or row.value is None:
                lines.append(f"{self.text}: {name} has no difference ({row.reason})")
            elif self.direction in _OF_MARGIN:
                lines += self._unsupported((row.metric, row.subset), name)
            elif test.significant and self._has_direction(row.metric, row.value):
                low, high = (undecided_bounds or {}).get((row.metric, row.subset), (row.value, row.value))
                allowed = f"; undecided verdicts allow {low:+.3g} to {high:+.3g}" if low < high else ""
                line = f"{name} differs by {row.value:+.3g} (p {test.holm:.2g}, Holm){allowed}"
                lines.append(f"{self.text}: {line}")
        return lines

    def _affected(
        self, rows: Iterable[MetricValue], not_applicable: Collection[MetricSubset]
    ) -> list[MetricValue]:
        if self.metric is not None:
            return [row for row in rows if (row.metric, row.subset) == (self.metric, self.subset)]
        every = list(rows)
        return [row for row in every if (row.metric, row.subset) not in not_applicable] or every

    def _unsupported(self, row: MetricSubset, name: str) -> list[str]:
        """A line if the claim about the margin does not hold, or cannot be tested."""
        verdict = (self.verdicts or {}).get(row)
        holds, why = None, ""
        if verdict is not None:
            holds = verdict.equivalent if self.direction == "not-equivalent" else verdict.non_inferior
            why = f" ({verdict.reason})" if holds is None else ""
        return [] if holds else [f"{self.text}: {name} is not shown to be {_OF_MARGIN[self.direction]}{why}"]

    def _has_direction(self, metric: str, difference: float) -> bool:
        direction = self.direction
        if direction == "worse":
            direction = "higher" if self.definitions[metric].better == "lower" else "lower"
        return difference > 0 if direction == "higher" else difference < 0


def not_applicable(comparison: Comparison) -> frozenset[MetricSubset]:
    """The values that neither run can have, such as similarities of questions with options."""
    base, other = (
        {(row.metric, row.subset) for row in side if row.value is None and row.reason != NO_ANSWER}
        for side in (comparison.base, comparison.other)
    )
    return frozenset(base & other)


def parse_difference_conditions(
    texts: Iterable[str],
    rows: Sequence[MetricValue],
    definitions: Mapping[str, MetricDefinition],
    verdicts: Verdicts | None = None,
) -> tuple[DifferenceCondition, ...]:
    """Parse the values of `--fail-if` of a comparison; `verdicts` are those of --margin."""
    return tuple(_parse_comparison(text, rows, definitions, verdicts) for text in texts)


def _parse_comparison(
    text: str,
    rows: Sequence[MetricValue],
    definitions: Mapping[str, MetricDefinition],
    verdicts: Verdicts | None,
) -> DifferenceCondition:
    metric, subset, rest = split_condition(text)
    of_one_metric = rest.startswith(":") and metric != ""
    direction = rest[1:].strip() if of_one_metric else text.strip()
    if direction not in get_args(Direction):
        raise UserError(f"--fail-if {text!r} is not a condition on two runs", expected=COMPARISON_FORMS)
    if direction in _OF_MARGIN and verdicts is None:
        raise UserError(f"--fail-if {text!r} needs a margin", expected="--margin X too")
    named = metric if of_one_metric else None
    condition = DifferenceCondition(text.strip(), named, subset, direction, definitions, verdicts)
    names = list(dict.fromkeys(row.metric for row in rows))
    if named is not None:
        _check_row_exists(condition, rows, names)
    elif direction in ("lower", "higher"):
        raise UserError(f"--fail-if {text!r} names no metric", expected=f"'METRIC: {direction}'")
    affected = names if named is None else [named]
    undirected = [
        name for name in affected if name not in definitions or definitions[name].better == "neither"
    ]
    if direction in ("worse", "not-non-inferior") and undirected:
        raise UserError(
            f"--fail-if {text!r}: neither direction of {undirected[0]} is better",
            expected=f"'{undirected[0]}: lower' or '{undirected[0]}: higher'",
        )
    return condition


def _check_row_exists(
    condition: DifferenceCondition, rows: Sequence[MetricValue], names: Sequence[str]
) -> None:
    if condition.metric not in names:
        raise UserError(
            f"--fail-if {condition.text!r}: the metric is not in this table",
            found=", ".join(names),
            expected=f"--metric {condition.metric} too, if the runs have this metric",
        )
    if not any((row.metric, row.subset) == (condition.metric, condition.subset) for row in rows):
        raise UserError(
            f"--fail-if {condition.text!r}: {condition.metric} has no such row in this table",
            found=", ".join(row.subset for row in rows if row.metric == condition.metric),
            expected="--by LABEL too, and a value of that label",
        )
