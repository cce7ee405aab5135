"""The records of a store as JSON Lines, for other tools, read page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import select

from sightline.engine import schema
from sightline.engine.database import LOOKUP
from sightline.engine.database_errors import StoreFailedError, damage
from sightline.engine.dictionaries import Dictionaries
from sightline.engine.existing_run import no_run
from sightline.engine.requests import Requests
from sightline.engine.run_labels import Labels
from sightline.engine.store import Store
from sightline.errors import unknown_name
from sightline.formats.atomic_file import AtomicLineFile
from sightline.maintenance.opening import unchanged_store
from sightline.maintenance.table_reader import read_pages
from sightline.plan.stored_probe import read_stored_probes
from sightline.progress import progress
from sightline.results.run_names import find_run
from sightline.results.stored_run import read_row

Record = Mapping[str, Any]


def export_records(url: str, kind: str, out: Path, run: str | None, *, show_progress: bool) -> int:
    """Write records of a store; the file appears complete or not at all.

    Args:
        url: A path or a database URL.
        kind: A key of `KINDS`.
        out: The file.
        run: Only the records of the run of this number or name; None for all.
        show_progress: Whether progress is displayed.

    Returns:
        The number of records.

    Raises:
        UserError: There is no such kind, store or run.
        EnvironmentFailedError: The store or the disk fails, or a record is damaged.
    """
    if kind not in KINDS:
        raise unknown_name("kind of records", kind, KINDS)
    count = 0
    with unchanged_store(url) as store:
        number = None if run is None else find_run(store, run)
        if number is not None and number not in {row.number for row in store.runs.all()}:
            raise no_run(number, store.name)
        with (
            AtomicLineFile(out) as file,
            progress(f"export {kind}", None, "rows", show_progress=show_progress) as advance,
        ):
            for record in KINDS[kind](store, number):
                file.write(msgspec.json.encode(record))
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


def _answers(store: Store, run: int | None) -> Iterator[Record]:
    """All attempts with their requests, each once; those of a run in the order of its probes."""
    dictionaries = Dictionaries(store.name)
    requests = Requests(dictionaries)
    for page in _attempt_pages(store, run):
        with store.database.read() as connection:
            found = requests.by_number(connection, {row["request"] for row in page})
            bodies = [
                dictionaries.decompress(connection, bytes(row["body"]), "answers", row["id"]) for row in page
            ]
        for row, body in zip(page, bodies, strict=True):
            if (request := found.get(row["request"])) is None:
                reason = f"its request {row['request']} does not exist"
                raise damage(store.name, "answers", row["id"], reason)
            yield {
                "key": request.key.hex(),
                "created": row["created"],
                "result": msgspec.Raw(body),
                "request": msgspec.Raw(request.canonical or b"null"),
            }


def _attempt_pages(store: Store, run: int | None) -> Iterator[list[dict[str, Any]]]:
    if run is None:
        yield from ([dict(row) for row in page] for page in read_pages(store.database, schema.answers))
        return
    probes = read_stored_probes(store, run)
    read: set[bytes] = set()
    while batch := [bytes.fromhex(probe.key) for probe in islice(probes, LOOKUP)]:
        keys = list(dict.fromkeys(key for key in batch if key not in read))
        read.update(keys)
        yield _attempts_of(store, keys)


def _attempts_of(store: Store, keys: list[bytes]) -> list[dict[str, Any]]:
    answers, requests = schema.answers, schema.requests
    query = select(answers, requests.c.key).join(requests, requests.c.id == answers.c.request)
    with store.database.core_read() as connection:
        rows = connection.execute(query.where(requests.c.key.in_(keys))).mappings().all()
    place = {key: number for number, key in enumerate(keys)}
    return sorted((dict(row) for row in rows), key=lambda row: (place[bytes(row["key"])], row["id"]))


def _endpoints(store: Store, run: int | None) -> Iterator[Record]:
    for created, record in store.endpoints.records():
        yield {"created": created, **msgspec.to_builtins(record)}


def _numbers(store: Store, run: int | None) -> list[int]:
    return [row.number for row in store.runs.all()] if run is None else [run]


def _annotations(store: Store, run: int | None) -> Iterator[Record]:
    """The log of every annotation project, whatever runs its items are of."""
    with store.database.core_read() as connection:
        rows = connection.execute(select(schema.annotation_projects.c.id, schema.annotation_projects.c.name))
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
            with store.database.core_read() as connection:
                keys = connection.scalars(select(requests.key).where(requests.batch == row["id"])).all()
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
