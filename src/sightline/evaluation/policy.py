"""Rules of a policy file (TOML): what the values of runs, and their differences, must be."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from xml.etree import ElementTree

from msgspec import Meta, Struct
from msgspec.structs import replace

from sightline.benchmarks.base import FILE
from sightline.benchmarks.registry import benchmark_class, benchmark_names
from sightline.config import read_table, toml_key
from sightline.errors import UserError, did_you_mean, some_of, visible
from sightline.evaluation.compare import significance_of
from sightline.evaluation.options import split_condition
from sightline.formats.files import read_bytes, write_atomically
from sightline.metrics.significance import (
    ONLY_POINTS,
    Comparison,
    corrected_together,
    difference_interval,
)
from sightline.metrics.statistics import LEVEL, Interval
from sightline.reporting.table import (
    Column,
    Field,
    PValue,
    ReportTable,
    build_table,
    cell_text,
    p_value_text,
    value_cell,
)
from sightline.reporting.tables import markdown
from sightline.text import counted, decode_toml
from sightline.types import MetricDefinition, MetricValue, Result

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
    benchmark, has_setting, setting = task.partition(":")
    if benchmark not in known:
        raise UserError(
            f"unknown benchmark or key '{task}'{did_you_mean(task, known)}",
            file=file,
            expected=f"correction, or one of {', '.join(known)}",
        )
    settings = benchmark_class(benchmark).settings
    if has_setting and setting not in settings and FILE not in settings:
        raise UserError(
            f"unknown setting of {benchmark} '{setting}'{did_you_mean(setting, settings)}",
            file=file,
            expected=f"one of {', '.join(settings)}",
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
    if rule.min is not None and rule.max is not None and rule.min > rule.max:
        raise UserError(f"min {rule.min:g} is above max {rule.max:g}", file=file, record=placed.name)
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
            definition = result.metric_definitions.get(rule.metric)
            _refuse_bounds(policy, rule, definition)
            ends = value, _if_right(value, definition)
            decision = _settled([_within(one, rule.rule) for one in ends], result.unanswered)
            bounds = rule.rule.min, rule.rule.max
            required = " and ".join(
                f"{word} {bound:g}"
                for word, bound in zip(("at least", "at most"), bounds, strict=True)
                if bound is not None
            )
            checked.append(Checked(name, rule, required, value, None, *decision))
    return _some(checked, policy, {result.benchmark for result in results}, "min or max")


def _refuse_bounds(policy: Policy, rule: PlacedRule, definition: MetricDefinition | None) -> None:
    """Refuse a bound that no value of the metric can reach."""
    least, most = (None, None) if definition is None else definition.range
    for name in ("min", "max"):
        bound = getattr(rule.rule, name)
        if bound is None:
            continue
        if (least is not None and bound < least) or (most is not None and bound > most):
            limits = [
                f"{word} {limit:g}"
                for word, limit in (("at least", least), ("at most", most))
                if limit is not None
            ]
            raise UserError(
                f"is out of the range of {rule.metric}",
                file=policy.file,
                record=rule.name,
                field=name,
                found=bound,
                expected=f"a number {' and '.join(limits)}",
            )


def _if_right(value: MetricValue, definition: MetricDefinition | None) -> MetricValue:
    """The value with all undecided verdicts right. Its interval moves with it, within the range."""
    if value.value is None or value.changed_if_right is None or value.low is None or value.high is None:
        return value
    least, most = (None, None) if definition is None else definition.range
    low, high = (bound + value.changed_if_right - value.value for bound in (value.low, value.high))
    return replace(
        value,
        value=value.changed_if_right,
        low=low if least is None else max(low, least),
        high=high if most is None else min(high, most),
    )


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
    cases = [list(comparisons)]
    if any(comparison.undecided_ends for comparison in comparisons):
        cases += [[_at_end(comparison, end) for comparison in comparisons] for end in (0, 1)]
    decided = zip(*(_decided(case, placed, policy.correction) for case in cases), strict=True)
    checked = []
    for comparison, of in zip(comparisons, placed, strict=True):
        missing = sum(side.failed + side.not_sent + side.lacking_probes for side in comparison.sides)
        run = ", ".join(comparison.sides[1].runs)
        for rule, row in of:
            (decision, p), *ends = next(decided)
            settled = _settled([decision, *(end for end, _ in ends)], missing)
            margin = rule.rule.margin
            required = f"{rule.rule.test} within {margin:g} points" if margin else str(rule.rule.test)
            if rule.rule.test == "equivalent":
                required += " (90 % CI)"
                row = _at_90(row, comparison)
            checked.append(Checked(run, rule, required, row, p, *settled))
    return _some(checked, policy, {one.benchmark for one in comparisons}, "margin or test")


def _at_90(row: MetricValue, comparison: Comparison) -> MetricValue:
    """The difference with the interval that decides equivalence."""
    interval = _interval(row, comparison, 0.9)
    if isinstance(interval, str) or row.value is None:
        return row
    low, high, _ = interval.around(row.value, 100)
    return replace(row, low=low, high=high)


def _interval(row: MetricValue, comparison: Comparison, level: float) -> Interval | str:
    """The confidence interval of a difference of shares, from 0 to 1; a text says why there is none."""
    definition = comparison.definitions[row.metric]
    if row.value is None or row.low is None or row.high is None:
        return row.reason or "no confidence interval"
    if definition.unit == "number":
        return ONLY_POINTS
    return difference_interval(comparison.groups[row.metric][row.subset], definition, level)


def _at_end(comparison: Comparison, end: int) -> Comparison:
    """The comparison with the values that undecided verdicts give at one end."""
    if not comparison.undecided_ends:
        return comparison
    values = comparison.undecided_ends[end]
    groups = {name: {**of, **values.get(name, {})} for name, of in comparison.groups.items()}
    return replace(comparison, groups=groups)


def _decided(
    comparisons: Sequence[Comparison],
    placed: Sequence[Sequence[tuple[PlacedRule, MetricValue]]],
    correction: str,
) -> Iterator[tuple[Decision, float | None]]:
    """The decision of each rule, and its p-value, where undecided verdicts are not looked at."""
    tests = corrected_together(
        [
            significance_of(comparison, [row for rule, row in of if not rule.is_of_margin])
            for comparison, of in zip(comparisons, placed, strict=True)
        ]
    )
    for comparison, of, test in zip(comparisons, placed, tests, strict=True):
        for rule, row in of:
            if rule.is_of_margin:
                yield _of_margin(rule.rule, row, comparison), None
            else:
                p = getattr(test.get((row.metric, row.subset)), CORRECTIONS[correction], None)
                yield _of_test(rule.rule, row, comparison, p), p


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


def _sign(comparison: Comparison, metric: str) -> int:
    return -1 if comparison.definitions[metric].better == "lower" else 1


def _of_test(rule: Rule, row: MetricValue, comparison: Comparison, p: float | None) -> Decision:
    if p is None:
        return Decision("not decided", row.reason or "no p-value")
    if p <= LEVEL:
        values = comparison.groups[row.metric][row.subset]
        gain = _sign(comparison, row.metric) * (values.after - values.before).sum()
        return MET if gain > 0 else NOT_MET
    not_significant = Decision("not decided", "the difference is not significant")
    return MET if rule.test == "not-worse" else not_significant


def _of_margin(rule: Rule, row: MetricValue, comparison: Comparison) -> Decision:
    margin, is_equivalence = rule.margin or 0.0, rule.test == "equivalent"
    interval = _interval(row, comparison, 0.9 if is_equivalence else 0.95)
    if isinstance(interval, str):
        return Decision("not decided", interval)
    sign = _sign(comparison, row.metric)
    low, high = sorted((100 * sign * interval.low, 100 * sign * interval.high))
    most = margin if is_equivalence else math.inf
    if -margin < low and high < most:
        return MET
    if high < -margin or most < low:
        return NOT_MET
    return Decision("not decided", "the CI crosses the margin")


def _settled(decisions: Sequence[Decision], missing: int) -> Decision:
    """The first decision, unless undecided verdicts could turn it, or it is met and answers are missing.

    Args:
        decisions: The decision about the verdicts as they are, then those at the ends of what undecided
            verdicts allow.
        missing: The probes without an answer in groups that count.
    """
    decision, *ends = decisions
    if decision.state != "not decided" and any(end.state != decision.state for end in ends):
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


_VALUE = Column("value", "is\n95 %", "value")


def policy_table(policy: Policy, checked: Sequence[Checked]) -> ReportTable:
    """A row for each rule and run, the rules that are not met first."""
    order: Sequence[State] = ("not met", "not decided", "met")
    rows = sorted(checked, key=lambda one: order.index(one.state))
    of_90 = any(one.rule.rule.test == "equivalent" for one in rows)
    fields: list[Field[Checked]] = [
        (Column("text", "rule", "rule"), lambda one: one.rule.name),
        (Column("text", "run", "run"), lambda one: one.run),
        (Column("text", "must be", "required"), lambda one: one.required),
        (
            replace(_VALUE, head="is\nCI") if of_90 else _VALUE,
            lambda one: value_cell(one.value if one.value.n else None),
        ),
        (Column("text", "state", "state"), lambda one: one.state),
        (Column("text", "why", "why"), lambda one: one.why),
    ]
    if any(one.p is not None for one in rows):
        fields.insert(4, (Column("p_value", "p", "p"), lambda one: PValue(one.p)))
    numbers = [f"{sum(one.state == state for one in rows):,} {state}" for state in order]
    legend = [_LEGEND, f"p: correction {policy.correction}, over the rules not-worse and better of all runs"]
    if of_90:
        legend.append("CI: 90 % for the rules equivalent, 95 % for the others")
    table = build_table(f"policy {policy.file}", fields, rows, [], legend)
    return replace(table, lead=f"{counted(len(rows), 'rule')}: {', '.join(numbers)}")


def policy_status(checked: Iterable[Checked]) -> int:
    """The exit status: 5 if a rule is not met, otherwise 1 if one is not decided."""
    states = {one.state for one in checked}
    return 5 if "not met" in states else 1 if "not decided" in states else 0


# -- Files for CI

_JUNIT: Mapping[State, str] = {"not met": "failure", "not decided": "error"}
"""The elements of test cases that fail. Both fail a job, as the exit statuses 5 and 1 do."""


def write_policy(files: Iterable[Path], policy: Policy, checked: Sequence[Checked]) -> None:
    """Write the rules and what became of them: as JUnit XML into files of .xml, otherwise as Markdown."""
    for file in files:
        is_xml = file.suffix.lower() == ".xml"
        text = _junit(policy, checked) if is_xml else f"{markdown([policy_table(policy, checked)])}\n"
        write_atomically(file, [text.encode()])


def _junit(policy: Policy, checked: Sequence[Checked]) -> str:
    """A test case for each rule and run, in a suite for each benchmark or setting that the file names."""
    root = ElementTree.Element("testsuites", _counted(f"policy {policy.file}", checked))
    for task in dict.fromkeys(one.rule.task for one in checked):
        of_task = [one for one in checked if one.rule.task == task]
        suite = ElementTree.SubElement(root, "testsuite", _counted(task, of_task))
        for one in of_task:
            name = visible(f"{one.rule.name} {one.required}")
            case = ElementTree.SubElement(suite, "testcase", classname=visible(one.run), name=name)
            said = f"is {cell_text(value_cell(one.value), _VALUE)}, must be {one.required}"
            said += "" if one.p is None else f"; p {p_value_text(one.p)}"
            message = visible(f"{said}; {one.why}" if one.why else said)
            if one.state in _JUNIT:
                ElementTree.SubElement(case, _JUNIT[one.state], type=one.state, message=message)
            else:
                ElementTree.SubElement(case, "system-out").text = message
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _counted(name: str, checked: Sequence[Checked]) -> dict[str, str]:
    failed = {f"{kind}s": sum(one.state == state for one in checked) for state, kind in _JUNIT.items()}
    return {"name": visible(name), "tests": str(len(checked)), **{key: str(n) for key, n in failed.items()}}
