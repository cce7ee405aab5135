"""Writes what humans judged in the layouts of CODIS, ConTextual and II-Bench, or as verified tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field, structs

from sightline.annotation.decisions import judgements, name_of
from sightline.annotation.iibench_records import (
    FILLED,
    FormLine,
    find_faults,
    group_by_image,
    write_data,
)
from sightline.annotation.other_items import BLIND, BY, REVIEW_COLUMNS, TableLine, read_table_lines
from sightline.annotation.records import RecordsRequest
from sightline.annotation.types import Item, Values
from sightline.benchmarks.codis.data import RECORDS, CodisRecord, ContextAnswers, Contexts
from sightline.benchmarks.contextual.data import COLUMNS, IMAGE, NAME, image_path, table_name
from sightline.benchmarks.released import published
from sightline.builders.folder import (
    BuildManifest,
    Contents,
    build_identity,
    refuse_out_inside_inputs,
    write_folder,
)
from sightline.builders.sources import check_images
from sightline.errors import UserError
from sightline.formats.files import json_digest, write_atomically
from sightline.formats.tables import csv_bytes
from sightline.metrics.statistics import clustered_mean
from sightline.reporting.table import interval_text
from sightline.text import indented_json
from sightline.types import ImageRef, MetricValue

CODIS_FOLDER, RETURNED, FUNNEL = "data", "returned.csv", "funnel.json"


def write_codis(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
    """Write the drafts, or the accepted ones, what goes back to the authors, and the funnel."""
    is_check = request.state.project.task.items == "drafts"
    kept: list[tuple[Item, Values]] = []
    funnel: dict[str, int] = {"items": len(request.state.items), "written": 0, "given up": 0}
    returned = [["item", "author", "by", "failed", "remark"]]
    for item in request.state.items.values():
        if is_check:
            decision = request.decision(item)
            funnel["written"] += 1
            if decision.value == "yes":
                kept.append((item, {name: texts[0] for name, texts in item.texts.items()}))
            elif decision.value == "no":
                returned += _failures(request, item)
            continue
        for entry in request.state.of_item(item.number).values():
            funnel["given up"] += entry.action in ("skip", "broken")
            if entry.action == "judge":
                funnel["written"] += 1
                kept.append((item, entry.values))
    records = [_record(request, place, item, values) for place, (item, values) in enumerate(kept)]
    (request.out / CODIS_FOLDER).mkdir(parents=True, exist_ok=True)
    write_atomically(request.out / CODIS_FOLDER / RECORDS, [indented_json(records)])
    yield request.out / CODIS_FOLDER / RECORDS, f"{len(records):,} pairs"
    if is_check:
        funnel |= {"accepted": len(kept), "returned": len({row[0] for row in returned[1:]})}
        write_atomically(request.out / RETURNED, [csv_bytes(returned)])
        yield request.out / RETURNED, f"{funnel['returned']:,} drafts go back to their authors"
    write_atomically(request.out / FUNNEL, [indented_json(funnel)])
    yield request.out / FUNNEL, ", ".join(f"{count:,} {word}" for word, count in funnel.items())


def _record(request: RecordsRequest, place: int, item: Item, values: Values) -> CodisRecord:
    image = item.images["image"][0]
    name = f"{image.digest[:10]}{Path(image.path).suffix.lower()}"
    request.copy(image, f"{CODIS_FOLDER}/images/{name}")
    text: dict[str, Any] = {key: value for key, value in values.items() if isinstance(value, str)}
    return CodisRecord(
        id=f"{place:03d}",
        image_id=name,
        question=text["question"],
        context=Contexts(text["context_1"], text["context_2"]),
        answer=ContextAnswers(text["answer_1"], text["answer_2"]),
        category=text["category"],
        scenario=text.get("scenario", ""),
    )


def _failures(request: RecordsRequest, item: Item) -> Iterator[list[str]]:
    """What each checker found wrong in a draft."""
    task = request.state.project.task
    for by, entry in request.state.of_item(item.number).items():
        failed = [name for name in task.decides if entry.values.get(name) == "no"]
        if entry.action == "judge" and failed:
            remark = entry.values.get("remark", "")
            name = name_of(request.annotators, by)
            yield [str(item.hidden["item"]), item.authors[0], name, ", ".join(failed), str(remark)]


# -- Triplets in ConTextual's layout, of what authors wrote about images (ConTextual 2.3)

CONTEXTUAL_FOLDER, SPLIT, TASKS = "data", "val", "tasks.csv"
KINDS = ("extractive", "math")


def write_contextual(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
    rows = [list(COLUMNS)]
    tasks = [["image_url", "task"]]
    for one in judgements(request.state, request.annotators):
        image, values = one.item.images["image"][0], one.entry.values
        name = f"images/{image.digest[:16]}{Path(image.path).suffix.lower()}"
        request.copy(image, f"{CONTEXTUAL_FOLDER}/{image_path(name)}")
        rows.append([name, *(str(values[column]) for column in ("instruction", "response", "category"))])
        if "task" in values:
            tasks.append([name, str(values["task"])])
    table = request.out / CONTEXTUAL_FOLDER / table_name(SPLIT)
    table.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(table, [csv_bytes(rows)])
    yield table, f"{len(rows) - 1:,} triplets"
    if len(tasks) > 1:
        write_atomically(request.out / CONTEXTUAL_FOLDER / TASKS, [csv_bytes(tasks)])
        yield request.out / CONTEXTUAL_FOLDER / TASKS, "extractive or math, for --set labels=FILE"


def write_tasks(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
    """Write the kinds of tasks of existing instances (ConTextual G.1); `neither` has no line."""
    decided = [(item.hidden["sample"], request.decision(item).value) for item in request.state.items.values()]
    counts = Counter(value or "undecided" for _, value in decided)
    rows = [[str(name), value] for name, value in decided if value in KINDS]
    write_atomically(request.out / TASKS, [csv_bytes([["image_url", "task"], *rows])])
    said = ", ".join(f"{count:,} {word}" for word, count in sorted(counts.items()))
    yield request.out / TASKS, f"{said}; for --set labels=FILE"


# -- The images that annotators keep (CODIS 3.4, II-Bench 3.2, ConTextual 2.3), and a table of all
#    decisions

KEEP = "keep"


def write_images(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
    rows = [["image", "decision", "votes", "reasons"]]
    kept = 0
    for item in request.state.items.values():
        decision, name = request.decision(item), str(item.hidden["image"])
        if decision.value == KEEP:
            request.copy(item.images["image"][0], f"kept/{name}")
            kept += 1
        votes = ", ".join(f"{name_of(request.annotators, by)}: {vote}" for by, vote in decision.votes.items())
        rows.append(
            [
                name,
                decision.value or "",
                votes,
                _reasons(request, item.number),
            ]
        )
    counts = Counter(row[1] or "undecided" for row in rows[1:])
    write_atomically(request.out / "decisions.csv", [csv_bytes(rows)])
    yield (
        request.out / "decisions.csv",
        ", ".join(f"{count:,} {word}" for word, count in sorted(counts.items())),
    )
    yield request.out / "kept", f"{kept:,} images"


def _reasons(request: RecordsRequest, item: int) -> str:
    values = [entry.values.get("reason", "") for entry in request.state.of_item(item).values()]
    return "; ".join(dict.fromkeys(value for value in values if isinstance(value, str) and value))


# -- Captions that humans write, and those that suffice to answer the questions (CODIS, section 5.1: Table 5)

SUFFICIENT = "sufficient"


def write_captions(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
    """Write captions as a file for `--set captions=FILE`.

    A caption that suffices for some of the questions about its image has their ids as its names.
    """
    captions: dict[str, str] = {}
    if request.state.project.task.items == "images":
        for one in judgements(request.state, request.annotators):
            captions.setdefault(str(one.item.hidden["image"]), str(one.entry.values["caption"]))
        said = f"captions of {len(captions):,} of {len(request.state.items):,} images"
    else:
        by_image: dict[str, list[Item]] = defaultdict(list)
        for item in request.state.items.values():
            by_image[str(item.hidden["image"])].append(item)
        questions = 0
        for image, items in by_image.items():
            kept = [item for item in items if request.decision(item).value == SUFFICIENT]
            names = [image] if len(kept) == len(items) else [str(item.hidden["sample"]) for item in kept]
            captions |= dict.fromkeys(names, str(items[0].hidden["caption"]))
            questions += len(kept)
        said = f"captions that suffice for {questions:,} of {len(request.state.items):,} questions"
    write_atomically(request.out / "captions.json", [indented_json(captions)])
    yield request.out / "captions.json", said


# -- The accepted questions of a review as II-Bench's data folder, beside the verified table (II-Bench
#    3.2)


def write_questions(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
    """Write the verified table; if its lines hold all that II-Bench's records need, the data folder, too."""
    reviewed = reviewed_lines(request)
    yield from write_verified(request, reviewed)
    accepted = [one.line for one in reviewed if one.accepted]
    if not all({IMAGE, *FILLED} <= line.cells.keys() for line in accepted):
        return
    verified = request.out / TABLE_FOLDER
    gallery = check_images(
        {line.cells[IMAGE]: ImageRef(str(verified / line.cells[IMAGE]), str(verified)) for line in accepted}
    )
    lines = [
        FormLine(line.cells[IMAGE], line.cells.get(BY, "").strip(), line.cells, line.key)
        for line in accepted
        if line.cells[IMAGE] in gallery.files
    ]
    sound = [line for line in lines if not any(find_faults(line))]
    yield from write_data(request, group_by_image(sound), gallery)


