"""Humans who labelled a part of the clusters correct the judge that read all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from tests.evaluation.conftest import Answers, Describe, OneWord

from sightline.evaluation.corrected import (
    CONTRADICTORY,
    EMPTY_STRATUM,
    MIXED_INCLUSION,
    LabelPlan,
    labels_needed,
    plan_labels,
)
from sightline.evaluation.judges import JudgePanel, RecordedJudge, RulesJudge
from sightline.evaluation.plan import CollectedAnswers, StoredProbe
from sightline.evaluation.result import aggregate
from sightline.metrics.paired import ACC_P
from sightline.metrics.statistics import LEAST_CLUSTERS, ratio_intervals
from sightline.reporting.table import Value
from sightline.reporting.tables import corrected_tables, summary
from sightline.types import CorrectedValue, Group, Metric, Result, Verdict

HUMANS = "human:votes.jsonl"


class Pairs(OneWord):
    """Both answers of a pair, and each answer."""

    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        """The share of pairs and of answers."""
        (accuracy,) = super().metrics(options)
        return [accuracy, ACC_P]


def answered(texts: Mapping[str, tuple[str | None, ...]]) -> CollectedAnswers:
    """A sample for each image, with these answers; the reference is 'yes'."""
    probes = [
        StoredProbe(image, f"v{number}", 0, f"{image}/{number}", f"image {image}", "?", {}, ("yes",))
        for image, own in texts.items()
        for number, _ in enumerate(own)
    ]
    answers = {f"{image}/{n}": text for image, own in texts.items() for n, text in enumerate(own)}
    return CollectedAnswers(probes=lambda: probes, answers=Answers(answers))


def label(image: str, number: int, right: bool, inclusion: float | None = None) -> Verdict:
    return Verdict(
        targets=(f"{image}/{number}",),
        question="correct",
        scorer="h",
        judge="ann",
        kind="human",
        verdict="right" if right else "wrong",
        inclusion=inclusion,
    )


def judged(describe: Describe, collected: CollectedAnswers, verdicts: Sequence[Verdict]) -> Result:
    judges = [RulesJudge(Pairs(), {}), RecordedJudge(HUMANS, list(verdicts))]
    panel = JudgePanel(benchmark=Pairs(), judges=judges)
    names = ("rules", HUMANS)
    return aggregate(describe(judges=names), collected, panel, collected.answers).result


def corrected(result: Result, metric: str) -> CorrectedValue:
    (found,) = [one for one in result.corrected if one.metric == metric]
    return found


def texts(images: int, seed: int = 3) -> dict[str, tuple[str | None, ...]]:
    random = np.random.default_rng(seed)
    return {
        f"i{number}": tuple("yes" if one else "no" for one in random.random(2) < 0.6)
        for number in range(images)
    }


def test_a_judge_whom_humans_confirm_counts_almost_wholly(describe: Describe) -> None:
    answers = texts(200)
    verdicts = [label(image, n, answers[image][n] == "yes") for image in list(answers)[:60] for n in (0, 1)]
    for name in ("acc", "acc_p"):
        found = corrected(judged(describe, answered(answers), verdicts), name)
        assert (found.labelled, found.judged.clusters, found.partly) == (60, 200, 0)
        assert found.bias.value == 0
        assert found.weight == pytest.approx(1, abs=0.2)
        assert found.narrowed is not None
        assert found.narrowed > 20
        assert found.corrected.value == pytest.approx(found.judged.value, abs=3)


def test_the_correction_removes_the_bias_of_the_judge(describe: Describe) -> None:
    """The rules call a fifth of the right answers wrong."""
    random, answers = np.random.default_rng(4), texts(2_000)
    truth = {
        (image, n): text == "yes" or bool(random.random() < 0.5)
        for image, own in answers.items()
        for n, text in enumerate(own)
    }
    share = 100 * float(np.mean(list(truth.values())))
    verdicts = [label(image, n, truth[image, n]) for image in list(answers)[:300] for n in (0, 1)]
    found = corrected(judged(describe, answered(answers), verdicts), "acc")
    assert None not in (found.corrected.low, found.corrected.high, found.judged.high, found.bias.high)
    assert found.judged.high < share  # type: ignore[operator]
    assert found.corrected.low < share < found.corrected.high  # type: ignore[operator]
    assert found.bias.high < 0  # type: ignore[operator]
    assert found.bias.unit == "points"
    # The corrected value follows from what the table shows, up to the differences of the 300 weights.
    assert found.sampled is not None
    human, of_all, sampled = (one.value for one in (found.human, found.judged, found.sampled))
    assert found.bias.value == pytest.approx(sampled - human)  # type: ignore[operator]
    assert found.weight is not None
    by_table = human + found.weight * (of_all - sampled)  # type: ignore[operator]
    assert found.corrected.value == pytest.approx(by_table, abs=0.05)


def test_the_humans_value_is_that_of_the_labelled_clusters_alone(describe: Describe) -> None:
    random, answers = np.random.default_rng(5), texts(100)
    marks = {(image, n): bool(random.random() < 0.5) for image in list(answers)[:30] for n in (0, 1)}
    result = judged(describe, answered(answers), [label(*where, right) for where, right in marks.items()])
    found = corrected(result, "acc")
    sums = np.array([[float(marks[image, 0] + marks[image, 1]) for image in list(answers)[:30]]])
    (interval,) = ratio_intervals(sums, np.full((1, 30), 2.0), [(0, 1)])
    assert not isinstance(interval, str)
    assert found.human.value == pytest.approx(100 * sums.sum() / 60)
    assert (found.human.low, found.human.high) == pytest.approx((100 * interval.low, 100 * interval.high))
    by_rules = [one for one in result.metrics if (one.metric, one.subset) == ("acc", "judge=rules")]
    assert by_rules == [replace(found.judged, subset="judge=rules")]


def test_a_cluster_with_some_labels_only_is_left_out_and_counted(describe: Describe) -> None:
    answers = texts(50)
    whole = [label(image, n, True) for image in list(answers)[:10] for n in (0, 1)]
    result = judged(describe, answered(answers), [*whole, label("i20", 0, False), label("i21", 1, False)])
    found = corrected(result, "acc_p")
    assert (found.labelled, found.partly, found.human.value) == (10, 2, 100)


@pytest.mark.parametrize("labelled", [0, 50])
def test_nothing_is_corrected_where_humans_labelled_no_cluster_or_all(
    describe: Describe, labelled: int
) -> None:
    answers = texts(50)
    verdicts = [label(image, n, True) for image in list(answers)[:labelled] for n in (0, 1)]
    assert judged(describe, answered(answers), verdicts).corrected == []


def test_four_labelled_clusters_give_a_value_without_an_interval(describe: Describe) -> None:
    answers = texts(50)
    verdicts = [label(image, n, n == 0) for image in list(answers)[:4] for n in (0, 1)]
    found = corrected(judged(describe, answered(answers), verdicts), "acc")
    assert found.corrected.value is not None
    assert found.corrected.low is None
    assert found.corrected.reason == "no confidence interval with fewer than 5 clusters"
    assert found.narrowed is None
    assert found.needed is None


@pytest.mark.slow
def test_clusters_of_a_stratified_sample_count_by_their_probability(describe: Describe) -> None:
    """Half of the images that the rules call wrong are labelled, a tenth of the others."""
    random = np.random.default_rng(6)
    answers = texts(3_000)
    truth = {(i, n): random.random() < (0.9 if text == "yes" else 0.4) for i, own in answers.items()
             for n, text in enumerate(own)}  # fmt: skip
    verdicts = []
    for image, own in answers.items():
        probability = 0.5 if "no" in own else 0.1
        if random.random() < probability:
            verdicts += [label(image, n, bool(truth[image, n]), probability) for n in (0, 1)]
    share = 100 * float(np.mean(list(truth.values())))
    found = corrected(judged(describe, answered(answers), verdicts), "acc")
    assert found.corrected.low < share < found.corrected.high  # type: ignore[operator]
    unweighted = [replace(one, inclusion=None) for one in verdicts]
    wrong = corrected(judged(describe, answered(answers), unweighted), "acc")
    assert not wrong.human.low < share < wrong.human.high  # type: ignore[operator]


def test_unclear_probabilities_give_no_value_but_the_reason(describe: Describe) -> None:
    answers = texts(20)
    some = [label(image, n, True, 0.5) for image in list(answers)[:8] for n in (0, 1)]
    mixed = [*some, *(label("i9", n, True) for n in (0, 1))]
    assert corrected(judged(describe, answered(answers), mixed), "acc").corrected.reason == MIXED_INCLUSION
    contradictory = [*some, label("i9", 0, True, 0.5), label("i9", 1, True, 0.2)]
    found = corrected(judged(describe, answered(answers), contradictory), "acc")
    assert found.corrected.reason == CONTRADICTORY
    assert (found.corrected.value, found.corrected.n) == (None, 0)


@pytest.mark.parametrize(("strata", "reason"), [(("easy",), EMPTY_STRATUM), (("easy", "hard"), None)])
def test_a_stratum_without_a_label_gives_no_value_but_the_reason(
    describe: Describe, strata: tuple[str, ...], reason: str | None
) -> None:
    verdicts = [
        replace(label(f"i{image}", n, True, 0.5), stratum=strata[image % len(strata)], strata=2)
        for image in range(8)
        for n in (0, 1)
    ]
    found = corrected(judged(describe, answered(texts(20)), verdicts), "acc").corrected
    assert found.reason == reason
    assert (found.value is None) == (reason is not None)


def test_a_report_shows_all_values_with_the_condition_of_the_correction(describe: Describe) -> None:
    answers = texts(200)
    verdicts = [label(image, n, answers[image][n] == "yes") for image in list(answers)[:60] for n in (0, 1)]
    result = judged(describe, answered(answers), [*verdicts, label("i99", 0, True)])
    (table,) = corrected_tables(result)
    assert [row[0] for row in table.rows] == ["acc", "acc_p"]
    found = corrected(result, "acc")
    shown = dict(zip([column.key for column in table.columns], table.rows[0], strict=True))
    assert [
        cell.value
        for name in ("judged", "human", "corrected", "bias")
        if isinstance(cell := shown[name], Value)
    ] == [
        found.judged.value,
        found.human.value,
        found.corrected.value,
        found.bias.value,
    ]
    assert (shown["labelled"], shown["clusters"]) == (60, 200)
    assert any("random sample" in note for note in table.all_notes)
    assert "1 cluster with some labels only: left out" in table.all_notes
    assert table in summary([result])
    (unsure,) = corrected_tables(replace(result, undecided=3))
    assert any("undecided" in note for note in unsure.all_notes)
    assert corrected_tables(replace(result, corrected=[])) == []


def test_failed_answers_need_no_human(describe: Describe) -> None:
    """A cluster whose calls all failed has nothing to label: it counts as known, with its own weight."""
    answers = texts(40)
    for image in list(answers)[20:30]:
        answers[image] = (None, None)
    verdicts = [label(image, n, answers[image][n] == "yes") for image in list(answers)[:20] for n in (0, 1)]
    found = corrected(judged(describe, answered(answers), verdicts), "acc")
    assert found.labelled == 20
    right = sum(text == "yes" for image in list(answers)[:20] for text in answers[image])
    # 30 clusters with answers are represented by 20; ten clusters are known to have no right answer.
    assert found.human.value == pytest.approx(100 * right * 1.5 / 80)


def judged_groups(describe: Describe, benchmark: OneWord, collected: CollectedAnswers) -> list[Group]:
    groups: list[Group] = []
    panel = JudgePanel(benchmark=benchmark, judges=[RulesJudge(benchmark, {})])
    aggregate(
        describe(judges=("rules",)),
        collected,
        panel,
        collected.answers,
        on_group=lambda one: groups.append(one.group),
    )
    return groups


def test_as_many_labels_as_planned_give_the_planned_half_width(describe: Describe) -> None:
    """1,000 images; the human differs from the rules on a tenth of the easy ones, half of the hard."""
    random, answers = np.random.default_rng(8), texts(1_000)
    easy = {image: number < 700 for number, image in enumerate(answers)}
    truth = {
        (image, n): (text == "yes") != bool(random.random() < (0.1 if easy[image] else 0.5))
        for image, own in answers.items()
        for n, text in enumerate(own)
    }
    strata = {
        name: [image for image in answers if easy[image] == (name == "easy")] for name in ("easy", "hard")
    }

    def labels(numbers: Mapping[str, int]) -> list[Verdict]:
        return [
            replace(label(image, n, truth[image, n], number / len(strata[name])), stratum=name)
            for name, number in numbers.items()
            for image in random.choice(strata[name], number, replace=False).tolist()
            for n in (0, 1)
        ]

    collected = answered(answers)
    groups = judged_groups(describe, Pairs(), collected)

    def plan(verdicts: Sequence[Verdict], half_width: float) -> LabelPlan:
        human, metrics = RecordedJudge(HUMANS, list(verdicts)), Pairs().metrics({})

        def stratum(group: Group) -> str:
            return "easy" if easy[group.id] else "hard"

        planned = plan_labels(groups, Pairs(), metrics, collected.answers, human, stratum, half_width)
        return next(one for one in planned if one.metric == "acc")

    before = plan([], 2.0)
    assert before.half_widths is None
    achieved = []
    for _ in range(4):
        planned = plan(labels({"easy": 70, "hard": 30}), 2.0)
        numbers = {of.name: of.these or 0 for of in planned.strata}
        # What the judge reads well needs fewer labels, and all need fewer than humans alone.
        assert planned.strata[0].name == "hard"
        assert numbers["hard"] / 300 > numbers["easy"] / 700
        assert sum(numbers.values()) < sum(of.these or 0 for of in before.strata)
        finite = corrected(judged(describe, answered(answers), labels(numbers)), "acc").finite
        assert finite is not None
        achieved.append((finite.high - finite.low) / 2)  # type: ignore[operator]
    assert np.mean(achieved) == pytest.approx(2, rel=0.1)
    # An interval for more images than these cannot be so narrow with 1,000 of them.
    assert [of.population for of in plan(labels({"easy": 70, "hard": 30}), 1.5).strata] == [None, None]


def test_without_labels_the_plan_is_the_textbook_sample_of_a_finite_population(describe: Describe) -> None:
    """Cochran (1977), section 4.4: n0 = z^2 p (1 - p) / d^2, n = n0 / (1 + n0 / N)."""
    answers = {f"i{number}": ("yes" if number % 4 else "no",) for number in range(2_000)}
    collected = answered(answers)
    groups = judged_groups(describe, OneWord(), collected)
    (planned,) = plan_labels(
        groups,
        OneWord(),
        OneWord().metrics({}),
        collected.answers,
        RecordedJudge(HUMANS, []),
        lambda _: "",
        3.0,
    )
    first = 1.96**2 * 0.25 * 0.75 / 0.03**2
    (of_all,) = planned.strata
    assert of_all.these == pytest.approx(first / (1 + first / 2_000), rel=0.01)
    assert of_all.population == pytest.approx(first, rel=0.01)


def test_a_plan_never_has_fewer_clusters_than_an_interval_needs() -> None:
    needed = labels_needed(np.array([21]), np.array([0]), np.array([0.0]), 0.0, 0.02)
    assert needed is not None
    assert needed.tolist() == [LEAST_CLUSTERS]
