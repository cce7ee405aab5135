"""The store: the cache of all answers, and the record of runs, probes, verdicts and image metadata.

SQLite by default (write-ahead log, one short transaction per group of writes), or PostgreSQL by a URL.
Several processes may use one store at the same time. Each subject has its own module.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from sightline.engine.answers import Answers
from sightline.engine.batch_journal import BatchJournal
from sightline.engine.caches import Caches
from sightline.engine.claims import Claims
from sightline.engine.connect import connect, prepare
from sightline.engine.database import Database
from sightline.engine.dictionaries import Dictionaries
from sightline.engine.endpoint_log import EndpointLog
from sightline.engine.ledger import Ledger
from sightline.engine.owners import seconds_since_boot
from sightline.engine.run_labels import RunLabels
from sightline.engine.run_leases import RunLeases
from sightline.engine.runs import Runs


class Store:
    """One open store. The methods of its parts block; EnvironmentFailedError: the database failed."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], float] = time.time,
        uptime: Callable[[], float] = seconds_since_boot,
    ) -> None:
        """Prepare the store; `Store.open` connects and checks it.

        Args:
            clock: Returns the seconds since 1970.
            uptime: Returns the seconds since the machine started.
        """
        self.name = database.name
        self.database = database
        self.claims = Claims(self.database, uptime)
        dictionaries = Dictionaries(database.name)
        self.answers = Answers(self.database, dictionaries, self.claims, clock)
        self.runs = Runs(self.database, dictionaries, clock, uptime)
        self.labels = RunLabels(self.database)
        self.leases = RunLeases(self.database, uptime)
        self.endpoints = EndpointLog(self.database, clock)
        self.batches = BatchJournal(self.database, self.claims, clock)
        self.caches = Caches(self.database)
        self.ledger = partial(Ledger, self.database, uptime)

    @classmethod
    def open(
        cls,
        url: str,
        *,
        create: bool = True,
        clock: Callable[[], float] = time.time,
        uptime: Callable[[], float] = seconds_since_boot,
    ) -> Store:
        """Open a store.

        Args:
            clock: Returns the seconds since 1970.
            uptime: Returns the seconds since the machine started.
        """
        database = connect(url, create=create)
        try:
            database.check_connection()
            prepare(database, create=create)
        except BaseException:
            database.close()
            raise
        return cls(database, clock, uptime)

    def close(self) -> None:
        """Close all connections."""
        self.database.close()
