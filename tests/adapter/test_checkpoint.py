"""Checkpoints: a stopped training continues."""

from __future__ import annotations

import json
import resource
import tracemalloc
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if None in (find_spec("torch"), find_spec("transformers"), find_spec("peft")):
    pytest.skip("needs the extra 'adapter'", allow_module_level=True)

import torch
from tests.adapter.training import (
    KINDS,
    Folder,
    digests,
    run_training,
    small_training,
)

from sightline.adapter.saved_adapter import TrainingCheckpoint
from sightline.adapter.trainer import TrainingStep, Validation
from sightline.adapter.training import train_adapter
from sightline.errors import EnvironmentFailedError, UserError


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "loss"),
    [
        ("llava", "bilstm", "ce"),
        ("llava", "bilstm", "ce+consistency"),
        ("llava", "lora", "ce"),
        ("blip2_t5", "prefix", "ce"),
    ],
)
def test_a_training_that_was_stopped_ends_at_the_same_weights(
    name: str, kind: str, loss: Any, folder: Folder, data: Path, tmp_path: Path
) -> None:
    whole, parted = (
        small_training(folder(name), data, tmp_path / way, adapter=KINDS[kind], recipe={"loss": loss})
        for way in ("whole", "parted")
    )
    run_training(whole)
    with pytest.raises(KeyboardInterrupt):
        run_training(parted, stopped_in=3)
    # As kill -9 leaves it: the steps since the last checkpoint are lost.
    died: list[int] = []

    def die(step: TrainingStep, _: Validation | None) -> None:
        died.append(step.number)
        if step.number == 5:
            raise SystemExit(9)

    with pytest.raises(SystemExit):
        train_adapter(parted, die)
    assert died == [4, 5]
    _, steps, _ = run_training(parted)
    assert [step.number for step in steps] == [5, 6]
    assert digests(tmp_path / "parted") == digests(tmp_path / "whole")
    logs = [(tmp_path / way / "log.jsonl").read_text().splitlines() for way in ("parted", "whole")]
    for log in logs:
        entries = [json.loads(line) for line in log]
        assert [entry["step"] for entry in entries if "validation" in entry] == [0, 2, 4, 6]
        assert [entry["step"] for entry in entries] == list(range(7))
    assert not (tmp_path / "parted" / "state.pt").exists()


def test_a_full_disk_loses_no_checkpoint(tmp_path: Path) -> None:
    checkpoint = TrainingCheckpoint(tmp_path, {"seed": 1})
    checkpoint.begin()
    checkpoint.write({"weights": torch.zeros(10)})
    before = (tmp_path / "state.pt").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
        with pytest.raises(EnvironmentFailedError, match=r"state\.pt: cannot be written"):
            checkpoint.write({"weights": torch.zeros(10**6)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "state.pt").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"state.pt", "log.jsonl"}


@pytest.mark.parametrize("damage", ["no weights", "other shapes", "no optimizer", "losses of another type"])
def test_a_state_that_is_not_that_of_the_training_is_refused_by_its_name(
    folder: Folder, data: Path, tmp_path: Path, damage: str
) -> None:
    training = small_training(folder("llava"), data, tmp_path / "out", adapter=KINDS["bilstm"])
    with pytest.raises(KeyboardInterrupt):
        run_training(training, stopped_in=3)
    file = tmp_path / "out" / "state.pt"
    content = torch.load(file, weights_only=True)
    state = content["state"]
    if damage == "no weights":
        state["weights"].clear()
    elif damage == "other shapes":
        state["weights"] = {name: torch.zeros(3, 3, 3) for name in state["weights"]}
    elif damage == "no optimizer":
        del state["optimizer"]
    else:
        state["losses"] = ["text"]
    torch.save(content, file)
    with pytest.raises(UserError, match=r"state\.pt: is not a checkpoint"):
        run_training(training)


def test_writing_a_checkpoint_copies_no_weights(tmp_path: Path) -> None:
    weights = torch.arange(8 * 2**20, dtype=torch.float32)
    checkpoint = TrainingCheckpoint(tmp_path, {"seed": 1})
    checkpoint.begin()
    tracemalloc.start()
    try:
        checkpoint.write({"weights": weights})
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < weights.nbytes / 4
    state = TrainingCheckpoint(tmp_path, {"seed": 1}).read()
    assert state is not None
    assert torch.equal(state["weights"], weights)


def test_another_training_in_the_same_folder_is_refused(folder: Folder, data: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_training(small_training(folder("llava"), data, tmp_path / "out"), stopped_in=3)
    with pytest.raises(
        UserError, match=r"field rate: contains the checkpoint of another training \(found 0.02\)"
    ):
        run_training(small_training(folder("llava"), data, tmp_path / "out", recipe={"rate": 0.01}))
    with pytest.raises(UserError, match=r"field model: contains the checkpoint of another training"):
        run_training(small_training(folder("llava"), data, tmp_path / "out", model_arg={"template": "plain"}))
    run_training(small_training(folder("llava"), data, tmp_path / "out"))
    with pytest.raises(UserError, match="already contains an adapter"):
        run_training(small_training(folder("llava"), data, tmp_path / "out"))
