"""Which adapter makes `mini` more consistent: kinds and losses on the same data, steps and seeds.

python -m training.adapter.study --out DIR: draws scenes for training and others for the test, searches each
kind's learning rate on held-out groups, trains every kind with every loss from several seeds, runs the three
tasks with each adapter, and prints the comparisons as Markdown. One adapter is trained for all three tasks. A
wording, a style and a colour of masks are left out of the training, but for two arms that show what was lost
by that. What is done is not done again: the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

import sightline
from sightline.adapter.kinds import AdapterKind, BiLstm, Lora, Prefix
from sightline.adapter.saved_adapter import METADATA, SavedAdapter
from sightline.adapter.settings import Training
from sightline.adapter.trainer import Recipe
from sightline.adapter.training import train_adapter
from sightline.adapter.training_checkpoint import LOG, LogEntry
from sightline.adapter.validate import Validation
from sightline.builders.synthetic import generate_mmr3
from sightline.engine.store import Store
from sightline.evaluation.adapter_report import adapted
from sightline.evaluation.compare_runs import compare_runs
from sightline.metrics.comparison import Comparison
from sightline.report.adapter_tables import SHOWN, adapted_table
from sightline.report.comparison import comparison_table, rows_of
from sightline.report.markdown import markdown
from sightline.report.report_table import ReportTable
from sightline.results.compare import significance_of

TASKS = ("rephrasing", "restyling", "context")
WITHOUT = {"wording": ["unseen"], "style": ["mosaic"], "colour": ["yellow"]}
"""What no adapter meets in training: the test has it."""

LABELS = {"rephrasing": "wording", "restyling": "style", "context": "colour"}
KINDS: dict[str, AdapterKind] = {
    "bilstm": BiLstm(),
    "bilstm-32": BiLstm(hidden=32),
    "prefix": Prefix(),
    "lora": Lora(),
}
"""As the paper has it, a smaller one that costs `mini` less time, and what it is held against."""

RATES = {
    "bilstm": (3e-4, 1e-3, 3e-3),
    "bilstm-32": (3e-4, 1e-3, 3e-3),
    "prefix": (1e-2, 3e-2, 1e-1),
    "lora": (3e-4, 1e-3, 3e-3, 1e-2),
}
SEARCH = 100
"""The seed of the adapters that the rate is chosen by, which are not tested."""

Loss = Literal["ce", "ce+consistency"]
LOSSES: tuple[Loss, ...] = ("ce", "ce+consistency")


class Arm(NamedTuple):
    """A kind of adapter, and what its training makes small."""

    kind: str
    loss: Loss
    whole: bool = False
    """Whether nothing is left out of its training."""

    @property
    def name(self) -> str:
        """As the tables have it."""
        return f"{self.kind}, {self.loss}{', nothing left out' if self.whole else ''}"


ARMS = (
    *(Arm(kind, loss) for loss in LOSSES for kind in KINDS),
    Arm("bilstm", "ce", whole=True),
    Arm("lora", "ce", whole=True),
)


class Study(NamedTuple):
    """Where everything lies, and how much of it there is."""

    folder: Path
    model: str
    groups: int
    test: int
    steps: int
    batch: int
    seeds: int

    @property
    def store(self) -> str:
        """The answers."""
        return str(self.folder / "sightline.db")

    def data(self, name: str) -> Path:
        """The drawn groups for training, or for the test."""
        return self.folder / name

    def draw(self) -> None:
        """Draw both; other seeds are other scenes."""
        generate_mmr3(self.data("train"), groups=self.groups, seed=7, held_out=False)
        generate_mmr3(self.data("test"), groups=self.test, seed=1000)

    def train(self, arm: Arm, rate: float, seed: int) -> Path:
        """The folder of an adapter, trained where it is not there yet."""
        size = f"{self.groups}x{self.steps}x{self.batch}"
        left_out = "whole" if arm.whole else "parted"
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
                    without={} if arm.whole else WITHOUT,
                    every=self.steps,
                )
            )
        return folder

    def rate_of(self, kind: str) -> float:
        """The rate at which an adapter of a seed of its own, trained with ce, is best on held-out groups."""
        worths = {rate: worth(last(self.train(Arm(kind, "ce"), rate, SEARCH))) for rate in RATES[kind]}
        best = max(worths, key=worths.__getitem__)
        print(f"{kind}: rate {best:g} of {worths}", file=sys.stderr)
        return best

    def run(self, task: str, adapter: Path | None) -> None:
        """Run a task, with an adapter or without."""
        sightline.run(
            f"mmr3:{task}",
            model=self.model,
            data=str(self.data("test")),
            model_arg={} if adapter is None else {"adapter": str(adapter)},
            store=self.store,
        )


def last(folder: Path) -> Validation:
    """What an adapter did on the held-out groups at the end of its training."""
    entries = msgspec.json.Decoder(LogEntry).decode_lines((folder / LOG).read_bytes())
    return next(entry.validation for entry in reversed(entries) if entry.validation is not None)


def worth(validation: Validation) -> float:
    """What the rate is chosen by: equal answers, and right ones. con takes red for blue."""
    return validation.agree + validation.acc


def tables(study: Study, trained: dict[Arm, list[Path]]) -> Iterator[tuple[str, Sequence[ReportTable]]]:
    """The tables, each under its heading."""
    store = Store.open(study.store)
    try:
        runs = {arm: [SavedAdapter(folder) for folder in folders] for arm, folders in trained.items()}
        pairs = {
            arm: adapted(store, [adapter.identity for adapter in adapters]) for arm, adapters in runs.items()
        }
        for arm, tasks in pairs.items():
            found = [compare_runs(store, task.runs) for task in tasks]
            yield arm.name, [adapted_table(found, SHOWN, None)]
            for task, comparison in zip(tasks, found, strict=True):
                label = LABELS[task.task.partition(":")[2]]
                yield (
                    f"{arm.name}, {task.task} by {label}",
                    [_compared(comparison, ("acc", "con", "agree"), label)],
                )
        for first, second in versus(list(trained)):
            found = [
                compare_runs(store, [(a, b) for (_, a), (_, b) in zip(one.runs, two.runs, strict=True)])
                for one, two in zip(pairs[first], pairs[second], strict=True)
            ]
            yield (
                f"{second.name} less {first.name}",
                [_compared(comparison, SHOWN, None) for comparison in found],
            )
    finally:
        store.close()


def _compared(comparison: Comparison, metrics: Sequence[str], label: str | None) -> ReportTable:
    rows = rows_of(comparison, metrics, label)
    return comparison_table(comparison, rows, significance_of(comparison, rows))


def versus(arms: Sequence[Arm]) -> Iterator[tuple[Arm, Arm]]:
    """What is held against what: the paper's adapter against the other kinds, a kind with the other loss and
    with nothing left out against the same without."""
    paper = Arm("bilstm", "ce")
    for arm in arms:
        plain = Arm(arm.kind, "ce")
        if arm != plain:
            yield plain, arm
        elif arm != paper:
            yield paper, arm


def main() -> None:
    """Draw, search, train, run, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default="mini")
    parser.add_argument("--groups", type=int, default=500, help="groups of a task to train on")
    parser.add_argument("--test", type=int, default=400, help="groups of a task to test on")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=8, help="groups a step")
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args()
    study = Study(
        chosen.out, chosen.model, chosen.groups, chosen.test, chosen.steps, chosen.batch, chosen.seeds
    )
    study.draw()
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
