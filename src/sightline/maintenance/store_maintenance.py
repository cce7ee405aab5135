"""Cleans a store (`store gc`), measures it (`store info`) and exports its records."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import (
    ColumnElement,
    LargeBinary,
    RowMapping,
    Table,
    delete,
    exists,
    func,
    select,
    text,
)
from sqlalchemy import table as table_named
from sqlalchemy.exc import DBAPIError

from sightline.errors import EnvironmentFailedError, UserError, unknown_name
from sightline.evaluation.batches import drop_answered
from sightline.evaluation.options import JudgeModel
from sightline.evaluation.plan import read_stored_probes
from sightline.evaluation.runs import find_run, list_runs, read_row
from sightline.formats.files import AtomicFile
from sightline.maintenance.merge import MERGE_LOCK
from sightline.maintenance.verify import read_pages, row_problem
from sightline.progress import progress
from sightline.store import schema
from sightline.store.answers import model_of
from sightline.store.claims import LEASE_SECONDS
from sightline.store.connect import connect, display, sqlite_path
from sightline.store.database import (
    LOOKUP,
    Connection,
    StoreFailedError,
    check_sqlite_file,
    damage,
    lock_table,
    parts,
)
from sightline.store.runs import Labels, decompress, no_run
from sightline.store.schema import SCHEMA_VERSION
from sightline.store.store import Store
from sightline.text import local_time

CACHES = (schema.images, schema.vectors, schema.readings)

INDEX = "(index)"
"""What stands in the place of a table for the files of the index."""


class CleaningOptions(Struct, frozen=True, kw_only=True):
    """What goes besides leftovers: caches with the index, unfinished runs, answers that no run refers to."""

    caches: bool = False
    unfinished_runs: bool = False
    unreferenced_answers: bool = False
    dry_run: bool = False


class Dropped(Struct, frozen=True, kw_only=True):
    """Rows that go from a table, and why."""

    table: str
    rows: int
    reason: str


class Cleaning(Struct, frozen=True, kw_only=True):
    """What was dropped, or would be; sizes in bytes. `bytes_after` is None after a dry run."""

    dropped: Sequence[Dropped]
    cache_bytes: int
    bytes_before: int
    bytes_after: int | None


def clean(url: str, options: CleaningOptions) -> Cleaning:
    _refuse_busy_file(url)
    with closing(Store.open(url, create=False)) as store:
        with store.database.read() as connection:
            before = file_sizes(connection).bytes
        with store.database.write() as connection:
            _refuse_busy_store(connection, store)
            dropped = [one for one in _drop(connection, store.name, options) if one.rows]
            kept = (
                set()
                if options.caches
                else {f"{run}.db" for run in connection.core.scalars(select(schema.runs.c.id))}
            )
            index = _index_files(store)
            gone = [
                file for file in index if options.caches or (file.stem.isdecimal() and file.name not in kept)
            ]
            if gone:
                reason = "cache, made again when needed" if options.caches else "of runs that do not exist"
                dropped.append(Dropped(table=INDEX, rows=len(gone), reason=reason))
            kept_bytes = sum(file.stat().st_size for file in set(index) - set(gone))
            cache_bytes = _content_bytes(connection, CACHES) + kept_bytes
            if options.dry_run:
                connection.roll_back()
        for file in [] if options.dry_run else gone:
            file.unlink(missing_ok=True)
    after = None if options.dry_run else _vacuum(url)
    return Cleaning(dropped=dropped, cache_bytes=cache_bytes, bytes_before=before, bytes_after=after)


def _refuse_busy_file(url: str) -> None:
    """Refuse a SQLite store that another process has open: only a lone process gets this lock."""
    path = sqlite_path(url)
    if path is None or not path.exists():
        return
    check_sqlite_file(path, create=False)
    try:
        with closing(sqlite3.connect(path, timeout=1, isolation_level=None)) as connection:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise _busy(display(url)) from None
    except sqlite3.DatabaseError:
        return  # no store, which is reported when it is opened


def _refuse_busy_store(connection: Connection, store: Store) -> None:
    """Refuse a store while a process works on a run of it, sends requests, or merges."""
    if not store.database.is_file:
        if not connection.rows(f"SELECT pg_try_advisory_xact_lock({MERGE_LOCK})")[0][0]:
            raise _busy(store.name, "a process that merges")
        # No other process writes to these tables until the end of this transaction.
        # They are locked in the order in which runs write to them: another order could become a deadlock.
        lock_table(connection, "answers, workers, claims, probes, runs", "SHARE ROW EXCLUSIVE")
    if runs := sorted(store.claims.held_runs()):
        raise _busy(store.name, f"run {runs[0]}")
    if store.claims.held():
        raise _busy(store.name, "a process that sends requests")


def _busy(name: str, found: str | None = None) -> UserError:
    return UserError(
        "another process works with this store",
        file=name,
        found=found,
        expected="no run, viewer or worker that uses it; a killed one counts for "
        f"{LEASE_SECONDS:.0f} seconds",
    )


def _drop(connection: Connection, name: str, options: CleaningOptions) -> Iterator[Dropped]:
    """Drop the rows, in an order in which each step leaves what the next one finds unused."""
    runs = schema.runs.c
    if options.unfinished_runs:
        yield _delete(connection, schema.runs, runs.finished.is_(None), "runs that did not finish")
    for table in (schema.probes, schema.verdicts, schema.run_labels, schema.run_tags):
        orphan = ~exists().where(runs.id == table.c.run)
        yield _delete(connection, table, orphan, "of runs that do not exist")
    if options.unreferenced_answers:
        unused = list(_unused_answers(connection, name))
        answers = schema.answers
        rows = sum(_delete(connection, answers, answers.c.id.in_(part), "").rows for part in parts(unused))
        yield Dropped(table=answers.name, rows=rows, reason="that no run refers to")
    in_batches = drop_answered(connection)
    yield Dropped(table="batch_requests", rows=in_batches, reason="that are answered")
    for table in (schema.claims, schema.workers):  # no process works with the store now
        yield _delete(connection, table, None, "of processes that ended")
    for table in CACHES if options.caches else ():
        yield _delete(connection, table, None, "cache, filled again when needed")


def _index_files(store: Store) -> list[Path]:
    """The indexes and comparisons of runs, and the thumbnails."""
    return [file for file in store.database.index_folder.glob("**/*") if file.is_file()]


def _delete(connection: Connection, table: Table, goes: ColumnElement[bool] | None, reason: str) -> Dropped:
    statement = delete(table) if goes is None else delete(table).where(goes)
    return Dropped(table=str(table.name), rows=connection.core.execute(statement).rowcount, reason=reason)


class _JudgedRun(Struct):
    """The part of a run's body that says which models judge it."""

    judges: Mapping[str, JudgeModel] | None = None


