"""What an evaluation says and does about the batches of providers, and the requests in them."""

from __future__ import annotations

from collections.abc import Sequence

from sightline.config import DEFAULT_FILE, Config
from sightline.counts import counted
from sightline.engine.counts import Counts
from sightline.engine.store import Store
from sightline.models.base import Model
from sightline.models.batch.endpoint import BatchEndpoint
from sightline.output import print_note


def connect_batches(models: Sequence[Model], store: Store, counts: Counts, *, show_progress: bool) -> bool:
    """Connect models that are asked in batches with the journal of a store."""

    def show(state: str) -> None:
        counts.waiting = state

    batched = [model for model in models if isinstance(model, BatchEndpoint)]
    for model in batched:
        model.connect(store.batches, show, print_note if show_progress else lambda _: None)
    return bool(batched)


def live_models(models: Sequence[Model]) -> list[Model]:
    """The same models, asked request by request: a check of an endpoint does not wait for a batch."""
    return [model.live if isinstance(model, BatchEndpoint) else model for model in models]


def batch_notes(name: str, models: Sequence[Model], config: Config, counts: Counts) -> list[str]:
    """Say what batches mean for the result of a run."""
    notes = []
    if counts.in_batches:
        notes.append(
            f"{name}: {counted(counts.in_batches, 'request')} not sent: a batch at the provider holds them;"
            " --batch fetches the answers, --fresh TAG asks everything again"
        )
    if isinstance(models[0], BatchEndpoint) and counts.answered and (note := price_note(name, config)):
        notes.append(note)
    return notes


def price_note(name: str, config: Config) -> str:
    """Say which price is used where a model has none for batches.

    Returns:
        The note; '' if the model has a price for batches, or none at all.
    """
    price = config.price(name)
    if price is None or price.batch is not None:
        return ""
    return (
        f"{name}: costs of batches are at the price of single requests; most providers charge half:"
        f' [prices."{name}"] batch = {{ prompt = ..., completion = ... }} in {DEFAULT_FILE}'
    )


def open_batches_note(store: Store) -> str:
    """Say which batches go on at providers when a run with --batch ends early."""
    store.batches.close_answered()
    batches = store.batches.all()
    if not batches:
        return ""
    hosts = ", ".join(sorted({batch.address for batch in batches}))
    requests = counted(sum(batch.requests for batch in batches), "request")
    number = counted(len(batches), "batch", "batches")
    return f"; it fetches what goes on at the provider: {number} ({requests}) at {hosts}"
