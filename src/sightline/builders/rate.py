"""Blind rating: humans rate answers without knowing who gave them.

ConTextual (section 3.2.1) draws 280 instances and shows the responses of all six responders to three humans
each, who decide whether a response is acceptable given the reference, the instruction and the image. II-Bench
(section 4.3) draws wrong answers in proportion to the domains, and humans name the errors in them.
"""

from __future__ import annotations

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
from sightline.types import Outcome, Verdict

RIGHT = MarkWords("right", "wrong")
ANSWERS = "answers.jsonl"
WRONG = ("wrong", "miss", "refused")

Unit = tuple[Outcome, ...]
"""What is drawn as a whole: all answers to an instance, or one wrong answer."""


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
        expected = "runs on the same data, in one setting, with references"
        raise UserError(f"no instance has an answer of each of the {len(runs)} runs", expected=expected)
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


def review_columns(units: Iterable[Unit], images: Mapping[str, str], seed: int) -> dict[str, dict[str, str]]:
    """The columns of a review list about answers, in random order; nothing in it names a responder.

    Args:
        units: The drawn units.
        images: Sample id -> path of its image; a sample without a path is named by its id.
        seed: Seed of the order.

    Returns:
        Key of an answer -> column -> cell.
    """
    answers = {_key(outcome): outcome for unit in units for outcome in unit}
    keys = sorted(answers)
    Random(f"order {seed}").shuffle(keys)
    with_options = any(outcome.options for outcome in answers.values())
    return {key: _cells(answers[key], images, with_options) for key in keys}


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


def _cells(outcome: Outcome, images: Mapping[str, str], with_options: bool) -> dict[str, str]:
    return {
        ERRORS: "",
        "image": images.get(outcome.sample, outcome.sample),
        "asked": outcome.question,
        **({"options": "\n".join(outcome.options)} if with_options else {}),
        "reference": "\n".join(outcome.references),
        "response": outcome.response,
    }
