"""Items whose values are known: gold items and proposals from a file, training, qualification tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random

from msgspec.structs import replace

from sightline.annotation.task import Phase, Task
from sightline.annotation.types import Item, Values
from sightline.errors import UserError
from sightline.formats.verdicts import read_verdicts
from sightline.scoring.majority import majority
from sightline.types import Verdict

TRAINING, TEST = "training", "qualification"


def with_training(
    task: Task, items: Sequence[Item], training: int, test: int, seed: int
) -> tuple[Task, list[Item]]:
    """Put items with known values into phases before the work.

    In a task of answers, the references of a question are its known values.
    """
    if not training and not test:
        return task, list(items)
    known = [place for place, item in enumerate(items) if _known(task, item)]
    if min(training, test) < 0 or len(known) < training + test:
        raise UserError(
            "too few items have known values for --training and --qualification",
            found=f"{len(known):,} items",
            expected=f"{training + test:,}; --gold FILE names known verdicts",
        )
    drawn = Random(f"training {seed}").sample(known, training + test)
    phase_of = {place: TRAINING if number < training else TEST for number, place in enumerate(drawn)}
    phased = [
        replace(item, phase=phase_of[place], expected=_known(task, item)) if place in phase_of else item
        for place, item in enumerate(items)
    ]
    before = [
        Phase(TRAINING, "Training", "training", "You see the expected values after each item."),
        Phase(TEST, "Test", "qualification", "A short test. It shows whether the task suits you."),
    ]
    used = [phase for phase in before if phase.name in phase_of.values()]
    return replace(task, phases=(*used, *(task.phases or (Phase(""),)))), phased


def known_values(task: Task, items: Sequence[Item], file: Path) -> dict[tuple[tuple[str, ...], str], Values]:
    verdicts = read_verdicts(file)
    by_targets: dict[tuple[str, ...], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.question == task.question:
            by_targets[verdict.targets].append(verdict)
    known = {}
    for item in items:
        fitting = [one for one in by_targets[item.targets] if one.variant in ("", item.variant)]
        if fitting:
            known[item.targets, item.variant] = _majority_values(task, fitting, file)
    if task.produces != "verdicts" or not known:
        raise UserError(
            "no line is about an item of this project",
            file=file,
            found=f"{len(verdicts):,} verdicts",
            expected=f"verdicts on answers of the sources, with question '{task.question}'",
        )
    return known


def _majority_values(task: Task, verdicts: Sequence[Verdict], file: Path) -> Values:
    """The values of the verdicts on one item, with the labels of those that agree."""
    name = majority(verdict.verdict for verdict in verdicts)
    if name is None:
        raise UserError(
            "verdicts on one item contradict each other, and none has a majority",
            file=file,
            field="targets",
            found=", ".join(verdicts[0].targets),
            expected="one known verdict for an item",
        )
    labels = tuple(
        dict.fromkeys(label for verdict in verdicts if verdict.verdict == name for label in verdict.labels)
    )
    several = [field.name for field in task.fields if field.kind == "choices"]
    return {task.decides[0]: name, **(dict.fromkeys(several, labels) if labels else {})}


def _known(task: Task, item: Item) -> Values:
    references = item.hidden.get("references", ())
    if item.expected or task.produces != "answers" or not references:
        return item.expected
    return {"option" if "options" in item.texts else "answer": references}
