"""Rules of a policy file: met, not met or not decided."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from typing import Any

import junitparser
import numpy as np
import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests
from tests.evaluation.test_compare import OPTIONS, outcome
from tests.evaluation.test_fail_if import result

from sightline.errors import UserError
from sightline.evaluation.compare import compare
from sightline.evaluation.folder import JudgedRun
from sightline.evaluation.policy import (
    check_differences,
    check_values,
    policy_status,
    policy_table,
    read_policy,
    write_policy,
)
from sightline.metrics.significance import Comparison
from sightline.reporting.table import show
from sightline.types import PERCENT, Group, MetricDefinition, MetricValue

VALUES = [
    MetricValue("acc_p", "all", 70.0, 40, 30, 55.5, 82.5, "wilson"),
    MetricValue("acc_p", "category=Attributes", 20.0, 5, 1, reason="no confidence interval"),
    MetricValue("acc_q", "all", 70.0, 40, 30, 55.5, 82.5, "wilson", value_if_right=75.0),
]


def _policy(folder: Path, text: str) -> Any:
    file = folder / "policy.toml"
    file.write_text(text)
    return read_policy(file)


@pytest.mark.parametrize(
    ("metric", "bounds", "state"),
    [
        ("acc_p", "min = 55.5", "met"),
        ("acc_p", "min = 55.6", "not decided"),
        ("acc_p", "min = 82.5", "not decided"),
        ("acc_p", "min = 82.6", "not met"),
        ("acc_p", "max = 82.5", "met"),
        ("acc_p", "max = 82.4", "not decided"),
        ("acc_p", "max = 55.4", "not met"),
        ("acc_p", "min = 50\nmax = 90", "met"),
        ("acc_p", "min = 10\nmax = 55", "not met"),
        ('"acc_p[category=Attributes]"', "min = 1", "not decided"),
        ("acc_q", "min = 50", "met"),
        # With all undecided verdicts right, the value is 75, and the interval ends near 87.5.
        ("acc_q", "max = 85", "not decided"),
        ("acc_q", "max = 87.5", "met"),
    ],
)
def test_a_value_is_decided_by_its_whole_interval(
    tmp_path: Path, metric: str, bounds: str, state: str
) -> None:
    policy = _policy(tmp_path, f"[codis.{metric}]\n{bounds}\n")
    (checked,) = check_values(policy, [result(*VALUES)], ["a"])
    assert checked.state == state
    assert policy_status([checked]) == {"met": 0, "not decided": 1, "not met": 5}[state]
    (incomplete,) = check_values(policy, [result(*VALUES, not_sent=1)], ["a"])
    assert incomplete.state == ("not decided" if state == "met" else state)


def test_a_rule_about_a_value_that_is_missing_is_shown_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = _policy(tmp_path, "[codis.acc_p]\nmin = 3\n")
    missing = MetricValue("acc_p", "all", None, 0, 0, reason="nothing was answered")
    show([policy_table(policy, check_values(policy, [result(missing)], ["a"]))], is_brief=True)
    shown = " ".join(capsys.readouterr().out.split())
    assert "[codis.acc_p] a at least 3 not decided nothing was answered" in shown


def test_other_tools_read_the_states_of_the_rules_from_junit_xml_and_markdown(tmp_path: Path) -> None:
    subset = '[codis."acc_p[category=Attributes]"]'
    policy = _policy(
        tmp_path, f"[codis.acc_p]\nmin = 50\n{subset}\nmin = 1\n['codis:default'.acc_q]\nmin = 99\n"
    )
    files = [tmp_path / "policy.xml", tmp_path / "summary.md"]
    name = 'a <b> & "c" | \x1b[2J\ud800'
    checked = check_values(policy, [result(*VALUES)], [name])
    write_policy(files, policy, checked)
    suites = junitparser.JUnitXml.fromfile(str(files[0]))
    assert (suites.tests, suites.failures, suites.errors) == (3, 1, 1)
    assert {suite.name: (suite.tests, suite.failures, suite.errors) for suite in suites} == {
        "codis": (2, 0, 1),
        "codis:default": (1, 1, 0),
    }
    cases = {case.name: case for suite in suites for case in suite}
    assert {case.classname for case in cases.values()} == {'a <b> & "c" | \\x1b[2J\\ud800'}
    met = cases["[codis.acc_p] at least 50"]
    assert (met.is_passed, met.system_out) == (True, "is 70.0 [55.5, 82.5], must be at least 50")
    (open_rule,) = cases[f"{subset} at least 1"].result
    assert (type(open_rule), open_rule.message) == (
        junitparser.Error,
        "is 20.0, must be at least 1; no confidence interval",
    )
    (failure,) = cases['["codis:default".acc_q] at least 99'].result
    assert type(failure) is junitparser.Failure
    tokens = MarkdownIt("commonmark").enable("table").parse(files[1].read_text())
    cells = [after.content for token, after in pairwise(tokens) if token.type == "td_open"]
    assert [cells[nth] for nth in range(4, len(cells), 6)] == ["not met", "not decided", "met"]


@pytest.mark.parametrize(("number", "state"), [(90.0, "not decided"), (76.0, "not met")])
def test_undecided_verdicts_that_could_turn_a_rule_leave_it_open(
    tmp_path: Path, number: float, state: str
) -> None:
    policy = _policy(tmp_path, "[codis.acc_q]\nmin = 89.5\n")
    value = replace(VALUES[2], value_if_right=number)
    (checked,) = check_values(policy, [result(value)], ["a"])
    assert checked.state == state


def test_an_interval_that_moves_stays_within_the_range_of_its_metric(tmp_path: Path) -> None:
    policy = _policy(tmp_path, "[codis.acc_q]\nmax = 100\n")
    definition = MetricDefinition("", "higher", PERCENT)
    described = replace(
        result(replace(VALUES[2], value_if_right=95.0)), metric_definitions={"acc_q": definition}
    )
    (checked,) = check_values(policy, [described], ["a"])
    assert checked.state == "met"


def _compared(make_result: Any, *sides: str) -> Comparison:
    """Two runs of one answer a group, with the verdicts of `outcome`."""
    runs = []
    for number, marks in enumerate(sides):
        groups = {
            (f"g{place}", 0, ""): Group(f"g{place}", 0, f"g{place}", (outcome(f"g{place}", "v", mark),))
            for place, mark in enumerate(marks)
        }
        runs.append(JudgedRun(name=f"run {number}", result=make_result(options=OPTIONS), groups=groups))
    return compare([(runs[0], runs[1])])


@pytest.mark.parametrize(
    ("base", "other", "states"),
    [
        # Undecided verdicts make the difference significant, or take that from it; `!` is another answer.
        ("1?????", "000000", "not decided, not decided, not decided, not decided"),
        ("111111", "0?????", "not decided, not decided, not decided, not decided"),
        ("??", "!!", "met, not decided, not decided, not decided"),
        ("11111111", "0000000?", "not met, not met, not decided, not decided"),
        ("00000000", "1111111?", "met, met, met, not decided"),
        ("1" * 12, "1" * 10 + "??", "met, not decided, met, met"),
    ],
)
def test_a_rule_is_decided_if_every_way_to_decide_the_verdicts_decides_it_alike(
    tmp_path: Path, make_result: Any, base: str, other: str, states: str
) -> None:
    tests = ['test = "not-worse"', 'test = "better"', "margin = 55", 'margin = 55\ntest = "equivalent"']
    ways = [
        _compared(make_result, "".join(found[: len(base)]), "".join(found[len(base) :]))
        for found in product(*("01" if mark in "?!" else mark for mark in (*base, *other)))
    ]
    open_verdicts = _compared(make_result, base, other)
    for test, state in zip(tests, states.split(", "), strict=True):
        policy = _policy(tmp_path, f"[groups.acc]\n{test}\n")
        (checked,) = check_differences(policy, [open_verdicts])
        decided = {check_differences(policy, [way])[0].state for way in ways}
        assert checked.state == (decided.pop() if len(decided) == 1 else "not decided")
        assert checked.state == state


def test_a_row_of_equivalence_shows_the_interval_that_decides_it(tmp_path: Path, make_result: Any) -> None:
    """An end of the 90 % interval that is shown is where the rule turns; that of 95 % is beyond it."""
    comparison = _compared(make_result, "1" * 40, "1" * 38 + "00")
    (row,) = comparison.differences[:1]

    def check(margin: float) -> Any:
        policy = _policy(tmp_path, f"[groups.acc]\nmargin = {margin!r}\ntest = 'equivalent'\n")
        return policy, check_differences(policy, [comparison])

    _, (wide,) = check(50.0)
    end = -wide.value.low
    assert row.low < wide.value.low < wide.value.value < wide.value.high < row.high
    assert [check(end + step)[1][0].state for step in (0.01, -0.01)] == ["met", "not decided"]
    policy, checked = check(end + 0.01)
    files = [tmp_path / "policy.xml", tmp_path / "summary.md"]
    write_policy(files, policy, checked)
    for file in files:
        assert "(90 % CI)" in file.read_text()
        assert f"[-{end:.1f}, " in file.read_text().replace("\u2212", "-")
    assert "is\nCI" in [column.head for column in policy_table(policy, checked).columns]


@pytest.mark.parametrize(
    ("bounds", "refused"), [("min = 130", "min"), ("max = -1", "max"), ("min = 0\nmax = 100", "")]
)
def test_a_bound_out_of_the_range_of_its_metric_is_refused(tmp_path: Path, bounds: str, refused: str) -> None:
    policy = _policy(tmp_path, f"[codis.acc_p]\n{bounds}\n")
    described = replace(
        result(*VALUES), metric_definitions={"acc_p": MetricDefinition("", "higher", PERCENT)}
    )
    if not refused:
        (checked,) = check_values(policy, [described], ["a"])
        assert checked.state == "met"
        return
    with pytest.raises(UserError) as error:
        check_values(policy, [described], ["a"])
    named = f"policy.toml, record [codis.acc_p], field {refused}: is out of the range of acc_p (found "
    assert named in str(error.value)
    assert "expected a number at least 0 and at most 100" in str(error.value)


@pytest.mark.parametrize("correction", ["holm", "benjamini-hochberg", "none"])
def test_tests_of_all_rules_are_corrected_as_by_statsmodels(
    tmp_path: Path, make_result: Any, correction: str
) -> None:
    """One answer a group: each test is an exact binomial test of the groups that changed."""
    generator = np.random.default_rng(3)
    styles = {f"s{number}": share for number, share in enumerate((0.5, 0.62, 0.68, 0.72, 0.8, 0.3))}
    marks = {
        style: [("01" if up else "10") for up in generator.random(40) < share]
        for style, share in styles.items()
    }
    runs = []
    for side in (0, 1):
        groups = {}
        for style, of_style in marks.items():
            for number, mark in enumerate(of_style):
                name = f"{style} {number}"
                one = replace(outcome(name, "v", mark[side]), labels={"style": style})
                groups[name, 0, ""] = Group(name, 0, name, (one,))
        runs.append(JudgedRun(name=f"run {side}", result=make_result(options=OPTIONS), groups=groups))
    rules = "".join(f'[groups."acc[style={style}]"]\ntest = "better"\n' for style in styles)
    policy = _policy(tmp_path, f'correction = "{correction}"\n{rules}')
    checked = check_differences(policy, [compare([(runs[0], runs[1])])])
    gains = [of_style.count("01") for of_style in marks.values()]
    exact = [binomtest(gained, 40).pvalue for gained in gains]
    method = {"holm": "holm", "benjamini-hochberg": "fdr_bh"}.get(correction)
    expected = multipletests(exact, method=method)[1] if method else exact
    assert [one.p for one in checked] == pytest.approx(list(expected))
    states = [
        "not decided" if p > 0.05 else "met" if gained > 20 else "not met"
        for p, gained in zip(expected, gains, strict=True)
    ]
    assert [one.state for one in checked] == states
    assert len(set(states)) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[codis.acc_x]\nmin = 3\n", "record [codis.acc_x]: unknown metric 'acc_x', did you mean 'acc_"),
        (
            '[codis."acc_p[category=X]"]\nmin = 3\n',
            "unknown subset of acc_p 'category=X', did you mean 'category=Attributes'?; expected one of all,",
        ),
        (
            "[codis.acc_p]\nmni = 3\n",
            "unknown field 'mni', did you mean 'min'?; expected one of min, max, margin",
        ),
        ("[codis.acc_p]\nmin = '3'\n", "record [codis.acc_p], field min: Expected `float | null`, got `str`"),
        ("[codis.acc_p]\n", "record [codis.acc_p]: demands nothing"),
        ("[codis.acc_p]\ntest = 'equivalent'\n", 'test = "equivalent" needs margin'),
        ("[codis.acc_p]\ntest = 'better'\nmargin = 2\n", 'test = "better" has no margin'),
        (
            "[codis.acc_p]\ntest = 'best'\n",
            "Invalid enum value 'best'; expected one of not-worse, better, non-inferior, equivalent",
        ),
        ("[codix.acc_p]\nmin = 3\n", "unknown benchmark or key 'codix', did you mean 'codis'?"),
        (
            "[codis]\nmin = 3\n",
            "record [codis.min]: Expected `object`, got `int`; expected a table with min,",
        ),
        (
            "correction = 'bonferroni'\n",
            "field correction: is no correction (found 'bonferroni'); expected one of",
        ),
        ("correction = ['holm']\n", "field correction: is no correction (found ['holm'])"),
        (
            '["codis:no-cott".acc_p]\nmin = 3\n',
            "unknown setting of codis 'no-cott', did you mean 'no-cot",
        ),
        ("[codis.acc_p]\nmin = 90\nmax = 10\n", "record [codis.acc_p]: min 90 is above max 10"),
        ("[codis.acc_p]\nmin = nan\n", "record [codis.acc_p], field min: is not finite; expected a number"),
        ("correction = 'holm'\n", "has no rule"),
        ("[iibench.accuracy]\nmin = 3\n", "no rule with min or max is about these runs"),
        ("[codis.acc_p]\nmargin = 3\n", "no rule with min or max is about these runs"),
    ],
)
def test_a_file_with_an_unknown_name_is_refused_with_the_known_ones(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(UserError) as refused:
        check_values(_policy(tmp_path, text), [result(*VALUES)], ["a"])
    assert message in str(refused.value)
    assert "policy.toml" in str(refused.value)