_KEY = re.compile(rb'"key":"([0-9a-f]{64})"')
"""The key of the answer of a stored probe, of a partner too."""


def _unused_answers(connection: Connection, name: str) -> Iterator[int]:
    """Attempts to which no run refers, except those of a judge of any run: reports read the replies."""
    used: set[bytes] = set()
    for page in read_pages(connection, schema.probes):
        for row in page:
            try:
                keys = _KEY.findall(decompress(row["body"]))
            except ValueError as error:
                raise damage(name, "probes", row["place"], f"run {row['run']}: {error}") from None
            used.update(bytes.fromhex(key.decode()) for key in keys)
    judges: set[str] = set()
    for number, body in connection.core.execute(select(schema.runs.c.id, schema.runs.c.body)):
        try:
            of_run = msgspec.json.decode(body, type=_JudgedRun).judges or {}
        except ValueError as error:
            raise damage(name, "runs", number, str(error)) from None
        judges |= {judge.identity for judge in of_run.values()}
    for page in read_pages(connection, schema.answers):
        for row in page:
            try:
                if row["key"] not in used and model_of(row["request"]) not in judges:
                    yield row["id"]
            except ValueError as error:
                raise damage(name, "answers", row["id"], str(error)) from None


def _vacuum(url: str) -> int:
    """Give the room back; returns the size of the store."""
    path = sqlite_path(url)
    with closing(connect(url, create=False)) as database:
        try:
            if path is not None:
                with closing(sqlite3.connect(path, isolation_level=None)) as file:
                    file.execute("VACUUM")
                    file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            with database.read() as connection:
                if path is None:
                    connection.core.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("VACUUM")
                return file_sizes(connection).bytes
        except sqlite3.Error as error:
            raise EnvironmentFailedError(
                f"{path} was cleaned, but is as large as before: {error}; make room, then repeat the command"
            ) from None


