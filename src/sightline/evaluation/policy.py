"""Rules of a policy file (TOML): what the values of runs, and their differences, must be."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Struct
from msgspec.structs import replace

from sightline.benchmarks.registry import benchmark_names
from sightline.config import read_table, toml_key
from sightline.errors import UserError, did_you_mean, some_of
from sightline.evaluation.compare import margin_verdicts, significance_of
from sightline.evaluation.options import split_condition
from sightline.formats.files import read_bytes
from sightline.metrics.significance import LEVEL, Comparison, Significance, corrected_together
from sightline.reporting.table import Column, Field, PValue, ReportTable, build_table, value_cell
from sightline.text import counted, decode_toml
from sightline.types import MetricValue, Result

CORRECTIONS: Mapping[str, str] = {"holm": "holm", "benjamini-hochberg": "benjamini_hochberg", "none": "p"}
"""The corrections for the number of tests, and the field of `Significance` that holds each p-value."""

_EXPECTED = '[BENCHMARK.METRIC] or [BENCHMARK."METRIC[LABEL=VALUE]"] with min, max, margin or test'

Test = Literal["not-worse", "better", "non-inferior", "equivalent"]
State = Literal["met", "not met", "not decided"]


class Decision(NamedTuple):
    """The state of a rule, and why it is not decided."""

    state: State
    why: str = ""


MET, NOT_MET = Decision("met"), Decision("not met")


class Rule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one metric must be: `min` and `max` bound its value, `test` is what a comparison must show.

    `margin` is in percentage points, for the tests `non-inferior` (the default with it) and `equivalent`.
    """

    min: float | None = None
    max: float | None = None
    margin: Annotated[float, Meta(gt=0)] | None = None
    test: Test | None = None


class PlacedRule(NamedTuple):
    """A rule with the benchmark, or BENCHMARK:SETTING, the metric and the subset that it is about."""

    task: str
    metric: str
    subset: str
    rule: Rule

    @property
    def name(self) -> str:
        """The name of its table in the file."""
        metric = self.metric if self.subset == "all" else f"{self.metric}[{self.subset}]"
        return f"[{toml_key(self.task)}.{toml_key(metric)}]"

    @property
    def is_of_margin(self) -> bool:
        return self.rule.test in ("non-inferior", "equivalent")


class Policy(NamedTuple):
    """A policy file: its rules, and the correction of their p-values."""

    file: Path
    correction: str
    rules: Sequence[PlacedRule]

    def of(self, benchmark: str, settings: Collection[str], *, compared: bool) -> list[PlacedRule]:
        """The rules for differences, or for values, of a benchmark in these settings."""
        tasks = {benchmark, *(f"{benchmark}:{setting}" for setting in settings)}
        return [one for one in self.rules if one.task in tasks and (one.rule.test is not None) == compared]


class Checked(NamedTuple):
    """What became of a rule for one run: the value or the difference, its p-value, and why."""

    run: str
    rule: PlacedRule
    required: str
    value: MetricValue
    p: float | None
    state: State
    why: str = ""


def read_policy(file: Path) -> Policy:
    tables = decode_toml(read_bytes(file), dict[str, Any], file, "a policy", expected=_EXPECTED)
    correction = tables.pop("correction", "holm")
    if not isinstance(correction, str) or correction not in CORRECTIONS:
        raise UserError(
            "is no correction",
            file=file,
            field="correction",
            found=correction,
            expected=f"one of {', '.join(CORRECTIONS)}",
        )
    rules = [rule for task, metrics in tables.items() for rule in _rules(task, metrics, file)]
    if not rules:
        raise UserError("has no rule", file=file, expected=_EXPECTED)
    return Policy(file, correction, rules)


def _rules(task: str, metrics: Any, file: Path) -> Iterator[PlacedRule]:
    known = benchmark_names()
    if task.partition(":")[0] not in known:
        raise UserError(
            f"unknown benchmark or key '{task}'{did_you_mean(task, known)}",
            file=file,
            expected=f"correction, or one of {', '.join(known)}",
        )
    if not isinstance(metrics, dict):
        raise UserError("is no table", file=file, field=task, expected=_EXPECTED)
    for name, value in metrics.items():
        metric, subset, rest = split_condition(name)
        if rest or not metric:
            raise UserError(
                "names no metric", file=file, field=name, expected="METRIC or METRIC[LABEL=VALUE]"
            )
        rule: Rule = read_table(value, Rule, file, f"[{toml_key(task)}.{toml_key(name)}]")
        yield from _parts(PlacedRule(task, metric, subset, rule), file)


