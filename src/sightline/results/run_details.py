"""Everything that the store knows about one run: `sightline runs show`."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import asdict

from sightline.engine.store import Store
from sightline.results.run_list import RunLine, list_runs
from sightline.results.stored_run import read_stored_run


class RunDetails(RunLine, frozen=True, kw_only=True):
    """A run of the list, here with all effective options that have a value, and with more about it.

    Attributes:
        samples: How many samples it has.
        data_digest: The digest of the samples.
        model_identity: The identity of the model.
        plugin: The path of the plugin file that defines the benchmark; None if no plugin defines it.
        notes: What its result says for the reader.
    """

    samples: int
    data_digest: str
    model_identity: str
    plugin: str | None
    notes: Sequence[str]


def run_details(store: Store, number: int) -> RunDetails:
    """Read everything about a run.

    Args:
        store: The store.
        number: The number of the run.

    Returns:
        The run.

    Raises:
        UserError: There is no such run.
    """
    run = read_stored_run(store, number)
    line = next(line for line in list_runs(store) if line.number == number)
    description = run.description
    options = {name: value for name, value in description.options.items() if value is not None}
    return RunDetails(
        **{**asdict(line), "options": options},
        samples=description.planned_samples,
        data_digest=description.data_digest,
        model_identity=description.identity,
        plugin=run.plugin,
        notes=description.notes,
    )
