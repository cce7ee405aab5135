"""What `mini` learns from holds nothing of what it is tested on."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from training.mini import lessons
from training.mini.lessons import WORLDS, Lesson, Turn, lesson

from sightline.build.scenes import rooms, wording
from sightline.build.scenes.boards import BOARDS
from sightline.build.scenes.meanings import MEANINGS, QUESTIONS
from sightline.build.scenes.puzzles import KINDS
from sightline.build.scenes.puzzles.puzzle import THINGS, VIVID
from sightline.build.scenes.states import STATES, SYMBOLS, is_kept, state_of


def turns_of(world: str, count: int, *, exam: bool = False) -> list[Turn]:
    random = Random(4)
    return [turn for _ in range(count) for turn in WORLDS[world](random, exam).turns]


def test_a_lesson_is_a_picture_of_the_models_size_and_questions_with_answers() -> None:
    random = Random(0)
    for _ in range(40):
        made: Lesson = lesson(random)
        assert made.picture.shape == (lessons.SIDE, lessons.SIDE, 3)
        assert made.turns
        assert all(turn.prompt and turn.answer for turn in made.turns)


def test_no_training_question_is_put_in_words_that_are_kept_for_tests() -> None:
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
            for made in map(rooms.room, map(Random, range(200)))
            for fact in (*rooms.facts(made), rooms.exists(made, Random(1)))
            for phrase in fact.questions.unseen
        }
        | set(QUESTIONS.unseen)
    )
    assert len(unseen) > 100
    for world in WORLDS:
        said = "\n".join(turn.prompt for turn in turns_of(world, 150))
        assert not [phrase for phrase in unseen if f" {phrase}" in said or said.startswith(phrase)]


def test_no_training_picture_shows_a_thing_or_a_fate_that_is_kept_for_tests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[rooms.Room] = []
    for name in ("room", "prominent"):
        make = getattr(rooms, name)

        def remembered(random: Random, make: Any = make) -> rooms.Room:
            drawn.append(make(random))
            return drawn[-1]

        monkeypatch.setattr(rooms, name, remembered)
    shown = []
    for _ in range(60):
        lessons.room_lesson(Random(len(drawn)))
        shown.append(drawn[-1])
    assert not any(rooms.is_kept(thing.shape, thing.colour) for room in shown for thing in room.things)
    for turn in turns_of("room", 300):
        if turn.kind == "exists":
            named = {
                (name, colour) for name in THINGS for colour in VIVID if f"{colour} {name}" in turn.prompt
            }
            assert not any(rooms.is_kept(name, colour) for name, colour in named)

    together = {state_of(s, t).meaning: is_kept(s, t) for s in SYMBOLS for t in STATES}
    meant = {turn.answer for turn in turns_of("meaning", 150) if turn.kind == "meaning"}
    assert meant <= {meaning for meaning, kept in together.items() if not kept} | {
        meaning.meaning for meaning in MEANINGS
    }


def test_an_exam_asks_of_what_is_kept() -> None:
    meant = {turn.answer for turn in turns_of("meaning", 60, exam=True) if turn.kind == "meaning"}
    together = {state_of(s, t).meaning: is_kept(s, t) for s in SYMBOLS for t in STATES}
    assert all(together.get(meaning, True) for meaning in meant)


def test_of_every_thing_colour_idea_and_fate_some_are_kept_and_most_are_not() -> None:
    for name in THINGS:
        assert sum(rooms.is_kept(name, colour) for colour in VIVID) == 1
    for symbol in SYMBOLS:
        assert 1 <= sum(is_kept(symbol, state) for state in STATES) <= 2
    for state in STATES:
        assert 1 <= sum(is_kept(symbol, state) for symbol in SYMBOLS) <= 2


@pytest.mark.parametrize("kind", KINDS)
def test_of_every_puzzle_some_combinations_are_kept_and_most_are_not(kind: object) -> None:
    assert callable(kind)
    mixes = {puzzle.mix for seed in range(400) for puzzle in kind(Random(seed)).puzzles}
    kept = sum(map(wording.held_out, mixes))
    assert 0.05 < kept / len(mixes) < 0.35


def test_no_training_picture_poses_a_puzzle_or_shows_writing_in_a_combination_that_is_kept(
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
        assert not any(wording.held_out(puzzle.mix) for puzzle in made[-1].puzzles)
        lessons.board_lesson(Random(seed))
        assert not any(wording.held_out(fact.mix) for fact in made[-1].facts)
