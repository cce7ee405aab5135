"""Synthetic II-Bench data: dev.json with answers, test.json without, answers.json as its key, and images/."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from sightline.builders.scenes.meanings import MEANINGS, QUESTIONS, Meaning, layout_name, meaning_scene
from sightline.builders.scenes.phrasings import is_held_out
from sightline.builders.scenes.pictograms import choose_pictogram, distractors, pictogram_meaning
from sightline.builders.scenes.render import render_png
from sightline.builders.scenes.scene import Scene
from sightline.builders.synthetic.folder import json_bytes, write_folder
from sightline.scoring.multiple_choice import SIX_LETTERS


class PictogramQuestion(NamedTuple):
    """A scene with its meaning, five wrong meanings, and its image types."""

    meaning: Meaning
    distractors: Sequence[str]
    scene: Scene
    types: tuple[str, ...]


def generate_iibench(folder: Path, *, questions: int = 60, dev: int = 60, seed: int = 0) -> Path:
    """Generate II-Bench-like questions, half of them about combinations of a symbol and a fate.

    Args:
        seed: The same seed gives the same bytes.
    """
    random = Random(f"iibench {seed}")
    files: dict[str, bytes] = {}
    key: dict[str, str] = {}
    for split, count in (("dev", dev), ("test", questions)):
        records = []
        for number in range(count):
            name = f"{split}-{number + 1}"
            question = _combined_question(random) if number % 2 else _single_question(number // 2, random)
            records.append(_record(name, f"images/{split}/{name}.png", question, random))
            files[f"images/{split}/{name}.png"] = render_png(question.scene)
        if split == "test":
            for record in records:
                (public,) = record["questions"]
                key[public["id"]] = public.pop("answer")
                del public["correct_option"]
                record["meta_data"]["image_type"] = list(record["meta_data"]["image_type"])
        else:
            for record in records:
                record["meta_data"]["image_type"] = record["meta_data"]["image_type"][0]
        files[f"{split}.json"] = json_bytes(records)
    return write_folder(folder, {**files, "answers.json": json_bytes(key)})


def _single_question(number: int, random: Random) -> PictogramQuestion:
    """A pictogram of MEANINGS, in a layout that is held out for tests."""
    meaning = MEANINGS[number % len(MEANINGS)]
    scene, types = meaning_scene(meaning, random)
    while not is_held_out(layout_name(meaning, scene, types)):
        scene, types = meaning_scene(meaning, random)
    others = [other.meaning for other in MEANINGS if other is not meaning]
    return PictogramQuestion(meaning, random.sample(others, 5), scene, types)


def _combined_question(random: Random) -> PictogramQuestion:
    """A symbol and a fate, in a combination that is held out for tests."""
    pair = choose_pictogram(random, held_out=True)
    meaning = pictogram_meaning(*pair)
    scene, types = meaning_scene(meaning, random)
    return PictogramQuestion(meaning, distractors(pair, random, held_out=True), scene, types)


def _record(name: str, image: str, question: PictogramQuestion, random: Random) -> dict[str, Any]:
    meaning = question.meaning
    options = random.sample([meaning.meaning, *question.distractors], 6)
    return {
        "local_path": image,
        "questions": [
            {
                "id": name,
                "question": QUESTIONS.choose_for_test(random),
                "options": options,
                "correct_option": meaning.meaning,
                "answer": SIX_LETTERS[options.index(meaning.meaning)],
            }
        ],
        "meta_data": {
            "image_type": list(question.types),
            "difficulty": meaning.difficulty,
            "domain": meaning.domain,
            "emotion": meaning.emotion,
            "rhetoric": list(meaning.rhetoric),
            "explanation": meaning.explanation,
        },
    }
