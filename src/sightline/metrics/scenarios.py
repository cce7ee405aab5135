"""What undecided verdicts can change: a group as each scenario of a metric reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import structs

from sightline.metric_types import Metric
from sightline.types import Group, Outcome, VerdictName

SCENARIOS = 4
ALL_SCENARIOS, AS_JUDGED, DECIDED, IF_RIGHT = range(SCENARIOS)
"""The scenarios: as judged, without undecided verdicts, and as if they were right. The first means all."""


def scenarios(group: Group, metric: Metric) -> Iterator[tuple[int, Group]]:
    """List a group with undecided verdicts as each scenario of a metric reads it."""
    if metric.judged != "correct":
        yield ALL_SCENARIOS, group
        return
    yield AS_JUDGED, group
    yield IF_RIGHT, if_right(group)
    if metric.per_group:
        if list(metric.terms(if_wrong(group))) == list(metric.terms(if_right(group))):
            yield DECIDED, if_right(group)
        return
    decided = _decided(group, metric.needs)
    if decided.outcomes:
        yield DECIDED, decided


def contains_undecided(group: Group) -> bool:
    """Check whether a group, or one of its partners, has an undecided verdict."""
    return any(map(_is_undecided, group.outcomes)) or any(
        _is_undecided(outcome) for outcomes in group.partners.values() for outcome in outcomes
    )


def _is_undecided(outcome: Outcome) -> bool:
    return outcome.verdict == "undecided"


def _decided(group: Group, needs: str | None) -> Group:
    """The group without its undecided outcomes and without those whose counterpart in a partner is undecided.

    Counterparts have the same position and the same variant (CODIS: the pair without its context). A
    partner that contains something else, such as the draws of one image, excludes its own undecided outcomes.
    """
    partner = group.partners.get(needs, ()) if needs else ()
    paired = [outcome.variant for outcome in group] == [outcome.variant for outcome in partner]
    sides = (group.outcomes, partner) if paired else (group.outcomes,)
    dropped = {
        position for outcomes in sides for position, outcome in enumerate(outcomes) if _is_undecided(outcome)
    }

    def keep(outcomes: tuple[Outcome, ...], *, by_position: bool) -> tuple[Outcome, ...]:
        return tuple(
            outcome
            for position, outcome in enumerate(outcomes)
            if not (position in dropped if by_position else _is_undecided(outcome))
        )

    partners = {setting: keep(outcomes, by_position=paired) for setting, outcomes in group.partners.items()}
    return structs.replace(group, outcomes=keep(group.outcomes, by_position=True), partners=partners)


def if_right(group: Group) -> Group:
    """The group as if every undecided verdict were right.

    If several probes share one answer, such as both contexts of a pair that is asked without them, the
    answer can be right for one reference at most.
    """

    def decide(outcomes: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
        right = {outcome.key: outcome.references for outcome in outcomes if outcome.right}
        settled = []
        for outcome in outcomes:
            if _is_undecided(outcome):
                credited = right.setdefault(outcome.key, outcome.references)
                verdict: VerdictName = "right" if credited == outcome.references else "wrong"
                outcome = structs.replace(outcome, verdict=verdict)
            settled.append(outcome)
        return tuple(settled)

    return _each_outcome(group, decide)


def if_wrong(group: Group) -> Group:
    """The group as if every undecided verdict were wrong."""
    return _each_outcome(
        group,
        lambda outcomes: tuple(
            structs.replace(outcome, verdict="wrong") if _is_undecided(outcome) else outcome
            for outcome in outcomes
        ),
    )


def _each_outcome(group: Group, decide: Callable[[tuple[Outcome, ...]], tuple[Outcome, ...]]) -> Group:
    partners = {setting: decide(outcomes) for setting, outcomes in group.partners.items()}
    return structs.replace(group, outcomes=decide(group.outcomes), partners=partners)
