"""Synthetic MM-R3 data: rephrasing/, restyling/ and context/ with groups, and COCO annotations for masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec
from PIL import ImageChops
from PIL.Image import Image as PilImage

from sightline.builders.coco import MAX_AREA, MIN_AREA
from sightline.builders.mask import prompt
from sightline.builders.masking import MASKINGS, VARIANTS, PixelBox, hidden_pixels, paint
from sightline.builders.scenes.phrasings import Fact
from sightline.builders.scenes.puzzles.puzzle import THINGS
from sightline.builders.scenes.render import png_bytes, render
from sightline.builders.scenes.rooms import (
    Room,
    any_is_held_out,
    existence_fact,
    random_room,
    room_facts,
    room_with_large_thing,
    thing_is_held_out,
)
from sightline.builders.scenes.scene import Scene
from sightline.builders.scenes.styles import STYLES
from sightline.builders.synthetic.folder import json_bytes, write_folder
from sightline.formats.groups import ORIGINAL, GroupLine
from sightline.prompts import fill, load
from sightline.types import Labels

Probes = Iterator[tuple[GroupLine, PilImage]]


class _LargeThing(NamedTuple):
    """An image with one large thing: its name, its box and its area in pixels."""

    name: str
    image: PilImage
    box: PixelBox
    area: int


def generate_mmr3(folder: Path, *, groups: int = 40, seed: int = 0, held_out: bool = True) -> Path:
    """Generate groups of each task: three phrasings, four styles, three masks.

    The styles are simple image operations, not the networks of the paper. context/ also holds the unmasked
    images with an instances.json, for `sightline build mask`.

    Args:
        seed: The same seed gives the same bytes.
    """
    large_things = [
        _large_thing(THINGS[number % len(THINGS)], Random(f"mmr3 context {seed} {number}"), held_out)
        for number in range(groups)
    ]
    tasks: Mapping[str, Probes] = {
        "rephrasing": _rephrased(groups, Random(f"mmr3 rephrasing {seed}"), held_out),
        "restyling": _restyled(groups, Random(f"mmr3 restyling {seed}"), held_out),
        "context": _masked(large_things, Random(f"mmr3 masks {seed}")),
    }
    files: dict[str, bytes] = {}
    for task, probes in tasks.items():
        lines: list[bytes] = []
        for line, image in probes:
            files.setdefault(f"{task}/{line.images[0]}", png_bytes(image))
            lines.append(msgspec.json.encode(line) + b"\n")
        files[f"{task}/groups.jsonl"] = b"".join(lines)
    files["context/instances.json"] = json_bytes(_instances(large_things))
    return write_folder(folder, files)


def _rephrased(groups: int, random: Random, held_out: bool) -> Probes:
    """Questions about places in three phrasings each, and in a fourth, the original."""
    for number in range(groups):
        room = _random_room(random_room, random, held_out)
        image = render(room.scene)
        first = f"{room.things[0].colour} {room.things[0].shape}"
        facts = [fact for fact in room_facts(room) if not held_out or fact.combination in ("", first)]
        facts.append(existence_fact(room, random, held_out=held_out))
        kind = random.choice(sorted({fact.kind for fact in facts}))
        fact: Fact = random.choice([fact for fact in facts if fact.kind == kind])
        phrasings = random.sample(fact.questions.all, 4)
        for variant, question in zip((ORIGINAL, "r1", "r2", "r3"), phrasings, strict=True):
            line = GroupLine(
                group=f"question-{number:03}",
                variant=variant,
                images=(f"images/{number:03}.png",),
                prompt=fill(load("sightline.benchmarks.mmr3")["rephrasing"]["prompt"], question=question),
                question=question,
                references=(fact.answer,),
                labels={"question": fact.kind, "wording": fact.questions.tier(question)},
            )
            yield line, image


def _restyled(groups: int, random: Random, held_out: bool) -> Probes:
    """Places in four styles each, and in the original style."""
    for number in range(groups):
        room = _random_room(random_room, random, held_out)
        image = render(room.scene)
        styled = {ORIGINAL: image, **{name: style(image) for name, style in STYLES.items()}}
        for variant, restyled in styled.items():
            labels: Labels = {} if variant == ORIGINAL else {"style": variant}
            line = GroupLine(
                group=f"place-{number:03}",
                variant=variant,
                images=(f"images/{number:03}-{variant}.png",),
                prompt=load("sightline.benchmarks.mmr3")["restyling"]["prompt"],
                references=(room.place,),
                labels=labels,
            )
            yield line, restyled


def _masked(large_things: list[_LargeThing], random: Random) -> Probes:
    """Large things behind three masks each, and unmasked."""
    for number, (name, image, box, _) in enumerate(large_things):
        maskings = dict(zip(VARIANTS, random.sample(MASKINGS, len(VARIANTS)), strict=True))
        for variant in (ORIGINAL, *VARIANTS):
            masking = maskings.get(variant)
            masked, labels = image, {"category": name}
            if masking is not None:
                masked = paint(image, hidden_pixels(box, *image.size, masking), masking.colour)
                labels |= {"colour": masking.colour, "lines": str(masking.lines), "shape": masking.shape}
            line = GroupLine(
                group=f"thing-{number:03}",
                variant=variant,
                images=(f"images/{number:03}{'' if masking is None else f'-{variant}'}.png",),
                prompt=prompt(),
                references=(name,),
                labels=labels,
            )
            yield line, masked


def _instances(large_things: list[_LargeThing]) -> dict[str, Any]:
    """The unmasked images and their large things in the format of COCO's instances file."""
    return {
        "images": [
            dict(
                zip(("width", "height"), one.image.size, strict=True),
                id=number,
                file_name=f"{number:03}.png",
            )
            for number, one in enumerate(large_things)
        ],
        "annotations": [
            {
                "id": number,
                "image_id": number,
                "category_id": THINGS.index(one.name) + 1,
                "bbox": _bbox(one.box),
                "area": one.area,
                "iscrowd": 0,
            }
            for number, one in enumerate(large_things)
        ],
        "categories": [{"id": number, "name": name} for number, name in enumerate(THINGS, 1)],
    }


def _bbox(box: PixelBox) -> list[int]:
    """Left, top, width and height."""
    return [box.left, box.top, box.right - box.left, box.bottom - box.top]


def _large_thing(name: str, random: Random, held_out: bool) -> _LargeThing:
    """A place with a large thing of that name whose area allows a mask."""
    while True:
        room = _random_room(room_with_large_thing, random, held_out)
        if room.things[0].shape != name:
            continue
        image, without = render(room.scene), render(_without_first(room))
        channels = ImageChops.difference(image, without).split()
        largest = ImageChops.lighter(ImageChops.lighter(*channels[:2]), channels[2])
        changed = largest.point(lambda value: 255 * (value > 8))
        box, area = changed.getbbox(), changed.histogram()[255]
        if box is not None and MIN_AREA <= area / (image.width * image.height) <= MAX_AREA:
            return _LargeThing(room.things[0].shape, image, PixelBox(*box), area)


def _without_first(room: Room) -> Scene:
    return msgspec.structs.replace(room, things=room.things[1:]).scene


def _random_room(kind: Callable[[Random], Room], random: Random, held_out: bool) -> Room:
    """A place whose first thing is held out for tests, or one without any held-out thing."""
    while True:
        room = kind(random)
        first = room.things[0]
        matches = (
            thing_is_held_out(first.shape, first.colour) if held_out else not any_is_held_out(room.things)
        )
        if matches:
            return room
