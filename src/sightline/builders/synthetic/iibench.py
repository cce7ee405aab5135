"""II-Bench in small: dev.json with answers, test.json without, answers.json as its key, and images/."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from sightline.builders.scenes.draw import png
from sightline.builders.scenes.meanings import MEANINGS, QUESTIONS, Meaning, compose, layout
from sightline.builders.scenes.scene import Scene
from sightline.builders.scenes.states import distractors, pictogram, state_of
from sightline.builders.scenes.wording import held_out
from sightline.builders.synthetic.folder import json_of, write
from sightline.scoring.multiple_choice import LETTERS


class Pictogram(NamedTuple):
    """An image with a meaning, five others that it does not have, and its image types."""

    meaning: Meaning
    others: Sequence[str]
    scene: Scene
    types: tuple[str, ...]


def draw_iibench(folder: Path, *, questions: int = 60, dev: int = 60, seed: int = 0) -> Path:
    """Draw II-Bench-like questions, half of them of pictograms put together of a symbol and its fate.

    The same seed gives the same bytes. Raises UserError where the folder holds something else.
    """
    random = Random(f"iibench {seed}")
    files: dict[str, bytes] = {}
    key: dict[str, str] = {}
    for split, count in (("dev", dev), ("test", questions)):
        records = []
        for number in range(count):
            name = f"{split}-{number + 1}"
            pictogram = _put_together(random) if number % 2 else _whole(number // 2, random)
            records.append(_record(name, f"images/{split}/{name}.png", pictogram, random))
            files[f"images/{split}/{name}.png"] = png(pictogram.scene)
        if split == "test":
            for record in records:
                (question,) = record["questions"]
                key[question["id"]] = question.pop("answer")
                del question["correct_option"]
                record["meta_data"]["image_type"] = list(record["meta_data"]["image_type"])
        else:
            for record in records:
                record["meta_data"]["image_type"] = record["meta_data"]["image_type"][0]
        files[f"{split}.json"] = json_of(records)
    return write(folder, {**files, "answers.json": json_of(key)})


def _whole(number: int, random: Random) -> Pictogram:
    """A pictogram with a meaning of its own, in a layout that is kept for tests."""
    meaning = MEANINGS[number % len(MEANINGS)]
    scene, types = compose(meaning, random)
    while not held_out(layout(meaning, scene, types)):
        scene, types = compose(meaning, random)
    others = [other.meaning for other in MEANINGS if other is not meaning]
    return Pictogram(meaning, random.sample(others, 5), scene, types)


def _put_together(random: Random) -> Pictogram:
    """A symbol and its fate in a combination that is kept for tests."""
    pair = pictogram(random, kept=True)
    meaning = state_of(*pair)
    scene, types = compose(meaning, random)
    return Pictogram(meaning, distractors(pair, random, kept=True), scene, types)


def _record(name: str, image: str, pictogram: Pictogram, random: Random) -> dict[str, Any]:
    meaning = pictogram.meaning
    options = random.sample([meaning.meaning, *pictogram.others], 6)
    return {
        "local_path": image,
        "questions": [
            {
                "id": name,
                "question": QUESTIONS.tested(random),
                "options": options,
                "correct_option": meaning.meaning,
                "answer": LETTERS[options.index(meaning.meaning)],
            }
        ],
        "meta_data": {
            "image_type": list(pictogram.types),
            "difficulty": meaning.difficulty,
            "domain": meaning.domain,
            "emotion": meaning.emotion,
            "rhetoric": list(meaning.rhetoric),
            "explanation": meaning.explanation,
        },
    }
