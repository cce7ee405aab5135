"""Cleaning a store drops indexes, which are built again; `store info` lists their tables."""

from __future__ import annotations

import pytest

from sightline.maintenance.store_maintenance import CleaningOptions, clean, table_sizes
from sightline.store import schema
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
    store.close()
    kept = clean(store_url, CleaningOptions())
    assert kept.cache_bytes > 1000
    found = clean(store_url, CleaningOptions(caches=True))
    assert {one.table: one.rows for one in found.dropped}["index_runs"] == 1
    assert found.cache_bytes == 0
    again = Store.open(store_url)
    with again.database.core_read() as connection:
        assert schema.existing(connection) == []
    build(again)
    again.close()


@pytest.mark.slow
def test_cleaning_drops_the_index_of_a_deleted_run(store: Store, store_url: str) -> None:
    build(store)
    store.runs.drop(1)
    store.close()
    found = clean(store_url, CleaningOptions())
    assert [(one.rows, one.reason) for one in found.dropped if one.table == "index_runs"] == [
        (1, "of runs that do not exist")
    ]
    again = Store.open(store_url)
    with again.database.core_read() as connection:
        assert [one.rows for one in table_sizes(connection) if one.table.startswith("index_b")] == [0]
        assert not [one.table for one in table_sizes(connection) if one.table.startswith("index_words_")]
    again.close()


@pytest.mark.slow
def test_each_table_of_a_store_has_a_description(store: Store) -> None:
    build(store)
    with store.database.core_read() as connection:
        sizes = {one.table: one.content for one in table_sizes(connection)}
    assert all(sizes.values())
    assert "index_blocks" in sizes
