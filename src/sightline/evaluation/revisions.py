"""What a run is worth under corrected references or without disputed samples, beside what it is as released.

The answers stay as they are. Where a reference is corrected, the rules judge the answer again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from string import punctuation, whitespace
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

from msgspec import Meta, Struct
from msgspec.json import Decoder
from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.benchmarks.registry import benchmark_class, benchmark_names, is_benchmark
from sightline.errors import UserError, did_you_mean, unknown_name
from sightline.evaluation.compare import judged_run
from sightline.evaluation.folder import JudgedRun
from sightline.evaluation.judges import RulesJudge, with_verdict
from sightline.evaluation.reports import opened_runs
from sightline.formats.files import file_digest, numbered_lines
from sightline.formats.jsonl import counted_notes
from sightline.metrics.tally import tally
from sightline.reporting.table import Column, Field, ReportTable, build_table, estimate, n_cell
from sightline.reporting.tables import leading_metrics
from sightline.scoring.letters import position_of_letter, positions_of_text, right_positions
from sightline.text import decode_line
from sightline.types import LETTERS, Group, MetricValue, Outcome


class RevisedReference(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of --corrections: the right answers of a sample, or of one of its variants.

    `value` has the form of `references` in answers.jsonl.
    """

    id: str
    value: Annotated[tuple[str, ...], Meta(min_length=1)]
    reason: str
    source: str
    field: Literal["references"] = "references"
    variant: str = ""