# info

CONTENT = {
    "annotation_items": "what annotators see, item by item",
    "annotation_leases": "items that annotators have in hand now",
    "annotation_log": "every judgement of annotators",
    "annotation_projects": "annotation projects: their tasks and sources",
    "annotators": "annotators: names, roles, links",
    "answers": "every attempt: the request, and its answer or failure",
    "batch_requests": "requests in batches at providers",
    "batches": "batches at providers that are not fetched yet",
    "claims": "requests that a process is sending now, and batches that it waits for",
    "endpoints": "checks of endpoints, and what their servers said",
    "images": "metadata of image files (cache)",
    "meta": "the version of the schema, the URL of the last server",
    "models": "the models that requests are for",
    "probes": "the probes of each run, with the keys of their answers",
    "readings": "OCR results (cache)",
    "run_labels": "names and notes of runs",
    "run_tags": "tags of runs",
    "runs": "the description of each run",
    "vectors": "text embeddings and values of text metrics (cache)",
    "verdicts": "verdicts of humans",
    "workers": "processes that work with the store now",
}
"""What each table holds."""


class TableSize(Struct, frozen=True, kw_only=True):
    """A table: its rows, its bytes with its indexes (None if the database does not tell), what it holds."""

    table: str
    rows: int
    bytes: int | None
    content: str


class FileSizes(Struct, frozen=True, kw_only=True):
    """The room of a whole store.

    `log_bytes`, the write-ahead log beside the file, and `free_bytes`, which `gc` gives back, are None on a
    server, which reuses its room by itself.
    """

    database: str
    bytes: int
    log_bytes: int | None
    free_bytes: int | None


class RunSize(Struct, frozen=True, kw_only=True):
    """A run, and the bytes that only it needs: its description, the keys of its probes, its verdicts."""

    run: int
    task: str
    model: str
    started: str
    state: str
    bytes: int


class Inventory(Struct, frozen=True, kw_only=True):
    """What a store holds; `first_answer` is the local time of the first attempt, None without attempts."""

    store: str
    schema_version: int
    sizes: FileSizes
    tables: Sequence[TableSize]
    models: Sequence[str]
    first_answer: str | None
    last_answer: str | None
    runs: Sequence[RunSize]


def take_inventory(url: str) -> Inventory:
    with closing(Store.open(url, create=False)) as store:
        runs = list_runs(store)
        with store.database.read() as connection:
            created = schema.answers.c.created
            first, last = connection.core.execute(select(func.min(created), func.max(created))).one()
            of_runs: Counter[int] = Counter()
            for run, body in (
                (schema.runs.c.id, schema.runs.c.body),
                (schema.probes.c.run, schema.probes.c.body),
                (schema.verdicts.c.run, schema.verdicts.c.body),
            ):
                query = select(run, func.sum(func.length(body))).group_by(run)
                for number, size in connection.core.execute(query):
                    of_runs[number] += size
            return Inventory(
                store=display(url),
                schema_version=SCHEMA_VERSION,
                sizes=file_sizes(connection),
                tables=[*table_sizes(connection), *_index_size(store)],
                models=sorted(connection.core.scalars(select(schema.models.c.identity))),
                first_answer=None if first is None else local_time(first),
                last_answer=None if last is None else local_time(last),
                runs=[
                    RunSize(
                        run=line.number,
                        task=line.task,
                        model=line.model,
                        started=line.started,
                        state=line.state,
                        bytes=of_runs[line.number],
                    )
                    for line in runs
                ],
            )


