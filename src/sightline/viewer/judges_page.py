"""The page of judges: how far they agree with each other and with humans, also those of projects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from sightline.annotation.decisions import verdicts
from sightline.annotation.store import ProjectRow
from sightline.errors import UserError
from sightline.evaluation.judge_data import JudgedAnswer, JudgeData
from sightline.evaluation.judge_report import judge_report
from sightline.evaluation.judges import HUMAN_PREFIX
from sightline.evaluation.runs import find_run
from sightline.formats.jsonl import decode_verdict, verdict_line
from sightline.reporting.judges import JudgeReport, judge_tables, with_short_names
from sightline.reporting.table import visible_table
from sightline.types import MetricValue, Result, Verdict
from sightline.viewer.addresses import number_of
from sightline.viewer.group_view import group_view
from sightline.viewer.index_entry import judges_differ, read_lines
from sightline.viewer.index_types import GroupFilter, RunSummary
from sightline.viewer.plots import roc_chart
from sightline.viewer.run_index import RunIndex
from sightline.viewer.viewer import Viewer, run_name, shown_images, waiting_page

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
    differing = index.page(DIFFERING, after, PAGE, also=annotated.differing)
    details = [
        replace(one, verdicts=with_annotators(one.verdicts, annotated.by_group.get(one.row.number, ())))
        for one in index.details(differing.rows)
    ]
    shown = shown_images(viewer, summary.run, small=True)
    judges = [name for name in run.judges if not name.startswith(HUMAN_PREFIX)]
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


# -- How far the judges of a run agree with each other and with humans, from its index

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
    """Arrange the agreement of every two judges, humans last; None on the diagonal and without value."""
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
    """Compare the judges of a run with its humans; the reports of the latest runs are kept.

    Returns the report with a notice if it leaves out groups, or None with the reason.
    """
    own = index.numbers_of(GroupFilter(judges="human"))
    judged = sorted({*own, *annotated.by_group})
    if not judged:
        return None, NO_HUMANS
    read = judged[:: -(-len(judged) // MOST_GROUPS)]
    total = max(len(judged), annotated.groups)
    answers: dict[tuple[str, str], JudgedAnswer] = {}
    verdicts: list[Verdict] = []
    for number, (outcomes, of_group) in zip(read, map(read_lines, index.lines(read)), strict=True):
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


# -- The judgements of annotation projects on the answers of a run, beside the verdicts of its own judges

MOST_GROUPS = 2_000
"""Of more groups with verdicts of humans, so many are read, evenly distributed over the run."""

QUESTION = "correct"


class ProjectShare(Struct, frozen=True):
    """What a project says about a run: its number and name, its verdicts on the run, their answers."""

    number: int
    name: str
    verdicts: int
    answers: int


class AnnotatedRun(Struct, frozen=True, eq=False):
    """The verdicts of projects on the answers of a run."""

    by_group: Mapping[int, tuple[Verdict, ...]]
    groups: int
    differing: Sequence[int]
    shares: Sequence[ProjectShare]


class _Line(Struct, frozen=True):
    """A verdict of a project as a line of JSON, and the sample of its answer."""

    project: int
    name: str
    sample: str
    verdict: bytes


def annotated_run(viewer: Viewer, index: RunIndex) -> AnnotatedRun:
    """Collect the verdicts of all projects of the store on the answers of a run, whatever its name was."""
    return _annotated(index, tuple(line for row in _judging(viewer) for line in _lines(viewer, row)))


def annotated_runs(viewer: Viewer) -> set[int]:
    found = set()
    for row in _judging(viewer):
        if not any(viewer.projects.live(row.number).refresh().judged.values()):
            continue
        for source in row.project.sources:
            try:
                found.update([] if Path(source).exists() else [find_run(viewer.store, source)])
            except UserError:  # A run that was deleted or renamed is not listed.
                continue
    return found


def with_annotators(found: Sequence[Verdict], added: Sequence[Verdict]) -> tuple[Verdict, ...]:
    newer = {(one.judge, one.targets) for one in added}
    kept = (one for one in found if one.kind != "human" or (one.judge, one.targets) not in newer)
    return (*kept, *added)


def _judging(viewer: Viewer) -> list[ProjectRow]:
    """The projects in which humans judge whether answers are correct."""
    tasks = [(row, row.project.task) for row in viewer.projects.rows()]
    return [row for row, task in tasks if task.produces == "verdicts" and task.question == QUESTION]


def _lines(viewer: Viewer, row: ProjectRow) -> Iterator[_Line]:
    live = viewer.projects.live(row.number)
    state = live.refresh()
    samples = {item.targets: str(item.hidden.get("sample", "")) for item in state.items.values()}
    for one in verdicts(state, live.annotators()):
        yield _Line(row.number, row.project.name, samples[one.targets], verdict_line(one))


@lru_cache(maxsize=16)
def _annotated(index: RunIndex, lines: tuple[_Line, ...]) -> AnnotatedRun:
    judged = index.numbers_of_samples({one.sample for one in lines})
    by_answer: dict[tuple[str, ...], list[tuple[_Line, Verdict]]] = defaultdict(list)
    for line in lines:
        verdict = decode_verdict(line.verdict)
        by_answer[verdict.targets].append((line, verdict))
    read = judged[:: -(-len(judged) // MOST_GROUPS) or 1]
    by_group: dict[int, tuple[Verdict, ...]] = {}
    differing: list[int] = []
    counts: dict[tuple[int, str], list[tuple[str, ...]]] = defaultdict(list)
    for number, (outcomes, of_group) in zip(read, map(read_lines, index.lines(read)), strict=True):
        answers = {(one.key, one.variant) for one in outcomes} | {(one.key, "") for one in outcomes}
        keys = dict.fromkeys((one.key,) for one in outcomes)
        fitting = [
            (line, verdict)
            for key in keys
            for line, verdict in by_answer.get(key, ())
            if (key[0], verdict.variant) in answers
        ]
        if not fitting:
            continue
        by_group[number] = tuple(verdict for _, verdict in fitting)
        for line, verdict in fitting:
            counts[line.project, line.name].append((*verdict.targets, verdict.variant))
        if judges_differ(with_annotators(of_group, by_group[number])):
            differing.append(number)
    return AnnotatedRun(
        by_group=by_group,
        groups=len(judged) if len(read) < len(judged) else len(by_group),
        differing=differing,
        shares=[ProjectShare(*name, len(found), len(set(found))) for name, found in counts.items()],
    )
