"""Metrics of single answers and of chosen options: accuracy, error, miss, letters, the gain by the image."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from sightline.scoring.options import SIX_LETTERS
from sightline.scoring.scorer import flag
from sightline.types import Group, Metric, Outcome, Term

NO_KEY = (
    "no answer key: the test split is released without answers (--set answers=FILE gives a key; the split dev"
    " has one)"
)


def accuracy(group: Group) -> Iterator[Term]:
    """1 for a right answer, of 1 scored (II-Bench Table 3)."""
    for outcome in group:
        if outcome.scored:
            yield Term(outcome.right, 1)


def accuracy_by_position(group: Group) -> Iterator[Term]:
    """1 for a right answer, of 1 scored, under the letter of the right option."""
    for outcome in group:
        if outcome.scored and outcome.options and len(outcome.references) == 1:
            yield Term(outcome.right, 1, {"position": outcome.references[0]})


def image_gain(group: Group) -> Iterator[Term]:
    """Right with the image minus right without it, of 1 scored both times (II-Bench Table 6)."""
    for shown, hidden in zip(group, group.partners.get("no-image", ()), strict=False):
        if shown.scored and hidden.scored:
            yield Term(shown.right - hidden.right, 1)


def consistent(group: Group) -> Iterator[Term]:
    """1 for a question answered right under every order of its options, of 1 scored under all."""
    if all(outcome.scored for outcome in group):
        yield Term(all(outcome.right for outcome in group), 1)


def parts(group: Group, key: Callable[[Outcome], str | None]) -> Iterator[Sequence[Outcome]]:
    """The answers of a group by a grouping within it, which may cross others; None: in no part."""
    found: dict[str, list[Outcome]] = {}
    for outcome in group:
        if (name := key(outcome)) is not None:
            found.setdefault(name, []).append(outcome)
    yield from found.values()


def all_right(
    key: Callable[[Outcome], str | None], is_right: Callable[[Outcome], bool] = attrgetter("right")
) -> Callable[[Group], Iterator[Term]]:
    """1 for a part of a group whose answers are all right, of 1 whose answers are all scored."""

    def terms(group: Group) -> Iterator[Term]:
        for part in parts(group, key):
            if all(outcome.scored for outcome in part):
                yield Term(all(map(is_right, part)), 1)

    return terms


def share_of(holds: Callable[[Outcome], bool]) -> Callable[[Group], Iterator[Term]]:
    def terms(group: Group) -> Iterator[Term]:
        for outcome in group:
            yield Term(holds(outcome), 1)

    return terms


def refused(group: Group) -> Iterator[Term]:
    """1 for an outcome that declines to answer: the verdict `refused`, or that flag in `scores`."""
    for outcome in group:
        declines = outcome.verdict == "refused" or flag(outcome.scores, "refused")
        if declines is not None:
            yield Term(declines, 1)


def _is_letter(letter: str) -> Callable[[Outcome], bool]:
    return lambda outcome: outcome.extracted == letter


ACCURACY = Metric(
    name="accuracy",
    terms=accuracy,
    meaning="questions, in each option order, that are answered right",
    better="higher",
    source="II-Bench 4.1, Table 3",
    absent=NO_KEY,
    reads="verdicts",
)
ACCURACY_BY_POSITION = Metric(
    name="accuracy_by_position",
    terms=accuracy_by_position,
    meaning="questions that are answered right, by the letter of the right option",
    better="higher",
    source="beyond the paper",
    absent=NO_KEY,
    reads="letters",
)
ERROR = Metric(
    name="error",
    terms=share_of(lambda outcome: not outcome.answered),
    meaning="requests that failed",
    better="lower",
    source="II-Bench 4.1, Tables 9-12",
    judged=None,
    counts_failures=True,
    reads="verdicts",
)
MISS = Metric(
    name="miss",
    terms=share_of(lambda outcome: outcome.verdict == "miss"),
    meaning="responses from which no option can be extracted",
    better="lower",
    source="II-Bench 4.1, Tables 9-12",
    judged=None,
    reads="verdicts",
)
EMPTY = Metric(
    name="empty",
    terms=share_of(lambda outcome: outcome.status == "empty"),
    meaning="responses without text",
    better="lower",
    source="beyond the paper",
    judged=None,
    reads="verdicts",
)
REFUSED = Metric(
    name="refused",
    terms=refused,
    meaning="responses that decline to answer",
    better="lower",
    source="beyond the paper; II-Bench 4.3",
    judged=None,
    reads="verdicts",
)
ANSWERED = tuple(
    Metric(
        name=f"answered_{letter}",
        terms=share_of(_is_letter(letter)),
        meaning=f"responses that choose option {letter}",
        better="neither",
        source="beyond the paper",
        judged=None,
        reads="letters",
    )
    for letter in SIX_LETTERS
)
IMAGE_GAIN = Metric(
    name="image_gain",
    terms=image_gain,
    meaning="accuracy with the image minus accuracy without it: low where answers leaked",
    better="higher",
    range=(-100.0, 100.0),
    source="II-Bench B.2, Table 6",
    needs="no-image",
    absent=NO_KEY,
)
CONSISTENT = Metric(
    name="consistent",
    terms=consistent,
    meaning="questions answered right under every order of the options",
    better="higher",
    source="beyond the paper",
    absent=NO_KEY,
    per_group=True,
    reads="verdicts",
)
