"""How far judges and metrics agree with people, and which can be told apart (ConTextual 3.3.1, Table 4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from sightline.benchmarks.text_metrics import NAMES
from sightline.errors import UserError
from sightline.judging.agreement import MOST_JUDGES
from sightline.judging.judge_data import Item, JudgeData
from sightline.judging.ratings import RESPONDER, accepted, errors
from sightline.metrics.agreement import UNDECIDED, JudgedItem, levels
from sightline.metrics.association import (
    AGREEMENT,
    ALPHA,
    ALPHA_OF_TWO,
    KAPPA,
    ROC_AUC,
    SPEARMAN,
    Statistic,
)
from sightline.metrics.judge_results import AnnotatorAgreement, JudgeReport, JudgeResult
from sightline.metrics.judge_statistics import JudgeDifference, judge_difference, statistic_value
from sightline.metrics.statistics import Floats
from sightline.types import MetricValue, Verdict

NUMBERS = (*NAMES, "s_gt")
"""The scores of answers that say how near they are to a reference."""


class _Data(Struct, frozen=True):
    """The answers with a majority: `truth` of shape (n,), and by judge the reading of each, NaN for none."""

    items: list[Item]
    truth: Floats
    readings: Mapping[str, Floats]


def judge_report(judge_data: JudgeData, labels: Sequence[str] = (), *, seed: int = 0) -> JudgeReport:
    """Every judge and metric of the testimony against the majority of its people.

    Over all answers, by responder where there are several, and by each of `labels`. Raises UserError where
    people decided on none of the answers, or where no judge and no metric read any.
    """
    ratings = _ratings(judge_data)
    votes = np.array(list(ratings.values())).reshape(len(ratings), len(judge_data.items))
    right, wrong = ((votes == vote).sum(axis=0).astype(np.float64) for vote in (1, 0))
    # Where as many call an answer right as wrong there is no majority.
    settled = np.flatnonzero(right != wrong)
    items = [judge_data.items[place] for place in settled]
    if not items:
        others = ", ".join(dict.fromkeys(f"{one.judge} ({one.kind})" for one in judge_data.judges))
        said = [f"{len(judge_data.humans):,} verdicts of people on them"]
        said += [f"verdicts of {others}"] if others else []
        raise UserError(
            f"people decided on none of the {len(judge_data.items):,} answers",
            found="; ".join([*said, *judge_data.notes]),
            expected="--human FILE with verdicts on the keys of these answers",
        )
    truth = (right > wrong)[settled].astype(np.float64)
    data = _Data(items, truth, dict(_readings(judge_data, items)))
    if not data.readings:
        raise UserError(
            "neither judge nor metric has read these answers",
            expected="results folders with a --judge beside people, or --set text_metrics=rouge_l",
        )
    rows = [
        _row(data, judge, subset, places, seed)
        for subset, places in _subsets(items, labels)
        for judge in data.readings
    ]
    best, contrasts = _contrasts(data, rows, seed)
    used = {name: what for name, what in judge_data.versions.items() if name in data.readings}
    humans = _humans(judge_data, ratings, right, wrong, seed)
    return JudgeReport(
        rows,
        humans,
        best,
        contrasts,
        accepted(items, truth, seed=seed),
        errors(judge_data.items, judge_data.humans, seed=seed),
        used,
        judge_data.benchmarks,
        judge_data.notes,
    )


def _row(data: _Data, judge: str, subset: str, places: NDArray[np.bool_], seed: int) -> JudgeResult:
    """One judge over one subset; `places` of shape (n,) says which answers it holds."""
    scores = data.readings[judge]
    read = places & ~np.isnan(scores)
    is_number = judge in NUMBERS
    decided = read & (scores != UNDECIDED) & (not is_number)

    def found(statistic: Statistic, held: NDArray[np.bool_]) -> MetricValue:
        clusters = [data.items[place].cluster for place in np.flatnonzero(held)]
        value = statistic_value(statistic, scores[held], data.truth[held], clusters, seed=seed)
        return replace(value, subset=subset, judge=judge)

    return JudgeResult(
        judge=judge,
        subset=subset,
        roc_auc=found(ROC_AUC, read),
        spearman=found(SPEARMAN, read),
        agreement=found(AGREEMENT, decided),
        kappa=found(KAPPA, decided),
        alpha=found(ALPHA_OF_TWO, decided),
        answers=int(read.sum()),
        decided=None if is_number else int(decided.sum()),
    )


def _contrasts(
    data: _Data, rows: Sequence[JudgeResult], seed: int
) -> tuple[str | None, list[tuple[str, JudgeDifference]]]:
    """The judge of the highest ROC-AUC, of those that read all that the one who read most did, and how far
    each other one is from it: areas over other answers do not tell which judge is better."""
    whole = {row.judge: row.roc_auc.value for row in rows if row.subset == "all"}
    known = {judge: value for judge, value in whole.items() if value is not None}
    if not known:
        return None, []
    read = {judge: ~np.isnan(data.readings[judge]) for judge in known}
    most = max(read.values(), key=np.count_nonzero)
    best = max((judge for judge in known if read[judge][most].all()), key=known.__getitem__)
    found = []
    for judge in sorted((one for one in known if one != best), key=lambda one: -known[one]):
        first, second = data.readings[judge], data.readings[best]
        shared = ~np.isnan(first) & ~np.isnan(second)
        clusters = [data.items[place].cluster for place in np.flatnonzero(shared)]
        readings = first[shared], second[shared]
        one = judge_difference(ROC_AUC, readings, data.truth[shared], clusters, seed=seed)
        found.append((judge, replace(one, difference=replace(one.difference, judge=judge))))
    return best, found


def _subsets(items: Sequence[Item], labels: Sequence[str]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """All answers, those of each responder where there are several, those under each value of the labels."""
    yield "all", np.ones(len(items), dtype=bool)
    responders = [item.responders for item in items]
    if len({name for names in responders for name in names}) > 1:
        yield from _parts(RESPONDER, responders)
    for label in labels:
        yield from _parts(label, [_values(item, label) for item in items])


def _parts(name: str, values: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """The answers under each value, in the order in which values appear."""
    for value in dict.fromkeys(value for held in values for value in held):
        yield f"{name}={value}", np.array([value in held for held in values])


def _values(item: Item, label: str) -> tuple[str, ...]:
    held = item.labels.get(label, ())
    return (held,) if isinstance(held, str) else held


def _readings(judge_data: JudgeData, items: Sequence[Item]) -> Iterator[tuple[str, Floats]]:
    """What each judge and each metric says of each answer, NaN where nothing: judges first."""
    by_judge: dict[str, list[Verdict]] = defaultdict(list)
    scorers: dict[str, set[str]] = defaultdict(set)
    for verdict in judge_data.judges:
        scorers[verdict.judge].add(verdict.scorer)
    for verdict in judge_data.judges:
        several = len(scorers[verdict.judge]) > 1
        by_judge[f"{verdict.judge} ({verdict.scorer})" if several else verdict.judge].append(verdict)
    for judge, verdicts in by_judge.items():
        given = levels(verdicts)
        said = np.array([_of(given, item) for item in items])
        if not np.isnan(said).all():
            yield judge, said
    for name in NUMBERS:
        # Numbers that only floating point tells apart, as two ways to 4/11, share a rank.
        said = np.array([round(item.scores.get(name, np.nan), 9) for item in items])
        if not np.isnan(said).all():
            yield name, said


def _of(said: Mapping[JudgedItem, float], item: Item) -> float:
    """The level of an answer; a verdict that does not say its variant is on the answer whatever it was to."""
    level = said.get(((item.key,), "correct", item.variant))
    return said.get(((item.key,), "correct", ""), np.nan) if level is None else level


def _ratings(judge_data: JudgeData) -> dict[str, Floats]:
    """What each person calls each answer of the testimony: 1 right, 0 not, NaN where that is left open."""
    by_human: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in judge_data.humans:
        by_human[verdict.judge].append(verdict)
    found = {}
    for human, verdicts in by_human.items():
        given = {judged: level for judged, level in levels(verdicts).items() if level != UNDECIDED}
        found[human] = np.array([_of(given, item) for item in judge_data.items])
    return found


def _humans(
    judge_data: JudgeData, ratings: Mapping[str, Floats], right: Floats, wrong: Floats, seed: int
) -> AnnotatorAgreement:
    """The people among themselves; `right` and `wrong` of shape (answers,) count their votes."""
    rated = right + wrong >= 2
    clusters = [judge_data.items[place].cluster for place in np.flatnonzero(rated)]
    pairs = []
    if len(ratings) <= MOST_JUDGES:
        for (one, first), (other, second) in combinations(ratings.items(), 2):
            both = ~np.isnan(first) & ~np.isnan(second)
            held = [judge_data.items[place].cluster for place in np.flatnonzero(both)]
            names = f"people={one} and {other}"
            kappa = statistic_value(KAPPA, first[both], second[both], held, seed=seed)
            pairs.append(replace(kappa, subset=names))
    return AnnotatorAgreement(
        raters=len(ratings),
        answers=int((right + wrong > 0).sum()),
        tied=int(((right + wrong > 0) & (right == wrong)).sum()),
        alpha=replace(
            statistic_value(ALPHA, right[rated], wrong[rated], clusters, seed=seed), subset="human"
        ),
        pairs=pairs,
    )
