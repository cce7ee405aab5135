"""New projects: the sample of the items, their order, gold items, and who cannot take part."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from sightline.annotation.items import make_items
from sightline.annotation.known_items import known_values, with_training
from sightline.annotation.sampling import ordered, pick_items, share
from sightline.annotation.sources.request import MadeItems, SourceRequest
from sightline.annotation.store import AnnotationStore
from sightline.annotation.types import Item, Pick, Project
from sightline.errors import UserError


class NewProject(Struct, frozen=True):
    """What `annotate new` says about a project.

    Attributes:
        pick: How clusters are sampled; None: at random, if a number is known.
        annotators: How many annotators judge an item; None as the task says.
        shared: How many queries all annotators judge; None as the task says.
        gold: A file of verdicts that are known; None for no gold items.
        proposals: A file of verdicts of a model, which annotators confirm or change; None for none.
    """

    name: str
    pick: Pick | None = None
    annotators: int | None = None
    shared: int | None = None
    gold: Path | None = None
    proposals: Path | None = None
    training: int = 0
    qualification: int = 0
    disjoint: tuple[str, ...] = ()


class Draft(Struct, frozen=True):
    """A project that is not in the store yet: the project, its items, and notes for the user."""

    project: Project
    items: Sequence[Item]
    notes: Sequence[str]


def draft_project(store: AnnotationStore, request: SourceRequest, new: NewProject) -> Draft:
    """Make the items of a project. The caller adds it to the store."""
    task = request.task
    for name in new.disjoint:
        store.project(name)
    made = make_items(request)
    if not made.items:
        raise UserError("the sources give no item", found=", ".join(request.sources))
    annotators = task.annotators if new.annotators is None else new.annotators
    if annotators < max(task.needed, 1):
        raise UserError(
            "--annotators is too small", found=annotators, expected=f"{max(task.needed, 1)} or more"
        )
    pick, picked = _picked(made, request, new)
    shared = task.shared if new.shared is None else new.shared
    judged = share(picked, shared, annotators, request.seed)
    if new.gold:
        known = known_values(task, judged, new.gold)
        judged = [replace(item, expected=known.get((item.targets, item.variant), {})) for item in judged]
    if new.proposals:
        proposed = known_values(task, judged, new.proposals)
        judged = [replace(item, proposal=proposed.get((item.targets, item.variant), {})) for item in judged]
    task, judged = with_training(task, judged, new.training, new.qualification, request.seed)
    phases = [phase.name for phase in task.phases]
    items = ordered(judged, phases, mixed=task.mixed, seed=request.seed)
    project = Project(
        name=new.name,
        task=task,
        sources=request.sources,
        data=made.data,
        benchmark=made.benchmark,
        seed=request.seed,
        annotators=annotators,
        pick=pick,
        of=len(made.items),
        disjoint=new.disjoint,
    )
    return Draft(project, items, made.notes)


def absent_parts(draft: Draft) -> list[str]:
    """Name the parts of the page that no item has: one may be misspelt in a user's declaration.

    Returns:
        One note; none if each part is in some item.
    """
    task, texts = draft.project.task, {name for item in draft.items for name in item.texts}
    absent = [part.name for part in task.shows if part.kind in ("text", "options") and part.name not in texts]
    return [f"no item has {', '.join(absent)}: the page does not show it"] if absent else []


def _picked(made: MadeItems, request: SourceRequest, new: NewProject) -> tuple[Pick, list[Item]]:
    """The sample of the items, and how it was taken."""
    count = request.count if request.count is not None else request.task.sample or None
    clusters = len({item.cluster for item in made.items})
    if made.sampled or new.pick == "all" or count is None or count >= clusters:
        return "all", made.items
    pick = new.pick or ("stratified" if request.by else "random")
    return pick, pick_items(made.items, pick, count, request.seed)
