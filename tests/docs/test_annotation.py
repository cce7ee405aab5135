"""docs/annotation-tasks.md names the tasks, commands and files that exist."""

from __future__ import annotations

import re
from pathlib import Path

from sightline.annotation.task import read_task, task_names
from sightline.cli.annotate import SUBCOMMANDS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "annotation-tasks.md").read_text()


def test_every_task_has_its_line() -> None:
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)) == task_names()


def test_the_task_of_the_page_is_a_task() -> None:
    (declared,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert read_task(declared, "docs/annotation-tasks.md").name == "tone"


def test_the_page_names_only_subcommands_that_exist() -> None:
    assert set(re.findall(r"sightline annotate ([a-z]+)", PAGE)) <= set(SUBCOMMANDS)
