"""The values of humans follow from what they labelled: all of it, a part, or another question."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from tests.evaluation.conftest import Answers, Describe

from sightline.benchmarks.base import defaults
from sightline.benchmarks.codis.benchmark import Codis
from sightline.evaluation.folder import ResultsFolder, read_judged_run
from sightline.evaluation.judges import RecordedJudge, RulesJudge, make_panel
from sightline.evaluation.plan import CollectedAnswers, StoredProbe
from sightline.evaluation.result import NOTHING_LABELLED, aggregate
from sightline.evaluation.spec import Decide
from sightline.metrics.tally import tally
from sightline.types import MetricValue, Result, Verdict

HUMANS = "human:votes.jsonl"
PAIRS = [f"p{number}" for number in range(90)]
WORDS = ("left", "right", "both", "neither")


def image(pair: str) -> str:
    """Three pairs of five share their image with another one."""
    return f"image {int(pair[1:]) * 3 // 5}"


class Run:
    """Pairs with their answers without context: a third of the compared answers are equal in their answer
    part (some with other reasoning), and humans say of the others at random whether they mean the same."""

    def __init__(self, failing: Collection[str] = ()) -> None:
        random = np.random.default_rng(8)
        self.texts: dict[str, str | None] = {}
        for pair in PAIRS:
            for key in (f"{pair}/1", f"{pair}/2", f"{pair}/1-", f"{pair}/2-"):
                word, reason = random.choice(WORDS), random.choice(["It is seen.", "It is shown."])
                self.texts[key] = None if pair in failing else f"{reason}\n{word}"
        self.same = {
            (one, other): self.word(one) == self.word(other) or bool(random.random() < 0.2)
            for pair in PAIRS
            for one, other in self.compared(pair) + self.without(pair)
        }
        self.right = {f"{pair}/{n}": bool(random.random() < 0.7) for pair in PAIRS for n in (1, 2)}

    @staticmethod
    def compared(pair: str) -> list[tuple[str, str]]:
        return [(f"{pair}/1", f"{pair}/2")]

    @staticmethod
    def without(pair: str) -> list[tuple[str, str]]:
        return [(f"{pair}/{n}", f"{pair}/{n}-") for n in (1, 2)]

    def word(self, key: str) -> str:
        return (self.texts[key] or "").rpartition("\n")[2]

    def collected(self, partner: bool = True) -> CollectedAnswers:
        def probe(pair: str, key: str, partners: Mapping[str, tuple[StoredProbe, ...]]) -> StoredProbe:
            return StoredProbe(
                pair, f"context_{key[-1]}", 0, key, image(pair), "Which?", {}, ("left",), partners=partners
            )

        def probes() -> Sequence[StoredProbe]:
            return [
                probe(
                    pair,
                    f"{pair}/{n}",
                    {"no-context": tuple(probe(pair, f"{pair}/{m}-", {}) for m in (1, 2))}
                    if partner and n == 1
                    else {},
                )
                for pair in PAIRS
                for n in (1, 2)
            ]

        return CollectedAnswers(probes=probes, answers=Answers(self.texts))

    def meanings(self, pairs: Sequence[tuple[str, str]]) -> list[Verdict]:
        """What humans say of answers that differ: annotation projects do not show equal ones."""
        return [
            said((one, other), "same_meaning", self.same[one, other])
            for one, other in pairs
            if self.word(one) != self.word(other)
        ]

    def labels(self, keys: Sequence[str]) -> list[Verdict]:
        return [said((key,), "correct", self.right[key], f"context_{key[-1]}") for key in keys]

    def differing(self, pairs: Sequence[tuple[str, str]]) -> float:
        return 100 * float(np.mean([not self.same[pair] for pair in pairs]))


def said(targets: tuple[str, ...], question: str, right: bool, variant: str = "") -> Verdict:
    return Verdict(
        targets=targets,
        question=question,
        scorer="h",
        judge="ann",
        kind="human",
        verdict="right" if right else "wrong",
        variant=variant,
    )


def judged(describe: Describe, collected: CollectedAnswers, verdicts: Sequence[Verdict]) -> Result:
    benchmark = Codis()
    options = defaults(benchmark, benchmark.settings["default"])
    panel = make_panel(benchmark, options, [RulesJudge(benchmark, options), RecordedJudge(HUMANS, verdicts)])
    description = describe(benchmark="codis", judges=("rules", HUMANS), benchmark_options=options)
    return aggregate(description, collected, panel, collected.answers).result


def value_and_n(found: MetricValue) -> tuple[float, float]:
    assert found.value is not None
    return found.value, found.n


def of_humans(result: Result, metric: str) -> MetricValue:
    (found,) = [one for one in result.metrics if (one.metric, one.subset) == (metric, f"judge={HUMANS}")]
    return found


@pytest.mark.parametrize("partner", [False, True])
def test_humans_who_judged_all_pairs_give_their_value_exactly(describe: Describe, partner: bool) -> None:
    """Equal answers, which they are not shown, count as the same, with and without other comparisons."""
    run = Run()
    pairs = [pair for name in PAIRS for pair in run.compared(name)]
    result = judged(describe, run.collected(partner), run.meanings(pairs))
    found = of_humans(result, "context_awareness")
    assert value_and_n(found) == pytest.approx((run.differing(pairs), len(PAIRS)))
    shown = [pair for pair in pairs if run.word(pair[0]) != run.word(pair[1])]
    assert run.differing(pairs) < 70 < run.differing(shown)
    assert [one for one in result.corrected if one.metric == "context_awareness"] == []
    other = of_humans(result, "output_variability")
    assert (other.value, other.n, bool(other.reason)) == (None, 0, True)
    assert [one for one in result.corrected if one.metric == "output_variability"] == []


def test_so_do_humans_who_judged_all_outputs_without_context(describe: Describe) -> None:
    run = Run()
    pairs = [pair for name in PAIRS for pair in run.without(name)]
    result = judged(describe, run.collected(), run.meanings(pairs))
    found = of_humans(result, "output_variability")
    assert value_and_n(found) == pytest.approx((run.differing(pairs), 2 * len(PAIRS)))
    assert of_humans(result, "context_awareness").value is None
    assert result.corrected == []


def test_a_sample_of_clusters_corrects_the_meaning_without_dropping_equal_answers(describe: Describe) -> None:
    """The truth lies in the interval. Without the clusters of equal answers, it is far below it."""
    run = Run()
    images = sorted({image(name) for name in PAIRS}, key=lambda one: int(one.split()[1]))[::2]
    pairs = [pair for name in PAIRS for pair in run.compared(name)]
    some = [pair for name in PAIRS if image(name) in images for pair in run.compared(name)]
    result = judged(describe, run.collected(), run.meanings(some))
    (found,) = [one for one in result.corrected if one.metric == "context_awareness"]
    shown = {image(one.partition("/")[0]) for one, other in some if run.word(one) != run.word(other)}
    assert found.labelled == len(shown)
    assert found.corrected.low < run.differing(pairs) < found.corrected.high  # type: ignore[operator]
    assert found.human.low < run.differing(pairs) < found.human.high  # type: ignore[operator]


@pytest.mark.parametrize("failing", [(), ("p3", "p40", "p41")])
def test_humans_who_judged_all_answers_give_their_value_exactly(
    describe: Describe, failing: Collection[str]
) -> None:
    """A failed answer is not right, and needs no human."""
    run = Run(failing)
    result = judged(describe, run.collected(), run.labels([key for key in run.right if run.texts[key]]))
    both = [name not in failing and run.right[f"{name}/1"] and run.right[f"{name}/2"] for name in PAIRS]
    found = of_humans(result, "acc_p")
    assert value_and_n(found) == pytest.approx((100 * float(np.mean(both)), len(PAIRS)))


def test_what_humans_did_not_label_is_not_wrong(describe: Describe) -> None:
    """Labels of 20 images, of one of them in part: value and n are those of the labelled answers."""
    run = Run()
    images = {f"image {number}" for number in range(20)}
    keys = [key for key in run.right if image(key.partition("/")[0]) in images and key != "p4/2"]
    result = judged(describe, run.collected(), run.labels(keys))
    whole = [name for name in PAIRS if {f"{name}/1", f"{name}/2"} <= set(keys)]
    both = [run.right[f"{name}/1"] and run.right[f"{name}/2"] for name in whole]
    acc_p, acc_q = of_humans(result, "acc_p"), of_humans(result, "acc_q")
    assert value_and_n(acc_p) == pytest.approx((100 * float(np.mean(both)), len(whole)))
    share = 100 * float(np.mean([run.right[key] for key in keys]))
    assert value_and_n(acc_q) == pytest.approx((share, len(keys)))


def test_failed_answers_outside_the_labelled_clusters_do_not_count(describe: Describe) -> None:
    run = Run(failing=PAIRS[60:])
    keys = [key for key in run.right if int(key.partition("/")[0][1:]) < 30]
    found = of_humans(judged(describe, run.collected(), run.labels(keys)), "acc_q")
    assert found.n == len(keys)


def test_a_human_who_was_asked_something_else_has_no_value(describe: Describe) -> None:
    run = Run()
    pairs = [pair for name in PAIRS for pair in run.compared(name)]
    found = judged(describe, run.collected(), run.meanings(pairs))
    for metric in ("acc_p", "acc_q", "output_variability"):
        one = of_humans(found, metric)
        assert (one.value, one.n, one.low, one.reason) == (None, 0, None, NOTHING_LABELLED)
    assert {one.metric for one in found.corrected} == set()
    found = judged(describe, run.collected(), run.labels(list(run.right)[:60]))
    assert of_humans(found, "context_awareness").value is None
    assert {one.metric for one in found.corrected} == {"acc_p", "acc_q"}


@pytest.mark.parametrize("by_rules", [False, True])
@pytest.mark.parametrize("decide", ["first", "majority"])
def test_a_results_folder_gives_the_values_of_its_run(
    describe: Describe, tmp_path: Path, by_rules: bool, decide: Decide
) -> None:
    """Also of answers that are equal where the reasoning before them is not: humans are not shown them."""
    run, benchmark = Run(failing=PAIRS[:3]), Codis()
    options = defaults(benchmark, benchmark.settings["default"])
    pairs = [pair for name in PAIRS for pair in run.compared(name)]
    labels = run.labels([f"{pair}/{n}" for pair in PAIRS for n in (1, 2)])
    # Humans may have compared two answers in the other order.
    meanings = [replace(one, targets=one.targets[::-1]) for one in run.meanings(pairs)]
    judges = [*([RulesJudge(benchmark, options)] * by_rules), RecordedJudge(HUMANS, [*labels, *meanings])]
    collected = run.collected(partner=False)
    description = describe(
        benchmark="codis", options={**options, "decide": decide}, benchmark_options=options, decide=decide
    )
    with ResultsFolder(str(tmp_path)) as folder:
        panel = make_panel(benchmark, options, judges, decide)
        result = aggregate(description, collected, panel, collected.answers, on_group=folder.write).result
        folder.finish(result, benchmark, report="", data=None)
    groups = list(read_judged_run(tmp_path).groups.values())
    expected = [one for one in result.metrics if not one.subset.startswith("judge=")]
    assert (
        any(len(group.judgements) and group.judgements[0].scorer == "equal" for group in groups) != by_rules
    )
    assert tally(groups, benchmark.metrics(options)) == [
        one for one in expected if one.metric in {metric.name for metric in benchmark.metrics(options)}
    ]


def sampled(run: Run, images: int) -> tuple[list[str], list[Verdict]]:
    """The pairs of the first images, and everything that humans say of their outputs and answers."""
    of_image: dict[str, list[str]] = {}
    for name in PAIRS:
        of_image.setdefault(image(name), []).append(name)
    share = images / len(of_image)
    names = [name for members in list(of_image.values())[:images] for name in members]
    pairs = [pair for name in names for pair in run.compared(name) + run.without(name)]
    return names, [replace(one, inclusion=share) for one in run.meanings(pairs)]


def test_humans_alone_on_a_sample_have_the_values_of_its_images(describe: Describe) -> None:
    """Images that nobody sampled do not count with their equal answers, those of the sample do."""
    run = Run()
    names, verdicts = sampled(run, 20)
    benchmark = Codis()
    options = defaults(benchmark, benchmark.settings["default"])
    panel = make_panel(benchmark, options, [RecordedJudge(HUMANS, verdicts)])
    description = describe(benchmark="codis", judges=(HUMANS,), benchmark_options=options)
    collected = run.collected()
    result = aggregate(description, collected, panel, collected.answers).result
    values = {one.metric: one for one in result.metrics if one.subset == "all"}
    worked_on = {image(one.targets[0].partition("/")[0]) for one in verdicts}
    names = [name for name in names if image(name) in worked_on]
    compared = [pair for name in names for pair in run.compared(name)]
    without = [pair for name in names for pair in run.without(name)]
    assert value_and_n(values["context_awareness"]) == pytest.approx((run.differing(compared), len(compared)))
    assert value_and_n(values["output_variability"]) == pytest.approx((run.differing(without), len(without)))
    assert (values["acc_p"].value, values["acc_p"].n) == (None, 0)


def test_each_question_has_the_probabilities_of_its_own_sample(describe: Describe) -> None:
    """A second project about another question does not take the corrected values of the first away."""
    run = Run()
    _, meanings = sampled(run, 20)
    labels = [
        replace(one, inclusion=0.5)
        for one in run.labels([f"{name}/{n}" for name in PAIRS[:45] for n in (1, 2)])
    ]
    result = judged(describe, run.collected(), [*meanings, *labels])
    for metric in ("acc_p", "acc_q", "context_awareness", "output_variability"):
        (found,) = [one for one in result.corrected if one.metric == metric]
        assert found.corrected.value is not None, found
