"""Repairs a damaged SQLite store: what is readable and verifies goes to a new file; the old one stays."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from sightline.engine.connect import display, sqlite_path
from sightline.engine.dictionaries import add_common_dictionary
from sightline.engine.store import Store
from sightline.engine.tables import SCHEMA_VERSION
from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.files import refuse_overwriting
from sightline.formats.leftovers import temporary_folder
from sightline.maintenance.lost_requests import restore_requests
from sightline.maintenance.removal import remove_faulty
from sightline.maintenance.salvage import Salvaged, read_version, salvage
from sightline.maintenance.salvaged_rows import LEFT_OUT, checks_of
from sightline.maintenance.sqlite.pages import Pages
from sightline.maintenance.verify import find_faults
from sightline.progress import progress


class RepairedTable(Struct, frozen=True, kw_only=True):
    """What was read and lost of a table.

    Attributes:
        table: Its name.
        rows: Rows of the new store.
        damaged_rows: Rows that were found, but are damaged.
        damaged_pages: Pages of the file, with an unknown number of rows, that are damaged.
        without_reference: Rows that were readable, but need a row that was lost.
    """

    table: str
    rows: int
    damaged_rows: int
    damaged_pages: int
    without_reference: int


class IncompleteRun(Struct, frozen=True, kw_only=True):
    """A run that is kept and lost something; it counts as not finished now."""

    run: int
    problem: str


class RepairReport(Struct, frozen=True, kw_only=True):
    """What a repair did.

    Attributes:
        file: The damaged file.
        out: The new store.
        schema_version: The schema that the file had.
        tables: What was read and lost of each table.
        missing_pages: Pages that are missing at the end of the file.
        unknown_pages: Damaged pages of which it is unknown to which table they belonged.
        damaged_log_pages: Damaged pages of the write-ahead log.
        lost_definitions: Tables whose definition was lost; that of this version was used.
        incomplete_runs: The runs that are kept and lost something.
        lost_runs: The numbers of runs of which probes, verdicts or labels are readable, but no description;
            these rows are dropped.
    """

    file: str
    out: str
    schema_version: int
    tables: Sequence[RepairedTable]
    missing_pages: int
    unknown_pages: int
    damaged_log_pages: int
    lost_definitions: Sequence[str]
    incomplete_runs: Sequence[IncompleteRun]
    lost_runs: Sequence[int]

    @property
    def lost_something(self) -> bool:
        """Whether the new store lacks anything, as far as that is known."""
        lost = bool(self.lost_definitions) or any(
            one.damaged_rows or one.damaged_pages or one.without_reference for one in self.tables
        )
        pages = self.missing_pages or self.unknown_pages or self.damaged_log_pages
        return bool(lost or pages or self.incomplete_runs or self.lost_runs)


def repair(file: str, out: Path, *, show_progress: bool) -> RepairReport:
    """Copy what is readable in a store, damaged or not, to a new one that verifies.

    Args:
        file: The path of the store; its write-ahead log, if any, is beside it.
        out: The new store.
        show_progress: Whether progress is displayed.

    Returns:
        What was read and lost.

    Raises:
        UserError: There is no file, it is no store, a newer Sightline wrote it, or `out` exists.
        EnvironmentFailedError: The disk cannot be written; nothing remains then.
    """
    source = sqlite_path(file)
    if source is None:
        raise UserError(
            "a database on a server is not repaired file by file",
            found=display(file),
            expected="a SQLite file, or a backup of the server",
        )
    refuse_overwriting(out, force=None, read=[source])
    with temporary_folder(out) as folder:
        scratch = folder / out.name
        try:
            version, salvaged = _salvage(source, scratch, show_progress=show_progress)
            removed, problems = _keep_what_verifies(scratch, show_progress=show_progress)
            there = _runs(scratch)
            rows = _finish(scratch)
            scratch.rename(out)
        except sqlite3.Error as error:
            raise EnvironmentFailedError(f"{out} cannot be written: {error}; nothing remains of it") from None
    return RepairReport(
        file=str(source),
        out=str(out),
        schema_version=version,
        tables=[
            RepairedTable(
                table=name,
                rows=rows.get(name, 0),
                damaged_rows=salvaged.tables[name].damaged_rows if name in salvaged.tables else 0,
                damaged_pages=salvaged.tables[name].damaged_pages if name in salvaged.tables else 0,
                without_reference=removed[name],
            )
            for name in sorted({*rows, *salvaged.tables})
        ],
        missing_pages=salvaged.missing_pages,
        unknown_pages=salvaged.unknown_pages,
        damaged_log_pages=salvaged.damaged_frames,
        lost_definitions=salvaged.lost_definitions,
        incomplete_runs=[
            IncompleteRun(run=run, problem=problem) for run, problem in problems.items() if run in there
        ],
        lost_runs=[run for run in problems if run not in there],
    )


def _salvage(source: Path, scratch: Path, *, show_progress: bool) -> tuple[int, Salvaged]:
    """Copy the readable rows to a new file, in the schema of the old one; returns its version too."""
    with Pages(source) as pages, closing(sqlite3.connect(scratch, isolation_level=None)) as target:
        version = read_version(pages) or SCHEMA_VERSION
        if version > SCHEMA_VERSION:
            raise UserError(
                "a newer Sightline wrote this store",
                file=source,
                field="schema_version",
                found=version,
                expected=f"at most {SCHEMA_VERSION}: upgrade Sightline",
            )
        target.execute("PRAGMA synchronous = OFF")
        target.execute("BEGIN")
        with progress("salvage", pages.count, "pages", show_progress=show_progress) as advance:
            salvaged = salvage(pages, target, _current_definitions(), checks_of(version), LEFT_OUT, advance)
        if not any(one.rows for one in salvaged.tables.values()):
            raise UserError("nothing of a store is readable", file=source, expected="a Sightline store")
        if version >= 3:
            restore_requests(pages, target)
        target.execute("INSERT OR IGNORE INTO meta VALUES ('schema_version', ?)", (str(version),))
        target.execute("COMMIT")
    return version, salvaged


def _current_definitions() -> list[str]:
    """The statements that create the tables and indexes of a new store."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/new.db"
        Store.open(path).close()
        with closing(sqlite3.connect(path)) as connection:
            query = (
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
            )
            return [sql for (sql,) in connection.execute(query)]


