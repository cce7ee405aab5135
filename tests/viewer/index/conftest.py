"""A run of 150 groups with every kind of verdict, agreement and label."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import sightline
from sightline.store.store import Store

WORDS = ("apple", "pear", "plum", "fig", "kiwi")


def group_lines(groups: int = 150) -> Iterator[dict[str, Any]]:
    """Groups of one to three questions with options."""
    random = Random(1)
    for number in range(groups):
        for variant in range(random.choice((1, 2, 2, 3))):
            yield {
                "group": f"g{number}",
                "variant": f"v{variant}",
                "prompt": f"Which fruit is number {number}?\nLook at it. Café <b> {random.choice(WORDS)}",
                "question": f"Which fruit is number {number}?",
                "options": list(WORDS),
                "references": [WORDS[number % 5]],
                "labels": {"colour": random.choice(("red", "green")), "style": f"s{variant}"},
            }


def answers(lines: list[dict[str, Any]], seed: int = 2) -> Iterator[dict[str, Any]]:
    """Answers to most of them: right, wrong, long, truncated, without an option, empty, or none."""
    random = Random(seed)
    for line in lines:
        kind = random.choice(("right", "right", "wrong", "long", "unclear", "empty", "none"))
        if kind == "none":
            continue
        response = {
            "right": line["references"][0],
            "wrong": random.choice(WORDS),
            "long": f"I see {'very ' * random.choice((10, 60, 300))}much. The answer is (A)",
            "unclear": "it is a fruit",
            "empty": "",
        }[kind]
        finish = "length" if random.random() < 0.1 else "stop"
        yield {
            "group": line["group"],
            "variant": line["variant"],
            "response": response,
            "finish_reason": finish,
        }


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    """Write JSONL."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


RunGroups = Callable[..., int]


@pytest.fixture
def run_groups(store_url: str, tmp_path: Path) -> RunGroups:
    """Runs the groups with answers of a seed, and returns the number of the run."""

    def run(seed: int = 2) -> int:
        lines = list(group_lines())
        data = write_lines(tmp_path / "groups.jsonl", lines)
        given = write_lines(tmp_path / f"answers{seed}.jsonl", list(answers(lines, seed)))
        found = sightline.run(f"groups:{data}", model=f"replay/{given}", store=store_url)
        assert found.run is not None
        return found.run

    return run


@pytest.fixture
def store(store_url: str, run_groups: RunGroups) -> Iterator[Store]:
    """A store with one run, number 1."""
    assert run_groups() == 1
    opened = Store.open(store_url)
    yield opened
    opened.close()