def file_sizes(connection: Connection) -> FileSizes:
    version = ".".join(str(part) for part in connection.core.dialect.server_version_info or ())
    if not connection.is_file:
        size = connection.core.execute(select(func.pg_database_size(func.current_database()))).scalar_one()
        return FileSizes(database=f"PostgreSQL {version}", bytes=size, log_bytes=None, free_bytes=None)
    path = Path(str(connection.core.engine.url.database))
    log = path.with_name(f"{path.name}-wal")
    free, page = (int(connection.rows(f"PRAGMA {name}")[0][0]) for name in ("freelist_count", "page_size"))
    return FileSizes(
        database=f"SQLite {version}",
        bytes=path.stat().st_size,
        log_bytes=log.stat().st_size if log.exists() else 0,
        free_bytes=free * page,
    )


def table_sizes(connection: Connection) -> list[TableSize]:
    """Measure the tables of a store, the largest first."""
    names = sorted(connection.tables())
    if not connection.is_file:
        query = text("SELECT pg_total_relation_size(cast(quote_ident(:name) AS regclass))")
        bytes_of = {name: connection.core.execute(query, {"name": name}).scalar_one() for name in names}
    else:
        pages = (
            "SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_master USING (name) "
            "WHERE aggregate = TRUE GROUP BY tbl_name"
        )
        bytes_of = {}
        with suppress(DBAPIError):  # SQLite may be built without `dbstat`
            bytes_of = {str(name): int(size) for name, size in connection.rows(pages)}
    sizes = [
        TableSize(
            table=name,
            rows=connection.core.execute(select(func.count()).select_from(table_named(name))).scalar_one(),
            bytes=bytes_of.get(name),
            content=CONTENT.get(name, ""),
        )
        for name in names
    ]
    return sorted(sizes, key=lambda one: (-(one.bytes or one.rows), one.table))


def _index_size(store: Store) -> Iterator[TableSize]:
    if files := _index_files(store):
        folder = display(str(store.database.index_folder))
        content = f"files of the index of outcomes, in {folder} (cache)"
        size = sum(file.stat().st_size for file in files)
        yield TableSize(table=INDEX, rows=len(files), bytes=size, content=content)


def _content_bytes(connection: Connection, tables: Iterable[Table]) -> int:
    columns = [column for one in tables for column in one.columns if isinstance(column.type, LargeBinary)]
    return sum(connection.core.scalar(select(func.sum(func.length(column)))) or 0 for column in columns)


# export

Record = Mapping[str, Any]


def export_records(url: str, kind: str, out: Path, run: str | None, *, show_progress: bool) -> int:
    """Write records of all runs, or of one, as JSON Lines; the file appears complete or not at all."""
    if kind not in KINDS:
        raise unknown_name("kind of records", kind, KINDS)
    count = 0
    with closing(Store.open(url, create=False)) as store:
        number = None if run is None else find_run(store, run)
        if number is not None and number not in {row.number for row in store.runs.all()}:
            raise no_run(number, store.name)
        with (
            AtomicFile(out) as file,
            progress(f"export {kind}", None, "rows", show_progress=show_progress) as advance,
        ):
            for record in KINDS[kind](store, number):
                file.write(msgspec.json.encode(record) + b"\n")
                advance(1)
                count += 1
    return count


