"""What `mini` learns from: images of drawn scenes, each with questions as the four benchmarks put them."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.benchmarks.codis import benchmark as codis
from sightline.benchmarks.iibench import benchmark as iibench
from sightline.builders.mask import MASKINGS, PixelBox, hidden_pixels, paint
from sightline.builders.scenes import pictograms, rooms
from sightline.builders.scenes.boards import BOARDS, Board
from sightline.builders.scenes.meanings import MEANINGS, QUESTIONS, layout_name, meaning_scene
from sightline.builders.scenes.phrasings import Fact, Phrasings, is_held_out
from sightline.builders.scenes.puzzles import KINDS
from sightline.builders.scenes.puzzles.puzzle import PuzzleImage
from sightline.builders.scenes.render import render
from sightline.builders.scenes.rooms import Room
from sightline.builders.scenes.scene import Scene
from sightline.builders.scenes.styles import STYLES
from sightline.prompts import fill, load

SIDE = 64
"""The side of the images that the model sees, in pixels."""
TURNS = 8
"""Plain questions about an image; what does not fit in a row is left out."""
STYLED = 0.07
MASKED = 0.05
ASKED = {"context": True, "instructions": True, "image": "shown"}
"""CODIS's default prompt but for chain of thought, which some lessons leave out."""
SHARES = {"puzzle": 0.28, "meaning": 0.19, "room": 0.26, "board": 0.27}
"""The share of each world among the images."""
DENSE = {"puzzle": 0.08, "meaning": 0.12, "room": 0.5, "board": 0.3}
"""The same while things are to be told by where they are: images of which much is said."""


class Turn(NamedTuple):
    """A question as it is put to the model, its answer, the type under which accuracy is counted, and how
    much its loss weighs."""

    prompt: str
    answer: str
    kind: str
    weight: float = 1.0


class Lesson(NamedTuple):
    """An image, uint8 (SIDE, SIDE, 3), and what is asked about it."""

    image: NDArray[np.uint8]
    turns: list[Turn]


def lesson(random: Random, exam: bool = False, shares: Mapping[str, float] = SHARES) -> Lesson:
    """A lesson of one of the four worlds; an exam asks of held-out combinations, in any words."""
    world = random.choices(list(shares), list(shares.values()))[0]
    return WORLDS[world](random, exam)


def seen(image: Image.Image) -> NDArray[np.uint8]:
    """The image as the image processor resizes it."""
    return np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BICUBIC))


def puzzle_lesson(random: Random, exam: bool = False) -> Lesson:
    """An image that a context makes plain: the situations of its puzzles, and plain facts."""
    kind = random.choice(KINDS)
    made: PuzzleImage = kind(random)
    while any(is_held_out(puzzle.combination) != exam for puzzle in made.puzzles) or not _allowed(
        made.scene, exam
    ):
        made = kind(random)
    turns = [
        Turn(fact.questions.choose_for_training(random), fact.answer, f"fact:{fact.kind}", 0.7)
        for fact in _some(list(made.facts), 2, random)
    ]
    while len(turns) < TURNS:
        puzzle = random.choice(made.puzzles)
        # Both answers of a choice in one lesson: what differs is the context alone.
        for situation in random.sample(puzzle.situations, 2):
            context, question = _said(situation.contexts, random, exam), _said(puzzle.questions, random, exam)
            prompt = codis.prompt_text(question, context, "", {**ASKED, "cot": random.random() < 0.8})
            turns.append(Turn(prompt, situation.answer, f"codis:{kind.__name__}"))
    return Lesson(_drawn(made.scene), turns)


def meaning_lesson(random: Random, exam: bool = False) -> Lesson:
    """A pictogram: its meaning in words, and among five others in several orders."""
    plain: list[Fact] = []
    if random.random() < 0.35:
        meaning = random.choice(MEANINGS)
        scene, types = meaning_scene(meaning, random)
        while is_held_out(layout_name(meaning, scene, types)) != exam:
            scene, types = meaning_scene(meaning, random)
        meanings = [other.meaning for other in MEANINGS if other is not meaning]

        def wrong() -> list[str]:
            return random.sample(meanings, 5)

    else:
        pair = pictograms.choose_pictogram(random, held_out=exam)
        meaning = pictograms.pictogram_meaning(*pair)
        scene, _ = meaning_scene(meaning, random)
        plain = pictograms.pictogram_facts(*pair)

        def wrong() -> list[str]:
            return pictograms.distractors(pair, random, held_out=exam)

    turns = [_plain(fact, random, exam) for fact in plain]
    if exam or not plain or random.random() < 0.3:
        turns.append(Turn(_said(QUESTIONS, random, exam), meaning.meaning, "meaning", 0.7))
    for _ in range(3):
        options = random.sample([meaning.meaning, *wrong()], 6)
        # The option's text, which II-Bench's extraction reads where no letter is named: a model of this
        # size learns what an image means long before it learns to look up a letter.
        asked = iibench.prompt_text(_said(QUESTIONS, random, exam), options)
        turns.append(Turn(asked, meaning.meaning, "iibench"))
    return Lesson(_drawn(scene), turns)


