"""The verdicts of an annotation project, as a judge."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sightline.store.store import Store
    from sightline.types import Verdict


PROJECT_VERDICTS = "sightline.annotation.export:project_verdicts"
"""What reads the verdicts of `--judge human:PROJECT`: a function of the store and the project's name."""


def load_project_verdicts(store: Store, word: str) -> list[Verdict] | None:
    """Read the verdicts of an annotation project; None if there is no such project."""
    module, _, function = PROJECT_VERDICTS.partition(":")
    found: list[Verdict] | None = getattr(importlib.import_module(module), function)(store, word)
    return found
