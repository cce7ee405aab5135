"""The accepted and rejected lines of verified tables (ConTextual 2.3, II-Bench 3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sightline.annotation.judgements import name_of
from sightline.annotation.records.request import RecordsRequest
from sightline.annotation.types import Item
from sightline.builders.review_lists import AcceptanceRule, Mark
from sightline.builders.verify import (
    ACCEPTED,
    REJECTED,
    ReviewedLine,
    TableLine,
    read_table_lines,
    write_accepted,
)
from sightline.errors import UserError

FOLDER = "verified"
ACCEPTING = ("yes", "right")


def write(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
    """Write the accepted lines in the layout of the table, and the rejected ones for revision.

    Args:
        request: The project and the folder.

    Yields:
        The files, and what they hold.

    Raises:
        UserError: A table has changed since the project began.
    """
    project = request.state.project
    paths = [Path(source) for source in project.sources]
    lines = {line.key: line for line in read_table_lines(paths)}
    items = [item for item in request.state.items.values() if item.phase != "blind"]
    reviewed = []
    for item in items:
        line = lines.get(str(item.hidden["line"]))
        if line is None:
            raise UserError(
                "a line of the project is not there any more",
                file=paths[0],
                expected="the tables as they were",
            )
        reviewed.append(_reviewed(request, item, line))
    rule = (
        AcceptanceRule(project.task.needed, project.annotators) if project.task.needed else AcceptanceRule()
    )
    table = ACCEPTED if paths[0].name == REJECTED else paths[0].name
    manifest = write_accepted(reviewed, rule, table, request.out / FOLDER, force=True)
    rejected = sum(one.accepted is False for one in reviewed)
    yield request.out / FOLDER / table, f"{manifest.groups:,} of {len(reviewed):,} lines, accepted"
    yield request.out / FOLDER / REJECTED, f"{rejected:,} lines for revision"


def _reviewed(request: RecordsRequest, item: Item, line: TableLine) -> ReviewedLine:
    decision = request.decision(item)
    entries = request.state.of_item(item.number)
    marks = tuple(
        Mark(vote in ACCEPTING, name_of(request.annotators, by), _remark(entries[by].values))
        for by, vote in decision.votes.items()
    )
    accepted = None if decision.value is None else decision.value in ACCEPTING
    return ReviewedLine(line, marks, accepted)


def _remark(values: object) -> str:
    remark = values.get("remark", "") if isinstance(values, dict) else ""
    return remark if isinstance(remark, str) else ""
