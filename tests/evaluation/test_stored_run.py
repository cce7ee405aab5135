"""Runs of the store are read with the defaults of this version, and listed with the options that vary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import update
from tests.evaluation.conftest import Describe

from sightline.errors import EnvironmentFailedError, UserError
from sightline.evaluation.runs import decode_run, latest_finished_run, list_runs, read_row, read_stored_run
from sightline.images import ImageLimits
from sightline.maintenance.verify import find_faults
from sightline.store.schema import runs
from sightline.store.store import Store


@pytest.fixture
def body(describe: Describe) -> Any:
    """What the store keeps of a run with these options."""

    def make(**options: Any) -> dict[str, Any]:
        description = describe(options={"seed": 0, **options})
        return {"description": msgspec.to_builtins(description), "judges": {}, "embedder": None, "texts": {}}

    return make


def test_a_run_of_an_earlier_version_has_a_judge_without_limits(body: Any) -> None:
    judges = {"gpt": {"identity": "weights", "sampling": {"temperature": 0}}}
    run = decode_run(3, {"description": body()["description"], "judges": judges}, is_finished=True)
    assert run.judges["gpt"].limits == ImageLimits()
    assert (run.task, run.text_metrics, run.stopped) == ("oneword:default", {}, None)


def test_the_list_holds_every_option_that_has_no_known_default(tmp_path: Path, body: Any) -> None:
    store = Store.open(str(tmp_path / "s.db"))
    for prompt in ("short", "long"):
        store.runs.start(body(prompt=prompt, repeats=2, limit=None))
    listed = list_runs(store)
    assert [run.options for run in listed] == [
        {"prompt": "short", "repeats": 2},
        {"prompt": "long", "repeats": 2},
    ]
    assert [(run.number, run.state) for run in listed] == [(1, "not finished"), (2, "not finished")]
    assert not read_stored_run(store, 2).is_finished
    store.close()


CODIS = {"instructions": True, "cot": True, "image": "shown", "split": "test"}
SAMPLING = {"temperature": 0, "max_tokens": 1024}


@pytest.mark.parametrize(
    ("changed", "listed"),
    [
        ({}, {}),
        ({"cot": False}, {"cot": False}),
        ({"sampling": {**SAMPLING, "temperature": 0.7}}, {"temperature": 0.7}),
        ({"sampling": {"temperature": 0}}, {"max_tokens": None}),
        ({"model_arg": {"adapter": "trained"}}, {"adapter": "trained"}),
        ({"synthetic": True, "limit": 3}, {"synthetic": True, "limit": 3}),
    ],
)
def test_a_run_is_listed_with_the_options_that_differ_from_the_defaults(
    tmp_path: Path, describe: Describe, changed: dict[str, Any], listed: dict[str, Any]
) -> None:
    """Whatever other runs the store holds."""
    store = Store.open(str(tmp_path / "s.db"))
    options = {**CODIS, "sampling": SAMPLING, **changed}
    for one in ({**CODIS, "sampling": SAMPLING}, options):
        store.runs.start({"description": msgspec.to_builtins(describe(benchmark="codis", options=one))})
    run = list_runs(store)[1]
    assert run.options == {"split": "test", **listed}
    store.close()


def test_runs_of_other_data_or_another_model_behind_one_name_are_told_apart(
    tmp_path: Path, describe: Describe
) -> None:
    store = Store.open(str(tmp_path / "s.db"))
    for digest, identity in (("d1", "weights 1"), ("d2", "weights 1"), ("d2", "weights 2")):
        one = describe(data_digest=digest, identity=identity, options={})
        store.runs.start({"description": msgspec.to_builtins(one)})
    assert [run.options for run in list_runs(store)] == [
        {"data": "d1", "model_identity": "weights 1"},
        {"data": "d2", "model_identity": "weights 1"},
        {"data": "d2", "model_identity": "weights 2"},
    ]
    store.close()


def test_the_latest_finished_run_is_reported_with_a_note_on_a_later_unfinished_one(
    tmp_path: Path, body: Any
) -> None:
    store = Store.open(str(tmp_path / "s.db"))
    with pytest.raises(UserError, match="no run in this store"):
        latest_finished_run(store)
    first = store.runs.start(body())
    with pytest.raises(UserError, match=f"`sightline report {first}`"):
        latest_finished_run(store)
    store.runs.finish(first, body())
    assert latest_finished_run(store)[1] == []
    later = store.runs.start(body())
    run, (note,) = latest_finished_run(store)
    assert run.number == first
    assert f"run {later} is later and not finished" in note
    store.close()


def test_the_benchmark_of_a_plugin_that_is_not_loaded_is_an_error_that_names_the_plugin(body: Any) -> None:
    stored = body()
    stored["description"]["benchmark"] = "of a plugin"
    run = decode_run(3, {**stored, "plugin": "/my plugins/colors.py"}, is_finished=True)
    with pytest.raises(UserError, match=r"run 3 .*expected --plugin '/my plugins/colors.py'"):
        _ = run.benchmark


@pytest.mark.parametrize("damaged", [b"\0", b"[]", b"{}", b"\xff"])
def test_a_damaged_run_is_named_and_hides_no_other(tmp_path: Path, body: Any, damaged: bytes) -> None:
    store = Store.open(str(tmp_path / "s.db"))
    bad, good = (store.runs.start(body()) for _ in range(2))
    with store.database.write() as connection:
        connection.core.execute(update(runs).where(runs.c.id == bad).values(body=damaged))
    assert [row.number for row in store.runs.all()] == [bad, good]
    assert read_row(store, store.runs.all()[1]).number == good
    assert [(line.number, line.is_damaged) for line in list_runs(store)] == [(bad, True), (good, False)]
    with pytest.raises(EnvironmentFailedError, match=f"row {bad} of the table runs.*store verify"):
        read_stored_run(store, bad)
    faults = list(find_faults(store, show_progress=False))
    assert any(fault.table == "runs" and fault.row == f"id {bad}" for fault in faults)
    store.close()
