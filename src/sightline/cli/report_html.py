"""`sightline report RUN... --html FILE`: the report of runs of a store as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.index_run import index_run
from sightline.output import print_note

if TYPE_CHECKING:
    from sightline.engine.store import Store
    from sightline.metric_types import Result


def write_html(
    store: Store,
    numbers: Sequence[int],
    file: Path,
    *,
    folders: Sequence[Path] = (),
    groups: int | None = None,
    against: Sequence[str] = (),
) -> list[Result]:
    """Index the runs, write their report and say where it is.

    Args:
        groups: The groups of each part; None for the default.
        against: The rows of published tables to compare with; none takes those of each run.
    """
    from sightline.outcome_index.index import OutcomeIndex
    from sightline.reporting.html.environment import environment
    from sightline.reporting.html.report_file import GROUPS, ReportedRun, write_report
    from sightline.results.published import add_published
    from sightline.results.run_names import name_or_number

    environment()  # raises the error of a missing extra before anything is judged

    index = OutcomeIndex(store, folders)
    runs = []
    for number in numbers:
        index_run(index, store, number)
        result = index.open(number).result
        result = add_published(result, *against) if against else result
        runs.append(ReportedRun(number, name_or_number(store, number), result))
    today = datetime.now().astimezone().strftime("%d %B %Y").lstrip("0")
    write_report(index, runs, file, date=today, groups=GROUPS if groups is None else groups)
    print_note(f"report: {file}")
    return [run.result for run in runs]
