"""The report: one page without a request, valid for a parser, with the declared sections and the groups."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.reporting.conftest import Make
from tests.viewer.report.conftest import parse_errors
from tests.viewer.report.groups import detail, outcome, shown

from sightline.benchmarks.base import (
    Against,
    ByJudge,
    ByLabel,
    ByOwnLabels,
    Differences,
    PairCounts,
    ReportSection,
    Shares,
    Together,
    defaults,
)
from sightline.benchmarks.registry import benchmark_class, benchmark_names
from sightline.metrics.agreement import WITH_HUMANS
from sightline.metrics.flips import ChangeCounts
from sightline.metrics.significance import Significance
from sightline.types import MetricDefinition, MetricValue
from sightline.viewer.comparison_view import ChangeList, changed_group_view, comparison_view
from sightline.viewer.environment import number
from sightline.viewer.group_view import group_view
from sightline.viewer.html_report import GroupList, PartContent, report_page
from sightline.viewer.index_types import ChangedGroup, ComparedMetric, GroupFilter, RunComparison
from sightline.viewer.plots import PERCENT_SCALE, NamedResult
from sightline.viewer.sections import Bars, DifferencesSection, Forest, ScatterSection, section_views, stats

PAIR = detail(
    [
        outcome("context_1", "East", "wrong", context="Early.", references=("West.",)),
        outcome("context_2", "East", "right", context="Late.", references=("East.",)),
    ],
    [["a.jpg"], ["a.jpg"]],
)


def page_of(*parts: PartContent) -> str:
    return report_page(parts, "1 January 2026")


def part(make: Make, *models: str) -> PartContent:
    runs = tuple(NamedResult(model, make(model=model)) for model in models)
    groups = GroupList("Most informative groups", "1 of 353 groups", (group_view(PAIR, shown),))
    return PartContent(runs, (groups,))


def test_a_report_is_valid_html_without_a_request(codis: Make, iibench: Make, mmr3: Make) -> None:
    page = page_of(part(codis, "mini", "other"), part(iibench, "mini"), part(mmr3, "mini"))
    assert parse_errors(page) == []
    assert "<script" not in page
    addresses = set(re.findall(r'(?:src|href)="([^"]+)', page))
    assert all(address.startswith("data:") or f'id="{address[1:]}"' in page for address in addresses)
    assert {"#contents", "#part-1", "#groups-1-1", "#notes-3"} <= addresses
    assert "style=" not in page
    assert "default-src &#39;none&#39;" in page


def test_a_report_of_several_benchmarks_opens_the_first_one_and_folds_the_others(
    codis: Make, iibench: Make
) -> None:
    page = page_of(part(codis, "mini"), part(iibench, "mini"))
    assert re.findall(r'<details class="fold part"( open)?>', page) == [" open", ""]
    assert '<details class="fold" open>' not in page
    assert "fold part" not in page_of(part(codis, "mini"))
    assert '<details class="fold" open>' in page_of(part(codis, "mini"))


def test_a_report_shows_the_first_groups_and_folds_the_others(codis: Make) -> None:
    one = part(codis, "mini")
    view = group_view(PAIR, shown)
    groups = GroupList("Most informative groups", "7 of 353 groups", (view,) * 7)
    before, _, after = page_of(replace(one, groups=(groups,))).partition("<summary>4 more groups</summary>")
    assert (before.count("<article"), after.count("<article")) == (3, 4)


def test_one_run_has_its_value_in_the_title(codis: Make) -> None:
    page = page_of(part(codis, "mini"))
    assert re.search(r"<h1>mini on CODIS: acc_p [\d.]+\xa0%</h1>", page)


def test_ids_of_a_page_are_unique(codis: Make) -> None:
    ids = re.findall(r'\bid="([^"]+)"', page_of(part(codis, "mini"), part(codis, "other")))
    assert len(set(ids)) == len(ids)


def counted_by(**shares: int) -> Callable[[GroupFilter], int]:
    """As many groups of each share of right answers in every category."""
    return lambda wanted: shares.get(str(wanted.right), 0)


def test_codis_counts_pairs_by_right_answers(codis: Make) -> None:
    run = NamedResult("mini", codis(), counted_by(all=6, some=3, none=1, unscored=4))
    (pairs,) = (view for view in section_views([run]) if isinstance(view, Bars) and view.unit == "pairs")
    assert pairs.parts == ("both right", "one right", "none right")
    assert pairs.notes == ()
    assert len(pairs.rows) == 6
    for row in pairs.rows:
        assert [count for _, count, _ in row.parts] == [6, 3, 1]
        assert row.n == 10
        assert sum(share for _, _, share in row.parts) == pytest.approx(100)


def test_an_undecided_pair_is_counted_as_such_and_not_as_none_right(codis: Make) -> None:
    runs = [
        NamedResult("mini", codis(), counted_by(all=8, none=2)),
        NamedResult("chance", codis(), counted_by(some=1, none=2, undecided=7)),
    ]
    (pairs,) = (view for view in section_views(runs) if isinstance(view, Bars) and view.unit == "pairs")
    assert pairs.parts[-1] == "undecided"
    assert [count for _, count, _ in pairs.rows[0].parts] == [8, 0, 2, 0]
    assert [count for _, count, _ in pairs.rows[1].parts] == [0, 1, 2, 7]
    (note,) = pairs.notes
    assert note.startswith("undecided: pairs in which")


def test_iibench_has_a_radar_of_domains_and_mmr3_consistency_against_accuracy(
    iibench: Make, mmr3: Make
) -> None:
    domains = next(
        view
        for view in section_views([NamedResult("m", iibench())])
        if isinstance(view, Forest) and view.chart
    )
    assert domains.title == "accuracy by domain"
    assert domains.chart is not None
    shown = [f"{row.name} {number(row.value.value)}" for row in domains.rows if row.name != "All"]
    assert domains.chart.label == f"m: {', '.join(shown)}"
    found = [view for view in section_views([NamedResult("m", mmr3())]) if isinstance(view, ScatterSection)]
    assert [view.names for view in found] == [("acc", "con")]


def test_two_runs_share_the_sections(codis: Make) -> None:
    runs = [NamedResult("a", codis(model="a")), NamedResult("b", codis(model="b"))]
    forest = next(view for view in section_views(runs) if isinstance(view, Forest))
    assert forest.several_runs
    assert [row.run for row in forest.rows[:4]] == ["a", "b", "a", "b"]


@pytest.mark.parametrize("name", benchmark_names())
def test_declared_sections_name_metrics_of_their_benchmark(name: str) -> None:
    benchmark = benchmark_class(name)()
    known = {
        metric.name
        for setting in benchmark.settings.values()
        for metric in benchmark.metrics({"seed": 0, **defaults(benchmark, setting)})
    }
    for section in benchmark.report_sections:
        assert _metrics_of(section) <= {*known, *(f"{metric}_by_response" for metric in known)}


def _metrics_of(section: ReportSection | ByOwnLabels) -> set[str]:
    match section:
        case PairCounts():
            return {section.both, section.differ}
        case Shares():
            return {metric for metric, _ in section.parts}
        case Against():
            return {section.x, section.y}
        case Together() | ByOwnLabels():
            return set(section.metrics)
        case Differences():
            return {name for pair in section.metrics for name in pair}
        case ByLabel() | ByJudge():
            return {section.metric}


def test_sampling_stands_beside_all_where_the_run_measures_the_difference(mmr3: Make) -> None:
    result = mmr3()
    others = [one for one in result.metrics if not one.metric.endswith("_minus_sampling")]
    difference = MetricValue("con_minus_sampling", "all", -12.5, 40, 40, -15.0, -10.0, unit="points")
    absent = MetricValue("acc_minus_sampling", "all", None, 0, 0, unit="points", reason="needs 'unchanged'")
    for measured, rows in (([difference, absent], [("con", 63.75)]), ([absent], [])):
        run = NamedResult("mini", replace(result, metrics=[*others, *measured]))
        (view,) = (one for one in section_views([run]) if isinstance(one, DifferencesSection))
        assert [(row.name, row.there) for row in view.rows] == rows
        assert any("needs 'unchanged'" in note for note in view.notes)
        page = page_of(PartContent((run,)))
        assert parse_errors(page) == []
        assert ("All − Sampling" in page) == bool(rows)
    run = NamedResult("mini", replace(result, metrics=others))
    assert not any(isinstance(one, DifferencesSection) for one in section_views([run]))


def test_a_result_without_any_value_still_has_a_report(codis: Make) -> None:
    empty = codis()
    nothing = [replace(m, value=None, n=0, low=None, high=None, reason="no answers") for m in empty.metrics]
    page = report_page([PartContent((NamedResult("mini", replace(empty, metrics=nothing)),))], "today")
    assert parse_errors(page) == []
    assert "no answers" in page


def test_hostile_names_in_a_result_stay_texts(codis: Make) -> None:
    bad = '<script>alert(1)</script>"{{ 7*7 }}\u202e'
    result = codis(model=bad, judge=bad, notes=[bad], options={bad: bad}, model_identity=bad)
    labelled = [replace(m, subset=f"category={bad}{n}") for n, m in enumerate(result.metrics[:9])]
    page = page_of(PartContent((NamedResult(bad, replace(result, metrics=[*result.metrics, *labelled])),)))
    assert parse_errors(page) == []
    assert "<script" not in page
    assert "\u202e" not in page


TEST = Significance(p=0.095, t=None, mcnemar=None, detectable=7.5, holm=0.19)


def test_a_comparison_shows_changes_differences_and_both_responses(codis: Make) -> None:
    base, other = codis(), codis()
    counts = ChangeCounts("groups", 353, 96, 52, 39, 166, 0, 0, 10, 353)
    metrics = [
        ComparedMetric(one, two, replace(one, value=3.7, low=-1.8, high=9.1, unit="points"), "higher", TEST)
        for one, two in zip(base.metrics, other.metrics, strict=True)
        if one.metric == "acc_p"
    ]
    changed = ChangedGroup("lost", PAIR, PAIR)
    lists = [ChangeList("Lost in B", 39, (changed_group_view(changed, shown),))]
    comparison = RunComparison(
        1, 2, ["acc_p"], [counts], {}, metrics, [("category=Attributes", counts)], 353, ["judged by rules"]
    )
    view = comparison_view(comparison, ("mini", "other"), lists)
    page = page_of(PartContent((NamedResult("mini", base),), comparisons=(view,)))
    assert parse_errors(page) == []
    assert view.share("lost") == pytest.approx(11.05, abs=0.01)
    assert [table.title for table in view.by_label] == ["acc_p by category, B minus A"]
    sentence = "No difference of acc_p is shown between mini and other; 353 groups detect 7.5 points with a "
    sentence += "power of 80 %."
    assert re.findall(r'<p class="lede">([^<]*)', page)[0] == sentence
    for text in ("lost in B", "+3.7", "[−1.8, +9.1]", "0.190", "Lost in B", "Early."):
        assert text in page


def test_a_comparison_puts_the_answers_to_one_question_side_by_side() -> None:
    """A run may lack a question of a group, or hold the questions in another order."""
    before = [outcome(name, f"{name} before", question=f"{name}?") for name in ("a", "b", "c")]
    after = [outcome(name, f"{name} after", question=f"{name}?") for name in ("c", "a")]
    view = changed_group_view(ChangedGroup("lost", detail(before), detail(after)), shown)
    texts = [["".join(one.text for one in side.pieces) for side in (p.base, p.other)] for p in view.pairs]
    assert texts == [["a before", "a after"], ["c before", "c after"]]
    assert [pair.label for pair in view.pairs] == ["a?", "c?"]


def test_a_comparison_shows_what_undecided_verdicts_could_change(codis: Make) -> None:
    base = codis()
    counts = ChangeCounts("groups", 353, 0, 13, 7, 333, 115, 0, 10, 353)
    value = next(one for one in base.metrics if (one.metric, one.subset) == ("acc_p", "all"))
    change = replace(value, value=1.7, low=-0.8, high=4.4, unit="points")

    def page(if_decided: tuple[float, float] | None) -> str:
        metrics = [ComparedMetric(value, value, change, "higher", TEST, if_decided)]
        comparison = RunComparison(1, 2, ["acc_p"], [counts], {}, metrics, [], 353)
        view = comparison_view(comparison, ("mini", "other"))
        return page_of(PartContent((NamedResult("mini", base),), comparisons=(view,)))

    assert "−11.3 to +1.7" in page((-11.3, 1.7))
    assert "115 groups with an undecided verdict" in page((-11.3, 1.7))
    for unchanged in (None, (1.7, 1.7)):
        assert "if decided" not in page(unchanged)


def test_the_first_lines_of_a_report_say_what_undecided_verdicts_could_change(codis: Make) -> None:
    result = codis()
    metrics = [replace(one, value=2.0, value_if_right=15.0) for one in result.metrics]
    undecided = page_of(PartContent((NamedResult("mini", replace(result, metrics=metrics)),)))
    head, _, rest = undecided.partition('<div class="stats">')
    assert "(15.0 if all undecided verdicts were right)" in head
    # No point, whose interval sampling alone would make: the range that undecided verdicts leave.
    assert "2.0 to 15.0" in rest.partition("</section>")[0]
    decided = [replace(one, value_if_right=one.value) for one in result.metrics]
    page = page_of(PartContent((NamedResult("mini", replace(result, metrics=decided)),)))
    assert "if all undecided verdicts were right" not in page


def test_judges_stand_beside_each_other_with_their_agreement(codis: Make) -> None:
    result = codis()
    accepted = [
        MetricValue("accepted", "all", 50.0, 10, 10),
        MetricValue("accepted", "judge=rules", 40.0, 10, 10),
        MetricValue("accepted", "judge=gpt", 60.0, 10, 10),
        MetricValue(WITH_HUMANS, "judge=gpt", 90.0, 10, 10),
    ]
    contextual = replace(result, benchmark="contextual", setting="default", metrics=accepted)
    views = section_views([NamedResult("mini", contextual)])
    assert [(view.title, len(view.rows), view.notes) for view in views if isinstance(view, Forest)] == [
        ("accepted by judge", 2, (f"mini: {WITH_HUMANS} gpt: 90.0 (n 10)",))
    ]


def test_leading_metrics_of_one_unit_have_one_scale_with_numbers(mmr3: Make) -> None:
    result = mmr3()
    found = stats(NamedResult("mini", result))
    assert len(found) > 1
    assert {one.plot.scale for one in found} == {PERCENT_SCALE}
    page = page_of(PartContent((NamedResult("mini", result),)))
    cards = page.partition('<div class="stats">')[2].partition("</div></section>")[0]
    assert cards.count('text-anchor="middle">100</text>') == len(found)
    cosine = {"s_gt": MetricDefinition("similarity", "higher", (-100.0, 100.0))}
    signed = replace(result, metric_definitions={**result.metric_definitions, **cosine})
    assert {one.plot.scale.low for one in stats(NamedResult("mini", signed))} == {0.0}
    negative = [replace(one, low=-3.0) if one.metric == "s_gt" else one for one in result.metrics]
    below = stats(NamedResult("mini", replace(signed, metrics=negative)))
    assert {one.plot.scale.low for one in below} == {-100.0}
