"""The verdicts of an annotation project, as judges and reports read them from the store."""

from __future__ import annotations

import time

from sightline.annotation.judgements import verdicts
from sightline.annotation.state import State
from sightline.annotation.store import AnnotationStore
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.types import Verdict


def project_verdicts(store: Store, word: str) -> list[Verdict] | None:
    """Read the verdicts of a project as they are now: those that `annotate export` would write.

    Returns:
        The verdicts; None if there is no such project.
    """
    annotations = AnnotationStore(store, time.time)
    if word not in {name for row in annotations.projects() for name in (row.project.name, str(row.number))}:
        return None
    row = annotations.project(word)
    task = row.project.task
    if task.produces != "verdicts":
        raise UserError(
            f"the annotation project '{row.project.name}' produces {task.produces}, not verdicts",
            file=store.name,
            expected="a project whose humans judge, see `sightline annotate tasks`",
        )
    state = State(row.project, annotations.items(row.number)).advance(annotations.entries(row.number))
    found = list(verdicts(state, annotations.annotators(row.number)))
    if not found:
        raise UserError(
            f"the annotation project '{row.project.name}' has no verdict yet",
            file=store.name,
            expected=f"judgements, see `sightline annotate status {row.project.name}`",
        )
    return found
