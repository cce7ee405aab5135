"""The metrics of the judged runs of a project, corrected by what its annotators found."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from sightline.annotation.judgements import verdicts
from sightline.annotation.types import Project
from sightline.errors import UserError
from sightline.evaluation.recompute import recompute
from sightline.judging.judges import HUMAN_PREFIX, HumanJudge
from sightline.reporting.corrected import corrected_tables
from sightline.reporting.report_table import ReportTable
from sightline.results.run_names import find_run
from sightline.types import Verdict
from sightline.web.viewer import Viewer

NOTHING = (
    "Nothing is corrected: that takes a judge that read all answers, and humans who labelled whole clusters,"
    " but not all of them."
)


class CorrectedRun(Struct, frozen=True):
    """A run of the project: its corrected metrics, or why there are none, and the command that does it."""

    name: str
    tables: Sequence[ReportTable] = ()
    note: str = ""
    command: str = ""


def corrected_page(viewer: Viewer, request: Request) -> Response:
    """The runs of a project with the values of their judges, of the humans, and both."""
    live = viewer.projects.live(request.path_params["project"])
    project = live.row.project
    state, annotators = live.refresh(), live.annotators()
    found = list(verdicts(state, annotators)) if project.task.produces == "verdicts" else []
    runs = [_corrected(viewer, project, source, found) for source in project.sources] if found else []
    tables = [table for run in runs for table in run.tables]
    # What holds for all runs is said once, below them.
    shared = [note for note in tables[0].notes if all(note in one.notes for one in tables)] if tables else []
    runs = [replace(run, tables=[_without(table, shared) for table in run.tables]) for run in runs]
    context = {"section": "Annotate", "row": live.row, "runs": runs, "notes": shared}
    return viewer.page("corrected_page.html", context)


def _without(table: ReportTable, notes: Collection[str]) -> ReportTable:
    return replace(table, notes=tuple(note for note in table.notes if note not in notes))


def _corrected(viewer: Viewer, project: Project, source: str, found: Sequence[Verdict]) -> CorrectedRun:
    if Path(source).exists():
        # The store has no probes of a results folder or a file: `score` needs the data to judge it again.
        answers = Path(source) / "answers.jsonl" if Path(source).is_dir() else Path(source)
        judges = f"--judge rules --judge {HUMAN_PREFIX}{project.name}"
        command = (
            f"sightline score {project.benchmark or 'TASK'} {answers} --data {project.data or 'DIR'} {judges}"
        )
        return CorrectedRun(source, note="This run is not in the store.", command=command)
    try:
        humans = HumanJudge(f"{HUMAN_PREFIX}{project.name}", found)
        result = recompute(viewer.store, find_run(viewer.store, source), humans=[humans])
    except UserError as error:
        return CorrectedRun(source, note=str(error))
    tables = corrected_tables(result)
    name = f"{result.model} on {result.benchmark}:{result.setting}, run {source}"
    return CorrectedRun(name, tables, "" if tables else NOTHING)
