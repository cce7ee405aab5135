"""The embedded model: loads as any checkpoint does, answers alike in batches, and knows its scenes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.errors import UserError
from sightline.images import inspect_image
from sightline.models.registry import MINI, ModelOptions, resolve
from sightline.types import (
    Answer,
    ImageFile,
    ImageRef,
    MetricValue,
    Request,
    user,
)
from training.scenes.build import generate_codis, generate_iibench

pytest.importorskip("transformers", reason="needs the extra local")


def requests(folder: Path, questions: list[str], choices: tuple[str, ...] = ()) -> list[Request]:
    """Each question about each of three images of a drawn data set."""
    made = []
    for path in sorted((folder / "images").rglob("*.png"))[:3]:
        image = ImageRef(str(path), str(folder))
        files: dict[str, ImageFile] = {image.path: inspect_image(image, {})}
        for question in questions:
            key = f"{path.name} {question}"
            sampling = {"temperature": 0.0, "max_tokens": 40}
            made.append(Request(key, (user(image, question),), sampling, files, choices=choices))
    return made


def answers(requests: list[Request], **args: Any) -> list[str]:
    async def ask() -> list[str]:
        (model,) = resolve("mini", ModelOptions(args=args))
        async with model:
            said = {index: answer async for index, answer in model.answer(requests)}
        return [answer.text for _, answer in sorted(said.items()) if isinstance(answer, Answer)]

    return asyncio.run(ask())


def test_it_is_small_enough_to_travel_with_the_package() -> None:
    files = [file for file in MINI.iterdir() if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 6_000_000
    assert {"README.md", "config.json", "model.safetensors", "tokenizer.json"} <= {f.name for f in files}


def test_its_name_stands_alone() -> None:
    (model,) = resolve("mini", ModelOptions())
    assert model.name == "mini"
    assert model.identity.endswith("float32")
    with pytest.raises(UserError, match="minimax"):
        resolve("minimax", ModelOptions())


@pytest.mark.slow
def test_in_batches_it_answers_what_it_answers_alone(tmp_path: Path) -> None:
    folder = generate_codis(tmp_path, pairs=14)
    asked = requests(
        folder,
        ["Describe the image.", "What place is this?", "Which thing is red?", "Is it day or night?"]
        + [f"What color is the {name}?" for name in ("car", "tent", "fish", "cup", "umbrella")],
    )
    alone = answers(asked, batch=1)
    assert len(alone) == len(asked)
    assert answers(asked, batch=16) == alone
    assert len(set(alone)) > 3


def test_of_choices_it_takes_one(tmp_path: Path) -> None:
    folder = generate_iibench(tmp_path, questions=0, dev=3)
    choices = ("(A)", "(B)", "(C)")
    assert set(answers(requests(folder, ["Which one?"], choices))) <= set(choices)


@pytest.mark.slow
def test_on_scenes_that_it_never_saw_it_is_far_above_chance(tmp_path: Path) -> None:
    codis = generate_codis(tmp_path / "codis", pairs=84, seed=77)
    iibench = generate_iibench(tmp_path / "iibench", questions=0, dev=90, seed=77)

    def value(task: str, folder: Path, metric: str, model: str, **options: Any) -> MetricValue:
        store = str(tmp_path / "s.db")
        evaluation = sightline.run(task, model=model, data=str(folder), store=store, **options)
        return next(m for m in evaluation.metrics if m.metric == metric and m.subset == "all")

    mini, chance = (value("codis", codis, "acc_p", model) for model in ("mini", "baseline/chance"))
    assert mini.low is not None
    assert chance.high is not None
    assert mini.low > chance.high
    assert (value("codis:no-context", codis, "acc_p", "mini").value or 0) == 0
    seen, blind = (
        value(f"iibench:{setting}", iibench, "accuracy", "mini", split="dev")
        for setting in ("none", "no-image")
    )
    assert seen.low is not None
    assert seen.low > 40
    assert blind.value is not None
    assert blind.value < 30
