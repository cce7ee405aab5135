"""How far the judges of a run agree with each other and with humans, from its index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from sightline.errors import UserError
from sightline.judging.judge_data import JudgedAnswer, JudgeData
from sightline.judging.judge_report import judge_report
from sightline.judging.judge_results import JudgeReport
from sightline.metric_types import MetricValue, Result
from sightline.outcome_index.group_detail import read_lines
from sightline.outcome_index.group_filter import GroupFilter
from sightline.outcome_index.run_index import RunIndex
from sightline.types import Verdict
from sightline.web.annotated_run import MOST_GROUPS, QUESTION, AnnotatedRun, with_annotators

HUMANS = "majority of the humans"

NO_HUMANS = (
    "No human judged an answer of this run, so that there is no ROC curve: `sightline annotate new rate` "
    "lets humans judge them."
)


class AgreementMatrix(Struct, frozen=True):
    """The share of answers on which two judges agree; rows and columns are in the order of `judges`."""

    judges: tuple[str, ...]
    rows: tuple[tuple[MetricValue | None, ...], ...]


def agreement_matrix(
    result: Result, judges: Sequence[str], humans: Mapping[str, MetricValue]
) -> AgreementMatrix:
    """Arrange the agreement of every two judges.

    Returns:
        The matrix, with the humans last; None where there is no value, and on the diagonal.
    """
    values = {one.subset: one for one in result.metrics if one.metric == "agreement"}

    def of(first: str, second: str) -> MetricValue | None:
        if HUMANS in (first, second):
            return humans.get(second if first == HUMANS else first)
        return values.get(f"judges={first} and {second}") or values.get(f"judges={second} and {first}")

    named = (*judges, *([HUMANS] if humans else ()))
    return AgreementMatrix(named, tuple(tuple(of(row, column) for column in named) for row in named))


@lru_cache(maxsize=16)
def report_against_humans(
    index: RunIndex, model: str, annotated: AnnotatedRun
) -> tuple[JudgeReport | None, str]:
    """Compare the judges of a run with its humans. The reports of the latest runs are kept.

    Returns:
        The judge report with a notice if it leaves out groups, or the reason why there is none.
    """
    own = index.numbers_of(GroupFilter(judges="human"))
    judged = sorted({*own, *annotated.by_group})
    if not judged:
        return None, NO_HUMANS
    read = judged[:: -(-len(judged) // MOST_GROUPS)]
    total = max(len(judged), annotated.groups)
    answers: dict[tuple[str, str], JudgedAnswer] = {}
    verdicts: list[Verdict] = []
    for number, (outcomes, of_group) in zip(read, map(read_lines, index.blocks.lines(read)), strict=True):
        found = with_annotators(of_group, annotated.by_group.get(number, ()))
        verdicts += [one for one in found if one.question == QUESTION]
        for one in outcomes:
            answers[one.key, one.variant] = JudgedAnswer(
                one.key,
                one.variant,
                one.cluster or one.sample,
                (model,),
                one.labels,
                one.scores,
                one.sample,
            )
    try:
        report = judge_report(_data(list(answers.values()), verdicts))
    except UserError as error:
        return None, str(error)
    if len(read) == total:
        return report, ""
    return report, f"Of {total:,} groups with human verdicts, {len(read):,} are compared here."


def _data(answers: list[JudgedAnswer], verdicts: Sequence[Verdict]) -> JudgeData:
    return JudgeData(
        answers=answers,
        judges=[one for one in verdicts if one.kind != "human"],
        humans=[one for one in verdicts if one.kind == "human"],
    )
