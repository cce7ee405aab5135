"""Measures the cost of an adapter at inference: evaluations of `mini` with and without, on two tasks.

Rephrasing asks several phrasings of a question about one image. Without an adapter, their common prefix (the
image and the text before the question) is processed once. A prefix that is computed from the whole prompt
prevents that. Restyling asks one question about several images, so nothing is shared in either case.
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
from process_usage import draw_scenes
from sightline.adapter.architectures import ARCHITECTURES, AdapterConfig, Lora
from sightline.adapter.attach import with_adapter
from sightline.adapter.saved_adapter import AdapterMetadata, save_adapter
from sightline.models.local.load import load
from sightline.models.local.model import LocalModel
from sightline.models.registry import ModelOptions, resolve


def save_neutral_adapter(config: AdapterConfig, folder: Path) -> Path:
    """Save an adapter that hardly changes the answers; returns its folder."""
    model = resolve("mini", ModelOptions())[0]
    assert isinstance(model, LocalModel)
    loaded = load(model.checkpoint, model.args)
    adapted = with_adapter(loaded, config)
    if not isinstance(config, Lora):
        with torch.no_grad():
            for name in list(adapted.weights)[-2:]:
                adapted.weights[name].zero_()
    metadata = AdapterMetadata(
        config, model.identity, loaded.model.num_parameters(), {"loss": "ce", "data": []}
    )
    save_adapter(folder, metadata, adapted.weights)
    return folder


def seconds(task: str, data: Path, adapter: Path | None, folder: Path) -> tuple[float, float]:
    """The seconds of an evaluation, and the mean number of tokens of its answers."""
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


def compare(task: str, configurations: dict[str, Path | None], data: Path, folder: Path, rounds: int) -> None:
    """Measure each configuration several times in turns, and print a line for each."""
    seconds(task, data, None, folder)
    took: dict[str, list[float]] = {name: [] for name in configurations}
    tokens = {}
    for _ in range(rounds):
        for name, adapter in configurations.items():
            second, tokens[name] = seconds(task, data, adapter, folder)
            took[name].append(second)
    print(task)
    for name, each in took.items():
        ratios = [one / other for one, other in zip(each, took["without"], strict=True)]
        print(
            f"  {name:<20}{statistics.median(each):>7.2f} s{tokens[name]:>7.1f} tokens per answer"
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
    kinds: dict[str, AdapterConfig] = {
        "bilstm": ARCHITECTURES["bilstm"](),
        "bilstm, hidden 32": msgspec.convert({"kind": "bilstm", "hidden": 32}, AdapterConfig),
        "prefix": ARCHITECTURES["prefix"](),
        "lora": ARCHITECTURES["lora"](),
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = draw_scenes(folder / "data", "mmr3", options.groups, seed=1000)
        adapters = {
            kind: save_neutral_adapter(config, folder / str(number))
            for number, (kind, config) in enumerate(kinds.items())
        }
        configurations: dict[str, Path | None] = {"without": None, **adapters}
        for task in ("mmr3:rephrasing", "mmr3:restyling"):
            compare(task, configurations, data, folder, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
