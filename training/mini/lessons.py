"""The training data of `mini`: synthetic scenes with questions in the form of the four benchmarks."""

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
from sightline.text import fill, load
from training.scenes import pictograms, rooms
from training.scenes.boards import BOARDS, Board
from training.scenes.drawing import STYLES, Fact, Phrasings, Scene, is_held_out
from training.scenes.pictograms import MEANINGS, QUESTIONS, Fate, Symbol, layout_name, meaning_scene
from training.scenes.puzzles import KINDS, PuzzleImage
from training.scenes.rooms import POSITIONS, Room
from training.scenes.shapes import render

SIDE = 64
"""The width and height of the model's input images, in pixels."""
TURNS = 8
"""Questions about an image; those that do not fit in a row are left out."""
STYLED = 0.07
MASKED = 0.05
ASKED = {"context": True, "instructions": True, "image": "shown"}
"""The options of CODIS's default prompt, except for chain of thought, which some lessons leave out."""
SHARES = {"puzzle": 0.28, "meaning": 0.19, "room": 0.26, "board": 0.27}
"""The share of each world of images."""
DENSE = {"puzzle": 0.08, "meaning": 0.12, "room": 0.5, "board": 0.3}
"""The shares at the start, while the model learns to locate things: more images with many questions."""


class Turn(NamedTuple):
    """A prompt, its answer, the type of question for the accuracy counts, and the weight of its loss."""

    prompt: str
    answer: str
    kind: str
    weight: float = 1.0


class Lesson(NamedTuple):
    """An image, uint8 (SIDE, SIDE, 3), with its questions."""

    image: NDArray[np.uint8]
    turns: list[Turn]


def lesson(random: Random, exam: bool = False, shares: Mapping[str, float] = SHARES) -> Lesson:
    """A lesson of one of the four worlds; an exam uses held-out combinations in all phrasings."""
    world = random.choices(list(shares), list(shares.values()))[0]
    return WORLDS[world](random, exam)


def model_input(image: Image.Image) -> NDArray[np.uint8]:
    """The image, resized as the image processor does it."""
    return np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BICUBIC))


def puzzle_lesson(random: Random, exam: bool = False) -> Lesson:
    """An image that is ambiguous without a context: the situations of its puzzles, and facts."""
    kind = random.choice(KINDS)
    puzzle_image: PuzzleImage = kind(random)
    while any(is_held_out(puzzle.combination) != exam for puzzle in puzzle_image.puzzles) or not _allowed(
        puzzle_image.scene, exam
    ):
        puzzle_image = kind(random)
    turns = [
        Turn(fact.questions.choose_for_training(random), fact.answer, f"fact:{fact.kind}", 0.7)
        for fact in _some(list(puzzle_image.facts), 2, random)
    ]
    while len(turns) < TURNS:
        puzzle = random.choice(puzzle_image.puzzles)
        # Both situations in one lesson, so that only the context differs.
        for situation in random.sample(puzzle.situations, 2):
            context, question = (
                _phrase(situation.contexts, random, exam),
                _phrase(puzzle.questions, random, exam),
            )
            prompt = codis.prompt_text(question, context, "", {**ASKED, "cot": random.random() < 0.8})
            turns.append(Turn(prompt, situation.answer, f"codis:{kind.__name__}"))
    return Lesson(_rendered(puzzle_image.scene), turns)


def meaning_lesson(random: Random, exam: bool = False) -> Lesson:
    """A pictogram: its meaning as text, and as one of six options in several orders."""
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
        plain = pictogram_facts(*pair)

        def wrong() -> list[str]:
            return pictograms.distractors(pair, random, held_out=exam)

    turns = [_plain(fact, random, exam) for fact in plain]
    if exam or not plain or random.random() < 0.3:
        turns.append(Turn(_phrase(QUESTIONS, random, exam), meaning.meaning, "meaning", 0.7))
    for _ in range(3):
        options = random.sample([meaning.meaning, *wrong()], 6)
        # The answer is the text of the option, which II-Bench's extraction reads if no letter is named: a
        # model of this size learns meanings long before it learns to look up letters.
        prompt = iibench.prompt_text(_phrase(QUESTIONS, random, exam), options)
        turns.append(Turn(prompt, meaning.meaning, "iibench"))
    return Lesson(_rendered(scene), turns)


def room_lesson(random: Random, exam: bool = False) -> Lesson:
    """A place with things: questions in many phrasings, a description, a list; restyled or masked."""
    big = random.random() < 0.25
    room = rooms.room_with_large_thing(random) if big else rooms.random_room(random)
    while rooms.any_is_held_out(room.things) != exam:
        room = rooms.room_with_large_thing(random) if big else rooms.random_room(random)
    image = render(room.scene)
    describe = Turn(
        load("sightline.benchmarks.mmr3")["restyling"]["prompt"], room_description(room), "describe"
    )
    if big and random.random() < MASKED:
        return Lesson(model_input(masked(image, room, random)), _masked_turns(room, random, exam))
    if random.random() < STYLED:
        styled = STYLES[random.choice(list(STYLES))](image)
        plain = [
            fact for fact in rooms.room_facts(room) if fact.kind in ("place", "time", "count", "what_at")
        ]
        questions = [_asked(fact, random, exam) for fact in random.sample(plain, 3)]
        return Lesson(
            model_input(styled),
            [describe, *(turn._replace(kind=f"styled:{turn.kind}") for turn in questions)],
        )
    turns = [Turn("List the things in the image.", room_listing(room, random), "list", 0.6)]
    if random.random() < 0.7:
        turns.append(Turn("Describe the image.", room_description(room, fully=True), "describe fully"))
    if random.random() < 0.2:
        turns.append(describe)
    turns += [_asked(rooms.existence_fact(room, random, held_out=exam), random, exam) for _ in range(2)]
    turns += [_asked(fact, random, exam) for fact in _some(rooms.room_facts(room), TURNS, random)]
    return Lesson(model_input(image), turns)


