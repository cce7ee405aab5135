"""The judgements of annotation projects on the answers of a run, beside the verdicts of its own judges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from sightline.annotation.judgements import verdicts
from sightline.annotation.store import ProjectRow
from sightline.errors import UserError
from sightline.formats.verdicts import decode_verdict, verdict_line
from sightline.outcome_index.group_detail import read_lines
from sightline.outcome_index.group_entry import judges_differ
from sightline.outcome_index.rank_set import set_of
from sightline.outcome_index.run_index import RunIndex
from sightline.results.run_names import find_run
from sightline.types import Verdict
from sightline.web.viewer import Viewer

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
    differing: int
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
    """List the runs of which projects were made and judged."""
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
    """Put verdicts of projects beside those of a run."""
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
    numbers = _numbers(index) if lines else {}
    judged = sorted(
        {number for sample in {one.sample for one in lines} for number in numbers.get(sample, ())}
    )
    by_answer: dict[tuple[str, ...], list[tuple[_Line, Verdict]]] = defaultdict(list)
    for line in lines:
        verdict = decode_verdict(line.verdict)
        by_answer[verdict.targets].append((line, verdict))
    read = judged[:: -(-len(judged) // MOST_GROUPS) or 1]
    by_group: dict[int, tuple[Verdict, ...]] = {}
    differing: list[int] = []
    counts: dict[tuple[int, str], list[tuple[str, ...]]] = defaultdict(list)
    for number, (outcomes, of_group) in zip(read, map(read_lines, index.blocks.lines(read)), strict=True):
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
            differing.append(index.ranks[number - 1])
    return AnnotatedRun(
        by_group=by_group,
        groups=len(judged) if len(read) < len(judged) else len(by_group),
        differing=set_of(differing, index.groups),
        shares=[ProjectShare(*name, len(found), len(set(found))) for name, found in counts.items()],
    )


@lru_cache(maxsize=4)
def _numbers(index: RunIndex) -> Mapping[str, Sequence[int]]:
    """Sample -> the numbers of its groups."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for number, facts in enumerate(index.facts(), 1):
        numbers[facts.sample].append(number)
    return numbers
