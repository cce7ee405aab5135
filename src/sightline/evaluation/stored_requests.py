"""The requests of a run that has its probes: few are made again, for the check of an endpoint."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec
from msgspec import Struct

from sightline.engine.asking_again import is_comparable
from sightline.engine.cached_evidence import Asked, StoredRequests
from sightline.engine.keys import KeyedRequest
from sightline.engine.store import Store
from sightline.evaluation.planning import make_plan, plan_settings
from sightline.evaluation.prepared import Prepared


class _AskedProbe(Struct, frozen=True):
    """What a stored probe says of its request."""

    sample: str
    draw: int
    key: str


def stored_requests(prepared: Prepared, store: Store, run: int) -> StoredRequests:
    """The requests of a run whose plan is that of an earlier one.

    Args:
        prepared: The evaluation.
        store: The store.
        run: The number of the run.

    Returns:
        The requests, which are read from the store; the samples are read for those that are made.
    """
    decoder = msgspec.json.Decoder(_AskedProbe)
    settings = plan_settings(prepared.spec, prepared.task, prepared.models.models[0])
    sampling = settings[prepared.task.setting].sampling

    def probes() -> Iterator[_AskedProbe]:
        return map(decoder.decode, store.runs.probes(run))

    def make(keys: Collection[str]) -> Iterator[KeyedRequest]:
        samples = {probe.sample for probe in probes() if probe.key in keys}
        for chunk in make_plan(prepared, store, only=samples).chunks():
            requests = (planned.request for planned in chunk if planned.request is not None)
            yield from (keyed for keyed in requests if keyed.request.key in keys)

    asked = (Asked(probe.key, is_comparable(probe.draw, sampling)) for probe in probes())
    return StoredRequests(asked, make)
