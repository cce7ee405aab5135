"""Rating: answers that people rate without knowing who gave them.

ConTextual (section 3.2.1) draws 280 instances and shows the responses of all six responders to three people
each, who decide whether a response is acceptable given the reference, the instruction and the image.
II-Bench (section 4.3) draws wrong answers in proportion to the domains, and people name the errors in them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

from msgspec import UNSET

from sightline.builders.manifest import fingerprint
from sightline.builders.review_lists import ERRORS, Mark, MarkWords
from sightline.builders.stratified_sampling import draw_places
from sightline.errors import UserError, unknown_name
from sightline.formats.jsonl import read_outcomes
from sightline.types import Outcome, Verdict

RIGHT = MarkWords("right", "wrong")
ANSWERS = "answers.jsonl"
WRONG = ("wrong", "miss", "refused")

Unit = tuple[Outcome, ...]
"""What is drawn as one: all answers to an instance, or a wrong answer."""


def answers_of(path: Path) -> Path:
    """The answers.jsonl of a results folder, or that file itself; UserError where it is not there."""
    file = path / ANSWERS if path.is_dir() else path
    if not file.is_file():
        raise UserError("is not there", file=file, expected=f"a results folder (--out), or an {ANSWERS}")
    return file


def read_run(file: Path) -> list[Outcome]:
    """The first answer to each probe in an answers.jsonl; UserError where it is none."""
    return [outcome for outcome in read_outcomes(file) if outcome.draw == 0]


def shared(runs: Sequence[Sequence[Outcome]]) -> list[Unit]:
    """The answers of all runs to each instance that every one of them has answered, in the first run's order.

    What has no reference is left out: people could not tell. An instance is a group of probes; it is left out
    as a whole where one of its answers failed, or runs answered other probes of it. UserError where nothing
    is left.
    """
    by_run = [_instances(run) for run in runs]
    found = [
        tuple(outcome for instances in by_run for outcome in instances[name])
        for name in by_run[0]
        if all(_complete(instances.get(name, [])) for instances in by_run)
        and len({_probes(instances[name]) for instances in by_run}) == 1
    ]
    if not found:
        expected = "runs on the same data, in one setting, with references"
        raise UserError(f"no instance has an answer of each of the {len(runs)} runs", expected=expected)
    return found


def wrong(run: Sequence[Outcome]) -> list[Unit]:
    """The answers of a run that are not right, each by itself. UserError where there is none."""
    found: list[Unit] = [(outcome,) for outcome in run if outcome.verdict in WRONG]
    if not found:
        raise UserError("no answer is wrong", found=f"{len(run):,} answers", expected="judged answers")
    return found


def draw(units: Sequence[Unit], count: int, seed: int, by: str | None = None) -> list[Unit]:
    """At most `count` units drawn by `seed`, in their order; in proportion to the values of the label `by`.

    UserError for a count below 1, and where a unit lacks the label.
    """
    if count < 1:
        raise UserError("--count draws nothing", found=count, expected="1 or more")
    kinds = [_label(unit[0], by) if by else "" for unit in units]
    places = draw_places(kinds, min(count, len(units)), Random(f"rating {seed}"))
    return [units[place] for place in places]


def listed(units: Iterable[Unit], images: Mapping[str, str], seed: int) -> dict[str, dict[str, str]]:
    """What people are shown of answers, by key, all mixed by `seed`: nothing says who gave one.

    `images` are paths by sample; of a sample without one its name is shown.
    """
    answers = {_key(outcome): outcome for unit in units for outcome in unit}
    keys = sorted(answers)
    Random(f"order {seed}").shuffle(keys)
    offers = any(outcome.options for outcome in answers.values())
    return {key: _shown(answers[key], images, offers) for key in keys}


def verdicts(runs: Iterable[Sequence[Outcome]], marks: Mapping[str, Sequence[Mark]]) -> list[Verdict]:
    """The verdict of each person on each answer that was marked, in the order of the runs.

    UserError where a mark is about none of these answers: another run's, or one that has changed since.
    """
    answers = {_key(outcome): outcome for run in runs for outcome in run}
    strange = [key for key in marks if key not in answers]
    if strange:
        raise UserError(
            f"{len(strange):,} of {len(marks):,} marked answers are not among these runs'",
            record=strange[0],
            expected="all runs that the list was drawn from, as they were",
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
    found: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in run:
        found[outcome.sample].append(outcome)
    return dict(found)


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
    """What tells an answer again as long as it is what people saw."""
    seen = [outcome.key, outcome.variant, outcome.question, outcome.references, outcome.response]
    return fingerprint(seen)[:16]


def _shown(outcome: Outcome, images: Mapping[str, str], offers: bool) -> dict[str, str]:
    return {
        ERRORS: "",
        "image": images.get(outcome.sample, outcome.sample),
        "asked": outcome.question,
        **({"options": "\n".join(outcome.options)} if offers else {}),
        "reference": "\n".join(outcome.references),
        "response": outcome.response,
    }
