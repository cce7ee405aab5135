"""Small trainings for the tests of adapters: data and helpers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import torch
from PIL import Image

from sightline.adapter.architectures import AdapterConfig, BiLstm, Lora, Prefix
from sightline.adapter.attach import AdaptedModel, with_adapter
from sightline.adapter.batch import ExampleEncoder
from sightline.adapter.trainer import Recipe, TrainingStep, Validation
from sightline.adapter.training import TrainedAdapter, Training, train_adapter
from sightline.models.local.load import load
from sightline.models.local.model import LocalModel

Folder = Callable[[str], Path]
KINDS: dict[str, AdapterConfig] = {"bilstm": BiLstm(hidden=6), "prefix": Prefix(), "lora": Lora(rank=2)}
ARCHITECTURES = ("llava", "blip2", "blip2_t5", "instructblip", "qwen2_vl", "paligemma", "idefics3")
ANSWERS = ("a cat", "a red dog", "blue", "no")


def write_groups(folder: Path, seed: int) -> Path:
    """Eight groups of three phrasings about four images, with answers of two lengths."""
    folder.mkdir()
    lines = []
    for number in range(8):
        image = f"{number % 4}.png"
        Image.new("RGB", (40, 40), (60 * (number % 4), 255 - 60 * (number % 4), 50 * seed)).save(
            folder / image
        )
        for variant, prompt in (
            ("original", "?"),
            ("r1", "what is this"),
            ("r2", "what a dog"),
            ("r3", "is it the cat"),
        ):
            lines.append(
                {
                    "group": f"g{number}",
                    "variant": variant,
                    "images": [image],
                    "prompt": prompt,
                    "references": [ANSWERS[number % 4]],
                    "labels": {"wording": variant},
                }
            )
    (folder / "groups.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder / "groups.jsonl"


def small_training(model: Path, data: Path, out: Path, **more: Any) -> Training:
    recipe = {"steps": 6, "batch": 2, "rate": 0.02, "seed": 5, **more.pop("recipe", {})}
    return Training(
        model=f"hf/{model}",
        data=[str(data)],
        out=str(out),
        recipe=Recipe(**recipe),
        **{"every": 2, "held_out": 0.25, **more},
    )


def run_training(
    training: Training, *, stopped_in: int | None = None
) -> tuple[TrainedAdapter, list[TrainingStep], list[Validation]]:
    """Run a training; with `stopped_in`, Ctrl-C is pressed in that step and KeyboardInterrupt raised."""
    steps: list[TrainingStep] = []
    seen: list[Validation] = []
    stop = Event()

    def tell(step: TrainingStep, validation: Validation | None) -> None:
        steps.append(step)
        seen.extend([validation] if validation else [])
        if step.number + 1 == stopped_in:
            stop.set()

    return train_adapter(training, tell, stop=stop), steps, seen


def digests(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.name.startswith("adapter")
    }


def attached_to(model: Path, kind: AdapterConfig) -> AdaptedModel:
    """The model with an adapter, with the same weights each time."""
    plain = LocalModel(model, name="hf/tiny")
    loaded = load(plain.checkpoint, plain.args)
    torch.manual_seed(2)
    return with_adapter(loaded, kind)


def encoder_of(attached: AdaptedModel) -> ExampleEncoder:
    return ExampleEncoder(attached.loaded, "auto", cache_bytes=0, max_answer_tokens=20)
