"""Compares adapters for `mini`: kinds and losses on the same data, steps and seeds.

python -m training.adapter.study --out DIR generates scenes for training and others for the test, searches the
learning rate of each kind on held-out groups, trains every kind with every loss from several seeds, runs the
three tasks with each adapter, and prints the comparisons as Markdown. Each adapter is trained for all three
tasks. A phrasing, a style and a colour of masks are left out of the training, except in two arms that show
the effect. Finished parts are not repeated: the same command continues where it was stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

import sightline
from sightline.adapter.architectures import AdapterConfig, BiLstm, Lora, Prefix
from sightline.adapter.saved_adapter import METADATA, SavedAdapter
from sightline.adapter.settings import Training
from sightline.adapter.trainer import Recipe
from sightline.adapter.training import train_adapter
from sightline.adapter.training_checkpoint import LOG, LogEntry
from sightline.adapter.validate import Validation
from sightline.builders.synthetic import generate_mmr3
from sightline.engine.store import Store
from sightline.evaluation.adapter_report import find_adapter_runs
from sightline.evaluation.compare_runs import compare_runs
from sightline.reporting.adapter_tables import SHOWN, adapted_table
from sightline.reporting.comparison import comparison_table, rows_of
from sightline.reporting.markdown import markdown
from sightline.reporting.report_table import ReportTable
from sightline.results.comparison import Comparison
from sightline.results.comparison_tests import significance_of

TASKS = ("rephrasing", "restyling", "context")
WITHOUT = {"wording": ["unseen"], "style": ["mosaic"], "colour": ["yellow"]}
"""Labels that are left out of the training and occur in the test."""

LABELS = {"rephrasing": "wording", "restyling": "style", "context": "colour"}
KINDS: dict[str, AdapterConfig] = {
    "bilstm": BiLstm(),
    "bilstm-32": BiLstm(hidden=32),
    "prefix": Prefix(),
    "lora": Lora(),
}
"""The paper's adapter, a smaller one that is faster with `mini`, and the kinds to compare it with."""

RATES = {
    "bilstm": (3e-4, 1e-3, 3e-3),
    "bilstm-32": (3e-4, 1e-3, 3e-3),
    "prefix": (1e-2, 3e-2, 1e-1),
    "lora": (3e-4, 1e-3, 3e-3, 1e-2),
}
SEARCH = 100
"""The seed of the adapters that choose the learning rate; they are not tested."""

Loss = Literal["ce", "ce+consistency"]
LOSSES: tuple[Loss, ...] = ("ce", "ce+consistency")


class Arm(NamedTuple):
    """A kind of adapter with the loss of its training."""

    kind: str
    loss: Loss
    all_labels: bool = False
    """Whether nothing is left out of the training."""

    @property
    def name(self) -> str:
        """The name in the tables."""
        return f"{self.kind}, {self.loss}{', nothing left out' if self.all_labels else ''}"


ARMS = (
    *(Arm(kind, loss) for loss in LOSSES for kind in KINDS),
    Arm("bilstm", "ce", all_labels=True),
    Arm("lora", "ce", all_labels=True),
)


class Study(NamedTuple):
    """The folder and the sizes of the study."""

    folder: Path
    model: str
    groups: int
    test: int
    steps: int
    batch: int
    seeds: int

    @property
    def store(self) -> str:
        """The store of the answers."""
        return str(self.folder / "sightline.db")

    def data(self, name: str) -> Path:
        """The synthetic groups for training, or for the test."""
        return self.folder / name

    def generate_data(self) -> None:
        """Generate both, with different seeds."""
        generate_mmr3(self.data("train"), groups=self.groups, seed=7, held_out=False)
        generate_mmr3(self.data("test"), groups=self.test, seed=1000)

    def train(self, arm: Arm, rate: float, seed: int) -> Path:
        """Train an adapter unless it exists; returns its folder."""
        size = f"{self.groups}x{self.steps}x{self.batch}"
        left_out = "whole" if arm.all_labels else "parted"
        folder = self.folder / "adapters" / f"{arm.kind}-{arm.loss}-{left_out}-{size}-{rate:g}-{seed}"
        if not (folder / METADATA).exists():
            print(folder.name, file=sys.stderr)
            train_adapter(
                Training(
                    model=self.model,
                    data=[str(self.data("train") / task / "groups.jsonl") for task in TASKS],
                    test=[str(self.data("test") / task / "groups.jsonl") for task in TASKS],
                    out=str(folder),
                    recipe=Recipe(steps=self.steps, batch=self.batch, rate=rate, loss=arm.loss, seed=seed),
                    adapter=KINDS[arm.kind],
                    without={} if arm.all_labels else WITHOUT,
                    every=self.steps,
                )
            )
        return folder

    def rate_of(self, kind: str) -> float:
        """The learning rate with the best result on held-out groups, for adapters trained with ce."""
        scores = {
            rate: score(last_validation(self.train(Arm(kind, "ce"), rate, SEARCH))) for rate in RATES[kind]
        }
        best = max(scores, key=scores.__getitem__)
        print(f"{kind}: rate {best:g} of {scores}", file=sys.stderr)
        return best

    def run(self, task: str, adapter: Path | None) -> None:
        """Run a task with or without an adapter."""
        sightline.run(
            f"mmr3:{task}",
            model=self.model,
            data=str(self.data("test")),
            model_arg={} if adapter is None else {"adapter": str(adapter)},
            store=self.store,
        )


