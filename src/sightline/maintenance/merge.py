"""Adds stores to another one: each run and attempt once, and nothing that is damaged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, RowMapping, Table, and_, delete, func, select, update
from sqlalchemy import insert as insert_into

from sightline.errors import UserError
from sightline.evaluation.batches import drop_answered
from sightline.evaluation.runs import read_stored_run
from sightline.maintenance.verify import missing_in, read_pages, row_name, row_problem
from sightline.progress import Advance, progress
from sightline.store import schema
from sightline.store.answers import decode_result, model_of, storable_text
from sightline.store.connect import display, sqlite_path
from sightline.store.database import (
    Connection,
    change_rows_in,
    damage,
    insert,
    insert_new,
    lock_table,
    repeat_if_lost,
    rows_in,
)
from sightline.store.store import Store
from sightline.types import Answer


class MergedRun(Struct, frozen=True, kw_only=True):
    """A run of a source, its number in the target, whether it was there, and what was not copied of it."""

    run: int
    into: int
    state: Literal["added", "completed", "there already"]
    note: str = ""


class LostRows(Struct, frozen=True, kw_only=True):
    """Damaged rows of a table that were not copied: how many, the first one, and what is wrong with it."""

    table: str
    rows: int
    first: str
    problem: str


class MergedStore(Struct, frozen=True, kw_only=True):
    """What was copied from a source."""

    source: str
    attempts: int
    new_attempts: int
    answered_requests: int
    different_answers: int
    runs: Sequence[MergedRun]
    lost: Sequence[LostRows] = ()
    notes: Sequence[str] = ()


MERGE_LOCK = 7_316_449
"""An arbitrary number: merges into a PostgreSQL store take turns by it, and `gc` looks at it."""


def merge(sources: Sequence[str], target: str, *, show_progress: bool) -> Iterator[MergedStore]:
    """Add everything that stores hold to another store; twice, or in another order, it is the same.

    Each source is copied in one transaction, without the rows that `verify` calls damaged.
    """
    for source in sources:
        if _is_same(source, target):
            raise UserError("is a source and the target", file=display(source), expected="another --into")
        Store.open(source, create=False).close()
    with closing(Store.open(target)) as store:
        for source in sources:
            yield _merge_one(source, store, show_progress=show_progress)


def _is_same(source: str, target: str) -> bool:
    paths = sqlite_path(source), sqlite_path(target)
    if paths[0] is None or paths[1] is None:
        return source == target
    return paths[0].exists() and paths[1].exists() and paths[0].samefile(paths[1])


@repeat_if_lost
def _merge_one(url: str, target: Store, *, show_progress: bool) -> MergedStore:
    with closing(Store.open(url, create=False)) as source, target.database.write() as connection:
        if not target.database.is_file:
            connection.rows(f"SELECT pg_advisory_xact_lock({MERGE_LOCK})")
        merging = _Merge(source, connection, target.name)
        with progress(f"merge {display(url)}", None, "rows", show_progress=show_progress) as advance:
            merging.copy_answers(advance)
        merging.copy_endpoints()
        merging.copy_batches()
        for cache in (schema.vectors, schema.readings):  # images belong to the paths of one machine
            for page in merging.sound_pages(cache):
                rows = [(bytes(row["key"]), bytes(row["body"])) for row in page]
                insert_new(merging.target, cache.name, ("key", "body"), rows)
        notes = merging.copy_annotations()
        runs = [merging.copy_run(run) for page in merging.sound_pages(schema.runs) for run in page]
        return MergedStore(
            source=display(url),
            attempts=merging.attempts,
            new_attempts=merging.new,
            answered_requests=merging.answered,
            different_answers=merging.different,
            runs=runs,
            lost=merging.lost(),
            notes=notes,
        )


_Attempt = tuple[float, int, str, str]
"""Time, state, request and result of an attempt, which do not depend on the store that holds it."""


class _Merge:
    """Copies what is sound of one store to another, in the transaction of a connection to that one."""

    def __init__(self, source: Store, target: Connection, name: str) -> None:
        self.source, self.core, self.target = source, target.core, target
        self.attempts = self.new = self.answered = self.different = 0
        self._name = name
        self._lost: defaultdict[str, dict[str, str]] = defaultdict(dict)

    def lost(self) -> list[LostRows]:
        return [
            LostRows(table=table, rows=len(rows), first=first, problem=problem)
            for table, rows in self._lost.items()
            for first, problem in [next(iter(rows.items()))]
        ]

    def sound_pages(self, table: Table, *conditions: ColumnElement[bool]) -> Iterator[list[RowMapping]]:
        """Read a table of the source; damaged rows are left out."""
        for page in read_pages(self.source.database, table, *conditions):
            sound = []
            for row in page:
                if problem := row_problem(table, row):
                    self._lost[str(table.name)].setdefault(row_name(table, row), problem)
                else:
                    sound.append(row)
            yield sound

    def copy_answers(self, advance: Advance) -> None:
        """Copy the attempts that the target lacks. The first answer by time counts."""
        with self.source.database.read() as source:
            self.attempts = source.rows("SELECT count(*) FROM answers")[0][0]
        for page in self.sound_pages(schema.answers):
            attempts: defaultdict[bytes, list[_Attempt]] = defaultdict(list)
            for row in page:
                attempt = (row["created"], row["state"], row["request"], row["result"])
                attempts[bytes(row["key"])].append(attempt)
            models = {storable_text(model_of(row["request"])) for row in page}
            insert_new(self.target, schema.models.name, ("identity",), [(model,) for model in models])
            self._add_attempts(attempts)
            advance(len(page))

    def _add_attempts(self, attempts: Mapping[bytes, Iterable[_Attempt]]) -> None:
        """Add attempts by the key of their request.

        The answers of a request count in the order of their rows. If a new attempt is not the latest, the
        attempts of its request are written again in the order of time.
        """
        here: defaultdict[bytes, dict[_Attempt, int]] = defaultdict(dict)
        query = "SELECT key, id, created, state, request, result FROM answers WHERE key IN ({})"
        for key, row, *attempt in rows_in(self.target, query, sorted(attempts)):
            here[bytes(key)][cast(_Attempt, tuple(attempt))] = row
        rows: list[tuple[bytes, _Attempt]] = []
        moved: list[int] = []
        for key, found in attempts.items():
            new = sorted(set(found) - here[key].keys())
            self.new += len(new)
            if new and (known := self._texts(here[key])):
                self.answered += 1
                self.different += not self._texts(dict.fromkeys(new, 0)) <= known
            if new and here[key] and new[0] < max(here[key]):
                moved += here[key].values()
                new = sorted({*new, *here[key]})
            rows += ((key, attempt) for attempt in new)
        change_rows_in(self.target, "DELETE FROM answers WHERE id IN ({})", (), moved)
        columns = ("key", "created", "state", "request", "result")
        insert(self.target, "answers", columns, [(key, *attempt) for key, attempt in rows])

    def _texts(self, attempts: Mapping[_Attempt, int]) -> set[str]:
        """The texts of the answers among attempts, attempt -> its row in the target."""
        texts: set[str] = set()
        for (_, state, _, body), row in attempts.items():
            try:
                result = decode_result(state, body)
            except msgspec.MsgspecError as error:
                raise damage(self._name, "answers", row, str(error)) from None
            texts.update([result.text] if isinstance(result, Answer) else ())
        return texts

    def copy_endpoints(self) -> None:
        table = schema.endpoints
        known = {
            (created, bytes(body))
            for created, body in self.core.execute(select(table.c.created, table.c.body))
        }
        for page in self.sound_pages(table):
            new = [
                {name: row[name] for name in ("created", "identity", "body")}
                for row in page
                if (row["created"], bytes(row["body"])) not in known
            ]
            if new:
                self.core.execute(insert_into(table), new)

    def copy_batches(self) -> None:
        """Copy batches that the source has not fetched, except what the target has in a batch or answered."""
        table, names = schema.batches, ("address", "file", "batch", "state", "requests", "created")
        numbers: dict[int, int] = {}
        for page in self.sound_pages(table):
            for row in page:
                same = and_(table.c.address == row["address"], table.c.file == row["file"])
                number = self.core.scalar(select(table.c.id).where(same))
                numbers[row["id"]] = number or self._inserted(table, {name: row[name] for name in names})
        for page in self.sound_pages(schema.batch_requests) if numbers else ():
            keys = [(bytes(row["key"]), numbers[row["batch"]]) for row in page if row["batch"] in numbers]
            insert_new(self.target, schema.batch_requests.name, ("key", "batch"), keys)
        if numbers:
            drop_answered(self.target)

    def _inserted(self, table: Table, values: Mapping[str, Any]) -> int:
        return int(self.core.execute(insert_into(table).values(**values).returning(table.c.id)).scalar_one())

    def copy_annotations(self) -> list[str]:
        """Copy annotation projects; one that both stores have gets the annotators and entries that
        it lacks.
        """
        notes: list[str] = []
        for page in self.sound_pages(schema.annotation_projects):
            for project in page:
                number = self._copy_project(project, notes)
                annotators = self._copy_annotators(project["id"], number)
                self._copy_log(project["id"], number, annotators)
        return notes

    def _copy_project(self, project: RowMapping, notes: list[str]) -> int:
        """Add a project with its items, which never change, unless it is there; returns its number."""
        projects, items = schema.annotation_projects, schema.annotation_items
        uid = projects.c.uid == project["uid"]
        if found := self.core.scalar(select(projects.c.id).where(uid).with_for_update()):
            return int(found)
        taken = set(self.core.scalars(select(projects.c.name)))
        names = (project["name"], *(f"{project['name']}-{again}" for again in range(2, len(taken) + 3)))
        name = next(name for name in names if name not in taken)
        if name != project["name"]:
            notes.append(f"the annotation project {names[0]} is called {name}: another one has its name")
        body = msgspec.json.encode({**msgspec.json.decode(project["body"]), "name": name})
        values = {key: project[key] for key in ("uid", "secret", "created", "closed")}
        number = self._inserted(projects, {**values, "name": name, "body": body})
        for page in self.sound_pages(items, items.c.project == project["id"]):
            rows = [(number, row["number"], row["body"]) for row in page]
            insert(self.target, items.name, ("project", "number", "body"), rows)
        return number

    def _copy_annotators(self, project: int, number: int) -> dict[int, int]:
        """Add annotators by name; returns the number of each in the target by its number in the source."""
        table = schema.annotators
        there = self.core.execute(select(table.c.body, table.c.number).where(table.c.project == number))
        known = {msgspec.json.decode(body)["name"].casefold(): one for body, one in there}
        numbers = {}
        for page in self.sound_pages(table, table.c.project == project):
            for row in page:
                annotator = msgspec.json.decode(row["body"])
                name = annotator["name"].casefold()
                if name not in known:
                    known[name] = max(known.values(), default=0) + 1
                    body = msgspec.json.encode({**annotator, "number": known[name]})
                    values = [(number, known[name], body)]
                    insert(self.target, table.name, ("project", "number", "body"), values)
                numbers[row["number"]] = known[name]
        return numbers

    def _copy_log(self, project: int, number: int, annotators: Mapping[int, int]) -> None:
        """Add the entries whose form the target lacks, in their order."""
        table = schema.annotation_log
        known = set(self.core.scalars(select(table.c.form).where(table.c.project == number)))
        for page in self.sound_pages(table, table.c.project == project):
            rows = []
            for row in page:
                if row["form"] not in known:
                    entry = msgspec.json.decode(row["body"])
                    by = annotators.get(entry["annotator"], entry["annotator"])
                    rows.append((number, row["form"], msgspec.json.encode({**entry, "annotator": by})))
            insert(self.target, table.name, ("project", "form", "body"), rows)

    def copy_run(self, run: RowMapping) -> MergedRun:
        """Copy a run that the target lacks, or what it lacks of one that was not finished.

        A run has one identity in all stores. One that lost something is not finished in the target.
        """
        runs, probes, verdicts = schema.runs.c, schema.probes, schema.verdicts
        query = select(runs.id, runs.finished).where(runs.uid == run["uid"]).with_for_update()
        there = self.core.execute(query).one_or_none()
        if there is not None and there.finished is not None:
            return MergedRun(run=run["id"], into=there.id, state="there already")
        lost_before = self._lost_of_runs()
        chunks = sum(len(page) for page in self.sound_pages(probes, probes.c.run == run["id"]))
        bodies = [
            row["body"] for page in self.sound_pages(verdicts, verdicts.c.run == run["id"]) for row in page
        ]
        lacks = "damaged rows of it are not copied" if self._lost_of_runs() > lost_before else ""
        if run["finished"] is not None and not lacks:
            lacks = missing_in(self.source, read_stored_run(self.source, run["id"]), self.target)
        finished = None if lacks else run["finished"]
        if there is None:
            number = self._inserted(schema.runs, {name: run[name] for name in ("uid", "body", "created")})
        else:
            number = there.id
            if finished is None and chunks <= self._chunks_there(number):
                return MergedRun(run=run["id"], into=number, state="there already")
            for table in (probes, verdicts):
                self.core.execute(delete(table).where(table.c.run == number))
        for page in self.sound_pages(probes, probes.c.run == run["id"]):
            rows = [(number, row["place"], row["body"]) for row in page]
            insert(self.target, probes.name, ("run", "place", "body"), rows)
        insert(self.target, verdicts.name, ("run", "body"), [(number, body) for body in bodies])
        values = {"body": run["body"], "finished": finished}
        self.core.execute(update(schema.runs).where(runs.id == number).values(**values))
        if there is not None:
            return MergedRun(run=run["id"], into=number, state="completed")
        notes = self._copy_labels(run["id"], number)
        if finished is None and run["finished"] is not None:
            notes.append(f"run {number} is not finished any more: {lacks}")
        return MergedRun(run=run["id"], into=number, state="added", note="; ".join(notes))

    def _lost_of_runs(self) -> int:
        return sum(len(self._lost.get(name, ())) for name in ("probes", "verdicts"))

    def _chunks_there(self, number: int) -> int:
        query = select(func.count()).select_from(schema.probes).where(schema.probes.c.run == number)
        return self.core.scalar(query) or 0

    def _copy_labels(self, run: int, number: int) -> list[str]:
        """Copy tags, note and name of a run; returns a note if another run has its name."""
        tags, labels, notes = schema.run_tags, schema.run_labels, []
        for page in self.sound_pages(tags, tags.c.run == run):
            insert_new(self.target, tags.name, ("tag", "run"), [(row["tag"], number) for row in page])
        for page in self.sound_pages(labels, labels.c.run == run):
            for row in page:
                name, holder = row["name"], None
                if name is not None:
                    # Otherwise two processes could both find that nobody has the name.
                    lock_table(self.target, labels.name, "SHARE ROW EXCLUSIVE")
                    holder = self.core.scalar(select(labels.c.run).where(labels.c.name == name))
                if holder is not None:
                    notes.append(f"run {number} has no name: {name} is the name of run {holder}")
                    name = None
                self.core.execute(insert_into(labels).values(run=number, name=name, note=row["note"]))
        return notes
