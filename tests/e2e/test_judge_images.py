"""A judge model that sees the images: of CODIS, and of groups whose answers it decides."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import sightline
from training.scenes.build import generate_codis

Servers = Callable[..., Any]


def groups_file(folder: Path, images: list[str]) -> Path:
    """Two groups of two lines with open answers."""
    file = folder / "mine.jsonl"
    lines = [
        {"group": name, "variant": variant, "images": images, "prompt": prompt, "references": ["a bicycle"]}
        for name in ("g1", "g2")
        for variant, prompt in (("asked", f"What is {name}?"), ("reworded", f"Which thing is {name}?"))
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


@pytest.mark.parametrize("sees", [False, True])
def test_the_judge_of_codis_sees_the_image_if_told_so(
    mock: Servers, tmp_path: Path, sqlite_url: str, sees: bool
) -> None:
    data = generate_codis(tmp_path / "codis", pairs=3)
    judge = mock("--words", "right|wrong")
    options: dict[str, Any] = {"judge": judge.model, "set": {"judge_image": sees}, "store": sqlite_url}
    first = sightline.run("codis", model=mock().model, data=data, out=tmp_path / "out", **options)
    asked = judge.stats()
    verdicts = [json.loads(line) for line in (tmp_path / "out" / "verdicts.jsonl").read_text().splitlines()]
    answers = [one for one in verdicts if one["question"] == "correct"]
    assert len(answers) == 6
    assert asked["with_image"] == (6 if sees else 0)
    judge.reset()
    scored = sightline.score("codis", tmp_path / "out" / "answers.jsonl", data=data, **options)
    assert judge.stats()["requests"] == 0
    assert scored.metrics == first.metrics


@pytest.mark.parametrize("sees", [False, True])
def test_a_judge_decides_the_answers_of_groups_by_their_references(
    mock: Servers, tmp_path: Path, sqlite_url: str, sees: bool
) -> None:
    Image.new("RGB", (32, 32), "red").save(tmp_path / "photo.png")
    task = f"groups:{groups_file(tmp_path, ['photo.png'])}"
    model, judge = mock("--words", "That is a bike."), mock("--words", "Verdict: right")
    options: dict[str, Any] = {"model": model.model, "store": sqlite_url}

    def acc(**more: Any) -> float | None:
        found = sightline.run(task, **options, **more).metrics
        return next(one.value for one in found if (one.metric, one.subset) == ("acc", "all"))

    chosen = {"embedder": "none", "judge_answers": True, "judge_image": sees}
    assert acc(set={"embedder": "none"}) == 0.0
    assert acc(set=chosen, judge=judge.model) == 100.0
    assert judge.stats()["with_image"] == (4 if sees else 0)
    assert acc(set=chosen, judge=("rules", judge.model)) == 0.0


def test_options_of_a_judge_model_are_refused_where_none_judges(tmp_path: Path) -> None:
    task = f"groups:{groups_file(tmp_path, [])}"
    with pytest.raises(sightline.UserError, match="judge_answers=on has no effect: no judge is a model"):
        sightline.run(task, model="baseline/chance", set={"judge_answers": True})


def test_a_line_without_an_image_is_refused_where_the_judge_should_see_it(tmp_path: Path) -> None:
    file = groups_file(tmp_path, [])
    chosen = {"embedder": "none", "judge_answers": True, "judge_image": True}
    with pytest.raises(sightline.UserError, match="g1, asked: has no image that a judge could see"):
        sightline.run(f"groups:{file}", model="baseline/chance", judge="baseline/chance", set=chosen)
