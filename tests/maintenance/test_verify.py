"""Verification finds damage in the caches too."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.maintenance.stores import make_store

import sightline
from sightline.builders.synthetic import generate_codis
from sightline.engine.store import Store
from sightline.maintenance.verify import verify
from sightline.types import ImageFile


@pytest.mark.parametrize("body", ["body", "x''", "substr(body, 3)", "substr(body, 1, length(body) - 1)"])
def test_damaged_metadata_of_images_is_found(tmp_path: Path, body: str) -> None:
    path = make_store(tmp_path / "s.db", [range(3)])
    store = Store.open(str(path))
    store.caches.add_image_files([ImageFile("a.png", "ab" * 32, "PNG", 3, 4, (5, 6), "")])
    with store.database.write() as connection:
        connection.exec_driver_sql(f"UPDATE images SET body = CAST({body} AS BLOB)")
    store.close()
    found = [one.table for one in verify(str(path), show_progress=False)]
    assert found == ([] if body == "body" else ["images"])


def test_a_finished_run_that_lost_answers_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    data = generate_codis(tmp_path / "codis", pairs=3)
    sightline.run("codis", model="baseline/chance", data=data, store=str(path))
    assert list(verify(str(path), show_progress=False)) == []
    store = Store.open(str(path))
    with store.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM answers WHERE id = 1")
    store.close()
    [fault] = verify(str(path), show_progress=False)
    assert (fault.table, fault.run) == ("runs", 1)
    assert "have no attempt" in fault.problem