def last_validation(folder: Path) -> Validation:
    """The validation of an adapter at the end of its training."""
    entries = msgspec.json.Decoder(LogEntry).decode_lines((folder / LOG).read_bytes())
    return next(entry.validation for entry in reversed(entries) if entry.validation is not None)


def score(validation: Validation) -> float:
    """The criterion for the learning rate: equal and right answers. con accepts red for blue."""
    return validation.agree + validation.acc


def tables(study: Study, trained: dict[Arm, list[Path]]) -> Iterator[tuple[str, Sequence[ReportTable]]]:
    """The tables with their headings."""
    store = Store.open(study.store)
    try:
        runs = {arm: [SavedAdapter(folder) for folder in folders] for arm, folders in trained.items()}
        pairs = {
            arm: find_adapter_runs(store, [adapter.identity for adapter in adapters])
            for arm, adapters in runs.items()
        }
        for arm, tasks in pairs.items():
            comparisons = [compare_runs(store, task.runs) for task in tasks]
            yield arm.name, [adapted_table(comparisons, SHOWN, None)]
            for task, comparison in zip(tasks, comparisons, strict=True):
                label = LABELS[task.task.partition(":")[2]]
                yield (
                    f"{arm.name}, {task.task} by {label}",
                    [_compared(comparison, ("acc", "con", "agree"), label)],
                )
        for first, second in arm_pairs(list(trained)):
            comparisons = [
                compare_runs(store, [(a, b) for (_, a), (_, b) in zip(one.runs, two.runs, strict=True)])
                for one, two in zip(pairs[first], pairs[second], strict=True)
            ]
            yield (
                f"{second.name} less {first.name}",
                [_compared(comparison, SHOWN, None) for comparison in comparisons],
            )
    finally:
        store.close()


def _compared(comparison: Comparison, metrics: Sequence[str], label: str | None) -> ReportTable:
    rows = rows_of(comparison, metrics, label)
    return comparison_table(comparison, rows, significance_of(comparison, rows))


def arm_pairs(arms: Sequence[Arm]) -> Iterator[tuple[Arm, Arm]]:
    """The pairs to compare: the paper's adapter with the other kinds, and each kind with its variants."""
    paper = Arm("bilstm", "ce")
    for arm in arms:
        plain = Arm(arm.kind, "ce")
        if arm != plain:
            yield plain, arm
        elif arm != paper:
            yield paper, arm


def main() -> None:
    """Generate data, search rates, train, run, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default="mini")
    parser.add_argument("--groups", type=int, default=500, help="training groups per task")
    parser.add_argument("--test", type=int, default=400, help="test groups per task")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=8, help="groups per step")
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args()
    study = Study(
        chosen.out, chosen.model, chosen.groups, chosen.test, chosen.steps, chosen.batch, chosen.seeds
    )
    study.generate_data()
    trained: dict[Arm, list[Path]] = {}
    for arm in ARMS:
        rate = study.rate_of(arm.kind)
        trained[arm] = [study.train(arm, rate, seed) for seed in range(study.seeds)]
    for task in TASKS:
        for folder in (None, *(folder for folders in trained.values() for folder in folders)):
            study.run(task, folder)
    for heading, shown in tables(study, trained):
        print(f"\n### {heading}\n")
        print(markdown(shown))


if __name__ == "__main__":
    main()
