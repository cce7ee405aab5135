"""Whether the finished runs of a store are complete: each sample has its probes, each probe an attempt."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from sightline.engine.answers import Answers
from sightline.engine.database import LOOKUP
from sightline.engine.database_errors import StoreFailedError
from sightline.engine.store import Store
from sightline.maintenance.faults import ASK_AGAIN, Fault
from sightline.plan.stored_probe import read_stored_probes
from sightline.results.stored_run import StoredRun, read_row


def faults_of_runs(store: Store) -> Iterator[Fault]:
    """Find runs that lack something. Those with a damaged row are left to the check of rows.

    Args:
        store: The store.

    Yields:
        At most one fault for each run.
    """
    try:
        rows = store.runs.all()
    except StoreFailedError as error:
        yield Fault(table="runs", problem=f"the runs cannot be listed: {error.reason}")
        return
    for row in rows:
        try:
            run = read_row(store, row)
        except StoreFailedError:
            continue  # its row is damaged, as the check of rows says
        try:
            problem, remedy = missing(store, run, store.answers) if run.is_finished else "", ASK_AGAIN
        except StoreFailedError as error:
            problem, remedy = error.reason, ""
        if problem:
            yield Fault(table="runs", run=row.number, problem=problem, remedy=remedy)


def missing(store: Store, run: StoredRun, answers: Answers) -> str:
    """Find what a run lacks.

    Args:
        store: The store.
        run: A finished run.
        answers: The answers in which its attempts are looked up.

    Returns:
        What it lacks; '' if it is complete.

    Raises:
        EnvironmentFailedError: Its probes are damaged.
    """
    samples, without, last = 0, 0, None
    probes = read_stored_probes(store, run.number)
    while batch := list(islice(probes, LOOKUP)):
        for probe in batch:
            samples += probe.sample != last
            last = probe.sample
        if run.stopped is None:
            keys = {probe.key for probe in batch if probe.error is None}
            without += len(keys - answers.look_up(sorted(keys)).keys())
    planned = run.description.planned_samples
    if samples < planned:
        return f"{planned - samples:,} of its {planned:,} samples have no probes"
    return f"{without:,} of its probes have no attempt" if without else ""
