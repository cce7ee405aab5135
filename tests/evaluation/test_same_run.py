"""A results folder is written again by the same run only, unless the user says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.evaluation.conftest import Describe

from sightline.errors import UserError
from sightline.evaluation.folder import refuse_name_of_other_run, refuse_other_run, refuse_other_sweep
from sightline.evaluation.options import judge_names

OPTIONS = {"limit": None, "seed": 0, "sampling": {"temperature": 0}}
DATA, CORRECTED = "1" * 32, "2" * 32
RUN: dict[str, Any] = {"ids_digest": "of all", "data_digest": DATA, "options": OPTIONS}


@pytest.fixture
def out(tmp_path: Path, describe: Describe) -> Path:
    """The folder of a run."""
    one = describe(**RUN)
    body = {
        "benchmark": one.benchmark,
        "setting": one.setting,
        "model_identity": one.identity,
        "judge": judge_names(one),
        "options": one.options,
        "ids_digest": one.ids_digest,
        "data_digest": f"{one.data_digest}-images",
    }
    (tmp_path / "metrics.json").write_bytes(msgspec.json.encode(body))
    (tmp_path / "answers.jsonl").write_text("{}\n")
    return tmp_path


def test_the_same_run_writes_its_folder_again(out: Path, describe: Describe) -> None:
    refuse_other_run(out, describe(**RUN))
    refuse_other_run(out / "new", describe(**RUN))
    refuse_other_run(out, describe(**{**RUN, "options": {**OPTIONS, "accept_changed": True, "new": None}}))


def test_the_samples_may_be_in_another_order(out: Path, describe: Describe) -> None:
    refuse_other_run(out, describe(**{**RUN, "ids_digest": "the same ids in another order"}))
    refuse_name_of_other_run("base", 1, describe(**RUN), describe(**{**RUN, "ids_digest": "another order"}))


def test_a_name_does_not_move_to_a_run_with_other_data(describe: Describe) -> None:
    with pytest.raises(
        UserError, match="belongs to run 1, another evaluation: other data of the same samples"
    ):
        refuse_name_of_other_run("base", 1, describe(**RUN), describe(**{**RUN, "data_digest": CORRECTED}))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"setting": "cot"}, "setting 'default' instead of 'cot'"),
        ({"identity": "weights 2"}, "instead of 'weights 2'"),
        ({"judges": ("gpt",)}, "instead of 'gpt'"),
        ({"ids_digest": "another", "data_digest": CORRECTED}, "other samples"),
        ({"data_digest": CORRECTED}, "other data of the same samples (questions, references, labels)"),
        ({"options": {**OPTIONS, "limit": 3}}, "limit none instead of 3"),
        ({"options": {**OPTIONS, "cot": True}}, "cot off instead of on"),
        ({"options": {**OPTIONS, "seed": 1}}, "seed 0 instead of 1"),
        ({"options": {**OPTIONS, "other_data": True}}, "paper did not release off instead of on"),
        ({"options": {**OPTIONS, "sampling": {}}}, 'sampling {"temperature":0} instead of {}'),
    ],
)
def test_the_results_of_another_run_are_refused_with_the_difference(
    out: Path, describe: Describe, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=r"another --out, or --force") as refused:
        refuse_other_run(out, describe(**{**RUN, **changed}))
    assert message in str(refused.value)
    assert refused.value.file == out


def test_a_run_may_extend_a_smaller_one(out: Path, describe: Describe) -> None:
    def limited(limit: int | None, digest: str, **more: Any) -> None:
        one = describe(ids_digest=digest, data_digest="", options={**OPTIONS, "limit": limit, **more})
        refuse_other_run(out, one)

    with pytest.raises(UserError, match="limit none instead of 5, other samples"):
        limited(5, "of 5")
    body = json.loads((out / "metrics.json").read_text())
    body["options"]["limit"], body["ids_digest"] = 5, "of 5"
    (out / "metrics.json").write_text(json.dumps(body))
    limited(5, "of 5")
    limited(6, "of 6")
    limited(None, "of all")
    with pytest.raises(UserError, match="other samples"):
        limited(5, "of other samples")
    with pytest.raises(UserError, match="seed 0 instead of 1"):
        limited(None, "of all", seed=1)


def test_the_answers_of_a_folder_may_be_scored_into_it(out: Path, describe: Describe) -> None:
    scoring = describe(
        model="file", identity="file", ids_digest="of all", options={**OPTIONS, "sampling": None}
    )
    refuse_other_run(out, scoring, out / "answers.jsonl")
    with pytest.raises(UserError, match="holds the results of another run"):
        refuse_other_run(out, scoring, out.parent / "answers.jsonl")


@pytest.mark.parametrize("name", ["report.md", "answers.jsonl", "predictions.json"])
def test_files_that_no_run_wrote_are_not_replaced(tmp_path: Path, describe: Describe, name: str) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    refuse_other_run(tmp_path, describe(**RUN))
    (tmp_path / name).write_text("mine")
    with pytest.raises(UserError, match=f"holds {name}, but no metrics.json of a run"):
        refuse_other_run(tmp_path, describe(**RUN))
    (tmp_path / "metrics.json").write_text('{"loss": 3}')
    with pytest.raises(UserError, match="is not the result of a run"):
        refuse_other_run(tmp_path, describe(**RUN))


def test_a_sweep_and_a_run_do_not_share_a_folder(out: Path, tmp_path: Path, describe: Describe) -> None:
    with pytest.raises(UserError, match="holds the results of a run"):
        refuse_other_sweep(out, "codis")
    sweep = tmp_path / "sweep"
    sweep.mkdir()
    refuse_other_sweep(sweep, "codis")
    (sweep / "sweep.json").write_text('{"task": "codis", "exit_status": 0, "points": []}')
    refuse_other_sweep(sweep, "codis")
    with pytest.raises(UserError, match="found 'codis'"):
        refuse_other_sweep(sweep, "iibench")
    with pytest.raises(UserError, match="holds the results of a sweep"):
        refuse_other_run(sweep, describe(**RUN))
