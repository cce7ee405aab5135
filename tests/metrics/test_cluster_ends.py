"""A cluster is complete only when no later group belongs to it, and then it is forgotten."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from sightline.metrics.tally import OpenClusters, count_stretches

CLUSTERS = st.lists(st.sampled_from("abcdef"), max_size=30)


@given(CLUSTERS)
def test_clusters_with_several_stretches_are_counted(clusters: list[str]) -> None:
    stretches = [name for name, _ in groupby(clusters)]
    several = {name: stretches.count(name) for name in stretches if stretches.count(name) > 1}
    assert sorted(count_stretches(clusters).values()) == sorted(several.values())


@given(CLUSTERS, st.data())
def test_no_cluster_is_closed_before_its_last_group_even_if_groups_are_left_out(
    clusters: list[str], data: st.DataObject
) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(clusters), max_size=len(clusters)))
    read = [cluster for cluster, keep in zip(clusters, kept, strict=True) if keep]
    open_clusters = OpenClusters(count_stretches(clusters))
    closed: set[int] = set()
    for cluster in read:
        number = open_clusters.number(cluster)
        assert number not in closed
        closed |= set(range(number + 1)) - set(open_clusters.close())


@given(CLUSTERS)
def test_only_clusters_that_appear_again_stay_open(clusters: list[str]) -> None:
    open_clusters = OpenClusters(count_stretches(clusters))
    for place, cluster in enumerate(clusters):
        open_clusters.number(cluster)
        later = set(clusters[: place + 1]) & set(clusters[place + 1 :])
        assert len(open_clusters.close()) == len(later | {cluster})


def test_without_stretches_every_cluster_stays_open() -> None:
    open_clusters = OpenClusters(None)
    assert [open_clusters.number(name) for name in ("a", "b", "a")] == [0, 1, 0]
    assert open_clusters.close() == [0, 1]


def test_clusters_that_share_a_checksum_are_closed_together() -> None:
    first, second = "plumless", "buckeroo"  # one CRC-32
    stretches = count_stretches([first, second, "c"])
    assert list(stretches.values()) == [2]
    open_clusters = OpenClusters(stretches)
    open_clusters.number(first)
    assert open_clusters.number(second) == 1
    assert open_clusters.close() == [1]
    assert open_clusters.number("c") == 2
    assert open_clusters.close() == [2]
