"""The synthetic data of the study: groups to train on, in words or in sentences, and groups of the test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from sightline.adapter.examples import ExampleGroups, TrainingExample, read_examples
from sightline.formats.groups import ORIGINAL, by_group, read_groups
from sightline.types import ImageRef, user
from training.adapter.design import LEFT_OUT, ONE_WORD, TASKS, WITHOUT, Sizes, Training
from training.adapter.result_files import Design, TaskShape, encode
from training.scenes.build import generate_mmr3

ONE_WORD_TEST = "restyling, one word"
SENTENCES: Mapping[str, str] = {
    "rephrasing": "the answer is {}.",
    "restyling": "this is a {}.",
    "context": "this is a {}.",
}
"""The sentence of each task around the reference."""


class TestGroup(Struct, frozen=True):
    """A group of the test: its prompts, its references, and the positions with the left-out label."""

    __test__ = False

    examples: tuple[TrainingExample, ...]
    references: tuple[str, ...]
    labelled: tuple[int, ...]


class Scenes:
    """The data of the study in a folder, generated once."""

    def __init__(self, folder: Path, sizes: Sizes) -> None:
        """Name the folder; write nothing.

        Args:
            folder: Where the data are, or will be.
            sizes: The sizes of the study.
        """
        self._train = folder / f"train-{sizes.groups}"
        self._test = folder / f"test-{sizes.test}"
        self._sizes = sizes

    def generate(self) -> None:
        """Generate what is missing: the combinations of the test are held out of the training."""
        for folder, seed, count in (
            (self._train, 7, self._sizes.groups),
            (self._test, 1000, self._sizes.test),
        ):
            done = folder / "complete"
            if not done.exists():
                generate_mmr3(folder, groups=count, seed=seed, held_out=folder == self._test)
                done.touch()

    def training(self, data: Training) -> ExampleGroups:
        """The groups that arms with these data learn.

        Args:
            data: What is left out, and whether the references are sentences.

        Returns:
            The groups of all tasks.
        """
        found: ExampleGroups = []
        for task in TASKS:
            groups = read_examples([self._file(self._train, task)], _without(task, data))
            if data == "sentences":
                groups = [[_in_sentence(example, task) for example in group] for group in groups]
            found += groups
        return found

    def test(self, name: str) -> list[TestGroup]:
        """The groups of a test.

        Args:
            name: A task, or `ONE_WORD_TEST`.

        Returns:
            The groups, without their originals.
        """
        task = name.partition(",")[0]
        label, value = LEFT_OUT[task]
        file = self._file(self._test, task)
        lines = by_group(read_groups(file))
        groups = []
        for examples, of_group in zip(read_examples([file], {}), lines.values(), strict=True):
            variants = [line for line in of_group if line.variant != ORIGINAL]
            places = tuple(at for at, line in enumerate(variants) if line.labels.get(label) == value)
            asked = [_in_one_word(one) for one in examples] if name == ONE_WORD_TEST else examples
            groups.append(TestGroup(tuple(asked), examples[0].references, places))
        return groups

    def design(self) -> Design:
        """The design that results of these data belong to."""
        shapes = {}
        for task in TASKS:
            groups = self.test(task)
            labelled = encode([len(group.labelled) for group in groups])
            shapes[task] = TaskShape(len(groups[0].examples), labelled)
        return Design(self._sizes, shapes)

    @staticmethod
    def _file(folder: Path, task: str) -> Path:
        return folder / task / "groups.jsonl"


def _without(task: str, data: Training) -> Mapping[str, Sequence[str]]:
    """The labels that are left out of a task."""
    label, _ = LEFT_OUT[task]
    return {} if data == "whole" else {label: WITHOUT[label]}


def _in_sentence(example: TrainingExample, task: str) -> TrainingExample:
    request = replace(example.request, key=f"{example.request.key} sentence")
    return example._replace(request=request, answer=SENTENCES[task].format(example.answer))


def _in_one_word(example: TrainingExample) -> TrainingExample:
    images = [part for part in example.request.messages[0].parts if isinstance(part, ImageRef)]
    messages = (user(*images, ONE_WORD),)
    request = replace(example.request, key=f"{example.request.key} one word", messages=messages)
    return example._replace(request=request)
