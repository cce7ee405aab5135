"""The page of judges: how far they agree, with each other and with humans, and where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from sightline.errors import UserError
from sightline.judging.judge_data import JudgedAnswer, JudgeData
from sightline.judging.judge_report import judge_report
from sightline.metric_types import MetricValue, Result
from sightline.outcome_index.group_filter import GroupFilter
from sightline.outcome_index.run_index import RunIndex
from sightline.outcome_index.types import RunSummary
from sightline.reporting.judges import judge_tables
from sightline.reporting.report_table import ReportTable, visible_table
from sightline.types import Verdict
from sightline.web.addresses import number_of
from sightline.web.images import card_image
from sightline.web.viewer import Viewer
from sightline.web.waiting import waiting_page

FIRST_GROUPS = 12
MOST_GROUPS = 2_000
"""The groups with human verdicts that the report of judges reads."""

OF_JUDGES = ("agreement_with_humans", "self_agreement", "self_alpha", "human_consistency")


class AgreementMatrix(Struct, frozen=True):
    """The share of answers on which two judges agree; rows and columns are in the order of `judges`."""

    judges: tuple[str, ...]
    rows: tuple[tuple[MetricValue | None, ...], ...]


def judges_page(viewer: Viewer, request: Request) -> Response:
    """The judges of a run; without one, the runs that several judges judged."""
    number = number_of(request, "run")
    if number is None:
        runs = [run for run in viewer.index.runs() if len(run.line.judges) > 1]
        return viewer.page(
            "judges_choice_page.html", {"section": "Judges", "runs": [run.line for run in runs]}
        )
    summary = viewer.index.summary(number)
    if (waiting := waiting_page(viewer, request, summary)) is not None:
        return waiting
    index = viewer.index.open(number)
    tables, reason = _against_humans(index, summary)
    differing = index.page(GroupFilter(judges="differ"), limit=FIRST_GROUPS)
    return viewer.page(
        "judges_page.html",
        {
            "section": "Judges",
            "run": summary.line,
            "groups": summary.groups,
            "matrix": agreement_matrix(index.result, summary.line.judges),
            "by_judge": [one for one in index.result.metrics if one.subset.startswith("judge=")],
            "agreements": [one for one in index.result.metrics if one.metric in OF_JUDGES],
            "tables": tables,
            "reason": reason,
            "differing": differing,
            "image": card_image(number),
        },
    )


def agreement_matrix(result: Result, judges: Sequence[str]) -> AgreementMatrix:
    """Arrange the agreement of every two judges.

    Args:
        result: The result of a run.
        judges: Its judges.

    Returns:
        The matrix; None where there is no value, and on the diagonal.
    """
    values = {one.subset: one for one in result.metrics if one.metric == "agreement"}

    def of(first: str, second: str) -> MetricValue | None:
        return values.get(f"judges={first} and {second}") or values.get(f"judges={second} and {first}")

    return AgreementMatrix(
        tuple(judges), tuple(tuple(of(row, column) for column in judges) for row in judges)
    )


def _against_humans(index: RunIndex, summary: RunSummary) -> tuple[list[ReportTable], str]:
    """The tables of the judge report, or why there are none."""
    page = index.page(GroupFilter(judges="human"), limit=MOST_GROUPS)
    if not page.rows:
        return (
            [],
            "No human judged an answer of this run: add --judge human:FILE, see `sightline build rate`.",
        )
    details = index.details([row.number for row in page.rows])
    answers = {
        (one.key, one.variant): JudgedAnswer(
            one.key, one.variant, one.cluster or one.sample, (summary.line.model,), one.labels, one.scores
        )
        for detail in details
        for one in detail.outcomes
    }
    verdicts = [one for one in chain(*(detail.verdicts for detail in details)) if one.question == "correct"]
    try:
        report = judge_report(_data(list(answers.values()), verdicts))
    except UserError as error:
        return [], str(error)
    return [visible_table(table) for table in judge_tables(report)], ""


def _data(answers: list[JudgedAnswer], verdicts: Sequence[Verdict]) -> JudgeData:
    return JudgeData(
        answers=answers,
        judges=[one for one in verdicts if one.kind != "human"],
        humans=[one for one in verdicts if one.kind == "human"],
    )
