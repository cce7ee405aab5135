"""The accepted and rejected lines of verified tables (ConTextual 2.3, II-Bench 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sightline.annotation.judgements import name_of
from sightline.annotation.records.request import RecordsRequest
from sightline.annotation.records.verified import (
    ACCEPTED,
    REJECTED,
    REPORT,
    ReviewedLine,
    share_right,
    write_accepted,
)
from sightline.annotation.sources.table_items import BLIND
from sightline.annotation.sources.table_lines import TableLine, read_table_lines
from sightline.annotation.types import Item
from sightline.builders.built_folder import refuse_out_inside_inputs
from sightline.builders.review_lists import Mark
from sightline.errors import UserError

FOLDER = "verified"
ACCEPTING = ("yes", "right")


def write(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
    """Write the accepted lines in the layout of the table, and the rejected ones for revision."""
    yield from write_verified(request, reviewed_lines(request))


def reviewed_lines(request: RecordsRequest) -> list[ReviewedLine]:
    """Decide about the lines of the tables."""
    paths = [Path(source) for source in request.state.project.sources]
    lines = {line.key: line for line in read_table_lines(paths)}
    items = {str(item.hidden["line"]): item for item in request.state.items.values() if item.phase != BLIND}
    if not items.keys() <= lines.keys():
        raise UserError(
            "a line of the project is not there any more", file=paths[0], expected="the tables as they were"
        )
    return [_reviewed(request, items[key], line) for key, line in lines.items() if key in items]


def write_verified(request: RecordsRequest, reviewed: Sequence[ReviewedLine]) -> Iterator[tuple[Path, str]]:
    """Write the tables of accepted and of rejected lines, and the report."""
    project = request.state.project
    refuse_out_inside_inputs(request.out / FOLDER, [Path(source) for source in project.sources])
    rule = f"{project.task.needed}/{project.annotators}" if project.task.needed else "majority"
    name = Path(project.sources[0]).name
    table = ACCEPTED if name == REJECTED else name
    manifest = write_accepted(reviewed, rule, table, request.out / FOLDER)
    rejected = sum(one.accepted is False for one in reviewed)
    missing = f"; images missing or broken: {', '.join(manifest.missing)}" if manifest.missing else ""
    yield request.out / FOLDER / table, f"{manifest.groups:,} of {len(reviewed):,} lines, accepted{missing}"
    yield request.out / FOLDER / REJECTED, f"{rejected:,} lines for revision"
    yield request.out / FOLDER / REPORT, _share(reviewed)


def _share(reviewed: Sequence[ReviewedLine]) -> str:
    """The share of right lines in words, beside the published one."""
    share = share_right(reviewed)
    if share.value is None:
        return f"no share of right lines: {share.reason}"
    limits = "" if share.low is None else f" [{share.low:.1f}, {share.high:.1f}]"
    published = "".join(f" (published: {one.value:g} %)" for one in share.published or ())
    return f"{share.value:.1f} %{limits} of {share.n:,} decided lines are right{published}"


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