def _runs(store: Store, run: int | None) -> Iterator[Record]:
    """The runs; one whose description is damaged has the reason instead, and does not hide the others."""
    labels = store.labels.all()
    for row in store.runs.all():
        if run in (None, row.number):
            about = {"run": row.number, "created": row.created, "finished": row.finished}
            about |= msgspec.to_builtins(labels.get(row.number, Labels()))
            try:
                read_row(store, row)
                yield {**about, **store.runs.description(row)}
            except StoreFailedError as error:
                yield {**about, "damaged": error.reason}


def _probes(store: Store, run: int | None) -> Iterator[Record]:
    for number in _numbers(store, run):
        for body in store.runs.probes(number):
            yield {"run": number, **msgspec.json.decode(body)}


def _verdicts(store: Store, run: int | None) -> Iterator[Record]:
    for number in _numbers(store, run):
        for verdict in store.runs.verdicts(number):
            yield {"run": number, **msgspec.to_builtins(verdict)}


def _numbers(store: Store, run: int | None) -> list[int]:
    return [row.number for row in store.runs.all()] if run is None else [run]


def _answers(store: Store, run: int | None) -> Iterator[Record]:
    """All attempts with their requests, each once; those of a run in the order of its probes."""
    pages = read_pages(store.database, schema.answers) if run is None else _attempts_of_run(store, run)
    for page in pages:
        for row in page:
            if problem := row_problem(schema.answers, row):
                raise damage(store.name, "answers", row["id"], problem)
            yield {
                "key": row["key"].hex(),
                "created": row["created"],
                "result": msgspec.Raw(row["result"].encode()),
                "request": msgspec.Raw(row["request"].encode()),
            }


def _attempts_of_run(store: Store, run: int) -> Iterator[Sequence[RowMapping]]:
    answers = schema.answers
    probes = read_stored_probes(store, run)
    read: set[bytes] = set()
    while batch := [bytes.fromhex(probe.key) for probe in islice(probes, LOOKUP)]:
        place = {key: number for number, key in enumerate(dict.fromkeys(batch)) if key not in read}
        read |= place.keys()
        with store.database.read() as connection:
            rows = connection.core.execute(select(answers).where(answers.c.key.in_(place))).mappings().all()
        yield sorted(rows, key=lambda row: (place[bytes(row["key"])], row["id"]))


def _endpoints(store: Store, run: int | None) -> Iterator[Record]:
    for created, record in store.endpoints.records():
        yield {"created": created, **msgspec.to_builtins(record)}


def _annotations(store: Store, run: int | None) -> Iterator[Record]:
    """The log of every annotation project, whatever runs its items are of."""
    with store.database.read() as connection:
        rows = connection.core.execute(
            select(schema.annotation_projects.c.id, schema.annotation_projects.c.name)
        )
        names = {row.id: row.name for row in rows}
    for page in read_pages(store.database, schema.annotation_log):
        for row in page:
            yield {
                "project": names.get(row["project"], str(row["project"])),
                "number": row["id"],
                "form": row["form"],
                "entry": msgspec.Raw(row["body"]),
            }


def _batches(store: Store, run: int | None) -> Iterator[Record]:
    """The batches at providers that are not fetched yet, whatever runs their requests are of."""
    for page in read_pages(store.database, schema.batches):
        for row in page:
            requests = schema.batch_requests.c
            with store.database.read() as connection:
                keys = connection.core.scalars(select(requests.key).where(requests.batch == row["id"])).all()
            yield {**row, "keys": sorted(key.hex() for key in keys)}


KINDS: Mapping[str, Callable[[Store, int | None], Iterator[Record]]] = {
    "runs": _runs,
    "probes": _probes,
    "answers": _answers,
    "verdicts": _verdicts,
    "endpoints": _endpoints,
    "annotations": _annotations,
    "batches": _batches,
}
"""Kind of records -> the function that reads them from a store, of one run or of all."""
