"""The answers of a finished evaluation: from its store, or from its results folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.evaluation.recompute import recompute
from sightline.formats.jsonl import read_outcomes
from sightline.judging.panel import JudgedGroup
from sightline.types import Outcome


def kept_answers(run: int | None, store: str, out: str | None) -> Iterable[Outcome]:
    """Read the answers of an evaluation with their verdicts. Nothing is sent.

    Args:
        run: The number of its run; None if it called no model.
    """
    if run is None:
        if out is None:
            raise UserError("the answers were not kept", expected="score with out=FOLDER")
        return read_outcomes(Path(out) / "answers.jsonl")
    outcomes: list[Outcome] = []

    def keep(judged: JudgedGroup) -> None:
        outcomes.extend(judged.group)

    opened = Store.open(store, create=False)
    try:
        recompute(opened, run, on_group=keep)
    finally:
        opened.close()
    return outcomes
