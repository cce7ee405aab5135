"""The plan of a prepared evaluation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from sightline.engine.store import Store
from sightline.evaluation.augment import images_in_probes
from sightline.evaluation.prepared import Prepared, PreparedTask
from sightline.models.augmented import Augmented
from sightline.models.base import Model
from sightline.plan.effective import EffectiveOptions, effective
from sightline.plan.plan import Plan, PlanInputs
from sightline.plan.spec import Spec
from sightline.types import ImageRef, Sample


def make_plan(
    prepared: Prepared,
    store: Store,
    augmented: Augmented | None = None,
    *,
    only: Collection[str] | None = None,
    read_only: bool = False,
) -> Plan:
    """Plan the requests of an evaluation.

    Args:
        only: The ids of the samples that are planned; None for all.
    """
    task, model = prepared.task, prepared.models.models[0]
    inputs = PlanInputs(
        benchmark=task.benchmark,
        samples=task.samples if only is None else _some_of(task.samples, only),
        settings=plan_settings(prepared.spec, task, model),
        model=model,
        repeats=prepared.spec.repeats,
        fresh=prepared.spec.fresh,
        augmented=augmented,
    )
    return Plan(inputs, store, read_only=read_only)


def plan_settings(spec: Spec, task: PreparedTask, model: Model) -> dict[str, EffectiveOptions]:
    """Compute the options of the requests of an evaluation."""
    own = EffectiveOptions(task.options.benchmark, model.effective(task.options.sampling))
    partners = {
        setting: EffectiveOptions(options, model.effective(_sampling(spec, task, setting)))
        for setting, options in task.partners.items()
    }
    return {task.setting: own, **partners}


def images_to_show(prepared: Prepared) -> dict[str, ImageRef]:
    """The images of all probes, under the evaluated setting and under those that metrics read too."""
    task = prepared.task
    settings = [task.options.benchmark, *task.partners.values()]
    return images_in_probes(task.benchmark, task.samples, settings)


def _some_of(samples: Iterable[Sample], ids: Collection[str]) -> Iterator[Sample]:
    left = set(ids)
    for sample in samples if left else ():
        if sample.id in left:
            yield sample
            left.remove(sample.id)
            if not left:
                return


def _sampling(spec: Spec, task: PreparedTask, setting: str) -> dict[str, object]:
    """The sampling options of a partner setting: its own defaults if it has a name, then the user's."""
    partner = task.benchmark.settings.get(setting)
    if partner is None:
        return dict(task.options.sampling)
    return dict(effective(task.benchmark, partner, replace(spec, set={})).sampling)