# -- The accepted and rejected lines of verified tables (ConTextual 2.3, II-Bench 3.2)

TABLE_FOLDER = "verified"
ACCEPTING = ("yes", "right")


def write_table_lines(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
    """Write the accepted lines in the layout of the table, and the rejected ones for revision."""
    yield from write_verified(request, reviewed_lines(request))


def reviewed_lines(request: RecordsRequest) -> list[ReviewedLine]:
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
    refuse_out_inside_inputs(request.out / TABLE_FOLDER, [Path(source) for source in project.sources])
    rule = f"{project.task.needed}/{project.annotators}" if project.task.needed else "majority"
    name = Path(project.sources[0]).name
    table = ACCEPTED if name == REJECTED else name
    manifest = write_accepted(reviewed, rule, table, request.out / TABLE_FOLDER)
    rejected = sum(one.accepted is False for one in reviewed)
    missing = f"; images missing or broken: {', '.join(manifest.missing)}" if manifest.missing else ""
    yield (
        request.out / TABLE_FOLDER / table,
        f"{manifest.groups:,} of {len(reviewed):,} lines, accepted{missing}",
    )
    yield request.out / TABLE_FOLDER / REJECTED, f"{rejected:,} lines for revision"
    yield request.out / TABLE_FOLDER / REPORT, _share(reviewed)


def _share(reviewed: Sequence[ReviewedLine]) -> str:
    """The share of right lines in words, beside the published one."""
    share = share_right(reviewed)
    if share.value is None:
        return f"no share of right lines: {share.reason}"
    value = f"{share.value:.1f} % {interval_text(share.low, share.high)}".rstrip()
    published = "".join(f" (published: {one.value:g} %)" for one in share.published or ())
    return f"{value} of {share.n:,} decided lines are right{published}"


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


# -- Verified tables: the lines that humans accept, and those that go back for revision

KIND = "verify"
REPORT, REJECTED, ACCEPTED = "verification.json", "rejected.csv", "accepted.csv"


class VerifiedManifest(BuildManifest, frozen=True):
    """The manifest of a verified table; `missing` maps paths of missing or broken images to the reason."""

    missing: Mapping[str, str] = field(default_factory=dict)


class Mark(Struct, frozen=True):
    """One annotator's vote on a line."""

    yes: bool
    by: str
    remark: str = ""


class ReviewedLine(Struct, frozen=True):
    """A line with its marks: accepted (True), rejected (False) or undecided (None)."""

    line: TableLine
    marks: tuple[Mark, ...]
    accepted: bool | None


def share_right(reviewed: Sequence[ReviewedLine]) -> MetricValue:
    """The accepted lines of the decided ones, in percent; of ConTextual with the paper's value (2.3)."""
    decided = [(_cluster(one.line), float(one.accepted)) for one in reviewed if one.accepted is not None]
    names = ", ".join(sorted({mark.by for one in reviewed for mark in one.marks}))
    reason = "no line is decided"
    share = clustered_mean("right", decided, reason=reason)
    share = structs.replace(share, judge=names or None)
    if not all(set(COLUMNS) <= one.line.cells.keys() for one in reviewed):
        return share
    return structs.replace(share, published=published(NAME, KIND, "Humans")["right", "all"])


def verification_report(reviewed: Sequence[ReviewedLine], rule: str) -> dict[str, Any]:
    verdicts = [one.accepted for one in reviewed]
    return {
        "schema": 1,
        "rule": rule,
        "lines": len(reviewed),
        "accepted": verdicts.count(True),
        "rejected": verdicts.count(False),
        "undecided": verdicts.count(None),
        "metrics": [share_right(reviewed)],
        "decided": [
            {"key": one.line.key, "round": one.line.round, "accepted": one.accepted, "marks": one.marks}
            for one in reviewed
        ],
    }


def write_accepted(
    reviewed: Sequence[ReviewedLine],
    rule: str,
    table: str,
    out: Path,
) -> VerifiedManifest:
    """Write the accepted lines, rejected.csv for revision, verification.json, images/ and, last,
    manifest.json.

    Undecided lines are in neither table. The images of rejected lines are copied too, for revision and
    review.
    """
    columns = list(reviewed[0].line.cells)
    accepted = [one for one in reviewed if one.accepted]
    rejected = [one for one in reviewed if one.accepted is False]
    decided = (one.line for one in [*accepted, *rejected])
    gallery = check_images({image_path(one.cells[IMAGE]): one.image for one in decided if one.image})
    revision = [[*one.line.cells.values(), *_notes(one)] for one in rejected]
    contents = Contents(
        groups=len(accepted),
        probes=len(accepted),
        files={
            table: csv_bytes([columns, *(list(one.line.cells.values()) for one in accepted)]),
            REJECTED: csv_bytes([[*columns, *REVIEW_COLUMNS], *revision]),
            REPORT: indented_json(verification_report(reviewed, rule)),
        },
        sources={path: file.digest for path, file in gallery.files.items()},
        dropped={one.line.key: "humans mark it wrong" for one in rejected},
    )
    lines = json_digest([one.line.key for one in reviewed])
    identity = build_identity(KIND, {"rule": rule, "lines": lines})
    manifest = partial(VerifiedManifest, missing=gallery.broken)
    return write_folder(out, identity, contents, gallery.files, manifest=manifest, force=True)


def _cluster(line: TableLine) -> str:
    return line.cells.get(IMAGE) or line.key


def _notes(one: ReviewedLine) -> list[str]:
    votes = [mark.yes for mark in one.marks]
    remarks = "; ".join(f"{mark.by}: {mark.remark}" for mark in one.marks if mark.remark)
    return [str(one.line.round), str(votes.count(True)), str(votes.count(False)), remarks]