def masked(image: Image.Image, room: Room, random: Random) -> Image.Image:
    """The image with its large thing masked in one of the ways of MM-R3."""
    thing, side = room.things[0], image.width
    reach = thing.size / 2
    box = [
        round(side * edge) for edge in (thing.x - reach, thing.y - reach, thing.x + reach, thing.y + reach)
    ]
    left, top, right, bottom = (min(max(edge, 0), side) for edge in box)
    masking = random.choice(MASKINGS)
    hidden = hidden_pixels(PixelBox(left, top, right, bottom), side, side, masking)
    return paint(image, hidden, masking.colour)


def board_lesson(random: Random, exam: bool = False) -> Lesson:
    """An image with text: questions about parts of the text, and all of the text."""
    board: Board = random.choice(BOARDS)(random)
    facts = [fact for fact in board.facts if is_held_out(fact.combination) == exam]
    while len(facts) < (1 if exam else len(board.facts)) or not _allowed(board.scene, exam):
        board = random.choice(BOARDS)(random)
        facts = [fact for fact in board.facts if is_held_out(fact.combination) == exam]
    turns = [Turn("Read all that is written in the image.", board.text, "read", 0.6)]
    turns += [_plain(fact, random, exam) for fact in _some(facts, TURNS, random)]
    return Lesson(_rendered(board.scene), turns)


WORLDS = {"puzzle": puzzle_lesson, "meaning": meaning_lesson, "room": room_lesson, "board": board_lesson}


def _allowed(scene: Scene, exam: bool) -> bool:
    """Whether an image is allowed: in training without any held-out thing."""
    return exam or not rooms.any_is_held_out(scene.things)


def _rendered(scene: Scene) -> NDArray[np.uint8]:
    return model_input(render(scene))


def _some(facts: list[Fact], count: int, random: Random) -> list[Fact]:
    return random.sample(facts, min(count, len(facts)))


def _masked_turns(room: Room, random: Random, exam: bool) -> list[Turn]:
    name = room.things[0].shape
    place = [fact for fact in rooms.room_facts(room) if fact.kind in ("place", "time")]
    return [
        Turn(load("sightline.benchmarks.mmr3")["context"]["prompt"], name, "masked"),
        *(_asked(f, random, exam) for f in place),
    ]


def _asked(fact: Fact, random: Random, exam: bool) -> Turn:
    """A question about a room, with probability 0.5 in the prompt of MM-R3."""
    turn = _plain(fact, random, exam)
    if random.random() < 0.5:
        return turn
    return turn._replace(
        prompt=fill(load("sightline.benchmarks.mmr3")["rephrasing"]["prompt"], question=turn.prompt)
    )


def _plain(fact: Fact, random: Random, exam: bool) -> Turn:
    return Turn(_phrase(fact.questions, random, exam), fact.answer, fact.kind)


def _phrase(phrasings: Phrasings, random: Random, exam: bool) -> str:
    return phrasings.choose_for_test(random) if exam else phrasings.choose_for_training(random)


# -- What is asked and said of scenes in training only


def pictogram_facts(symbol: Symbol, fate: Fate) -> list[Fact]:
    """Ask about the symbol and the fate of a pictogram separately."""
    return [
        Fact("idea", Phrasings(("What does the thing in this picture stand for?",)), symbol.idea),
        Fact("fate", Phrasings(("What befalls the idea in this picture?",)), fate.text),
    ]


def room_description(room: Room, *, fully: bool = False) -> str:
    """Describe a place in two sentences, with its things in reading order."""
    parts = []
    for i in sorted(range(len(room.things)), key=room.cells.__getitem__):
        thing = room.things[i]
        looks = f"{room.sizes[i]} {thing.colour} " if fully else ""
        parts.append(f"a {looks}{thing.shape} at the {POSITIONS[room.cells[i]]}")
    return f"This is a {room.place} by {room.time}. There is {' and '.join(parts)}."


def room_listing(room: Room, random: Random) -> str:
    """List the things of a place in random order, with their attributes in random order."""
    parts = []
    for i in random.sample(range(len(room.things)), len(room.things)):
        thing, size, at = room.things[i], room.sizes[i], POSITIONS[room.cells[i]]
        parts.append(
            random.choice(
                (
                    f"a {thing.colour} {thing.shape} at the {at}, {size}",
                    f"a {thing.shape} at the {at}, {thing.colour}, {size}",
                    f"a {thing.colour} thing at the {at}, {thing.shape}, {size}",
                    f"at the {at} a {size} {thing.colour} {thing.shape}",
                )
            )
        )
    return "; ".join(parts)
