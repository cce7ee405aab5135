"""Tables of a project: what stands, what is to be filled in, and filled-in tables that come back."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from sightline.annotation.decisions import judged_by_raters, settlers, wanted
from sightline.annotation.exchange import Filled, read_annotated
from sightline.annotation.judgements import judgements
from sightline.annotation.state import State
from sightline.annotation.store import AnnotationStore, ProjectRow
from sightline.annotation.types import Annotator, Entry, Item
from sightline.annotation.values import checked_values
from sightline.errors import UserError
from sightline.escaping import unescape_formula
from sightline.formats.content import read_bytes
from sightline.formats.digests import text_digest
from sightline.formats.tables import csv_bytes, read_table, table_rows

ITEM, BY, ACTION, REMARK = "item", "by", "action", "remark"
SEPARATOR = "; "
"""Between the values of a field that holds several."""

_ITEM = re.compile(r"item-0*(\d+)")


class Imported(Struct, frozen=True):
    """The result of an import: judgements that were added, those that were there already, and the items that
    have more judgements than they need now."""

    added: int
    known: int
    beyond: tuple[int, ...] = ()


def items_table(state: State) -> list[list[str]]:
    """The table that an annotator fills in: each item, without anything that is hidden."""
    parts = [part for part in state.project.task.shows if part.kind != "similar"]
    fields = [field.name for field in state.project.task.fields]
    header = [ITEM, BY, *fields, REMARK, "phase", *(part.name for part in parts if part.name not in fields)]
    rows = [header]
    for item in state.items.values():
        shown = [_shown(item, part.name) for part in parts if part.name not in fields]
        rows.append([item.key, "", *("" for _ in fields), "", item.phase, *shown])
    return rows


def judgements_table(state: State, annotators: Sequence[Annotator]) -> list[list[str]]:
    """The table of the judgements that stand, with what they are about."""
    fields = [field.name for field in state.project.task.fields]
    hidden = sorted({name for item in state.items.values() for name in item.hidden})
    about = ["phase", "stratum", "cluster", "variant", "probability", "targets"]
    rows = [[ITEM, BY, *fields, "role", "seconds", "time", *about, *hidden]]
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
                *(_joined(item.hidden.get(name, "")) for name in hidden),
            ]
        )
    return rows


def import_sheets(
    store: AnnotationStore, row: ProjectRow, state: State, files: Sequence[Path], now: float
) -> Imported:
    """Add the judgements of filled-in tables. Everything is checked before anything is added.

    Args:
        now: Seconds since 1970.
    """
    found: dict[tuple[str, int], tuple[str, Mapping[str, str | tuple[str, ...]]]] = {}
    names: dict[str, str] = {}
    for path in files:
        for where, name, number, values in _filled(state, path):
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
    return Imported(added, len(found) - added, _beyond(state.advance(stored), store.annotators(row.number)))


def _beyond(state: State, annotators: Sequence[Annotator]) -> tuple[int, ...]:
    """The items with more judgements than they need; known values are judged by everybody."""
    judged = judged_by_raters(state, settlers(annotators))
    return tuple(
        number
        for number, item in state.items.items()
        if judged[number] > wanted(state.project, item) and not item.expected
    )


def _lines(state: State, path: Path) -> Iterator[Filled]:
    fields = state.project.task.fields
    table = read_table(_as_utf8(read_bytes(path)), path)
    for column in (ITEM, *(field.name for field in fields if field.required and not field.when)):
        if column not in table.header:
            raise UserError("lacks a column", file=path, field=column, expected="items.csv, filled in")
    for where, cells in table_rows(table, path):
        given = {}
        for field in fields:
            text = unescape_formula(cells.get(field.name, "")).strip()
            several = field.kind == "choices"
            given[field.name] = [part.strip() for part in text.split(";")] if several else [text]
        by = unescape_formula(cells.get(BY, ""))
        yield where, cells[ITEM], by, cells.get(REMARK, "").strip(), given


def _filled(
    state: State, path: Path
) -> Iterator[tuple[str, str, int, tuple[str, Mapping[str, str | tuple[str, ...]]]]]:
    """The judgements of a file: where it is, the annotator, the item, remark and values."""
    from sightline.annotation.invitations import check_name

    read = read_annotated if path.suffix in (".json", ".jsonl") else _lines
    for where, key, by, remark, given in read(state, path):
        if not any(any(texts) for texts in given.values()):
            continue
        match = _ITEM.fullmatch(key.strip())
        item = state.items.get(int(match[1])) if match else None
        if item is None:
            raise UserError("is no item of this project", file=path, record=where, field=ITEM, found=key)
        name = " ".join(by.split()) or path.stem
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
        yield where, name, item.number, (remark, values)


def _annotators(store: AnnotationStore, row: ProjectRow, names: Mapping[str, str]) -> dict[str, int]:
    """Name in small letters -> number; new annotators are added, with a link that has ended."""
    from sightline.annotation.invitations import invite

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


def _shown(item: Item, part: str) -> str:
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
