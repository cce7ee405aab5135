"""What a word means as a run: a run of the store, or a results folder."""

from __future__ import annotations

from pathlib import Path

from sightline.formats.whole_results import METRICS
from sightline.results.read_results import is_sweep
from sightline.results.run_names import is_run_name


def is_stored(word: str, store: str) -> bool:
    """Whether a word means a run of the store and not a results folder.

    A folder with results comes before a run of the same name; other folders and files do not count. Every
    word but a number is a folder if there is no store that could hold names.
    """
    if word.isdecimal():
        return True
    has_store = "://" in store or Path(store).exists()
    return has_store and is_run_name(word) and not holds_results(Path(word))


def holds_results(folder: Path) -> bool:
    """Whether a folder holds results."""
    return (folder / METRICS).is_file() or is_sweep(folder)
