"""Names, tags and notes of runs in the store. Users change them, while a run stays as it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from sightline.engine.connect import connect
from sightline.engine.connection import Connection
from sightline.engine.database import Database, change_rows_in, insert_new, lock_table
from sightline.engine.database_errors import repeat_if_lost
from sightline.engine.existing_run import require_run
from sightline.engine.storable import storable_text


class Labels(Struct, frozen=True):
    """What the user says about a run: its name, its tags in the order of the alphabet, a note."""

    name: str | None = None
    tags: tuple[str, ...] = ()
    note: str = ""


class RunLabels:
    """The labels of all runs of the store. Use it as `store.labels`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @repeat_if_lost
    def all(self) -> dict[int, Labels]:
        tags = defaultdict[int, list[str]](list)
        with self._database.read() as connection:
            for run, tag in connection.rows("SELECT run, tag FROM run_tags ORDER BY tag"):
                tags[run].append(tag)
            labels = connection.rows("SELECT run, name, note FROM run_labels")
        rows = {run: (name, note) for run, name, note in labels}
        found = {}
        for run in sorted({*tags, *rows}):
            name, note = rows.get(run, (None, ""))
            found[run] = Labels(name, tuple(tags[run]), note)
        return found

    def of(self, run: int) -> Labels:
        return self.all().get(run, Labels())

    @repeat_if_lost
    def names(self) -> dict[str, int]:
        with self._database.read() as connection:
            return dict(connection.rows("SELECT name, run FROM run_labels WHERE name IS NOT NULL"))

    @repeat_if_lost
    def give_name(self, run: int, name: str, instead_of: int | None = None) -> int:
        """Give a run a name, unless another run has it. The former name of the run becomes free."""
        with self._changing(run) as connection:
            # Otherwise two processes could both find that nobody has the name.
            lock_table(connection, "run_labels", "SHARE ROW EXCLUSIVE")
            for (holder,) in connection.rows("SELECT run FROM run_labels WHERE name = ?", (name,)):
                if holder not in (run, instead_of):
                    return int(holder)
                _set_name(connection, holder, None)
            _set_name(connection, run, name)
        return run

    @repeat_if_lost
    def remove_name(self, run: int) -> None:
        with self._changing(run) as connection:
            _set_name(connection, run, None)

    @repeat_if_lost
    def set_note(self, run: int, note: str) -> None:
        """Replace the note of a run.

        Args:
            note: The note; '' for none.
        """
        with self._changing(run) as connection:
            _add_row(connection, run)
            connection.change("UPDATE run_labels SET note = ? WHERE run = ?", (storable_text(note), run))

    @repeat_if_lost
    def add_tags(self, run: int, tags: Sequence[str]) -> None:
        """Add tags to a run; those that it has stay."""
        with self._changing(run) as connection:
            insert_new(connection, "run_tags", ("run", "tag"), [(run, tag) for tag in sorted(set(tags))])

    @repeat_if_lost
    def remove_tags(self, run: int, tags: Sequence[str]) -> None:
        with self._database.write() as connection:
            change_rows_in(connection, "DELETE FROM run_tags WHERE run = {} AND tag IN ({})", (run,), tags)

    @contextmanager
    def _changing(self, run: int) -> Iterator[Connection]:
        """A transaction that changes the labels of a run, which must exist."""
        with self._database.write() as connection:
            require_run(connection, run, self._database.name)
            yield connection


def names_of_runs(url: str) -> list[str]:
    """Read the names of runs, as the completion of a shell needs them; no store is made."""
    database = connect(url, create=False)
    try:
        database.check_connection()
        with database.read() as connection:
            return sorted(name for (name,) in connection.rows("SELECT name FROM run_labels") if name)
    finally:
        database.close()


def _set_name(connection: Connection, run: int, name: str | None) -> None:
    _add_row(connection, run)
    connection.change("UPDATE run_labels SET name = ? WHERE run = ?", (name, run))


def _add_row(connection: Connection, run: int) -> None:
    # Several processes may set labels of one run at once: all but the first find its row.
    insert_new(connection, "run_labels", ("run", "note"), [(run, "")])
