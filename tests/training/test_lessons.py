"""The training data of `mini` contain nothing of its tests."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest
from PIL.Image import Image

from training.mini import lessons
from training.mini.lessons import WORLDS, Lesson, Turn, lesson
from training.scenes import drawing, pictograms, rooms
from training.scenes.boards import BOARDS
from training.scenes.drawing import Scene
from training.scenes.pictograms import (
    FATES,
    MEANINGS,
    QUESTIONS,
    SYMBOLS,
    pictogram_is_held_out,
    pictogram_meaning,
)
from training.scenes.puzzles import KINDS, THINGS, VIVID
from training.scenes.shapes import render


def turns_of(world: str, count: int, *, exam: bool = False) -> list[Turn]:
    random = Random(4)
    return [turn for _ in range(count) for turn in WORLDS[world](random, exam).turns]


def test_a_lesson_is_an_image_of_the_input_size_with_questions_and_answers() -> None:
    random = Random(0)
    for _ in range(40):
        made: Lesson = lesson(random)
        assert made.image.shape == (lessons.SIDE, lessons.SIDE, 3)
        assert made.turns
        assert all(turn.prompt and turn.answer for turn in made.turns)


@pytest.mark.slow
def test_no_training_question_uses_an_unseen_phrasing() -> None:
    unseen = (
        {
            phrase
            for kind in KINDS
            for seed in range(30)
            for puzzle in kind(Random(seed)).puzzles
            for said in (puzzle.questions, *(situation.contexts for situation in puzzle.situations))
            for phrase in said.unseen
        }
        | {
            phrase
            for kind in BOARDS
            for seed in range(30)
            for fact in kind(Random(seed)).facts
            for phrase in fact.questions.unseen
        }
        | {
            phrase
            for made in map(rooms.random_room, map(Random, range(200)))
            for fact in (*rooms.room_facts(made), rooms.existence_fact(made, Random(1)))
            for phrase in fact.questions.unseen
        }
        | set(QUESTIONS.unseen)
    )
    assert len(unseen) > 100
    for world in WORLDS:
        said = "\n".join(turn.prompt for turn in turns_of(world, 150))
        assert not [phrase for phrase in unseen if f" {phrase}" in said or said.startswith(phrase)]


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_no_training_lesson_contains_a_held_out_thing(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Scene] = []

    def remembered(scene: Scene) -> Image:
        drawn.append(scene)
        return render(scene)

    monkeypatch.setattr(lessons, "render", remembered)
    kept = [
        f"{colour} {name}" for name, colour in product(THINGS, VIVID) if rooms.thing_is_held_out(name, colour)
    ]
    assert len(kept) == len(THINGS)
    said = turns_of(world, 200)
    assert len(drawn) >= 200
    assert not any(rooms.any_is_held_out(scene.things) for scene in drawn)
    assert not [turn for turn in said for pair in kept if pair in f"{turn.prompt} {turn.answer}"]


def test_no_training_lesson_contains_a_held_out_meaning() -> None:
    kept = {
        pictogram_meaning(*pair).meaning for pair in product(SYMBOLS, FATES) if pictogram_is_held_out(*pair)
    }
    said = turns_of("meaning", 200)
    assert not [turn for turn in said for meaning in kept if meaning in f"{turn.prompt} {turn.answer}"]
    assert {turn.answer for turn in said if turn.kind == "meaning"} > {
        meaning.meaning for meaning in MEANINGS
    }


def test_an_exam_uses_held_out_meanings() -> None:
    meant = {turn.answer for turn in turns_of("meaning", 60, exam=True) if turn.kind == "meaning"}
    together = {pictogram_meaning(s, t).meaning: pictogram_is_held_out(s, t) for s in SYMBOLS for t in FATES}
    assert all(together.get(meaning, True) for meaning in meant)


def test_a_minority_of_every_thing_colour_idea_and_fate_is_held_out() -> None:
    for name in THINGS:
        assert sum(rooms.thing_is_held_out(name, colour) for colour in VIVID) == 1
    for symbol in SYMBOLS:
        assert 2 <= sum(pictogram_is_held_out(symbol, state) for state in FATES) <= 3
    for state in FATES:
        assert 2 <= sum(pictogram_is_held_out(symbol, state) for symbol in SYMBOLS) <= 5
    pairs = {pair for grid in pictograms._grids(False) for pair in grid}
    assert len(pairs) == sum(not pictogram_is_held_out(*pair) for pair in product(SYMBOLS, FATES))


@pytest.mark.parametrize("kind", KINDS)
def test_a_minority_of_the_combinations_of_every_puzzle_is_held_out(kind: object) -> None:
    assert callable(kind)
    mixes = {puzzle.combination for seed in range(400) for puzzle in kind(Random(seed)).puzzles}
    kept = sum(map(drawing.is_held_out, mixes))
    assert 0.05 < kept / len(mixes) < 0.35


def test_no_training_image_has_a_held_out_puzzle_or_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []

    def remembered(kind: Any) -> Any:
        def make(random: Random) -> Any:
            made.append(kind(random))
            return made[-1]

        make.__name__ = kind.__name__
        return make

    monkeypatch.setattr(lessons, "KINDS", tuple(map(remembered, KINDS)))
    monkeypatch.setattr(lessons, "BOARDS", tuple(map(remembered, BOARDS)))
    for seed in range(60):
        lessons.puzzle_lesson(Random(seed))
        assert not any(drawing.is_held_out(puzzle.combination) for puzzle in made[-1].puzzles)
        lessons.board_lesson(Random(seed))
        assert not any(drawing.is_held_out(fact.combination) for fact in made[-1].facts)
