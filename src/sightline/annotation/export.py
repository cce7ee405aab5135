"""The files that `annotate export` writes: verdicts, answers, the log, tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, count
from pathlib import Path

import msgspec

from sightline.annotation.exchange import label_studio_config, label_studio_tasks, potato_items
from sightline.annotation.human_answers import human_answers
from sightline.annotation.judgements import name_of, verdicts
from sightline.annotation.records.kinds import Written, write_records
from sightline.annotation.records.request import RecordsRequest
from sightline.annotation.sheets import items_table, judgements_table
from sightline.annotation.state import State
from sightline.annotation.types import Annotator, Entry
from sightline.builders.manifest import indented_json
from sightline.escaping import for_csv_lines
from sightline.formats.files import write_atomically
from sightline.formats.tables import csv_bytes
from sightline.formats.verdicts import verdict_line
from sightline.formats.workbook import workbook_bytes


def export_project(
    state: State, annotators: Sequence[Annotator], log: Sequence[Entry], out: Path, *, xlsx: bool
) -> Written:
    """Write the files of a project."""
    out.mkdir(parents=True, exist_ok=True)
    yield _log(state, annotators, log, out)
    for name, rows in (
        ("items", items_table(state)),
        ("judgements", judgements_table(state, annotators)),
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
            yield from write_records(state.project.task.records, request)


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
    return _lines(out / "verdicts.jsonl", map(verdict_line, found), f"{len(found):,} verdicts{by}")


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
