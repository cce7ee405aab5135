"""Declarations of tasks: what contradicts itself is refused, with the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline.annotation.task import read_task, task, task_names
from sightline.errors import UserError

MINE = """
name = "tone"
title = "Is the answer polite?"
items = "answers"
produces = "verdicts"
question = "polite"
decides = ["verdict"]

[[shows]]
name = "response"
kind = "text"
label = "Answer"

[[fields]]
name = "verdict"
kind = "choice"

[[fields.options]]
value = "right"
label = "Polite"
key = "p"
tone = "yes"

[[fields.options]]
value = "wrong"
label = "Not polite"
key = "r"
tone = "no"
"""


def test_a_task_of_the_user_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "tone.toml"
    file.write_text(MINE)
    assert task(str(file)).question == "polite"


@pytest.mark.parametrize("name", task_names())
def test_every_built_in_task_has_guidelines_an_instruction_and_its_source(name: str) -> None:
    declared = task(name)
    assert declared.name == name
    assert declared.guidelines.strip()
    assert declared.instruction
    assert declared.source


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "Is', 'titel = "Is', "unknown field|missing required field"),
        ('kind = "choice"', 'kind = "slider"', "Invalid enum value"),
        ('decides = ["verdict"]', "decides = []", "decides must name"),
        ('decides = ["verdict"]', 'decides = ["other"]', "'other' is not a field"),
        ('question = "polite"', "", "question is empty"),
        ('key = "r"', 'key = "p"', "one key"),
        ('key = "r"', 'key = "s"', "takes the key s, which the page needs"),
        ('value = "wrong"', 'value = "rude"', "is no verdict"),
        ('produces = "verdicts"', 'produces = "records"', "needs records"),
        ("[[shows]]", "[[shows", "is not the declaration of a task"),
        ('name = "tone"', 'name = "tone"\nannotators = 2\nneeded = 3', "at least needed"),
    ],
)
def test_what_contradicts_itself_is_refused(old: str, new: str, message: str) -> None:
    assert old in MINE
    with pytest.raises(UserError, match=message) as error:
        read_task(MINE.replace(old, new, 1), "mine.toml")
    assert "mine.toml" in str(error.value)


def test_an_unknown_task_names_the_nearest_one() -> None:
    with pytest.raises(UserError, match="rate"):
        task("ratee")
