"""Items and judgements as tables, and the import of filled-in tables and of exports of other tools."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from sightline.annotation.decisions import judged_by_raters, judgements, settlers, wanted
from sightline.annotation.label_tools import (
    EXPORTS,
    Filled,
    filled_in_records,
    filled_in_rows,
    is_export,
)
from sightline.annotation.live import checked_values
from sightline.annotation.state import State
from sightline.annotation.store import AnnotationStore, ProjectRow
from sightline.annotation.task import CROWD
from sightline.annotation.types import Annotator, Entry, Item
from sightline.errors import UserError
from sightline.formats.files import read_bytes, text_digest
from sightline.formats.tables import RawTable, csv_bytes, is_workbook, read_table, table_rows
from sightline.text import json_records, unescape_formula

ITEM, BY, ACTION, REMARK = "item", "by", "action", "remark"
SEPARATOR = "; "
"""Between the values of a field that holds several."""

_ITEM = re.compile(r"item-0*(\d+)")


class Imported(Struct, frozen=True):
    """The result of an import.

    Attributes:
        known: Judgements that were there already.
        empty: Lines, tasks and annotations without values, such as skipped ones.
        changed: Annotations of Label Studio that somebody else than their annotator changed last.
        unknown: What the files fill in that is no field of the task.
        beyond: The items that have more judgements than they need now.
    """

    added: int
    known: int
    empty: int
    changed: int
    unknown: tuple[str, ...]
    beyond: tuple[int, ...]


def items_table(state: State) -> list[list[str]]:
    """The table that an annotator fills in: each item, without anything that is hidden."""
    parts = [part for part in state.project.task.shows if part.kind != "similar"]
    fields = [field.name for field in state.project.task.fields]
    header = [ITEM, BY, *fields, REMARK, "phase", *(part.name for part in parts if part.name not in fields)]
    rows = [header]
    for item in state.items.values():
        shown = [_shown_in_sheet(item, part.name) for part in parts if part.name not in fields]
        rows.append([item.key, "", *("" for _ in fields), "", item.phase, *shown])
    return rows


def judgements_table(state: State, annotators: Sequence[Annotator]) -> list[list[str]]:
    """The table of the judgements that stand, with what they are about."""
    fields = [field.name for field in state.project.task.fields]
    hidden = sorted({name for item in state.items.values() for name in item.hidden})
    about = ["phase", "stratum", "cluster", "variant", "probability", "targets", "guidelines"]
    own = [ITEM, BY, *fields, "role", "seconds", "time"]
    labels = {one.name: one.labels for one in annotators}
    of_annotators = sorted({name for one in annotators for name in one.labels})
    # A field of the user may be called like what an item is about, and drafts name their own item.
    rows = [
        [
            *own,
            *(name if name not in own else f"{name} of the source" for name in about + hidden),
            *(f"annotator {name}" for name in of_annotators),
        ]
    ]
    for one in judgements(state, annotators):
        item, entry = one.item, one.entry
        values = [_joined(entry.values.get(name, "")) for name in fields]
        place = [item.phase, item.stratum, item.cluster, item.variant, repr(item.probability)]
        rows.append(
            [
                item.key,
                one.name,
                *values,
                one.role,
                f"{entry.seconds:.1f}",
                f"{entry.time:.0f}",
                *place,
                " ".join(item.targets),
                str(state.version_at(entry)),
                *(_joined(item.hidden.get(name, "")) for name in hidden),
                *(labels.get(one.name, {}).get(name, "") for name in of_annotators),
            ]
        )
    return rows


def annotators_table(state: State, annotators: Sequence[Annotator], log: Sequence[Entry]) -> list[list[str]]:
    """The table of the annotators: their labels, what stands of their work, and the time of all of it."""
    labels = sorted({name for one in annotators for name in one.labels})
    about = [BY, "role", "link", "judgements", "skipped", "seconds", "began", "last", "code"]
    rows = [[*about, *(name if name not in about else f"annotator {name}" for name in labels)]]
    for one in (one for one in annotators if one.role != CROWD):
        actions = Counter(entry.action for entry in state.of_annotator(one.number).values())
        own = [entry for entry in log if entry.annotator == one.number]
        rows.append(
            [
                one.name,
                one.role,
                one.crowd,
                str(actions["judge"]),
                str(actions["skip"]),
                f"{sum(entry.seconds for entry in own):.1f}",
                *([f"{own[0].time:.0f}", f"{own[-1].time:.0f}"] if own else ["", ""]),
                one.code if one.code_shown else "",
                *(one.labels.get(name, "") for name in labels),
            ]
        )
    return rows


def import_sheets(
    store: AnnotationStore, row: ProjectRow, state: State, files: Sequence[Path], now: float
) -> Imported:
    """Add the judgements of filled-in tables, all or none; `now` is in seconds since 1970."""
    found: dict[tuple[str, int], tuple[str, Mapping[str, str | tuple[str, ...]]]] = {}
    names: dict[str, str] = {}
    fields = {field.name for field in state.project.task.fields}
    empty = changed = 0
    unknown: dict[str, None] = {}
    for path in files:
        filled = list(_read(state, path))
        read = [one for one in filled if any(any(texts) for texts in one.given.values())]
        if not read:
            raise UserError("holds no judgement", file=path, expected=EXPORTS)
        empty += len(filled) - len(read)
        changed += sum(bool(one.changed_by) for one in read)
        unknown |= dict.fromkeys(name for one in read for name in one.given if name not in fields)
        for where, name, number, values in _judgements(state, path, read):
            names.setdefault(name.casefold(), name)
            remark, given = values
            if found.setdefault((name.casefold(), number), (remark, given))[1] != given:
                raise UserError(
                    f"'{name}' has judged one item twice, differently", file=path, record=where, field=ITEM
                )
    numbers = _annotators(store, row, names)
    entries = [
        Entry(
            0,
            number,
            numbers[name],
            "judge",
            _form(row, state, name, number, given),
            now,
            given,
            reason=remark,
        )
        for (name, number), (remark, given) in found.items()
        if not _stands(state, numbers[name], number, given)
    ]
    stored = store.append(row.number, entries)
    added = sum(entry.number > state.last for entry in stored)
    beyond = _beyond(state.advance(stored), store.annotators(row.number))
    return Imported(added, len(found) - added, empty, changed, tuple(unknown), beyond)


def _beyond(state: State, annotators: Sequence[Annotator]) -> tuple[int, ...]:
    """The items with more judgements than they need; known values are judged by everybody."""
    judged = judged_by_raters(state, settlers(annotators))
    return tuple(
        number
        for number, item in state.items.items()
        if judged[number] > wanted(state.project, item) and not item.expected
    )


def _read(state: State, path: Path) -> Iterator[Filled]:
    """Read a filled-in table, or an export of another tool."""
    content = read_bytes(path)
    if content.lstrip()[:1] in (b"{", b"["):
        return filled_in_records(state, json_records(content, path), path)
    if is_workbook(content) and b"[Content_Types].xml" not in content:
        raise UserError("is an archive of files", file=path, expected=EXPORTS)
    table = read_table(_as_utf8(content), path)
    if is_export(table.header):
        return filled_in_rows(state, table_rows(table, path), path)
    return _lines(state, table, path)


def _lines(state: State, table: RawTable, path: Path) -> Iterator[Filled]:
    fields = state.project.task.fields
    for column in (ITEM, BY, *(field.name for field in fields if field.required and not field.when)):
        if column not in table.header:
            raise UserError("lacks a column", file=path, field=column, expected=EXPORTS)
    for where, cells in table_rows(table, path):
        given = {}
        for field in fields:
            text = unescape_formula(cells.get(field.name, "")).strip()
            several = field.kind == "choices"
            given[field.name] = [part.strip() for part in text.split(";")] if several else [text]
        remark = cells.get(REMARK, "").strip()
        yield Filled(where, cells[ITEM], unescape_formula(cells[BY]), given, remark=remark)


def _judgements(
    state: State, path: Path, filled: Iterable[Filled]
) -> Iterator[tuple[str, str, int, tuple[str, Mapping[str, str | tuple[str, ...]]]]]:
    """The judgements of a file: where it is, the annotator, the item, remark and values."""
    from sightline.annotation.links import check_name

    nameless: set[int] = set()
    for where, key, by, given, changed_by, remark in filled:
        match = _ITEM.fullmatch(key.strip())
        item = state.items.get(int(match[1])) if match else None
        if item is None:
            raise UserError("is no item of this project", file=path, record=where, field=ITEM, found=key)
        name = " ".join(by.split()) or path.stem
        if not by.strip() and item.number in nameless:
            raise UserError(
                "is judged twice by annotators without a name",
                file=path,
                record=where,
                field=ITEM,
                found=key,
                expected="names of the annotators, or a file for each of them, which names its annotator",
            )
        if not by.strip():
            nameless.add(item.number)
        if any(author.casefold() == name.casefold() for author in item.authors):
            raise UserError(f"'{name}' is an author of this item", file=path, record=where, field=BY)
        try:
            check_name(name)
            values = checked_values(state.project.task, item, given)
        except UserError as error:
            raise UserError(
                error.message,
                file=path,
                record=where,
                field=error.field,
                found=error.found,
                expected=error.expected,
            ) from None
        if not values:
            raise UserError(
                "fills in no field of the task",
                file=path,
                record=where,
                found=", ".join(given),
                expected=", ".join(field.name for field in state.project.task.fields),
            )
        yield where, name, item.number, (f"changed by {changed_by}" if changed_by else remark, values)


def _annotators(store: AnnotationStore, row: ProjectRow, names: Mapping[str, str]) -> dict[str, int]:
    """Name in small letters -> number; new annotators are added, with a link that has ended."""
    from sightline.annotation.links import invite

    known = {one.name.casefold(): one.number for one in store.annotators(row.number)}
    for folded, name in names.items():
        if folded not in known:
            known[folded] = invite(store, row, name, 0.0).number
    return known


def _stands(state: State, annotator: int, item: int, values: object) -> bool:
    entry = state.of_item(item).get(annotator)
    return entry is not None and entry.action == "judge" and entry.values == values


def _form(row: ProjectRow, state: State, name: str, item: int, values: object) -> str:
    """The id of an imported judgement: one file that is imported twice at once adds it once."""
    about = (row.number, state.last, name, item, values)
    return "import-" + text_digest(repr(about))[:40]


def _shown_in_sheet(item: Item, part: str) -> str:
    images = item.images.get(part, ())
    return "\n".join((*item.texts.get(part, ()), *(image.path for image in images)))


def _joined(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else SEPARATOR.join(value)


def _as_utf8(content: bytes) -> bytes:
    """A table as spreadsheets save it: cp1252 and semicolons become UTF-8 and commas."""
    if content.startswith(b"PK\x03\x04"):
        return content
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="strict") if _is_cp1252(content) else ""
    header = text.partition("\n")[0]
    if text and ";" in header and header.count(";") > header.count(","):
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=";"))
        return csv_bytes(rows)
    return text.encode() if text else content


def _is_cp1252(content: bytes) -> bool:
    try:
        content.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return True
