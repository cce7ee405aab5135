"""Cleaning a store drops indexes, which are built again; `store info` lists them."""

from __future__ import annotations

import pytest

from sightline.maintenance.store_maintenance import CleaningOptions, clean, take_inventory
from sightline.store.store import Store
from sightline.viewer.index import OutcomeIndex
from sightline.viewer.index_types import GroupFilter


def build(store: Store) -> OutcomeIndex:
    index = OutcomeIndex(store)
    index.build(1)
    assert index.open(1).page(GroupFilter(search="fruit")).total > 0
    return index


@pytest.mark.slow
def test_cleaning_caches_drops_the_index_and_it_is_built_again(store: Store, store_url: str) -> None:
    build(store)
    folder = store.database.index_folder
    store.close()
    kept = clean(store_url, CleaningOptions())
    assert kept.cache_bytes > 1000
    assert clean(store_url, CleaningOptions(caches=True, dry_run=True)).dropped
    assert (folder / "1.db").exists()
    found = clean(store_url, CleaningOptions(caches=True))
    assert {one.table: one.rows for one in found.dropped}["(index)"] == 1
    assert found.cache_bytes == 0
    assert list(folder.iterdir()) == []
    again = Store.open(store_url)
    build(again)
    again.close()


@pytest.mark.slow
def test_cleaning_drops_the_index_of_a_deleted_run(store: Store, store_url: str) -> None:
    build(store)
    folder = store.database.index_folder
    store.runs.drop(1)
    store.close()
    found = clean(store_url, CleaningOptions())
    assert [(one.rows, one.reason) for one in found.dropped if one.table == "(index)"] == [
        (1, "of runs that do not exist")
    ]
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_each_part_of_a_store_has_a_size_and_a_description(store: Store, store_url: str) -> None:
    build(store)
    tables = {one.table: one for one in take_inventory(store_url).tables}
    assert all(one.content for one in tables.values())
    index = tables["(index)"]
    assert index.bytes == (store.database.index_folder / "1.db").stat().st_size
