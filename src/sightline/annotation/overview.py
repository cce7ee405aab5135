"""The numbers of a project for its owner: progress, annotators, agreement, what is to be settled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from msgspec import Struct

from sightline.annotation.agreement import AgreementPoint, Votes, agreement_of, independent_votes
from sightline.annotation.annotator_rows import AnnotatorRow, annotator_row
from sightline.annotation.assignment import REPORTS
from sightline.annotation.decisions import Decision, decisions_of, judged_by_raters, settlers, wanted
from sightline.annotation.eligibility import able_raters, could_judge, sharing_raters
from sightline.annotation.state import State
from sightline.annotation.types import Annotator
from sightline.metric_types import MetricValue


class Overview(Struct, frozen=True):
    """A project as its owner sees it.

    Attributes:
        seconds: The median time per judgement; None without any.
    """

    items: int
    judgements: int
    wanted: int
    decisions: Mapping[int, Decision]
    votes: Mapping[int, Votes]
    shared: int
    alpha: MetricValue
    growth: Sequence[AgreementPoint]
    annotators: Sequence[AnnotatorRow]
    seconds: float | None
    broken: Sequence[int]
    obtainable: int
    stuck: Mapping[int, Sequence[int]]

    def with_status(self, status: str) -> list[int]:
        """List the items of a status."""
        return [number for number, decision in self.decisions.items() if decision.status == status]


def overview(state: State, annotators: Sequence[Annotator], now: float, growth: int = 10) -> Overview:
    """Compute the overview of a project.

    Args:
        now: Seconds since 1970.
        growth: The most points of the growth of the agreement; 0 for none.
    """
    decisions = decisions_of(state, annotators)
    votes = independent_votes(state, annotators, decisions)
    agreement = agreement_of(state, votes, growth)
    judged = judged_by_raters(state, settlers(annotators))
    needed = {number: wanted(state.project, state.items[number]) for number in decisions}
    missing = {
        number: votes - judged[number]
        for number, votes in needed.items()
        if votes > judged[number] and state.reported[number] < REPORTS
    }
    able, sharing = able_raters(state, annotators, now), sharing_raters(state.project, annotators, now)
    free = {
        number: sum(could_judge(state, state.items[number], one, sharing) for one in able)
        for number in missing
    }
    return Overview(
        items=len(decisions),
        judgements=sum(judged[number] for number in decisions),
        wanted=sum(max(votes, judged[number]) for number, votes in needed.items()),
        decisions=decisions,
        votes=votes,
        shared=agreement.shared,
        alpha=agreement.alpha,
        growth=agreement.growth,
        annotators=[annotator_row(state, annotators, one, now, votes) for one in annotators],
        seconds=_median_time(state, decisions),
        broken=[number for number in decisions if state.reported[number]],
        obtainable=sum(min(missing[number], raters) for number, raters in free.items()),
        stuck={
            number: _passed_on(state, able, number)
            for number, raters in free.items()
            if raters < missing[number]
        },
    )


def stuck_sentence(seen: Overview) -> str:
    """Say which items have missing votes that nobody can give, and what the owner can do."""
    if not seen.stuck:
        return ""
    numbers = ", ".join(map(str, list(seen.stuck)[:20])) + (", ..." if len(seen.stuck) > 20 else "")
    items = "1 item lacks" if len(seen.stuck) == 1 else f"{len(seen.stuck):,} items lack"
    passed = {number for some in seen.stuck.values() for number in some}
    names = [row.annotator.name for row in seen.annotators if row.annotator.number in passed]
    ask = f", or ask who skipped or reported them: {', '.join(names)}" if names else ""
    return f"{items} judgements that nobody can give now: {numbers}. Invite somebody{ask}."


def _median_time(state: State, items: Iterable[int]) -> float | None:
    seconds = [
        entry.seconds
        for number in items
        for entry in state.of_item(number).values()
        if entry.action == "judge" and entry.seconds
    ]
    return median(seconds) if seconds else None


def _passed_on(state: State, able: Sequence[Annotator], item: int) -> list[int]:
    """Who can work, and skipped an item or reported it as broken."""
    entries = state.of_item(item)
    return [one.number for one in able if one.number in entries and entries[one.number].action != "judge"]
