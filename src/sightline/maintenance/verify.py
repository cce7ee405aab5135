"""Reads everything in a store and says what is wrong: with its file, rows, references and runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from sqlalchemy import Column, ColumnElement, RowMapping, Table, and_, exists, select, tuple_

from sightline.annotation.types import DECODERS
from sightline.evaluation.plan import StoredProbe, read_stored_probes
from sightline.evaluation.runs import StoredRun, decode_run, read_row
from sightline.formats.jsonl import decode_verdict
from sightline.progress import progress
from sightline.store import schema
from sightline.store.answers import EndpointRecord, decode_result, model_of, state_of
from sightline.store.connect import display, sqlite_path
from sightline.store.database import LOOKUP, Connection, Database, StoreFailedError, damage_remedy, rows_in
from sightline.store.runs import decode_probes
from sightline.store.store import Store, check_image_row

PAGE = 500
"""Rows that are read at once, so that memory stays small and no other process waits for long."""
KEY_BYTES = 32
"""The bytes of a request key."""
LARGEST = 1 << 53
"""No store has a row with a larger number."""
LARGEST_TIME = 253402300800.0
"""The first second of the year 10000."""

S = TypeVar("S")
T = TypeVar("T")


def read_pages(
    source: Database | Connection, table: Table, *conditions: ColumnElement[bool]
) -> Iterator[Sequence[RowMapping]]:
    """Read a table in the order of its primary key, from a database or in the transaction of a connection."""
    key = list(table.primary_key.columns)
    query = select(*(column.label(column.key) for column in table.columns)).where(*conditions)
    page: Sequence[RowMapping] = ()
    while True:
        rest = (
            query.where(tuple_(*key) > tuple_(*(page[-1][column.key] for column in key))) if page else query
        )
        with source.read() if isinstance(source, Database) else nullcontext(source) as connection:
            page = connection.core.execute(rest.order_by(*key).limit(PAGE)).mappings().all()
        if page:
            yield page
        if len(page) < PAGE:
            return


def row_name(table: Table, row: RowMapping) -> str:
    """The primary key of a row in one line, such as `run 1, place 0`."""
    values = ((column.key, row[column.key]) for column in table.primary_key.columns)
    return ", ".join(f"{name} {value.hex() if isinstance(value, bytes) else value}" for name, value in values)


def row_problem(table: Table, row: RowMapping) -> str:
    """What is wrong with a row: values have their types, bodies decode, keys fit; '' if nothing is."""
    try:
        _check(table, row)
    except ValueError as error:
        return str(error)
    return ""


def _check(table: Table, row: RowMapping) -> None:
    _check_types(table, row)
    match name := str(table.name):
        case "answers":
            key = hashlib.sha256(row["request"].encode()).digest()
            _require(key == row["key"], "its key is not the SHA-256 of its request")
            _decoded(model_of, row["request"])
            state = state_of(_decoded(partial(decode_result, row["state"]), row["result"]))
            _require(state == row["state"], f"its state {row['state']} is not that of its result")
        case "probes":
            for _, probe in _decoded(partial(decode_probes, row["place"]), row["body"]):
                _decoded(_PROBE.decode, probe)
        case "batch_requests":
            _require(len(row["key"]) == KEY_BYTES, "its key is no SHA-256")
        case "vectors":
            _require(len(row["body"]) % 4 == 0, "it is no list of numbers")
        case _ if name in _DECODERS:
            _decoded(_DECODERS[name], row["body"])


_PROBE = msgspec.json.Decoder(StoredProbe)
_DECODERS: Mapping[str, Callable[[bytes], object]] = {
    "runs": lambda body: decode_run(0, msgspec.json.decode(body), is_finished=True),
    "verdicts": decode_verdict,
    "endpoints": msgspec.json.Decoder(EndpointRecord).decode,
    "images": check_image_row,
    "readings": msgspec.json.decode,
    **{table: decoder.decode for table, decoder in DECODERS.items()},
}
"""Table -> what decodes the bodies of its rows, where they are not compressed."""


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(problem)


def _decoded(decode: Callable[[T], S], body: T) -> S:
    try:
        return decode(body)
    except ValueError as error:
        raise ValueError(f"it cannot be decoded: {error}") from None


def _check_types(table: Table, row: RowMapping) -> None:
    """Raise ValueError for a value that its column cannot have: SQLite accepts every type in every column."""
    for column in table.columns:
        name, value, expected = column.key, row[column.key], column.type.python_type
        if value is None and column.nullable:
            continue
        types = (float, int) if expected is float else (expected,)
        _require(
            isinstance(value, types),
            f"its {name} is of type {type(value).__name__}, expected {expected.__name__}",
        )
        if expected is int:
            _require(0 <= value < LARGEST, f"its {name} is no number of a store: {value}")
        if name in ("created", "finished", "closed"):
            _require(abs(value) < LARGEST_TIME, f"its {name} is no time: {value}")


class Fault(Struct, frozen=True, kw_only=True):
    """Something that is wrong in a store: the table ('' for the file), the row and run if known, a remedy."""

    table: str = ""
    row: str = ""
    run: int | None = None
    problem: str
    remedy: str = ""


REFERENCES: tuple[tuple[Column[Any], Column[Any]], ...] = (
    (schema.batch_requests.c.batch, schema.batches.c.id),
    (schema.probes.c.run, schema.runs.c.id),
    (schema.verdicts.c.run, schema.runs.c.id),
    (schema.run_labels.c.run, schema.runs.c.id),
    (schema.run_tags.c.run, schema.runs.c.id),
    (schema.annotation_items.c.project, schema.annotation_projects.c.id),
    (schema.annotators.c.project, schema.annotation_projects.c.id),
    (schema.annotation_log.c.project, schema.annotation_projects.c.id),
)
"""Columns that name a row of another table."""


def verify(url: str, *, show_progress: bool) -> Iterator[Fault]:
    """Find what is wrong in a store, which may be too damaged to be opened."""
    remedy = damage_remedy(display(url))
    try:
        with closing(Store.open(url, create=False)) as store:
            for fault in find_faults(store, show_progress=show_progress):
                yield msgspec.structs.replace(fault, remedy=fault.remedy or remedy)
    except StoreFailedError as error:
        if sqlite_path(url) is None:
            raise
        yield Fault(problem=error.reason, remedy=remedy)


def find_faults(store: Store, *, show_progress: bool) -> Iterator[Fault]:
    """Find what is wrong in the file, in single rows, in references between tables, and in finished runs."""
    database = store.database
    if database.is_file:  # a server checks its own files
        try:
            with database.read() as connection:
                found = [line for (line,) in connection.rows("PRAGMA integrity_check")]
        except StoreFailedError as error:
            found = [error.reason]
        yield from (Fault(problem=str(line)) for line in found if line != "ok")
    with progress("verify", None, "rows", show_progress=show_progress) as advance:
        for table in schema.metadata.sorted_tables:
            remedy = (
                "`sightline runs delete {id}` deletes the run, its answers stay"
                if table is schema.runs
                else ""
            )
            for page in _readable_pages(database, table):
                if isinstance(page, Fault):
                    yield page
                    continue
                yield from (
                    _fault(table, row, problem, remedy.format_map(row))
                    for row in page
                    if (problem := row_problem(table, row))
                )
                advance(len(page))
    for column, target in REFERENCES:
        remedy = "`sightline store gc` drops such rows" if target.table is schema.runs else ""
        dangling = and_(column.is_not(None), ~exists().where(target == column))
        for page in _readable_pages(database, column.table, dangling):
            if isinstance(page, Fault):
                yield page
                continue
            for row in page:
                problem = f"{column.key} {row[column.key]} does not exist in {target.table.name}"
                yield _fault(column.table, row, problem, remedy)
    yield from _faults_of_runs(store)


def _readable_pages(
    database: Database, table: Table, *conditions: ColumnElement[bool]
) -> Iterator[Sequence[RowMapping] | Fault]:
    try:
        yield from read_pages(database, table, *conditions)
    except StoreFailedError as error:
        yield Fault(table=str(table.name), problem=f"some rows cannot be read: {error.reason}")


def _fault(table: Table, row: RowMapping, problem: str, remedy: str) -> Fault:
    name = row_name(table, row)
    return Fault(table=str(table.name), row=name, run=row.get("run"), problem=problem, remedy=remedy)


def _faults_of_runs(store: Store) -> Iterator[Fault]:
    """Finished runs that lack something; those with a damaged row are left to the check of rows."""
    try:
        runs = store.runs.all()
    except StoreFailedError:
        return
    for row in runs:
        with suppress(StoreFailedError):
            run = read_row(store, row)
            with store.database.read() as connection:
                problem = missing_in(store, run, connection) if run.is_finished else ""
            if problem:
                remedy = "run the same command again, which asks only what is missing"
                yield Fault(table="runs", run=run.number, problem=problem, remedy=remedy)


def missing_in(store: Store, run: StoredRun, answers: Connection) -> str:
    """What a finished run of a store lacks if its answers are those of a connection; '' if nothing."""
    samples, without, last = 0, 0, None
    probes = read_stored_probes(store, run.number)
    attempted = "SELECT DISTINCT key FROM answers WHERE key IN ({})"
    while batch := list(islice(probes, LOOKUP)):
        for probe in batch:
            samples += probe.sample != last
            last = probe.sample
        if run.stopped is None:
            keys = {bytes.fromhex(probe.key) for probe in batch if probe.is_asked}
            without += len(keys) - sum(1 for _ in rows_in(answers, attempted, sorted(keys)))
    if run.file is None and samples < (planned := run.description.planned_samples):
        return f"{planned - samples:,} of its {planned:,} samples have no probes"
    return f"{without:,} of its probes have no attempt" if without else ""
