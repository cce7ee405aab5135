"""Which answers humans rate, or explain: instances that all runs answered, or sampled wrong answers.

ConTextual (section 3.2.1) draws 280 instances and shows the responses of all six responders to three humans
each, who decide whether a response is acceptable given the reference, the instruction and the image. II-Bench
(section 4.3) draws wrong answers in proportion to the domains, and humans name the errors in them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from random import Random

from sightline.annotation.sources.probes import label_of
from sightline.builders.stratified_sampling import draw_indices
from sightline.errors import UserError
from sightline.types import Outcome

WRONG = ("wrong", "miss", "refused")

Unit = tuple[Outcome, ...]
"""What is drawn as a whole: all answers to an instance, or one wrong answer."""

ProbeName = tuple[str, str]
"""Sample and variant."""


def shared_instances(runs: Sequence[Sequence[Outcome]]) -> list[Unit]:
    """Select the instances that every run has answered and that have a reference.

    An instance is a group of probes. It is left out as a whole if one of its answers failed, or if runs
    answered different probes of it.
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
    """Select the answers of a run that are not right."""
    units: list[Unit] = [(outcome,) for outcome in run if outcome.verdict in WRONG]
    if not units:
        raise UserError("no answer is wrong", found=f"{len(run):,} answers", expected="judged answers")
    return units


def draw_units(units: Sequence[Unit], count: int, seed: int, by: str = "") -> list[Unit]:
    """Draw units at random.

    Args:
        by: A label; units are drawn in proportion to its values. '' for none.
    """
    if count < 1:
        raise UserError("--items draws nothing", found=count, expected="1 or more")
    categories = [label_of(unit[0].labels, by) for unit in units]
    indices = draw_indices(categories, min(count, len(units)), Random(f"rating {seed}"))
    return [units[index] for index in indices]


def sent_images(runs: Iterable[Sequence[Outcome]]) -> dict[ProbeName, tuple[str, ...]]:
    """The images that answers say were sent."""
    images: dict[ProbeName, tuple[str, ...]] = {}
    for run in runs:
        for outcome in run:
            if outcome.images:
                images.setdefault((outcome.sample, outcome.variant), outcome.images)
    return images


def _instances(run: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    instances: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in run:
        instances[outcome.sample].append(outcome)
    return dict(instances)


def _complete(answers: Sequence[Outcome]) -> bool:
    return bool(answers) and all(one.answered and one.references for one in answers)


def _probes(answers: Iterable[Outcome]) -> frozenset[tuple[str, str]]:
    return frozenset((one.sample, one.variant) for one in answers)
