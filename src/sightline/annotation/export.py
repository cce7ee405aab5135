"""The files that `annotate export` writes: verdicts, answers, the log, tables; and a project as verdicts."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path

import msgspec
from msgspec import Struct

from sightline.annotation.decisions import Judgement, judgements, name_of, response_of, verdicts
from sightline.annotation.exchange import annotators_table, items_table, judgements_table
from sightline.annotation.iibench_records import write_iibench
from sightline.annotation.label_tools import (
    label_studio_config,
    label_studio_tasks,
    potato_config,
    potato_items,
)
from sightline.annotation.record_tables import (
    write_captions,
    write_codis,
    write_contextual,
    write_images,
    write_questions,
    write_table_lines,
    write_tasks,
)
from sightline.annotation.records import RecordsRequest
from sightline.annotation.sources import WITHOUT
from sightline.annotation.state import State
from sightline.annotation.store import AnnotationStore
from sightline.annotation.task import Records
from sightline.annotation.types import Annotator, Entry
from sightline.errors import UserError, unknown_name
from sightline.evaluation.judges import HUMAN_PREFIX
from sightline.formats.files import write_atomically
from sightline.formats.jsonl import VERDICTS, verdict_line
from sightline.formats.tables import csv_bytes, workbook_bytes
from sightline.store.store import Store
from sightline.text import for_csv_lines, indented_json
from sightline.types import Verdict

Written = Iterator[tuple[Path, str]]
"""Each file, and what it holds."""

WRITERS: dict[Records, Callable[[RecordsRequest], Written]] = {
    "images": write_images,
    "captions": write_captions,
    "table-lines": write_table_lines,
    "questions": write_questions,
    "codis": write_codis,
    "iibench": write_iibench,
    "contextual": write_contextual,
    "tasks": write_tasks,
}


def export_project(
    state: State, annotators: Sequence[Annotator], log: Sequence[Entry], out: Path, *, xlsx: bool
) -> Written:
    out.mkdir(parents=True, exist_ok=True)
    yield _log(state, annotators, log, out)
    for name, rows in (
        ("items", items_table(state)),
        ("judgements", judgements_table(state, annotators)),
        ("annotators", annotators_table(state, annotators, log)),
    ):
        yield _table(out / f"{name}.csv", rows, _as_csv)
        if xlsx:
            yield _table(out / f"{name}.xlsx", rows, workbook_bytes)
    yield from _for_other_tools(state, out)
    match state.project.task.produces:
        case "verdicts":
            yield _verdicts(state, annotators, out)
        case "answers":
            yield from _answers(state, annotators, out)
        case "records":
            request = RecordsRequest(state, annotators, out)
            yield from WRITERS[state.project.task.records](request)


def _log(state: State, annotators: Sequence[Annotator], log: Sequence[Entry], out: Path) -> tuple[Path, str]:
    """The log, with the names of the annotators and what the items are about."""
    lines = []
    for entry in log:
        item = state.items.get(entry.item)
        about = {} if item is None else {"targets": item.targets, "variant": item.variant, **item.hidden}
        name = name_of(annotators, entry.annotator)
        lines.append({**msgspec.to_builtins(entry), "annotator": name, "about": about})
    return _lines(out / "log.jsonl", map(msgspec.json.encode, lines), f"{len(lines):,} entries")


def _verdicts(state: State, annotators: Sequence[Annotator], out: Path) -> tuple[Path, str]:
    found = list(verdicts(state, annotators))
    names = list(dict.fromkeys(verdict.judge for verdict in found))
    by = f" by {', '.join(names)}" if names else ""
    return _lines(out / VERDICTS, map(verdict_line, found), f"{len(found):,} verdicts{by}")


def _answers(state: State, annotators: Sequence[Annotator], out: Path) -> Written:
    found = human_answers(state, annotators)
    folders = _folders(name for name, _ in found)
    for (name, setting), answers in found.items():
        folder = out / folders[name]
        folder.mkdir(exist_ok=True)
        content = f"{len(answers):,} answers of human:{name}"
        yield _lines(folder / f"{_file_name(setting)}.jsonl", map(msgspec.json.encode, answers), content)


def _folders(names: Iterable[str]) -> dict[str, str]:
    """Name -> a folder of its own, which is none of the files of an export."""
    folders: dict[str, str] = {}
    for name in dict.fromkeys(names):
        taken = {folder.casefold() for folder in folders.values()}
        wanted = _file_name(name).replace(".", "-")
        numbered = (f"{wanted}-{number}" for number in count(2))
        folders[name] = next(one for one in chain([wanted], numbered) if one.casefold() not in taken)
    return folders


def _for_other_tools(state: State, out: Path) -> Written:
    """The items as Label Studio and Potato take them."""
    tasks, config = label_studio_tasks(state), label_studio_config(state)
    write_atomically(out / "label-studio.json", [indented_json(tasks)])
    yield out / "label-studio.json", f"{len(tasks):,} tasks for Label Studio"
    write_atomically(out / "label-studio.xml", [config.encode()])
    yield out / "label-studio.xml", "their labeling configuration"
    items = potato_items(state)
    yield _lines(out / "potato.jsonl", map(msgspec.json.encode, items), f"{len(items):,} items for Potato")
    # JSON is YAML, too.
    write_atomically(out / "potato.yaml", [indented_json(potato_config(state, "potato.jsonl"))])
    yield out / "potato.yaml", "their configuration"


def _lines(path: Path, lines: Iterable[bytes], content: str) -> tuple[Path, str]:
    write_atomically(path, [line + b"\n" for line in lines])
    return path, content


def _table(
    path: Path, rows: Sequence[Sequence[str]], encode: Callable[[Sequence[Sequence[str]]], bytes]
) -> tuple[Path, str]:
    write_atomically(path, [encode(rows)])
    return path, f"{len(rows) - 1:,} lines"


def _as_csv(rows: Sequence[Sequence[str]]) -> bytes:
    return csv_bytes([[for_csv_lines(cell) for cell in row] for row in rows])


def _file_name(name: str) -> str:
    """A name that every file system takes; an annotator's name is text from anywhere."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".-")[:60] or "human"


