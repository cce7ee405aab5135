"""The page of judges: how far they agree, with each other and with humans, and where they differ."""

from __future__ import annotations

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from sightline.outcome_index.group_filter import GroupFilter
from sightline.outcome_index.types import RunSummary
from sightline.reporting.html.group_view import group_view
from sightline.reporting.html.roc_chart import roc_chart
from sightline.reporting.judges import judge_tables, with_short_names
from sightline.reporting.report_table import visible_table
from sightline.web.addresses import number_of
from sightline.web.annotated_run import annotated_run, annotated_runs, with_annotators
from sightline.web.images import shown_images
from sightline.web.judge_agreement import agreement_matrix, report_against_humans
from sightline.web.run_title import run_name
from sightline.web.viewer import Viewer
from sightline.web.waiting import waiting_page

DIFFERING = GroupFilter(judges="differ")

PAGE = 10
"""The groups of a page of responses on which judges differ."""

OF_JUDGES = ("agreement_with_humans", "self_agreement", "self_alpha", "human_consistency")


def judges_page(viewer: Viewer, request: Request) -> Response:
    """The judges of a run; without one, the runs that several judges or annotators judged."""
    number = number_of(request, "run")
    if number is None:
        annotated = annotated_runs(viewer)
        lines = [run.line for run in viewer.index.runs()]
        runs = [line for line in lines if len(line.judges) > 1 or line.number in annotated]
        return viewer.page(
            "judges_choice_page.html", {"section": "Judges", "runs": runs, "annotated": annotated}
        )
    summary = viewer.index.summary(number)
    return waiting_page(viewer, request, summary) or _judges_of(viewer, request, summary)


def _judges_of(viewer: Viewer, request: Request, summary: RunSummary) -> Response:
    run, index = summary.line, viewer.index.open(summary.run)
    annotated = annotated_run(viewer, index)
    report, reason = report_against_humans(index, run_name(run), annotated)
    overall = [row for row in report.rows if row.subset == "all"] if report else []
    after = number_of(request, "after")
    differing = index.page_of(index.select(DIFFERING) | annotated.differing, after, PAGE)
    details = [
        replace(one, verdicts=with_annotators(one.verdicts, annotated.by_group.get(one.row.number, ())))
        for one in index.details(differing.rows)
    ]
    shown = shown_images(viewer, summary.run, small=True)
    judges = [name for name in run.judges if not name.startswith("human:")]
    return viewer.page(
        "judges_page.html",
        {
            "section": "Judges",
            "run": run,
            "groups": summary.groups,
            "has_several": len(run.judges) > 1 or report is not None or bool(annotated.by_group),
            "shares": annotated.shares,
            "matrix": agreement_matrix(index.result, judges, {row.judge: row.agreement for row in overall}),
            "by_judge": [one for one in index.result.metrics if one.subset.startswith("judge=") and one.n],
            "agreements": [one for one in index.result.metrics if one.metric in OF_JUDGES],
            "roc_curves": roc_chart([row for row in with_short_names(report).rows if row.subset == "all"])
            if report
            else None,
            "tables": [visible_table(table) for table in judge_tables(report)] if report else [],
            "reason": reason,
            "after": after,
            "page": differing,
            "differing": [group_view(detail, shown) for detail in details],
        },
    )
