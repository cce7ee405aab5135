"""How users refer to a run of the store: by its number or its name. What a name or a tag may look like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sightline.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from sightline.engine.store import Store

LONGEST = 200
_DIGITS = 18
"""Digits of the largest number that every database accepts for a run, less one."""
_NAME = re.compile(r"\w[\w.:=+-]*")
_FORM = f"at most {LONGEST} letters, digits and characters of '.:=+-_', the first one a letter or a digit"


def check_run_name(name: str) -> None:
    """Check the form of a name for a run: it must not be taken for a number, a path or a list of runs."""
    if not is_run_name(name):
        what = "looks like a number" if _is_number(name) else "has a character that names cannot have"
        raise UserError(f"the name of a run {what}", found=name, expected=f"{_FORM}, and not a number")


def check_tags(tags: Iterable[str]) -> None:
    """Check the form of tags. A tag may be a number."""
    for tag in tags:
        if not _has_form(tag):
            raise UserError("a tag has a character that tags cannot have", found=tag, expected=_FORM)


def is_run_name(word: str) -> bool:
    """Whether a word can be the name of a run; paths with a separator and numbers cannot.

    >>> [is_run_name(word) for word in ("llava-13b", "sizes:size=224", "12", "1e3", "results/a", ".", "")]
    [True, True, False, False, False, False, False]
    """
    return _has_form(word) and not _is_number(word)


def are_named(runs: Sequence[str]) -> bool:
    """Whether all runs have a name, which is then enough to call them.

    >>> [are_named(["alpha", "beta"]), are_named(["alpha", "run 3"]), are_named([])]
    [True, False, False]
    """
    return bool(runs) and all(map(is_run_name, runs))


def find_run(store: Store, word: str) -> int:
    """Find a run by its number or its name."""
    if word.isdecimal():
        if len(word.lstrip("0")) > _DIGITS:
            raise UserError(
                "there is no run with this number",
                file=store.name,
                found=word,
                expected="a run of `sightline runs list`",
            )
        return int(word)
    names = store.labels.names()
    if word not in names:
        if of_model := _runs_of_model(store, word):
            raise UserError(
                f"no run is called '{word}': it is the model of {', '.join(of_model)}",
                file=store.name,
                expected="the number or name of one of them",
            )
        raise UserError(
            f"no run is called '{word}'{did_you_mean(word, names)}",
            file=store.name,
            expected="the number or name of a run, see `sightline runs list`",
        )
    return names[word]


def name_or_number(store: Store, run: int) -> str:
    """What tables call a run."""
    return store.labels.of(run).name or f"run {run}"


def _runs_of_model(store: Store, model: str) -> list[str]:
    """The runs of a model, with their tasks: what a user of a table of models may mean."""
    from sightline.results.run_list import list_runs  # loads the benchmarks

    return [f"run {run.number} ({run.task})" for run in list_runs(store) if run.model == model]


def _has_form(word: str) -> bool:
    return _NAME.fullmatch(word) is not None and len(word) <= LONGEST


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return word.isdecimal()
    return True