# -- Humans' answers as files that `sightline score` reads: a row `human:NAME` for each

NO_CONTEXT = "no-context"
"""The setting of answers that were given without the context."""


class HumanAnswer(Struct, frozen=True):
    """An answer: one line of a file that `score` reads."""

    id: str
    variant: str
    response: str
    model: str


def human_answers(
    state: State, annotators: Sequence[Annotator]
) -> Mapping[tuple[str, str], list[HumanAnswer]]:
    setting = state.project.benchmark.partition(":")[2] or "default"
    found: dict[tuple[str, str], list[HumanAnswer]] = defaultdict(list)
    for one in judgements(state, annotators):
        if state.project.task.phase(one.item.phase).kind == "work":
            part = NO_CONTEXT if one.item.phase == WITHOUT else setting
            found[one.name, part] += _answer_lines(one)
    return {key: sorted(lines, key=lambda line: (line.id, line.variant)) for key, lines in found.items()}


def _answer_lines(one: Judgement) -> Iterator[HumanAnswer]:
    text = response_of(one.item, one.entry.values)
    probes = one.item.hidden.get("probes") or f"{one.item.hidden['sample']}\t{one.item.variant}"
    for probe in [probes] if isinstance(probes, str) else probes:
        sample, _, variant = probe.partition("\t")
        yield HumanAnswer(sample, variant, text, f"{HUMAN_PREFIX}{one.name}")


# -- The verdicts of an annotation project, as judges and reports read them from the store


def project_verdicts(store: Store, word: str) -> list[Verdict] | None:
    """Read the verdicts of a project as `annotate export` would write them; None if there is none.

    `PROJECT@LABEL=VALUE` reads those of the annotators with this label only.
    """
    annotations = AnnotationStore(store, time.time)
    known = {name for row in annotations.projects() for name in (row.project.name, str(row.number))}
    name, _, label = (word, "", "") if word in known else word.partition("@")
    if name not in known:
        return None
    row = annotations.project(name)
    task = row.project.task
    if task.produces != "verdicts":
        raise UserError(
            f"the annotation project '{row.project.name}' produces {task.produces}, not verdicts",
            file=store.name,
            expected="a project whose humans judge, see `sightline annotate tasks`",
        )
    state = State(row.project, annotations.items(row.number)).advance(annotations.entries(row.number))
    annotators = annotations.annotators(row.number)
    named = None
    if label:
        key, _, value = label.partition("=")
        values = sorted({f"{key}={one.labels[key]}" for one in annotators if key in one.labels})
        if label not in values:
            raise unknown_name("label of annotators", label, values)
        named = {one.name for one in annotators if one.labels.get(key) == value}
    found = list(verdicts(state, annotators, named))
    if not found:
        raise UserError(
            f"the annotation project '{row.project.name}' has no verdict yet",
            file=store.name,
            expected=f"judgements, see `sightline annotate status {row.project.name}`",
        )
    return found
