"""Samples are whole clusters with the probabilities that they state; the order is a sample at any length."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.annotation.creation import NewProject, _picked, ordered, pick_items, share
from sightline.annotation.sources import MadeItems, SourceRequest
from sightline.annotation.task import task
from sightline.annotation.types import Item, Pick
from sightline.errors import UserError
from sightline.store.store import existing_or_empty_store


def items_of(clusters: int, strata: int = 1) -> list[Item]:
    return [
        Item(
            0,
            cluster=f"c{cluster}",
            stratum=f"s{cluster % strata}",
            variant=variant,
            hidden={"sample": f"{cluster}"},
        )
        for cluster in range(clusters)
        for variant in ("context_1", "context_2")
    ]


@given(
    st.integers(1, 40),
    st.integers(1, 50),
    st.integers(1, 4),
    st.sampled_from(["random", "stratified"]),
    st.integers(),
)
def test_a_sample_has_whole_clusters_and_their_weights_estimate_the_whole(
    clusters: int, count: int, strata: int, pick: Pick, seed: int
) -> None:
    if pick == "stratified" and count < min(clusters, strata):
        with pytest.raises(UserError, match="leaves strata without an image"):
            pick_items(items_of(clusters, strata), pick, count, seed)
        return
    picked = pick_items(items_of(clusters, strata), pick, count, seed)
    members = Counter(item.cluster for item in picked)
    assert len(members) == min(count, clusters)
    assert set(members.values()) == {2}
    by_stratum: dict[str, set[str]] = defaultdict(set)
    for item in picked:
        by_stratum[item.stratum if pick == "stratified" else ""].add(item.cluster)
    weights = {item.cluster: 1 / item.probability for item in picked}
    for stratum, drawn in by_stratum.items():
        size = len({item.cluster for item in items_of(clusters, strata) if stratum in ("", item.stratum)})
        assert sum(weights[cluster] for cluster in drawn) == pytest.approx(size)
    assert len(by_stratum) == (min(clusters, strata) if pick == "stratified" else 1)


def test_a_small_stratum_has_a_part_in_the_sample() -> None:
    strata = [*["big"] * 90, *["b"] * 3, *["c"] * 3, *["d"] * 4]
    items = [Item(0, cluster=f"c{place}", stratum=stratum) for place, stratum in enumerate(strata)]
    picked = pick_items(items, "stratified", 10, 1)
    assert {item.stratum for item in picked} == {"big", "b", "c", "d"}
    assert sum(1 / item.probability for item in picked) == pytest.approx(100)


def test_the_probability_is_how_often_a_cluster_is_drawn() -> None:
    drawn = Counter(
        item.cluster for seed in range(2000) for item in pick_items(items_of(5), "random", 2, seed)[::2]
    )
    assert all(count / 2000 == pytest.approx(0.4, abs=0.05) for count in drawn.values())


def test_the_same_seed_gives_the_same_sample_and_order() -> None:
    first, second = (
        ordered(pick_items(items_of(30, 3), "stratified", 9, 7), [], mixed=True, seed=7) for _ in range(2)
    )
    assert first == second
    assert ordered(items_of(30), [], mixed=True, seed=8) != ordered(items_of(30), [], mixed=True, seed=7)


def test_the_strata_alternate_so_that_what_comes_first_is_a_sample_of_all() -> None:
    order = ordered(items_of(60, 3), [], mixed=True, seed=1)
    for end in (30, 60, 90):
        counts = Counter(item.stratum for item in order[:end])
        assert max(counts.values()) - min(counts.values()) <= 2


def test_shared_queries_are_the_same_in_every_run_and_the_others_go_to_one_rater() -> None:
    runs = [items_of(20), items_of(20)]
    shared = share([item for run in runs for item in run], 10, 4, seed=3)
    by_query: dict[tuple[object, str], list[int]] = defaultdict(list)
    for item in shared:
        by_query[item.hidden["sample"], item.variant].append(item.annotators)
    assert Counter(tuple(of) for of in by_query.values()) == {(4, 4): 10, (1, 1): 30}


def test_nothing_is_no_sample() -> None:
    with pytest.raises(UserError, match="samples nothing"):
        pick_items(items_of(3), "random", 0, 1)


def test_items_counts_items_and_images_counts_images(tmp_path: Path) -> None:
    made = MadeItems(items_of(50))
    assert len(made.items) == 100
    new = NewProject("n")
    with existing_or_empty_store(str(tmp_path / "none.db")) as store:
        cases: list[tuple[dict[str, Any], int]] = [
            ({"count": 30}, 30),
            ({"images": 30}, 60),
            ({"count": 1}, 2),
        ]
        for chosen, items in (*cases, ({}, 100)):
            request = SourceRequest(task("judge"), ("a",), store, **chosen)
            _, picked = _picked(made, request, new)
            assert len(picked) == items
            assert {item.probability for item in picked} == {items / 100}