def room_lesson(random: Random, exam: bool = False) -> Lesson:
    """A place with things: plain questions in many words, a description, a listing; styled or masked."""
    big = random.random() < 0.25
    made = rooms.room_with_large_thing(random) if big else rooms.random_room(random)
    while rooms.any_is_held_out(made.things) != exam:
        made = rooms.room_with_large_thing(random) if big else rooms.random_room(random)
    image = render(made.scene)
    describe = Turn(
        load("sightline.benchmarks.mmr3")["restyling"]["prompt"], rooms.room_description(made), "describe"
    )
    if big and random.random() < MASKED:
        return Lesson(seen(masked(image, made, random)), _masked_turns(made, random, exam))
    if random.random() < STYLED:
        styled = STYLES[random.choice(list(STYLES))](image)
        plain = [
            fact for fact in rooms.room_facts(made) if fact.kind in ("place", "time", "count", "what_at")
        ]
        asked = [_asked(fact, random, exam) for fact in random.sample(plain, 3)]
        return Lesson(
            seen(styled), [describe, *(turn._replace(kind=f"styled:{turn.kind}") for turn in asked)]
        )
    turns = [Turn("List the things in the image.", rooms.room_listing(made, random), "list", 0.6)]
    if random.random() < 0.7:
        turns.append(Turn("Describe the image.", rooms.room_description(made, fully=True), "describe fully"))
    if random.random() < 0.2:
        turns.append(describe)
    turns += [_asked(rooms.existence_fact(made, random, held_out=exam), random, exam) for _ in range(2)]
    turns += [_asked(fact, random, exam) for fact in _some(rooms.room_facts(made), TURNS, random)]
    return Lesson(seen(image), turns)


def masked(image: Image.Image, made: Room, random: Random) -> Image.Image:
    """The image with its big thing masked in one of the ways of MM-R3."""
    thing, side = made.things[0], image.width
    reach = thing.size / 2
    box = [
        round(side * edge) for edge in (thing.x - reach, thing.y - reach, thing.x + reach, thing.y + reach)
    ]
    left, top, right, bottom = (min(max(edge, 0), side) for edge in box)
    masking = random.choice(MASKINGS)
    hidden = hidden_pixels(PixelBox(left, top, right, bottom), side, side, masking)
    return paint(image, hidden, masking.colour)


def board_lesson(random: Random, exam: bool = False) -> Lesson:
    """An image with writing: what it says where, and all of it."""
    made: Board = random.choice(BOARDS)(random)
    facts = [fact for fact in made.facts if is_held_out(fact.combination) == exam]
    while len(facts) < (1 if exam else len(made.facts)) or not _allowed(made.scene, exam):
        made = random.choice(BOARDS)(random)
        facts = [fact for fact in made.facts if is_held_out(fact.combination) == exam]
    turns = [Turn("Read all that is written in the image.", made.text, "read", 0.6)]
    turns += [_plain(fact, random, exam) for fact in _some(facts, TURNS, random)]
    return Lesson(_drawn(made.scene), turns)


WORLDS = {"puzzle": puzzle_lesson, "meaning": meaning_lesson, "room": room_lesson, "board": board_lesson}


def _allowed(scene: Scene, exam: bool) -> bool:
    """Whether an image may be shown: in training no thing in a colour that is kept for tests."""
    return exam or not rooms.any_is_held_out(scene.things)


def _drawn(scene: Scene) -> NDArray[np.uint8]:
    return seen(render(scene))


def _some(facts: list[Fact], count: int, random: Random) -> list[Fact]:
    return random.sample(facts, min(count, len(facts)))


def _masked_turns(made: Room, random: Random, exam: bool) -> list[Turn]:
    name = made.things[0].shape
    place = [fact for fact in rooms.room_facts(made) if fact.kind in ("place", "time")]
    return [
        Turn(load("sightline.benchmarks.mmr3")["context"]["prompt"], name, "masked"),
        *(_asked(f, random, exam) for f in place),
    ]


def _asked(fact: Fact, random: Random, exam: bool) -> Turn:
    """A fact about a room, as MM-R3 asks it half of the times."""
    turn = _plain(fact, random, exam)
    if random.random() < 0.5:
        return turn
    return turn._replace(
        prompt=fill(load("sightline.benchmarks.mmr3")["rephrasing"]["prompt"], question=turn.prompt)
    )


def _plain(fact: Fact, random: Random, exam: bool) -> Turn:
    return Turn(_said(fact.questions, random, exam), fact.answer, fact.kind)


def _said(wording: Phrasings, random: Random, exam: bool) -> str:
    return wording.choose_for_test(random) if exam else wording.choose_for_training(random)
