"""The verdicts of humans that a user names: those of a file, or of an annotation project of the store."""

from __future__ import annotations

import importlib
from pathlib import Path

from sightline.errors import UserError
from sightline.evaluation.judges import HUMAN_PREFIX, HumanJudge
from sightline.formats.jsonl import read_verdicts
from sightline.store.database import NoStoreError
from sightline.store.store import Store
from sightline.types import Verdict

PROJECT_VERDICTS = "sightline.annotation.export:project_verdicts"
"""What reads the verdicts of `--judge human:PROJECT`: a function of the store and the project's name."""


def human_verdicts(word: str, store: str) -> list[Verdict]:
    if Path(word).is_file():
        return read_verdicts(Path(word))
    found = _of_project(word, store)
    if found is None:
        raise UserError(
            "there is neither such a file of human verdicts nor such an annotation project",
            file=store,
            found=word,
            expected="a verdicts.jsonl, or a project of this store (`sightline annotate status`)",
        )
    return found


def human_judge(name: str, store: str) -> HumanJudge:
    return HumanJudge(name, human_verdicts(name.removeprefix(HUMAN_PREFIX), store))


def _of_project(word: str, url: str) -> list[Verdict] | None:
    """The verdicts of an annotation project; None if there is no such project."""
    try:
        store = Store.open(url, create=False)
    except NoStoreError:
        return None
    module, _, function = PROJECT_VERDICTS.partition(":")
    try:
        found: list[Verdict] | None = getattr(importlib.import_module(module), function)(store, word)
        return found
    finally:
        store.close()
