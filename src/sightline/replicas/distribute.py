"""--on: from `ray`, `slurm:gpu` or `processes` to a pool of replicas for each model of this machine."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from msgspec.structs import replace

from sightline.errors import UserError, unknown_name
from sightline.models.base import Model
from sightline.models.resolve import ModelOptions, resolve, resolve_name

LAUNCHERS: dict[str, str] = {
    "processes": "sightline.replicas.worker.processes:launcher",
    "ray": "sightline.replicas.on_ray.launcher:ray_launcher",
    "slurm": "sightline.replicas.slurm.launcher:launcher",
}
"""Kind of place -> 'module:name' of a function of (Target, rest of the place, Config); it returns a Launcher.

It raises UserError where the place cannot be used, and starts nothing.
"""


def resolve_on(
    place: str | None, spec: str, options: ModelOptions, concurrency: int | None = None
) -> Sequence[Model]:
    """Create the models for a name, with replicas elsewhere instead of a model on this machine.

    Args:
        place: `--on`; None for this machine.
        concurrency: The most requests that a replica has in flight; None for no limit.
    """
    # A server on another machine may have other files at the same paths, or none.
    models = resolve(spec, options if place is None else replace(options, images=None, elsewhere=True))
    if place is None or not models[0].capabilities.own_process:
        return models
    from sightline.replicas.base import Target
    from sightline.replicas.pool import ReplicaPool

    kind, _, rest = place.partition(":")
    if kind not in LAUNCHERS:
        raise unknown_name("--on", kind, sorted(LAUNCHERS))
    module, _, function = LAUNCHERS[kind].partition(":")
    spec, options = resolve_name(spec, options)
    weights = models[0].identity
    if options.model_id is not None:
        plain = replace(options, model_id=None, images=None, elsewhere=True)
        weights = resolve(spec, plain)[0].identity
    target = Target(model=models[0], spec=spec, args=options.args, weights=weights)
    launcher = getattr(importlib.import_module(module), function)(target, rest, options.config)
    key = (
        place,
        models[0].identity,
        spec,
        tuple(sorted((name, repr(value)) for name, value in options.args.items())),
    )
    return [ReplicaPool(models[0], launcher, key, getattr(launcher, "script", ""), concurrency)]


def check_place(place: str | None, models: Sequence[Model]) -> None:
    """Check that --on applies to one of the models.

    Args:
        place: `--on`, None if it is not given.
    """
    if place is not None and not any(model.capabilities.replicas for model in models):
        raise UserError(
            f"--on {place} has no effect: neither model nor judge is run or started by Sightline",
            expected="mini, hf/..., vllm/... or sglang/..., or no --on",
        )
