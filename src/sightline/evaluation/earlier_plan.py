"""The plan that an earlier run of the same evaluation made: its data need not be read and planned again."""

from __future__ import annotations

from contextlib import closing

import msgspec

from sightline.engine.compression import Compressor, DamagedBodyError
from sightline.engine.counts import Counts
from sightline.engine.database_errors import NoStoreError, StoreFailedError
from sightline.engine.probe_chunks import own_keys
from sightline.engine.probe_rows import RunProbes, copy_probes, run_probes
from sightline.engine.store import Store
from sightline.evaluation.image_stamps import StampRecorder, are_unchanged
from sightline.evaluation.plan_key import plan_key
from sightline.evaluation.prepared import EarlierPlan, Prepared
from sightline.plan.plan import Plan

_compressor = Compressor()


def find_plan(url: str, key: bytes) -> EarlierPlan | None:
    """Look a plan up.

    Args:
        url: The store, a path or a database URL.
        key: The key of the plan.

    Returns:
        The plan; None if there is none, if it is damaged, or if there is no store.

    Raises:
        UserError: This is not a store.
        EnvironmentFailedError: The store fails.
    """
    try:
        store = Store.open(url, create=False)
    except NoStoreError:
        return None
    with closing(store):
        body = store.caches.plans.look_up([key]).get(key)
    try:
        return msgspec.msgpack.decode(_compressor.decompress(body), type=EarlierPlan) if body else None
    except (DamagedBodyError, msgspec.MsgspecError):
        return None


def take_over(plan: EarlierPlan, store: Store, run: int, *, retry_errors: bool) -> bool:
    """Give a new run the probes of an earlier plan, if nothing is left to plan and to ask.

    Args:
        plan: The plan.
        store: The store of both runs.
        run: The number of the new run.
        retry_errors: Whether failed requests are asked again.

    Returns:
        Whether the run has all probes, and the store has what each request led to. If not, the samples must
        be planned.

    Raises:
        EnvironmentFailedError: The store fails.
    """
    try:
        is_same = are_unchanged(plan.images) and copy_probes(
            store.database, RunProbes(plan.run, plan.probes), run
        )
    except (DamagedBodyError, msgspec.MsgspecError, StoreFailedError):
        # Damage of the earlier run is none of the new one, which is planned then.
        return False
    return is_same and _is_settled(store, run, retry_errors=retry_errors)


def keep_plan(
    prepared: Prepared, plan: Plan, images: StampRecorder, counts: Counts, store: Store, run: int
) -> None:
    """Keep the plan of a run for later ones, unless the data changed meanwhile or an image is broken.

    Args:
        prepared: The evaluation.
        plan: Its plan, all of which was read.
        images: The stamps of its images.
        counts: What happened to its requests.
        store: The store.
        run: The number of the run.
    """
    key = prepared.plan_key
    if key is None or plan.has_broken_images or counts.stopped:
        return
    if plan_key(prepared.spec, prepared.task, prepared.models) != key:
        return
    probes = run_probes(store.database, run)
    earlier = EarlierPlan(
        survey=prepared.survey,
        run=probes.uid,
        probes=probes.digest,
        requests=counts.done,
        images=images.parts(),
    )
    store.caches.plans.add({key: _compressor.compress(msgspec.msgpack.encode(earlier))})


def _is_settled(store: Store, run: int, *, retry_errors: bool) -> bool:
    """Whether no request of a run has to be sent."""
    for chunk in store.runs.chunks(run):
        keys = {key.hex() for key in own_keys(chunk)}
        if len(store.answers.settled(list(keys), retry_errors=retry_errors)) < len(keys):
            return False
    return True
