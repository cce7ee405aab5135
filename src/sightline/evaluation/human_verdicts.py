"""The verdicts of humans that a user names: a file, or an annotation project of the store."""

from __future__ import annotations

from pathlib import Path

from sightline.engine.database_errors import NoStoreError
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.formats.verdicts import read_verdicts
from sightline.judging.judges import HUMAN_PREFIX, HumanJudge
from sightline.registry import load_project_verdicts
from sightline.types import Verdict


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
    """Make the judge of a value of `--judge`."""
    return HumanJudge(name, human_verdicts(name.removeprefix(HUMAN_PREFIX), store))


def _of_project(word: str, url: str) -> list[Verdict] | None:
    try:
        store = Store.open(url, create=False)
    except NoStoreError:
        return None
    try:
        return load_project_verdicts(store, word)
    finally:
        store.close()
