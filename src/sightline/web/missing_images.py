"""What `sightline serve` says at its start of data folders that lack the images of the runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sightline.counts import counted
from sightline.engine.store import Store
from sightline.outcome_index.images import ImageError
from sightline.outcome_index.index import OutcomeIndex

MOST_RUNS = 20
"""The runs that are looked at, the latest ones."""


def missing_images_note(store: Store, data: Sequence[Path]) -> str:
    """Look for one image of each of the latest indexed runs.

    Returns:
        Which runs lack their images, and the remedy; '' if none does.
    """
    index = OutcomeIndex(store, data)
    ready = [one.run for one in index.runs() if one.state.step == "ready"][-MOST_RUNS:]
    problems = {run: problem for run in ready if (problem := _problem(index, run)) is not None}
    if not problems:
        return ""
    first, reason = next(iter(problems.items()))
    more = f" and {counted(len(problems) - 1, 'other run')}" if len(problems) > 1 else ""
    return (
        f"the images of run {first}{more} are not in {', '.join(map(str, data))}, so that they are not shown"
        f" ({reason}); name their data folder with --data DIR"
    )


def _problem(index: OutcomeIndex, run: int) -> ImageError | None:
    """Why the first image of a run is not found."""
    rows = index.open(run).page(limit=1).rows
    image = rows[0].image if rows else None
    if image is None:
        return None
    try:
        index.images(run).find(image.path, image.digest)
    except ImageError as error:
        return error
    return None
