"""Groups are paired by their identity, and by sample where the settings name their variants differently."""

from __future__ import annotations

from tests.evaluation.test_compare import outcome

from sightline.metrics.flips import pair_groups, probe_pairs
from sightline.types import Group, GroupKey


def groups(*made: Group) -> dict[GroupKey, Group]:
    return {group.key: group for group in made}


def group(sample: str, *variants: str, draw: int = 0, pooled: str = "", cluster: str = "c") -> Group:
    return Group(sample, draw, cluster, tuple(outcome(sample, name, "1") for name in variants), pooled=pooled)


def shared(base: dict[GroupKey, Group], other: dict[GroupKey, Group]) -> list[tuple[GroupKey, GroupKey]]:
    return [(pair.base.key, pair.other.key) for pair in pair_groups(base, other).pairs]


def test_every_group_of_a_run_is_paired_with_itself() -> None:
    """Pooled groups of one sample differ in their variant only."""
    run = groups(
        group("a", "m0", pooled="m0"), group("a", "m1", pooled="m1"), group("b", "x"), group("b", "x", draw=1)
    )
    assert shared(run, run) == [(key, key) for key in run]


def test_a_sample_with_one_probe_in_each_setting_is_paired_whatever_its_variant() -> None:
    pairing = pair_groups(groups(group("a", "none")), groups(group("a", "cot")))
    (pair,) = pairing.pairs
    assert [(before.variant, after.variant) for before, after in probe_pairs(pair)] == [("none", "cot")]


def test_groups_without_a_common_variant_are_compared_as_a_whole() -> None:
    pairing = pair_groups(groups(group("a", "none")), groups(group("a", "order_0", "order_1")))
    (pair,) = pairing.pairs
    assert (len(pair.base), len(pair.other)) == (1, 2)
    assert list(probe_pairs(pair)) == []


def test_a_pooled_group_meets_the_group_of_its_sample() -> None:
    """Sampling against All: the draws of the original, and the rephrasings."""
    base, other = groups(group("a", "original", pooled="original")), groups(group("a", "r1", "r2"))
    assert shared(base, other) == [(("a", 0, "original"), ("a", 0, ""))]


def test_several_pooled_groups_do_not_meet_one_group() -> None:
    pooled = groups(group("a", "m0", pooled="m0"), group("a", "m1", pooled="m1"))
    pairing = pair_groups(pooled, groups(group("a", "m0", "m1")))
    assert len(pairing.pairs) == 0
    assert [missing.probes for missing in pairing.missing] == [2, 2]


def test_another_image_is_different_data_unless_it_could_not_be_read() -> None:
    base = groups(group("a", "x", cluster="digest 1"))
    assert pair_groups(base, groups(group("a", "x", cluster="digest 2"))).different == ("a",)
    assert pair_groups(base, groups(group("a", "x", cluster="file a.jpg"))).different == ()
