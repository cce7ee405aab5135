"""The verdict that counts, where several judges decide on one case, or one judge several times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from sightline.plan.spec import Decide
from sightline.scoring.majority import MAJORITY_OF, majority
from sightline.types import Case, Verdict, VerdictName

_NO_OPINION = ("undecided", "error", "unscored")


def select_verdict(case: Case, by_judge: Sequence[list[Verdict]], decide: Decide) -> Verdict:
    """Select the verdict that counts.

    A majority is one over right and not right (`wrong`, `miss`, `refused`). Verdicts that decide nothing
    (`undecided`, `error`, `unscored`) do not vote. Each judge and each human has one vote: see
    `combine_repeats`.
    """
    if decide == "majority":
        everyone = [verdict for verdicts in by_judge for verdict in verdicts]
        return _majority_verdict(case, combine_repeats(everyone))
    opinions = [_majority_verdict(case, combine_repeats(verdicts)) for verdicts in by_judge if verdicts]
    for opinion in opinions:
        if opinion.verdict not in _NO_OPINION:
            return opinion
    unscored = [opinion for opinion in opinions if opinion.verdict == "unscored"]
    if unscored:
        return unscored[0]
    return replace(opinions[0], verdict="undecided") if opinions else _open_verdict(case)


def combine_repeats(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Combine the verdicts of each judge on one case.

    Returns:
        One verdict for each judge, in the order of their first verdicts: the majority of its repeats over
        right and not right, `undecided` if they are tied or none decides, `error` if all failed.
    """
    verdicts = list(verdicts)
    if len(verdicts) == 1:
        return verdicts
    by_judge: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        by_judge.setdefault((verdict.kind, verdict.judge), []).append(verdict)
    return [_of_repeats(own) for own in by_judge.values()]


def _of_repeats(own: Sequence[Verdict]) -> Verdict:
    if (winner := _winner(own)) is not None:
        return winner
    answered = [verdict for verdict in own if verdict.verdict != "error"]
    if len(own) == 1 or not answered:
        return own[0]
    return answered[0] if answered[0].verdict == "unscored" else replace(answered[0], verdict="undecided")


def _majority_verdict(case: Case, verdicts: Sequence[Verdict]) -> Verdict:
    """The majority of verdicts of different judges."""
    if len(verdicts) == 1:
        return verdicts[0]
    names = ", ".join(dict.fromkeys(verdict.judge for verdict in verdicts))
    winner = _winner(verdicts)
    if winner is None:
        return replace(_open_verdict(case), scorer="majority", judge=names)
    return replace(winner, scorer="majority", judge=f"{MAJORITY_OF}{names}", raw="")


def _winner(verdicts: Sequence[Verdict]) -> Verdict | None:
    """The first verdict of the majority over right and not right, with its most frequent name."""
    deciding = [verdict for verdict in verdicts if verdict.verdict not in _NO_OPINION]
    is_right = majority(verdict.verdict == "right" for verdict in deciding)
    if is_right is None:
        return None
    agreeing = [verdict for verdict in deciding if (verdict.verdict == "right") == is_right]
    ((name, _),) = Counter(verdict.verdict for verdict in agreeing).most_common(1)
    return next(verdict for verdict in agreeing if verdict.verdict == name)


def _open_verdict(case: Case) -> Verdict:
    """The verdict on a case that nobody decides."""
    verdict: VerdictName = "undecided" if case.references or case.question != "correct" else "unscored"
    return Verdict(
        targets=case.targets,
        question=case.question,
        scorer="",
        judge="",
        kind="rules",
        verdict=verdict,
        variant=case.variant,
    )