def _parts(placed: PlacedRule, file: Path) -> Iterator[PlacedRule]:
    """The bounds of a value and the test of a difference, each as a rule of its own."""
    rule = placed.rule
    for name in ("min", "max", "margin"):
        if not math.isfinite(getattr(rule, name) or 0):
            raise UserError("is not finite", file=file, record=placed.name, field=name, expected="a number")
    bounds = Rule(min=rule.min, max=rule.max)
    test = rule.test or ("non-inferior" if rule.margin is not None else None)
    if bounds == Rule() and test is None:
        raise UserError("demands nothing", file=file, record=placed.name, expected="min, max, margin or test")
    if bounds != Rule():
        yield placed._replace(rule=bounds)
    if test is not None:
        compared = placed._replace(rule=Rule(margin=rule.margin, test=test))
        if compared.is_of_margin != (rule.margin is not None):
            word = "needs" if compared.is_of_margin else "has no"
            raise UserError(f'test = "{test}" {word} margin', file=file, record=placed.name)
        yield compared


# -- The rules for values, and those for differences


def check_values(policy: Policy, results: Sequence[Result], names: Sequence[str]) -> list[Checked]:
    """Check the bounds of the values of runs.

    A rule is met if the whole 95 % confidence interval lies within its bounds, and not met if the whole
    interval lies outside of one.
    """
    checked = []
    for result, name in zip(results, names, strict=True):
        for rule in policy.of(result.benchmark, [result.setting], compared=False):
            value = _found(policy, rule, result.metrics)
            end = value.value if value.value_if_right is None else value.value_if_right
            bounds = rule.rule.min, rule.rule.max
            decision = _limited(_within(value, rule.rule), (value.value, end), bounds, result.unanswered)
            required = " and ".join(
                f"{word} {bound:g}"
                for word, bound in zip(("at least", "at most"), bounds, strict=True)
                if bound is not None
            )
            checked.append(Checked(name, rule, required, value, None, *decision))
    return _some(checked, policy, {result.benchmark for result in results}, "min or max")


def _within(value: MetricValue, rule: Rule) -> Decision:
    if value.value is None or value.low is None or value.high is None:
        return Decision("not decided", value.reason or "no confidence interval")
    least = -math.inf if rule.min is None else rule.min
    most = math.inf if rule.max is None else rule.max
    if least <= value.low and value.high <= most:
        return MET
    if value.high < least or most < value.low:
        return NOT_MET
    return Decision("not decided", "the CI crosses it")


def check_differences(policy: Policy, comparisons: Sequence[Comparison]) -> list[Checked]:
    """Check the differences of comparisons. The p-values of all rules are corrected together."""
    placed = []
    for comparison in comparisons:
        settings = {side.task.partition(":")[2] for side in comparison.sides}
        rules = policy.of(comparison.benchmark, settings, compared=True)
        placed.append([(rule, _difference(policy, rule, comparison)) for rule in rules])
    tests = corrected_together(
        [
            significance_of(comparison, [row for rule, row in of if not rule.is_of_margin])
            for comparison, of in zip(comparisons, placed, strict=True)
        ]
    )
    checked = [
        _checked(rule, row, comparison, test.get((row.metric, row.subset)), policy.correction)
        for comparison, of, test in zip(comparisons, placed, tests, strict=True)
        for rule, row in of
    ]
    return _some(checked, policy, {one.benchmark for one in comparisons}, "margin or test")


def _difference(policy: Policy, rule: PlacedRule, comparison: Comparison) -> MetricValue:
    row = _found(policy, rule, comparison.differences, comparison.not_compared.get(rule.metric, ""))
    if rule.rule.test != "equivalent" and comparison.definitions[rule.metric].better == "neither":
        raise UserError(
            f"neither direction of {rule.metric} is better",
            file=policy.file,
            record=rule.name,
            expected='test = "equivalent"',
        )
    return row


def _checked(
    rule: PlacedRule, row: MetricValue, comparison: Comparison, test: Significance | None, correction: str
) -> Checked:
    p: float | None = getattr(test, CORRECTIONS[correction], None)
    kind, margin = rule.rule.test, rule.rule.margin or 0.0
    sign = -1 if comparison.definitions[rule.metric].better == "lower" else 1
    lines = [-margin, margin] if kind == "equivalent" else [-sign * margin]
    if rule.is_of_margin:
        decision = _of_margin(rule, row, comparison, sign)
    else:
        decision = _of_test(kind == "not-worse", sign * (row.value or 0.0), p, row.reason)
        # Without a significant difference, undecided verdicts do not turn one.
        lines = lines if p is not None and p <= LEVEL else []
    open_range = comparison.undecided_bounds.get((row.metric, row.subset), (row.value, row.value))
    missing = sum(side.failed + side.not_sent + side.lacking_probes for side in comparison.sides)
    required = f"{kind} within {margin:g} points" if margin else str(kind)
    run = ", ".join(comparison.sides[1].runs)
    return Checked(run, rule, required, row, p, *_limited(decision, open_range, lines, missing))


