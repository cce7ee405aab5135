"""Trainings of adapters: the time of a step, the memory, and the losses in bfloat16 beside those in float32.

    python perf/adapter_training.py [--gpu] [--short]

The model is a LLaVA of the embedded model's size on the processor; with --gpu, one of LLaVA-1.5-7B's shape in
bfloat16 on a CUDA device. --short makes three steps of each kind, as a trial.

The models have random weights, so the losses show only that the training works. With --gpu, the small model
is trained on both devices first: on a GPU the forward passes use bfloat16, and the losses of all steps must
be those of the processor within PRECISION; otherwise the script fails.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import torch

from local import make, prepare_libraries
from process_usage import draw_scenes
from report import Report, new_parser
from sightline.adapter.architectures import ARCHITECTURES, AdapterConfig
from sightline.adapter.trainer import Recipe, TrainingStep
from sightline.adapter.training import Training, train_adapter

PRECISION = 0.03
"""The largest relative difference of a loss in bfloat16, which has 8 bits of precision."""
GROUPS = 2
"""Groups in a step, each an image in four styles."""
COLUMNS = ("kind", "trained weights", "first loss", "last loss", "seconds a step", "peak GB on the device")


class Trained(NamedTuple):
    """A finished training.

    Attributes:
        parameters: The number of trained weights.
        losses: The loss of each step, per token.
        seconds: The median time of a step; the first one, which prepares the device, is left out.
        memory: The largest memory on the device in bytes; 0 on a processor.
    """

    parameters: int
    losses: list[float]
    seconds: float
    memory: int


def train(kind: str, model: Path, data: Path, out: Path, device: str, steps: int) -> Trained:
    """Train an adapter.

    Args:
        kind: The kind of adapter.
        model: The folder of the model.
        data: The training set, a groups file.
        out: Where the adapter is written.
        device: The torch device.
        steps: The number of steps.

    Returns:
        What it took.
    """
    config: AdapterConfig = ARCHITECTURES[kind]()
    losses, ends = [], []

    def record(step: TrainingStep, _: object) -> None:
        losses.append(step.loss)
        ends.append(time.perf_counter())

    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    trained = train_adapter(
        Training(
            model=f"hf/{model}",
            data=[str(data)],
            out=str(out),
            recipe=Recipe(steps=steps, batch=GROUPS, rate=1e-4),
            adapter=config,
            held_out=0.0,
            model_arg={"device": device},
        ),
        record,
    )
    times = [after - before for before, after in pairwise(ends)]
    memory = torch.cuda.max_memory_allocated() if device == "cuda" else 0
    return Trained(trained.parameters, losses, statistics.median(times), memory)


def check_precision(model: Path, data: Path, folder: Path, steps: int, report: Report) -> None:
    """Train the small model on both devices, and compare the losses.

    Args:
        model: The folder of the small model.
        data: The training set.
        folder: Where adapters are written.
        steps: The number of steps.
        report: Gets a note.

    Raises:
        AssertionError: A loss differs by more than PRECISION.
    """
    largest = 0.0
    for kind in ARCHITECTURES:
        one, other = (
            train(kind, model, data, folder / f"{kind}-{device}", device, steps) for device in ("cpu", "cuda")
        )
        differences = [abs(b - a) / a for a, b in zip(one.losses, other.losses, strict=True)]
        largest = max(largest, *differences)
        assert largest < PRECISION, f"{kind}: {one.losses} in float32, {other.losses} in bfloat16"
    report.note(
        f"Small model, {steps} steps of each kind: the losses in bfloat16 on the device differ from those in"
        f" float32 on the processor by {100 * largest:.2g} % at most."
    )


def main() -> int:
    """Measure and print.

    Returns:
        The exit status.
    """
    parser = new_parser(__doc__)
    parser.add_argument("--short", action="store_true", help="three steps")
    parser.add_argument("--gpu", action="store_true", help="LLaVA-1.5-7B's shape, on a CUDA device")
    options = parser.parse_args()
    prepare_libraries(gpu=options.gpu)
    steps = 3 if options.short else 10
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = draw_scenes(folder / "data", "mmr3", 40, seed=1) / "restyling" / "groups.jsonl"
        small = folder / "small"
        make(small, large=False)
        model = small
        if options.gpu:
            check_precision(small, data, folder, steps, report)
            model = folder / "large"
            make(model, large=True)
        report.table("", *COLUMNS)
        for kind in ARCHITECTURES:
            done = train(kind, model, data, folder / kind, "cuda" if options.gpu else "cpu", steps)
            memory = f"{done.memory / 1e9:.1f}" if done.memory else ""
            first, last = (f"{loss:.3f}" for loss in (done.losses[0], done.losses[-1]))
            report.row(kind, f"{done.parameters:,}", first, last, f"{done.seconds:.3f}", memory)
        if options.gpu:
            report.note(f"{torch.cuda.get_device_name()}; {GROUPS} groups of an image in four styles a step.")
        report.save(options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
