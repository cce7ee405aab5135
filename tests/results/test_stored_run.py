"""Runs of the store are read with the defaults of this version, and listed with the options that vary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.results.conftest import Describe

from sightline.engine.store import Store
from sightline.images import ImageLimits
from sightline.results.run_list import list_runs
from sightline.results.stored_run import decode_run, read_stored_run


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


def test_the_list_holds_the_options_in_which_the_runs_of_a_task_differ(tmp_path: Path, body: Any) -> None:
    store = Store.open(str(tmp_path / "s.db"))
    for prompt in ("short", "long"):
        store.start_run(body(prompt=prompt, form="same", repeats=2, limit=None))
    listed = list_runs(store)
    assert [run.options for run in listed] == [
        {"repeats": 2, "prompt": "short"},
        {"repeats": 2, "prompt": "long"},
    ]
    assert [(run.number, run.state) for run in listed] == [(1, " (not finished)"), (2, " (not finished)")]
    assert not read_stored_run(store, 2).is_finished
    store.close()
