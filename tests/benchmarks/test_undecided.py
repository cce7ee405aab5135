"""What undecided verdicts leave of metrics of groups: a unit is decided if no completion changes it."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import product

import pytest

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.dynamath.benchmark import DynaMath
from sightline.benchmarks.hallusionbench.benchmark import HallusionBench
from sightline.benchmarks.naturalbench.benchmark import NaturalBench
from sightline.metrics.tally import tally
from sightline.types import Group, Outcome, Usage, VerdictName

VARIANTS = {
    DynaMath: [str(number) for number in range(1, 5)],
    NaturalBench: ["q0_i0", "q0_i1", "q1_i0", "q1_i1"],
    HallusionBench: [f"VD {figure} {question}" for figure, question in product("012", "01")],
}


def drawn(kind: type[Benchmark]) -> Iterator[Group]:
    chance = random.Random(5)
    for number in range(60):
        outcomes = tuple(
            Outcome(
                sample=str(number),
                variant=variant,
                draw=0,
                key=f"{number} {variant}",
                labels={"difficulty": "easy", "category": "VD"},
                response="yes",
                status="ok",
                finish_reason="stop",
                usage=Usage(),
                verdict=chance.choices(("right", "wrong", "undecided"), (16, 2, 2))[0],
                references=("yes",),
            )
            for variant in VARIANTS[kind]
        )
        yield Group(str(number), number, "", outcomes)


def share_decided(
    groups: Sequence[Group],
    part: Callable[[str], Hashable],
    count: Callable[[list[bool]], tuple[int, int]] = lambda right: (all(right), 1),
) -> float:
    """In percent: of the parts that count the same whatever undecided verdicts become."""
    total = n = 0
    sides: dict[VerdictName, tuple[bool, ...]] = {
        "right": (True,),
        "wrong": (False,),
        "undecided": (False, True),
    }
    for group in groups:
        for name in {part(one.variant) for one in group}:
            own = [sides[one.verdict] for one in group if part(one.variant) == name]
            counted = {count(list(right)) for right in product(*own)}
            if len(counted) == 1:
                ((added, of),) = counted
                total, n = total + added, n + of
    return 100 * total / n


@pytest.mark.parametrize(
    ("kind", "metric", "part"),
    [
        (DynaMath, "worst_case", lambda variant: None),
        (NaturalBench, "g_acc", lambda variant: None),
        (NaturalBench, "q_acc", lambda variant: variant[1]),
        (NaturalBench, "i_acc", lambda variant: variant[4]),
        (HallusionBench, "a_acc", lambda variant: variant),
        (HallusionBench, "q_acc", lambda variant: variant[5]),
        (HallusionBench, "f_acc", lambda variant: variant[3]),
    ],
)
def test_a_part_that_an_undecided_verdict_could_change_is_not_decided(
    kind: type[Benchmark], metric: str, part: Callable[[str], Hashable]
) -> None:
    groups, benchmark = list(drawn(kind)), kind()
    values = tally(groups, benchmark.metrics({"figures_only": False}))
    (found,) = [one for one in values if (one.metric, one.subset) == (metric, "all")]
    assert found.value_decided == pytest.approx(share_decided(groups, part))


def test_robustness_leaves_out_seeds_with_an_undecided_variant() -> None:
    groups = list(drawn(DynaMath))
    values = tally(groups, DynaMath().metrics({}))
    (found,) = [one for one in values if (one.metric, one.subset) == ("robustness", "all")]
    expected = share_decided(
        groups, lambda variant: None, lambda right: (all(right) * sum(right), sum(right))
    )
    assert found.value_decided == pytest.approx(expected)