class Exclusion(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of --exclude: a sample that does not count."""

    id: str
    reason: str
    source: str


T = TypeVar("T", bound=RevisedReference | Exclusion)


class Line(NamedTuple, Generic[T]):
    """A line of a file, and where it stands."""

    content: T
    file: Path
    number: int

    def error(self, message: str, **more: Any) -> UserError:
        one = self.content
        variant = f", {one.variant}" if isinstance(one, RevisedReference) and one.variant else ""
        return UserError(message, file=self.file, record=f"line {self.number} ({one.id}{variant})", **more)


class Revision(NamedTuple):
    """Corrections and exclusions, the digest of each file that was given, and whose corrections they are.

    `benchmark`: the benchmark that comes with the corrections; '' for those of a file.
    """

    corrections: Sequence[Line[RevisedReference]]
    excluded: Sequence[Line[Exclusion]]
    files: Sequence[str]
    benchmark: str = ""


def read_revision(corrections: Path | None, exclude: Path | None) -> Revision:
    """Read the files; `corrections` may name a benchmark, whose package holds such a file."""
    named = ""
    if corrections is not None and not corrections.is_file() and is_benchmark(str(corrections)):
        named = str(corrections)
        corrections = benchmark_class(named).corrections
        if corrections is None:
            having = [name for name in benchmark_names() if benchmark_class(name).corrections is not None]
            raise UserError(
                f"{named} comes with no corrections", expected=f"a file, or one of {', '.join(having)}"
            )
    return Revision(
        [] if corrections is None else _lines(corrections, RevisedReference),
        [] if exclude is None else _lines(exclude, Exclusion),
        [
            f"{file.name}: sha256 {file_digest(file)[:16]}"
            for file in (corrections, exclude)
            if file is not None
        ],
        named,
    )


def _lines(path: Path, kind: type[T]) -> list[Line[T]]:
    decode = Decoder(kind).decode
    return [
        Line(decode_line(decode, line, number, path, kind), path, number)
        for number, line in numbered_lines(path)
    ]


def revised_tables(
    words: Sequence[str], url: str, revision: Revision, metrics: Sequence[str]
) -> list[ReportTable]:
    """A table of each run: its metrics as released, and under the revision.

    Raises:
        UserError: The revision names a sample or variant that the run does not have, corrects the reference
            of an answer that a model or humans judged, or has one that the benchmark cannot have.
    """
    with opened_runs(words, url) as (names, store):
        return [_table(judged_run(store, name), revision, metrics) for name in names]


def _table(run: JudgedRun, revision: Revision, names: Sequence[str]) -> ReportTable:
    result, groups = run.result, list(run.sent.values())
    benchmark = find_benchmark(result.benchmark)
    known = {group.id for group in groups}
    if revision.benchmark not in ("", result.benchmark):
        raise UserError(
            f"{run.name} is a run of {result.benchmark}",
            expected=f"a run of {revision.benchmark}, or a file of corrections",
        )
    absent = {one.content.id for one in revision.corrections} - known
    excluded = {one.content.id for one in revision.excluded}
    lines: list[Line[Any]] = [*revision.excluded, *(() if revision.benchmark else revision.corrections)]
    for line in lines:
        if (name := line.content.id) not in known:
            raise line.error(f"no sample '{name}' in {run.name}{did_you_mean(name, known)}")
    # Similarities to the references, and answers of other settings, are not computed again.
    metrics = [
        one for one in benchmark.metrics(result.options) if one.needs is None and one.judged == "correct"
    ]
    leading = leading_metrics(result.benchmark, [result.metrics])
    wanted = names or [one.name for one in metrics if one.name in leading]
    if missing := set(wanted) - {metric.name for metric in metrics}:
        raise unknown_name("metric", min(missing), (metric.name for metric in metrics))
    corrections = [one for one in revision.corrections if one.content.id in known]
    revised = list(_revised(benchmark, RulesJudge(benchmark, result.options), groups, corrections))
    before = {one.metric: one for one in tally(groups, metrics) if one.subset == "all"}
    kept = (group for group in revised if group.id not in excluded)
    after = {one.metric: one for one in tally(kept, metrics) if one.subset == "all"}
    changes = [
        old.right != new.right
        for first, second in zip(groups, revised, strict=True)
        for old, new in zip(first, second, strict=True)
        if old.references != new.references
    ]
    notes = [
        *counted_notes(
            (
                len(changes),
                f"answers have corrected references; {sum(changes):,} of them are right now and were"
                " not, or the other way round",
            ),
            (len(absent), f"corrected samples are not in {run.name}"),
            (len(excluded), "samples are left out"),
        ),
        "published figures are not comparable with revised values",
        *revision.files,
    ]
    rows = [(before[name], after[name]) for name in wanted if before[name].n or after[name].n]
    return build_table(f"{result.benchmark}:{result.setting}, {run.name}", _FIELDS, rows, notes)


def _revised(
    benchmark: Benchmark,
    judge: RulesJudge,
    groups: Iterable[Group],
    lines: Iterable[Line[RevisedReference]],
) -> Iterator[Group]:
    """The groups of a run, with new references and the verdicts that the rules give under them."""
    by_sample: dict[str, dict[str, Line[RevisedReference]]] = {}
    for one in lines:
        of_sample = by_sample.setdefault(one.content.id, {})
        if first := of_sample.get(one.content.variant):
            raise one.error("has two corrections", found=f"also line {first.number}", expected="one")
        of_sample[one.content.variant] = one
    for group in groups:
        found = by_sample.get(group.id, {})
        variants = {outcome.variant for outcome in group}
        if unknown := found.keys() - variants - {""}:
            name = min(unknown)
            raise found[name].error(
                f"unknown variant of {group.id} '{name}'{did_you_mean(name, variants)}",
                expected=f"one of {', '.join(sorted(variants))}",
            )
        if "" in found and len({outcome.references for outcome in group}) > 1:
            raise found[""].error(
                "its variants have different references",
                field="variant",
                expected=f"a line for each of {', '.join(sorted(variants))}",
            )
        yield _judged_again(benchmark, judge, group, found) if found else group


def _judged_again(
    benchmark: Benchmark, judge: RulesJudge, group: Group, found: dict[str, Line[RevisedReference]]
) -> Group:
    outcomes: list[Outcome] = []
    for outcome in group:
        correction = found.get(outcome.variant, found.get(""))
        if correction is None:
            outcomes.append(outcome)
            continue
        if outcome.status == "ok" and outcome.judge != "rules":
            raise correction.error(
                "a corrected answer was not judged by rules",
                found=outcome.judge or "no judge",
                expected="a run without --judge, or `score` of its answers without one",
            )
        outcomes.append(replace(outcome, references=_as_written(benchmark, outcome, correction)))
    changed = replace(group, outcomes=tuple(outcomes))
    for case in benchmark.cases(changed):
        place = case.outcome_index
        if place is None or case.question != "correct" or group.outcomes[place] == outcomes[place]:
            continue
        if outcomes[place].status == "ok":
            (verdict,) = judge.decide(case, {})
            outcomes[place] = with_verdict(outcomes[place], verdict)
    return replace(changed, outcomes=tuple(outcomes))


def _as_written(
    benchmark: Benchmark, outcome: Outcome, correction: Line[RevisedReference]
) -> tuple[str, ...]:
    """The corrected references in the spelling of the benchmark, whose rules may compare them exactly."""
    value, options = correction.content.value, outcome.options
    if options:
        positions = right_positions(value, options)
        if not all(right_positions((one,), options) for one in value):
            raise correction.error(
                "a corrected reference is none of the options",
                field="value",
                found=", ".join(value),
                expected=f"a letter or a text of {', '.join(options)}",
            )
        by_letter = all(position_of_letter(one, options) is not None for one in outcome.references)
        return tuple(LETTERS[place] if by_letter else options[place] for place in sorted(positions))
    if sides := benchmark.reference_sides(outcome):
        found = positions_of_text(value[0].strip(punctuation + whitespace), sides)
        if not found:
            raise correction.error(
                "a corrected reference is none that the benchmark has",
                field="value",
                found=value[0],
                expected=" or ".join(sides),
            )
        return (sides[found[0]], *value[1:])
    return value


_FIELDS: list[Field[tuple[MetricValue, MetricValue]]] = [
    (Column("text", "metric", "metric"), lambda row: row[0].metric),
    (Column("value", "as released\n95 %", "released"), lambda row: estimate(row[0])),
    (Column("count", "n", "n"), lambda row: n_cell(row[0])),
    (Column("value", "revised\n95 %", "revised"), lambda row: estimate(row[1])),
    (Column("count", "n", "revised n"), lambda row: n_cell(row[1])),
]
