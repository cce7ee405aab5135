"""Blind rating: humans rate answers without knowing who gave them.

ConTextual (section 3.2.1) draws 280 instances and shows the responses of all six responders to three humans
each, who decide whether a response is acceptable given the reference, the instruction and the image. II-Bench
(section 4.3) draws wrong answers in proportion to the domains, and humans name the errors in them.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

from msgspec import UNSET

from sightline.builders.manifest import fingerprint
from sightline.builders.review_lists import ERRORS, Mark, MarkWords
from sightline.builders.stratified_sampling import draw_indices
from sightline.errors import UserError, unknown_name
from sightline.formats.jsonl import read_outcomes
from sightline.types import ImageRef, Outcome, Probe, Sample, Verdict

RIGHT = MarkWords("right", "wrong")
ANSWERS = "answers.jsonl"
WRONG = ("wrong", "miss", "refused")

Unit = tuple[Outcome, ...]
"""What is drawn as a whole: all answers to an instance, or one wrong answer."""

ProbeName = tuple[str, str]
"""Sample and variant."""


def answers_file(path: Path) -> Path:
    """Find the answers of a run.

    Args:
        path: A results folder, or an answers.jsonl.

    Returns:
        The answers.jsonl.

    Raises:
        UserError: It does not exist.
    """
    file = path / ANSWERS if path.is_dir() else path
    if not file.is_file():
        raise UserError("is not there", file=file, expected=f"a results folder (--out), or an {ANSWERS}")
    return file


def read_run(file: Path) -> list[Outcome]:
    """Read the first answer to each probe of a run.

    Args:
        file: An answers.jsonl.

    Returns:
        The answers.
    """
    return [outcome for outcome in read_outcomes(file) if outcome.draw == 0]


def shared_instances(runs: Sequence[Sequence[Outcome]]) -> list[Unit]:
    """Select the instances that every run has answered and that have a reference.

    An instance is a group of probes. It is left out as a whole if one of its answers failed, or if runs
    answered different probes of it.

    Args:
        runs: The answers of each run.

    Returns:
        The answers of all runs to each instance, in the first run's order.

    Raises:
        UserError: There is no such instance.
    """
    by_run = [_instances(run) for run in runs]
    units = [
        tuple(outcome for instances in by_run for outcome in instances[name])
        for name in by_run[0]
        if all(_complete(instances.get(name, [])) for instances in by_run)
        and len({_probes(instances[name]) for instances in by_run}) == 1
    ]
    if not units:
        some = "the run" if len(runs) == 1 else f"each of the {len(runs)} runs"
        sent = [outcome for instances in by_run for found in instances.values() for outcome in found]
        raise UserError(
            f"no instance has an answer of {some}",
            found=f"{sum(outcome.answered for outcome in sent):,} of {len(sent):,} probes have an answer",
            expected="answers with references; several runs are on the same data, in one setting",
        )
    return units


def wrong_answers(run: Sequence[Outcome]) -> list[Unit]:
    """Select the answers of a run that are not right.

    Args:
        run: The answers.

    Returns:
        A unit for each.

    Raises:
        UserError: There is none.
    """
    units: list[Unit] = [(outcome,) for outcome in run if outcome.verdict in WRONG]
    if not units:
        raise UserError("no answer is wrong", found=f"{len(run):,} answers", expected="judged answers")
    return units


def draw_units(units: Sequence[Unit], count: int, seed: int, by: str | None = None) -> list[Unit]:
    """Draw units at random.

    Args:
        units: The units.
        count: Largest number of units to draw.
        seed: Seed of the draw.
        by: A label; units are drawn in proportion to its values.

    Returns:
        The drawn units, in their order.

    Raises:
        UserError: `count` is below 1, or a unit lacks the label.
    """
    if count < 1:
        raise UserError("--count draws nothing", found=count, expected="1 or more")
    categories = [_label(unit[0], by) if by else "" for unit in units]
    indices = draw_indices(categories, min(count, len(units)), Random(f"rating {seed}"))
    return [units[index] for index in indices]


def review_columns(
    units: Iterable[Unit], images: Mapping[ProbeName, Sequence[str]], seed: int
) -> dict[str, dict[str, str]]:
    """The columns of a review list about answers, in random order; nothing in it names a responder.

    Args:
        units: The drawn units.
        images: The paths of the images of each probe; a probe without any is named by its sample.
        seed: Seed of the order.

    Returns:
        Key of an answer -> column -> cell.
    """
    answers = {_key(outcome): outcome for unit in units for outcome in unit}
    keys = sorted(answers)
    Random(f"order {seed}").shuffle(keys)
    optional = [
        column
        for column, filled in (
            ("context", any(outcome.context for outcome in answers.values())),
            ("options", any(outcome.options for outcome in answers.values())),
        )
        if filled
    ]
    return {key: _cells(answers[key], images, optional) for key in keys}


def sent_images(runs: Iterable[Sequence[Outcome]]) -> dict[ProbeName, tuple[str, ...]]:
    """The images that answers say were sent.

    Args:
        runs: The answers of each run.

    Returns:
        The paths in the data folder by probe; of several runs, those of the first that sent images.
    """
    images: dict[ProbeName, tuple[str, ...]] = {}
    for run in runs:
        for outcome in run:
            if outcome.images:
                images.setdefault((outcome.sample, outcome.variant), outcome.images)
    return images


def probe_images(probe: Probe, sample: Sample, sent: Sequence[str]) -> list[str]:
    """The images that a rater of an answer sees.

    Args:
        probe: The probe of the answer.
        sample: Its sample.
        sent: The images that were sent with it, by their paths in the data folder.

    Returns:
        The paths of the images sent; of none, those that the probe shows; of none, that of the sample.
    """
    shown = [part for message in probe.messages for part in message.parts if isinstance(part, ImageRef)]
    if sent and sample.images:
        return [os.path.join(sample.images[0].root, path) for path in sent]
    return [image.path for image in shown or sample.images[:1]]


def verdicts_of(runs: Iterable[Sequence[Outcome]], marks: Mapping[str, Sequence[Mark]]) -> list[Verdict]:
    """Turn marks into verdicts.

    Args:
        runs: The answers of each run.
        marks: The marks by key of the answer.

    Returns:
        The verdict of each human on each marked answer, in the order of the runs.

    Raises:
        UserError: A mark is about none of the answers: about another run, or an answer that has changed.
    """
    answers = {_key(outcome): outcome for run in runs for outcome in run}
    unknown = [key for key in marks if key not in answers]
    if unknown:
        raise UserError(
            f"{len(unknown):,} of {len(marks):,} marked answers are not among the answers of these runs",
            record=unknown[0],
            expected="all runs from which the list was drawn, unchanged",
        )
    return [
        Verdict(
            targets=(outcome.key,),
            question="correct",
            scorer="human",
            judge=mark.by,
            kind="human",
            verdict="right" if mark.yes else "wrong",
            raw=mark.remark,
            variant=outcome.variant,
            labels=() if mark.errors is UNSET else mark.errors,
        )
        for key, outcome in answers.items()
        for mark in marks.get(key, ())
    ]


def _instances(run: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    instances: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in run:
        instances[outcome.sample].append(outcome)
    return dict(instances)


def _complete(answers: Sequence[Outcome]) -> bool:
    return bool(answers) and all(one.answered and one.references for one in answers)


def _probes(answers: Iterable[Outcome]) -> frozenset[tuple[str, str]]:
    return frozenset((one.sample, one.variant) for one in answers)


def _label(outcome: Outcome, name: str) -> str:
    if name not in outcome.labels:
        raise unknown_name("label", name, outcome.labels)
    value = outcome.labels[name]
    return value if isinstance(value, str) else ", ".join(value)


def _key(outcome: Outcome) -> str:
    """The key of an answer: a digest of what reviewers see, so that marks do not outlive a change."""
    content = [outcome.key, outcome.variant, outcome.question, outcome.references, outcome.response]
    return fingerprint(content)[:16]


def _cells(
    outcome: Outcome, images: Mapping[ProbeName, Sequence[str]], optional: Sequence[str]
) -> dict[str, str]:
    cells = {"context": outcome.context, "options": "\n".join(outcome.options)}
    return {
        ERRORS: "",
        "image": "\n".join(images.get((outcome.sample, outcome.variant), [outcome.sample])),
        "asked": outcome.question,
        **{column: cells[column] for column in optional},
        "reference": "\n".join(outcome.references),
        "response": outcome.response,
    }
