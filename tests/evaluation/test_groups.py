"""Stored probes and answers form groups, and only verdicts on a group belong to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from sightline.benchmarks.groups.benchmark import Groups
from sightline.evaluation.judges import JudgePanel
from sightline.evaluation.plan import StoredProbe, answered_groups, grouped, partner_draws
from sightline.types import Answer, Failure, Probe, Verdict, user


class Answers:
    """Every key has its own answer."""

    def look_up(self, keys: Sequence[str]) -> Mapping[str, Answer | Failure]:
        return {key: Answer(f"about {key}") for key in keys}


def row(variant: str, draw: int, *, pooled: bool) -> StoredProbe:
    return StoredProbe("a", variant, draw, f"{variant}-{draw}", "c", "?", pooled=pooled)


def made(rows: list[StoredProbe]) -> list[list[tuple[str, int]]]:
    return [[(one.variant, one.draw) for one in group] for group in answered_groups(rows, Answers())]


def test_a_draw_of_all_variants_is_a_group() -> None:
    rows = [row(variant, draw, pooled=False) for draw in range(2) for variant in ("m0", "m1")]
    assert made(rows) == [[("m0", 0), ("m1", 0)], [("m0", 1), ("m1", 1)]]


def test_all_draws_of_a_pooled_probe_are_a_group() -> None:
    rows = [row(variant, draw, pooled=True) for variant in ("m0", "m1") for draw in range(2)]
    assert made(rows) == [[("m0", 0), ("m0", 1)], [("m1", 0), ("m1", 1)]]


def test_probes_are_planned_in_the_order_in_which_they_are_grouped() -> None:
    probes = [Probe("a", variant, (user("?"),), "?") for variant in ("m0", "m1")]
    pooled = [replace(probe, draws=4) for probe in probes]

    def names(members: list[list[tuple[Probe, int]]]) -> list[list[tuple[str, int]]]:
        return [[(probe.variant, draw) for probe, draw in group] for group in members]

    assert names(grouped(probes, range(2))) == [[("m0", 0), ("m1", 0)], [("m0", 1), ("m1", 1)]]
    assert names(grouped(pooled, range(2))) == [[("m0", 0), ("m0", 1)], [("m1", 0), ("m1", 1)]]
    assert [draw for _, draw in partner_draws(pooled[:1], 0)] == [0, 1, 2, 3]
    assert [draw for _, draw in partner_draws(probes[:1], 2)] == [2]


def test_a_measure_of_a_partner_is_not_a_verdict_on_the_group() -> None:
    (group,) = answered_groups([row(variant, 0, pooled=False) for variant in ("m0", "m1")], Answers())
    own, other = (
        Verdict(targets=keys, question="similar", scorer="s", judge="e", kind="model", verdict="right")
        for keys in (("m0-0", "m1-0"), ("x", "y"))
    )
    measured = replace(group, judgements=(own, other))
    (one,) = JudgePanel(benchmark=Groups(), judges=[]).judge([measured], Answers())
    assert one.verdicts == [own]
    assert one.group.judgements == (own, other)