def _keep_what_verifies(scratch: Path, *, show_progress: bool) -> tuple[Counter[str], dict[int, str]]:
    """Migrate the salvaged store, and remove rows that need a lost one, until nothing is wrong.

    Returns how many rows of each table were removed, and what each run lost.
    """
    store = Store.open(str(scratch))
    removed: Counter[str] = Counter()
    incomplete: dict[int, str] = {}
    try:
        with store.database.write() as connection:
            # Bodies have checksums: a wrong dictionary would show.
            add_common_dictionary(connection)
        while faults := list(find_faults(store, show_progress=show_progress)):
            if not any(fault.key or fault.run is not None for fault in faults):
                raise EnvironmentFailedError(f"the salvaged rows cannot be read: {faults[0].problem}")
            for fault in faults:
                if fault.key:
                    removed[fault.table] += 1
                if fault.run is not None:
                    incomplete.setdefault(fault.run, fault.problem)
            remove_faulty(store, faults)
    finally:
        store.close()
    return removed, dict(sorted(incomplete.items()))


def _runs(scratch: Path) -> set[int]:
    """The numbers of the runs that are kept."""
    with closing(sqlite3.connect(scratch)) as connection:
        return {number for (number,) in connection.execute("SELECT id FROM runs")}


def _finish(scratch: Path) -> dict[str, int]:
    """Write everything to the one file; returns the rows of each table."""
    with closing(sqlite3.connect(scratch)) as connection:
        connection.execute("VACUUM")
        names = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
            )
        ]
        rows = {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}
    with scratch.open("rb") as file:
        os.fsync(file.fileno())
    return rows
