"""Evaluates a trained `mini` on held-out scenes, as a Markdown table for its model card.

python -m training.mini.exam FOLDER [FOLDER ...] prints a column for each model, one for the best guess from
the words of the questions alone (learnt on scenes of another seed), and one for chance. A store beside the
synthetic data caches the answers, so a second call sends no request.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import sightline
from sightline.formats.groups import GroupLine, write_groups
from sightline.plugins import plug_in
from sightline.types import MetricValue
from training.mini import words
from training.scenes.build import (
    generate_codis,
    generate_contextual,
    generate_iibench,
    generate_mmr3,
)

CHANCE = "baseline/chance"


class Part(NamedTuple):
    """A row of the table: the task, its data, and the metric to report."""

    title: str
    task: str
    data: Path
    metric: str
    split: str | None = None
    options: tuple[tuple[str, str], ...] = ()

    @property
    def spec(self) -> dict[str, Any]:
        """The keyword arguments of `sightline.run`."""
        return {"task": self.task, "data": str(self.data), "split": self.split, "set": dict(self.options)}


def parts(folder: Path, size: int, seed: int) -> list[Part]:
    """Generate the data; returns all rows."""
    codis = generate_codis(folder / "codis", pairs=size, seed=seed)
    iibench = generate_iibench(folder / "iibench", dev=size, questions=0, seed=seed)
    mmr3 = generate_mmr3(folder / "mmr3", groups=size // 2, seed=seed)
    contextual = generate_contextual(folder / "contextual", val=size, questions=0, seed=seed)
    with_images = as_groups(contextual, folder / "contextual" / "seen.jsonl", images=True)
    without_images = as_groups(contextual, folder / "contextual" / "unseen.jsonl", images=False)
    matched = (("embedder", "none"),)
    rows = [
        Part("CODIS acc_p", "codis", codis, "acc_p"),
        Part("CODIS acc_q", "codis", codis, "acc_q"),
        Part("CODIS acc_q, no image", "codis:no-image", codis, "acc_q"),
        Part("CODIS acc_p, no context", "codis:no-context", codis, "acc_p"),
        Part("CODIS acc_q, no context", "codis:no-context", codis, "acc_q"),
        Part("II-Bench accuracy", "iibench:none", iibench, "accuracy", "dev"),
        Part("II-Bench accuracy, no image", "iibench:no-image", iibench, "accuracy", "dev"),
        Part("ConTextual, by matching", f"groups:{with_images}", contextual, "acc", None, matched),
        Part("ConTextual, no image", f"groups:{without_images}", contextual, "acc", None, matched),
    ]
    return rows + [
        Part(f"MM-R3 {task} {metric}", f"mmr3:{task}", mmr3, metric)
        for task in ("rephrasing", "restyling", "context")
        for metric in ("acc", "con", "s_c", "agree")
    ]


def as_groups(contextual: Path, file: Path, *, images: bool) -> Path:
    """ConTextual's questions as groups of one, with or without their images."""
    with (contextual / "contextual_val.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    lines = [
        GroupLine(
            group=row["image_url"],
            variant="0-shot",
            images=(row["image_url"],) if images else (),
            prompt=row["instruction"],
            references=(row["response"],),
            labels={"category": row["category"]},
            cluster=row["image_url"],
        )
        for row in rows
    ]
    write_groups(lines, file)
    return file


def metric_values(part: Part, model: str, folder: Path) -> list[MetricValue]:
    """The values of a row's metric, over all samples and by label."""
    evaluation = sightline.run(
        **part.spec,
        model=model,
        store=str(folder / "sightline.db"),
        model_arg={"dtype": "float32"} if model.startswith("hf/") else {},
    )
    return [metric for metric in evaluation.metrics if metric.metric == part.metric]


def cell(value: MetricValue) -> str:
    """A value with its 95 % confidence interval."""
    if value.value is None:
        return "-"
    return f"{value.value:.1f} ({value.low:.1f}-{value.high:.1f})"


def main() -> None:
    """Generate the data, run the models, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", help="folders of trained models")
    parser.add_argument("--data", type=Path, default=Path("exam"), help="folder for data and answers")
    parser.add_argument(
        "--size", type=int, default=600, help="questions per benchmark (MM-R3: half as many groups)"
    )
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--labels", action="store_true", help="also print a row for each label")
    chosen = parser.parse_args()
    plug_in(words.__file__)
    learned = chosen.data / "read"
    others = parts(learned, chosen.size, chosen.seed + 1)
    (learned / words.READ).write_text(json.dumps([part.spec for part in others if " no " not in part.title]))
    models = [f"hf/{folder}" for folder in chosen.models] + [f"words/{learned}", CHANCE]
    rows = []
    for part in parts(chosen.data / "data", chosen.size, chosen.seed):
        print(part.title, file=sys.stderr)
        columns = [
            {value.subset: value for value in metric_values(part, model, chosen.data)} for model in models
        ]
        subsets = list(columns[0]) if chosen.labels else ["all"]
        for subset in subsets:
            title = part.title if subset == "all" else f"- {subset}"
            values = [column.get(subset) for column in columns]
            rows.append([title, *("-" if value is None else cell(value) for value in values)])
            rows[-1].insert(1, f"{values[0].n:g}" if values[0] else "-")
    head = ["", "n", *(Path(model).name for model in chosen.models), "from the words", "chance"]
    for row in (head, ["---"] * len(head), *rows):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
