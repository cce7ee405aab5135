"""The verdict that counts, where several judges decide on one case."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from sightline.plan.spec import Decide
from sightline.scoring.majority import majority
from sightline.types import Case, Verdict, VerdictName

_NO_OPINION = ("undecided", "error", "unscored")


def select_verdict(case: Case, by_judge: Sequence[list[Verdict]], decide: Decide) -> Verdict:
    """Select the verdict that counts.

    Args:
        case: The case that was judged.
        by_judge: The verdicts of each judge on it, in the order of the judges; a judge of several humans
            gives several.
        decide: `first` takes the first judge who decides (of several humans, their majority). `majority`
            takes the majority of all verdicts.

    Returns:
        The verdict that counts. It is `undecided` where nobody decides or the majority is tied, and
        `unscored` where nobody decides on an answer without a reference.
    """
    if decide == "majority":
        return _majority_verdict(case, [verdict for verdicts in by_judge for verdict in verdicts])
    opinions = [_majority_verdict(case, verdicts) for verdicts in by_judge if verdicts]
    for opinion in opinions:
        if opinion.verdict not in _NO_OPINION:
            return opinion
    unscored = [opinion for opinion in opinions if opinion.verdict == "unscored"]
    if unscored:
        return unscored[0]
    return replace(opinions[0], verdict="undecided") if opinions else _open_verdict(case)


def _majority_verdict(case: Case, verdicts: Sequence[Verdict]) -> Verdict:
    if len(verdicts) == 1:
        return verdicts[0]
    winner = majority(verdict.verdict for verdict in verdicts if verdict.verdict not in _NO_OPINION)
    names = ", ".join(dict.fromkeys(verdict.judge for verdict in verdicts))
    if winner is None:
        return replace(_open_verdict(case), scorer="majority", judge=names)
    first = next(verdict for verdict in verdicts if verdict.verdict == winner)
    return replace(first, scorer="majority", judge=f"majority of {names}", raw="")


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
