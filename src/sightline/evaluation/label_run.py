"""Gives a new run its name and tags. The name of an earlier run of the same evaluation moves to it."""

from __future__ import annotations

from sightline.engine.store import Store
from sightline.plan.spec import Spec
from sightline.results.description import EvaluationDescription
from sightline.results.run_names import check_run_name, check_tags
from sightline.results.same_run import refuse_name_of_other_run
from sightline.results.stored_run import read_stored_run


def check_labels(spec: Spec) -> None:
    """Check the form of --name and --tag."""
    if spec.name is not None:
        check_run_name(spec.name)
    check_tags(spec.tag)


def check_name(spec: Spec, store: Store, description: EvaluationDescription) -> None:
    holder = store.labels.names().get(spec.name or "")
    if spec.name is not None and holder is not None:
        before = read_stored_run(store, holder).description
        refuse_name_of_other_run(spec.name, holder, before, description)


def label_run(spec: Spec, store: Store, run: int, description: EvaluationDescription) -> int | None:
    """Give a run that starts its tags, and its name if no run has it.

    Returns:
        The earlier run of the same evaluation that has the name until `move_name`; None if there is none.
    """
    store.labels.add_tags(run, spec.tag)
    if spec.name is None or (holder := store.labels.give_name(run, spec.name)) == run:
        return None
    check_name(spec, store, description)
    return holder


def move_name(spec: Spec, store: Store, run: int, holder: int | None) -> str:
    """Move a name to the run that finished; an interrupted run leaves it where it was."""
    if spec.name is None or holder is None:
        return ""
    found = store.labels.give_name(run, spec.name, instead_of=holder)
    if found != run:
        return f"run {found} was given the name '{spec.name}' in the meantime and keeps it"
    return f"the name '{spec.name}' moved from run {holder}, the same evaluation, to run {run}"