def _of_test(not_worse: bool, gain: float, p: float | None, reason: str | None) -> Decision:
    if p is None:
        return Decision("not decided", reason or "no p-value")
    if p <= LEVEL:
        return MET if gain > 0 else NOT_MET
    return MET if not_worse else Decision("not decided", "the difference is not significant")


def _of_margin(rule: PlacedRule, row: MetricValue, comparison: Comparison, sign: int) -> Decision:
    margin = rule.rule.margin or 0.0
    if row.value is None or row.low is None or row.high is None:
        return Decision("not decided", row.reason or "no confidence interval")
    verdict = margin_verdicts(comparison, [row], margin)[row.metric, row.subset]
    if rule.rule.test == "equivalent":
        holds, low, high = verdict.equivalent, verdict.low, verdict.high
    else:
        holds, high = verdict.non_inferior, max(sign * row.low, sign * row.high)
        low = None
    if holds is None or high is None:
        return Decision("not decided", verdict.reason)
    if holds:
        return MET
    if high < -margin or (low is not None and low > margin):
        return NOT_MET
    return Decision("not decided", "the CI crosses the margin")


def _limited(
    decision: Decision,
    open_range: tuple[float | None, float | None],
    lines: Iterable[float | None],
    missing: int,
) -> Decision:
    """A decision, unless undecided verdicts could turn it, or it is met and answers are missing.

    Args:
        open_range: The ends of the range in which undecided verdicts leave the number.
        lines: The numbers that separate met from not met.
        missing: The probes without an answer in groups that count.
    """
    ends = [end for end in open_range if end is not None]
    if decision.state == "not decided" or not ends:
        return decision
    if any(line is not None and min(ends) < line < max(ends) for line in lines):
        return Decision("not decided", "undecided verdicts could turn it")
    if decision == MET and missing:
        return Decision("not decided", f"{counted(missing, 'answer')} of its groups missing")
    return decision


def _found(
    policy: Policy, rule: PlacedRule, values: Sequence[MetricValue], why_not_compared: str = ""
) -> MetricValue:
    of_metric = {value.subset: value for value in values if value.metric == rule.metric}
    if rule.subset in of_metric:
        return of_metric[rule.subset]
    what, word, known = "metric", rule.metric, dict.fromkeys(value.metric for value in values)
    if of_metric:
        what, word, known = f"subset of {rule.metric}", rule.subset, dict.fromkeys(of_metric)
    raise UserError(
        f"{rule.metric} cannot be compared: it {why_not_compared}"
        if why_not_compared
        else f"unknown {what} '{word}'{did_you_mean(word, known)}",
        file=policy.file,
        record=rule.name,
        expected=f"one of {some_of(known, _LISTED)}",
    )


def _some(checked: list[Checked], policy: Policy, benchmarks: Collection[str], keys: str) -> list[Checked]:
    if not checked:
        raise UserError(
            f"no rule with {keys} is about these runs",
            file=policy.file,
            found=", ".join(dict.fromkeys(rule.name for rule in policy.rules)),
            expected=" or ".join(f"[{benchmark}.METRIC]" for benchmark in sorted(benchmarks)),
        )
    return checked


_LISTED = 40


# -- What is said of the rules

_LEGEND = (
    "not decided: a confidence interval crosses the bound or the margin, a difference that is demanded is not"
    " significant, undecided verdicts could turn the decision, or a rule would be met but answers are missing"
)


def policy_table(policy: Policy, checked: Sequence[Checked]) -> ReportTable:
    """A row for each rule and run, the rules that are not met first."""
    order: Sequence[State] = ("not met", "not decided", "met")
    rows = sorted(checked, key=lambda one: order.index(one.state))
    fields: list[Field[Checked]] = [
        (Column("text", "rule", "rule"), lambda one: one.rule.name),
        (Column("text", "run", "run"), lambda one: one.run),
        (Column("text", "must be", "required"), lambda one: one.required),
        (Column("value", "is\n95 %", "value"), lambda one: value_cell(one.value if one.value.n else None)),
        (Column("text", "state", "state"), lambda one: one.state),
        (Column("text", "why", "why"), lambda one: one.why),
    ]
    if any(one.p is not None for one in rows):
        fields.insert(4, (Column("p_value", "p", "p"), lambda one: PValue(one.p)))
    numbers = [f"{sum(one.state == state for one in rows):,} {state}" for state in order]
    legend = [_LEGEND, f"p: correction {policy.correction}, over the rules not-worse and better of all runs"]
    table = build_table(f"policy {policy.file}", fields, rows, [], legend)
    return replace(table, lead=f"{counted(len(rows), 'rule')}: {', '.join(numbers)}")


def policy_status(checked: Iterable[Checked]) -> int:
    """The exit status: 5 if a rule is not met, otherwise 1 if one is not decided."""
    states = {one.state for one in checked}
    return 5 if "not met" in states else 1 if "not decided" in states else 0
