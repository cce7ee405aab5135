"""What an adapter costs when `mini` answers: whole evaluations with and without, in turns, on two tasks.

Rephrasing asks several wordings of one image: without an adapter the image and what stands before the
wording are read once for all of them, which vectors made from the whole prompt do not allow. Restyling asks
one question of several images: nothing is shared either way.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import torch

import sightline
from sightline.adapter.attach import attach
from sightline.adapter.kinds import KINDS, AdapterKind, Lora
from sightline.adapter.saved_adapter import AdapterMetadata, save_adapter
from sightline.builders.synthetic import generate_mmr3
from sightline.models.local.load import load
from sightline.models.local.model import LocalModel
from sightline.models.resolve import ModelOptions, resolve


def make(kind: AdapterKind, folder: Path) -> Path:
    """An adapter that is attached and adds next to nothing."""
    model = resolve("mini", ModelOptions())[0]
    assert isinstance(model, LocalModel)
    loaded = load(model.checkpoint, model.args)
    attached = attach(loaded, kind)
    if not isinstance(kind, Lora):
        with torch.no_grad():
            for name in list(attached.weights)[-2:]:
                attached.weights[name].zero_()
    metadata = AdapterMetadata(
        kind, model.identity, loaded.model.num_parameters(), {"loss": "ce", "data": []}
    )
    save_adapter(folder, metadata, attached.weights)
    return folder


def seconds(task: str, data: Path, adapter: Path | None, folder: Path) -> tuple[float, float]:
    """What an evaluation took, and how many tokens its answers have on average."""
    began = time.perf_counter()
    evaluation = asyncio.run(
        sightline.arun(
            task,
            model="mini",
            data=str(data),
            set={"embedder": "none"},
            model_arg={} if adapter is None else {"adapter": str(adapter)},
            store=str(folder / f"{began}.db"),
        )
    )
    took = time.perf_counter() - began
    assert evaluation.exit_status == 0, evaluation.unanswered
    return took, evaluation.counts.spending.completion_tokens / evaluation.counts.answered


def compare(task: str, ways: dict[str, Path | None], data: Path, folder: Path, rounds: int) -> None:
    """Measure and print a line for each way."""
    seconds(task, data, None, folder)
    took: dict[str, list[float]] = {way: [] for way in ways}
    tokens = {}
    for _ in range(rounds):
        for way, adapter in ways.items():
            second, tokens[way] = seconds(task, data, adapter, folder)
            took[way].append(second)
    print(task)
    for way, each in took.items():
        ratios = [one / other for one, other in zip(each, took["without"], strict=True)]
        print(
            f"  {way:<20}{statistics.median(each):>7.2f} s{tokens[way]:>7.1f} tokens an answer"
            f"  ratio {statistics.median(ratios):.2f}"
        )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    kinds: dict[str, AdapterKind] = {
        "bilstm": KINDS["bilstm"](),
        "bilstm, hidden 32": msgspec.convert({"kind": "bilstm", "hidden": 32}, AdapterKind),
        "prefix": KINDS["prefix"](),
        "lora": KINDS["lora"](),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = generate_mmr3(folder / "data", groups=options.groups, seed=1000)
        adapters = {kind: make(made, folder / str(place)) for place, (kind, made) in enumerate(kinds.items())}
        ways: dict[str, Path | None] = {"without": None, **adapters}
        for task in ("mmr3:rephrasing", "mmr3:restyling"):
            compare(task, ways, data, folder, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
