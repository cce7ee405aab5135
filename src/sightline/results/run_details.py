"""Everything that the store knows about one run: `sightline runs show`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import asdict

from sightline.config import Config
from sightline.engine.counts import Counts
from sightline.engine.store import Store
from sightline.results.run_counts import RunCounts, count_run
from sightline.results.run_list import RunLine, list_runs
from sightline.results.run_options import effective_options
from sightline.results.stored_run import read_stored_run


class RunDetails(RunLine, frozen=True, kw_only=True):
    """A run of the list, here with all effective options that have a value, and with more about it.

    Attributes:
        plugin: The path of the plugin file that defines the benchmark; None if no plugin defines it.
    """

    samples: int
    data_digest: str
    model_identity: str
    plugin: str | None
    notes: Sequence[str]
    requests: Mapping[str, int | float]
    answers: RunCounts


def run_details(store: Store, number: int, config: Config) -> RunDetails:
    """Read everything about a run."""
    run = read_stored_run(store, number)
    line = next(line for line in list_runs(store) if line.number == number)
    description = run.description
    return RunDetails(
        **{
            **asdict(line),
            "options": effective_options(description.options),
        },
        samples=description.planned_samples,
        data_digest=description.data_digest,
        model_identity=description.identity,
        plugin=run.plugin,
        notes=description.notes,
        requests=_requests(run.counts),
        answers=count_run(store, number, config.price(description.model)),
    )


def _requests(counts: Counts) -> dict[str, int | float]:
    spending, equal, images = counts.spending, counts.equal, counts.images
    numbers = {
        "sent": counts.sent,
        "cached": counts.cached,
        "retried": counts.retried,
        "failed": counts.failed,
        "prefix_cached_tokens": spending.cached_tokens,
        "prefix_cache_saved_cost": spending.saved_by_cache,
        "equal": equal.requests,
        "equal_saved_tokens": equal.tokens,
        "equal_saved_cost": equal.cost,
        "image_bytes_sent": images.sent,
        "image_bytes_not_sent": images.not_sent,
        "resent_with_images": images.resent,
    }
    return {name: number for name, number in numbers.items() if number}
