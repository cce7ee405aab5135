"""Places with things: images to rephrase questions about, restyle and mask, as in MM-R3."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from msgspec import Struct

from training.scenes.drawing import Fact, Phrasings, Scene, Thing
from training.scenes.puzzles import THINGS, VIVID

PLACES = ("kitchen", "bedroom", "park", "beach", "street", "desert")
TYPICAL = {
    "kitchen": "cup",
    "bedroom": "gift",
    "park": "tent",
    "beach": "umbrella",
    "street": "car",
    "desert": "star",
}
"""The thing that is more frequent in a place than elsewhere."""
POSITIONS = (
    "top left",
    "top center",
    "top right",
    "middle left",
    "center",
    "middle right",
    "bottom left",
    "bottom center",
    "bottom right",
)
NUMBERS = ("zero", "one", "two", "three", "four")
SIZES = {"small": 0.17, "large": 0.27}
PROMINENT = (0.46, 0.64)
"""The range of the width of a thing that can be masked; most fill 10 to 25 % of the image."""


class Room(Struct, frozen=True):
    """A place by day or at night, with things in the cells of a 3 x 3 grid."""

    place: str
    night: bool
    things: tuple[Thing, ...]
    cells: tuple[int, ...]
    sizes: tuple[str, ...]
    backdrop: tuple[Thing, ...]

    @property
    def scene(self) -> Scene:
        dark = len(self.backdrop) if self.night else 0
        return Scene((*self.backdrop, *self.things), dark=dark)

    @property
    def time(self) -> str:
        return "night" if self.night else "day"


def random_room(random: Random) -> Room:
    place, night = random.choice(PLACES), random.random() < 0.35
    cells = tuple(random.sample(range(9), random.choice((2, 2, 3, 3, 4))))
    kinds = _kinds(random, place, len(cells))
    sizes = tuple(random.choice(tuple(SIZES)) for _ in cells)
    things = tuple(
        Thing(name, _position(random, cell), SIZES[size], colour)
        for (name, colour), cell, size in zip(kinds, cells, sizes, strict=True)
    )
    return Room(place, night, things, cells, sizes, backdrop(place, random))


def room_with_large_thing(random: Random) -> Room:
    """Create a place with a large thing that can be masked, and sometimes a small one in a corner."""
    place, night = random.choice(PLACES), random.random() < 0.2
    left = random.random() < 0.5
    kinds = _kinds(random, place, 1 + (random.random() < 0.5))
    big = Thing(
        kinds[0][0],
        (random.uniform(0.3, 0.42) if left else random.uniform(0.58, 0.7), random.uniform(0.5, 0.64)),
        random.uniform(*PROMINENT),
        kinds[0][1],
    )
    corner = 2 if left else 0
    small = tuple(
        Thing(name, _position(random, corner), SIZES["small"], colour) for name, colour in kinds[1:]
    )
    cells, sizes = (3 if left else 5, corner)[: len(kinds)], ("large", "small")[: len(kinds)]
    return Room(place, night, (big, *small), cells, sizes, backdrop(place, random))


def room_facts(room: Room) -> list[Fact]:
    facts = [
        Fact("place", PLACE, room.place),
        Fact("time", TIME, room.time),
        Fact("count", COUNT, NUMBERS[len(room.things)]),
    ]
    names = [thing.shape for thing in room.things]
    colours = [thing.colour for thing in room.things]
    for thing, cell, size in zip(room.things, room.cells, room.sizes, strict=True):
        name, colour, at = thing.shape, thing.colour, POSITIONS[cell]
        combination = f"{colour} {name}"
        if names.count(name) == 1:
            facts.append(Fact("color", COLOR.fill(name=name), colour, combination))
        if colours.count(colour) == 1:
            facts.append(Fact("what", WHAT.fill(colour=colour), name, combination))
        facts.append(Fact("where", WHERE.fill(name=name, colour=colour), at, combination))
        facts.append(Fact("what_at", WHAT_AT.fill(at=at), f"{colour} {name}", combination))
        facts.append(Fact("size", SIZE.fill(name=name, colour=colour), size, combination))
    return facts


def thing_is_held_out(name: str, colour: str) -> bool:
    """Tell whether a thing in a colour is held out for tests: one colour of each kind of thing is."""
    return (VIVID.index(colour) + THINGS.index(name)) % len(VIVID) == 0


def any_is_held_out(things: Iterable[Thing]) -> bool:
    """Tell whether one of several things is held out for tests."""
    return any(
        thing_is_held_out(thing.shape, thing.colour)
        for thing in things
        if thing.shape in THINGS and thing.colour in VIVID
    )


def existence_fact(room: Room, random: Random, *, held_out: bool = False) -> Fact:
    """Ask whether a thing is in the image: the answers yes and no are equally frequent."""
    present = {(thing.shape, thing.colour) for thing in room.things}
    if random.random() < 0.5:
        thing = room.things[0] if held_out else random.choice(room.things)
        name, colour, answer = thing.shape, thing.colour, "yes"
    else:
        colours = VIVID if held_out else tuple({thing.colour: None for thing in room.things})
        kinds = [(name, colour) for name in THINGS for colour in colours]
        absent = [kind for kind in kinds if kind not in present and thing_is_held_out(*kind) == held_out]
        (name, colour), answer = random.choice(absent), "no"
    return Fact("exists", EXISTS.fill(name=name, colour=colour), answer, f"{colour} {name}")


def backdrop(place: str, random: Random) -> tuple[Thing, ...]:
    return _BACKDROPS[place](random.uniform(0.45, 0.6), random)


PLACE = Phrasings(
    (
        "What place is this?",
        "What kind of place is in the picture?",
        "Which place is in the picture?",
        "Tell me what place this is.",
    ),
    ("Where was the picture taken?", "Name the place in the picture."),
    ("What sort of place does this image show?", "Which location has been depicted here?"),
)
TIME = Phrasings(
    (
        "Is it day or night?",
        "What time is it, day or night?",
        "Is the picture by day or by night?",
        "Tell me if it is day or night.",
    ),
    ("When was the picture taken, by day or by night?", "Name the time: day or night."),
    (
        "Does it look like daytime or nighttime, day or night?",
        "Was this shot at day or night, would you say?",
    ),
)
COUNT = Phrasings(
    (
        "How many things are there?",
        "How many things are in the picture?",
        "What is the number of things in the picture?",
        "Tell me how many things there are.",
    ),
    ("Count the things in the picture.", "The picture has how many things?"),
    ("What is the total of the things shown?", "How many objects do you count here?"),
)
COLOR = Phrasings(
    (
        "What color is the {name}?",
        "What is the color of the {name}?",
        "The {name} has what color?",
        "Tell me the color of the {name}.",
    ),
    ("Which color does the {name} have?", "Name the color of the {name}."),
    ("Which color does one see on the {name}?", "Say the shade of this {name}."),
)
WHAT = Phrasings(
    (
        "What is the {colour} thing?",
        "Which thing is {colour}?",
        "What thing has the color {colour}?",
        "Tell me which thing is {colour}.",
    ),
    ("Name the thing that is {colour}.", "The {colour} thing is what?"),
    ("Which item was painted {colour}?", "Point out whatever looks {colour}."),
)
WHERE = Phrasings(
    (
        "Where is the {colour} {name}?",
        "What is the position of the {colour} {name}?",
        "In which part of the picture is the {colour} {name}?",
        "Tell me where the {colour} {name} is.",
    ),
    ("Name the position of the {colour} {name}.", "The {colour} {name} is where?"),
    ("In what spot does the {colour} {name} stand?", "Where could one find the {colour} {name}?"),
)
WHAT_AT = Phrasings(
    (
        "What is at the {at}?",
        "Which thing is at the {at}?",
        "What thing is in the {at} of the picture?",
        "Tell me what is at the {at}.",
    ),
    ("Name the thing at the {at}.", "The {at} of the picture has what?"),
    ("Which item stands at the {at}?", "What would one spot at the {at}?"),
)
SIZE = Phrasings(
    (
        "What size is the {colour} {name}?",
        "Is the {colour} {name} large or small?",
        "How big is the {colour} {name}?",
        "Tell me the size of the {colour} {name}.",
    ),
    ("Name the size of the {colour} {name}.", "The {colour} {name} is how big?"),
    (
        "Would you call the {colour} {name} large or small?",
        "Say whether the {colour} {name} looks large or small.",
    ),
)
EXISTS = Phrasings(
    (
        "Is there a {colour} {name}?",
        "Is a {colour} {name} in the picture?",
        "Does the picture have a {colour} {name}?",
        "Tell me if there is a {colour} {name}.",
    ),
    ("Can I see a {colour} {name} in the picture?", "A {colour} {name} is in the picture: yes or no?"),
    ("Is any {colour} {name} to be seen?", "Could one spot some {colour} {name}?"),
)


def _kinds(random: Random, place: str, count: int) -> list[tuple[str, str]]:
    """Distinct names and colours of things; the first is typical of the place in two of three rooms."""
    kinds: list[tuple[str, str]] = []
    while len(kinds) < count:
        typical = random.random() < (0.6 if not kinds else 0.2)
        kind = TYPICAL[place] if typical else random.choice(THINGS), random.choice(VIVID)
        if kind not in kinds:
            kinds.append(kind)
    return kinds


def _position(random: Random, cell: int) -> tuple[float, float]:
    return (
        (cell % 3 + 0.5) / 3 + random.uniform(-0.03, 0.03),
        (cell // 3 + 0.5) / 3 + random.uniform(-0.03, 0.03),
    )


def _band(top: float, bottom: float, colour: str) -> Thing:
    return Thing("band", (0.5, (top + bottom) / 2), 1.0, colour, stretch=bottom - top)


def _kitchen(horizon: float, random: Random) -> tuple[Thing, ...]:
    tiles = [Thing("band", (x / 8, horizon / 2), 0.008, "#bdb8a3", stretch=horizon / 0.008) for x in range(9)]
    rows = [_band(y / 8, y / 8 + 0.008, "#bdb8a3") for y in range(int(horizon * 8))]
    return (
        _band(0, horizon, "#e9e3cf"),
        *tiles,
        *rows,
        _band(horizon, horizon + 0.07, "#7a5233"),
        _band(horizon + 0.07, 1, "#bfa583"),
        *(Thing("band", (x, (horizon + 1.07) / 2), 0.012, "#6e5a46", stretch=34) for x in (0.25, 0.5, 0.75)),
    )


def _bedroom(horizon: float, random: Random) -> tuple[Thing, ...]:
    stripes = [
        Thing("band", (x / 8 + 0.03, horizon / 2), 0.055, "#b3a2c4", stretch=horizon / 0.055)
        for x in range(8)
    ]
    return (
        _band(0, horizon, "#cfc0d9"),
        *stripes,
        _band(horizon, horizon + 0.03, "#f2ece6"),
        _band(horizon + 0.03, 1, "#97705c"),
    )


def _park(horizon: float, random: Random) -> tuple[Thing, ...]:
    trees = [
        Thing("tree", (x + random.uniform(-0.05, 0.05), horizon - 0.06), 0.16, "#5c8f5c")
        for x in (0.1, 0.37, 0.63, 0.9)
    ]
    return (_band(0, horizon, "sky"), *trees, _band(horizon, 1, "#8fbc7a"))


def _beach(horizon: float, random: Random) -> tuple[Thing, ...]:
    return (
        _band(0, horizon - 0.14, "sky"),
        Thing("sea", (0.5, horizon - 0.04), 1.0, stretch=0.2),
        _band(horizon + 0.05, 1, "sand"),
    )


def _street(horizon: float, random: Random) -> tuple[Thing, ...]:
    houses: list[Thing] = []
    for x in (0.1, 0.3, 0.5, 0.7, 0.9):
        top = random.uniform(0.05, 0.25)
        houses.append(
            Thing("band", (x, (top + horizon) / 2), 0.17, "#a3a5b0", stretch=(horizon - top) / 0.17)
        )
        houses += [
            Thing("band", (x + dx, y / 20), 0.03, "#e0dfc2", stretch=1.3)
            for dx in (-0.04, 0.04)
            for y in range(int(top * 20) + 2, int(horizon * 20) - 1, 2)
        ]
    dashes = [
        Thing("band", (x, (horizon + 1) / 2), 0.1, "white", stretch=0.25) for x in (0.1, 0.35, 0.6, 0.85)
    ]
    return (_band(0, horizon, "sky"), *houses, _band(horizon, 1, "#6f7075"), *dashes)


def _desert(horizon: float, random: Random) -> tuple[Thing, ...]:
    lean = random.random() < 0.5
    return (
        _band(0, horizon, "#f6e5c3"),
        _band(horizon, 1, "#d9b273"),
        Thing("slope", (0.5, horizon + 0.05), 1.0, "#c39a5c", flip=lean, stretch=0.3),
        _band(horizon + 0.18, 1, "#d9b273"),
    )


_BACKDROPS = {
    "kitchen": _kitchen,
    "bedroom": _bedroom,
    "park": _park,
    "beach": _beach,
    "street": _street,
    "desert": _desert,
}
