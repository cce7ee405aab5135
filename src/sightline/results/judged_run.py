"""A run whose answers are judged: its result and its groups, from the store or from a results folder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path

from msgspec import Struct

from sightline.errors import UserError
from sightline.formats.jsonl import read_outcomes
from sightline.formats.verdicts import read_recorded_verdicts
from sightline.formats.whole_results import METRICS
from sightline.judging.verdict_selection import select_verdict
from sightline.metric_types import Result
from sightline.plan.spec import Decide
from sightline.registry import benchmark as find_benchmark
from sightline.results.read_results import read_result
from sightline.results.sent_groups import SentGroups
from sightline.results.stored_groups import StoredGroups
from sightline.types import Case, Group, GroupKey, Outcome, Verdict


class JudgedRun(Struct, frozen=True, kw_only=True, dict=True):
    """The result of a run, and its judged groups by their keys, each read when it is asked for.

    `name` is what tables call the run.
    """

    name: str
    result: Result
    groups: Mapping[GroupKey, Group]

    @cached_property
    def sent(self) -> SentGroups:
        """The groups whose probes were all sent."""
        return SentGroups(self.groups)


def read_judged_run(folder: Path) -> JudgedRun:
    """Read a judged run from its results folder, with the verdicts that the folder holds."""
    if not (folder / METRICS).is_file():
        raise UserError(
            "is neither the number or name of a run nor a results folder",
            file=folder,
            expected=f"a run of `sightline runs list`, or a folder with {METRICS} (--out)",
        )
    result = read_result(folder)
    benchmark = find_benchmark(result.benchmark)
    pools = benchmark.pools_draws(result.options)
    decide: Decide = "majority" if result.options.get("decide") == "majority" else "first"
    about_several = _verdicts_by_first_target(read_recorded_verdicts(folder / "verdicts.jsonl"))

    def key_of(outcome: Outcome) -> GroupKey:
        return (outcome.sample, 0, outcome.variant) if pools else (outcome.sample, outcome.draw, "")

    groups = StoredGroups()
    for key, members in groupby(read_outcomes(folder / "answers.jsonl"), key_of):
        # The lines of a group follow each other, except in files that were put together.
        earlier = groups[key].outcomes if key in groups else ()
        groups.add(_group(key, [*earlier, *members], about_several, decide))
    return JudgedRun(name=str(folder), result=result, groups=groups)


def group_of_lines(
    key: GroupKey, outcomes: Sequence[Outcome], verdicts: Iterable[Verdict], decide: Decide
) -> Group:
    """Make a judged group of its lines in a results folder."""
    return _group(key, outcomes, _verdicts_by_first_target(verdicts), decide)


def _group(
    key: GroupKey,
    outcomes: Sequence[Outcome],
    about_several: Mapping[str, Sequence[Verdict]],
    decide: Decide,
) -> Group:
    sample, draw, pooled = key
    judgements = tuple(_judgements(outcomes, about_several, decide))
    cluster = outcomes[0].cluster
    return Group(sample, draw, cluster, tuple(outcomes), judgements=judgements, pooled=pooled)


def _verdicts_by_first_target(verdicts: Iterable[Verdict]) -> Mapping[str, Sequence[Verdict]]:
    """The verdicts on several answers, each once: samples that share requests repeat them."""
    found: defaultdict[str, dict[tuple[object, ...], Verdict]] = defaultdict(dict)
    for verdict in verdicts:
        if len(verdict.targets) > 1:
            identity = (verdict.targets, verdict.question, verdict.scorer, verdict.judge, verdict.draw)
            found[verdict.targets[0]].setdefault(identity, verdict)
    return {first: list(by_identity.values()) for first, by_identity in found.items()}


def _judgements(
    outcomes: Sequence[Outcome], about_several: Mapping[str, Sequence[Verdict]], decide: Decide
) -> Iterator[Verdict]:
    """The verdict that counts on each case about several answers of a group."""
    keys = {outcome.key for outcome in outcomes}
    cases: defaultdict[tuple[str, tuple[str, ...]], list[Verdict]] = defaultdict(list)
    for key in dict.fromkeys(outcome.key for outcome in outcomes):
        for verdict in about_several.get(key, ()):
            if keys.issuperset(verdict.targets):
                cases[verdict.question, verdict.targets].append(verdict)
    for (question, targets), verdicts in cases.items():
        by_judge: defaultdict[str, list[Verdict]] = defaultdict(list)
        for verdict in verdicts:
            by_judge[verdict.scorer if verdict.kind == "human" else verdict.judge].append(verdict)
        case = Case(targets, question, "", ())
        yield select_verdict(case, list(by_judge.values()), decide)
