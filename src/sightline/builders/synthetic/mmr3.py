"""MM-R3 in small: rephrasing/, restyling/ and context/ with their groups, and COCO's layout to mask anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec
from PIL import ImageChops
from PIL.Image import Image as Drawn

from sightline.builders.coco import LEAST, MOST
from sightline.builders.mask import MASKINGS, VARIANTS, PixelBox, hidden_pixels, paint, prompt
from sightline.builders.scenes.draw import draw, png_of
from sightline.builders.scenes.puzzles.puzzle import THINGS
from sightline.builders.scenes.rooms import Room, exists, facts, is_kept, prominent, room, shows_kept
from sightline.builders.scenes.scene import Scene
from sightline.builders.scenes.styles import STYLES
from sightline.builders.scenes.wording import Fact
from sightline.builders.synthetic.folder import json_of, write
from sightline.formats.groups import ORIGINAL, GroupLine
from sightline.prompts import fill, load
from sightline.types import Labels

Probes = Iterator[tuple[GroupLine, Drawn]]


class _Shown(NamedTuple):
    """An image with one big thing: what it is, its box and its area in pixels."""

    name: str
    image: Drawn
    box: PixelBox
    area: int


def draw_mmr3(folder: Path, *, groups: int = 40, seed: int = 0, kept: bool = True) -> Path:
    """Draw `groups` groups a task: three wordings, four styles, three masks; returns the folder.

    They are about what was kept from the training of `mini`; else about none of that: an adapter that is
    trained on the test's few combinations would know the answers from the words.

    The styles are plain rules in the manner of the paper's, not its networks. context/ also holds the
    unmasked images with an instances.json, for `sightline build mask`. The same seed gives the same
    bytes. Raises UserError where the folder holds something else.
    """
    shown = [
        _shown(THINGS[number % len(THINGS)], Random(f"mmr3 context {seed} {number}"), kept)
        for number in range(groups)
    ]
    tasks: Mapping[str, Probes] = {
        "rephrasing": _rephrased(groups, Random(f"mmr3 rephrasing {seed}"), kept),
        "restyling": _restyled(groups, Random(f"mmr3 restyling {seed}"), kept),
        "context": _masked(shown, Random(f"mmr3 masks {seed}")),
    }
    files: dict[str, bytes] = {}
    for task, probes in tasks.items():
        lines: list[bytes] = []
        for line, image in probes:
            files.setdefault(f"{task}/{line.images[0]}", png_of(image))
            lines.append(msgspec.json.encode(line) + b"\n")
        files[f"{task}/groups.jsonl"] = b"".join(lines)
    files["context/instances.json"] = json_of(_instances(shown))
    return write(folder, files)


def _rephrased(groups: int, random: Random, kept: bool) -> Probes:
    """Questions about places in three wordings each, and in a fourth, the original."""
    for number in range(groups):
        made = _place(room, random, kept)
        image = draw(made.scene)
        first = f"{made.things[0].colour} {made.things[0].shape}"
        asked = [fact for fact in facts(made) if not kept or fact.mix in ("", first)]
        asked.append(exists(made, random, kept=kept))
        kind = random.choice(sorted({fact.kind for fact in asked}))
        fact: Fact = random.choice([fact for fact in asked if fact.kind == kind])
        wordings = random.sample(fact.questions.all, 4)
        for variant, question in zip((ORIGINAL, "r1", "r2", "r3"), wordings, strict=True):
            line = GroupLine(
                group=f"question-{number:03}",
                variant=variant,
                images=(f"images/{number:03}.png",),
                prompt=fill(load("mmr3")["rephrasing"]["prompt"], question=question),
                question=question,
                references=(fact.answer,),
                labels={"question": fact.kind, "wording": fact.questions.tier(question)},
            )
            yield line, image


def _restyled(groups: int, random: Random, kept: bool) -> Probes:
    """Places in four styles each, and as drawn."""
    for number in range(groups):
        made = _place(room, random, kept)
        image = draw(made.scene)
        styled = {ORIGINAL: image, **{name: style(image) for name, style in STYLES.items()}}
        for variant, seen in styled.items():
            labels: Labels = {} if variant == ORIGINAL else {"style": variant}
            line = GroupLine(
                group=f"place-{number:03}",
                variant=variant,
                images=(f"images/{number:03}-{variant}.png",),
                prompt=load("mmr3")["restyling"]["prompt"],
                references=(made.place,),
                labels=labels,
            )
            yield line, seen


def _masked(shown: list[_Shown], random: Random) -> Probes:
    """Big things behind three masks each, and in full."""
    for number, (name, image, box, _) in enumerate(shown):
        maskings = dict(zip(VARIANTS, random.sample(MASKINGS, len(VARIANTS)), strict=True))
        for variant in (ORIGINAL, *VARIANTS):
            masking = maskings.get(variant)
            seen, labels = image, {"category": name}
            if masking is not None:
                seen = paint(image, hidden_pixels(box, *image.size, masking), masking.colour)
                labels |= {"colour": masking.colour, "lines": str(masking.lines), "shape": masking.shape}
            line = GroupLine(
                group=f"thing-{number:03}",
                variant=variant,
                images=(f"images/{number:03}{'' if masking is None else f'-{variant}'}.png",),
                prompt=prompt(),
                references=(name,),
                labels=labels,
            )
            yield line, seen


def _instances(shown: list[_Shown]) -> dict[str, Any]:
    """The unmasked images and their big things as COCO's instances file has them."""
    return {
        "images": [
            dict(
                zip(("width", "height"), one.image.size, strict=True),
                id=number,
                file_name=f"{number:03}.png",
            )
            for number, one in enumerate(shown)
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
            for number, one in enumerate(shown)
        ],
        "categories": [{"id": number, "name": name} for number, name in enumerate(THINGS, 1)],
    }


def _bbox(box: PixelBox) -> list[int]:
    """Left, top, width and height."""
    return [box.left, box.top, box.right - box.left, box.bottom - box.top]


def _shown(name: str, random: Random, kept: bool) -> _Shown:
    """A place with a big thing of that name whose area allows a mask."""
    while True:
        made = _place(prominent, random, kept)
        if made.things[0].shape != name:
            continue
        image, without = draw(made.scene), draw(_without_first(made))
        apart = ImageChops.difference(image, without).split()
        most = ImageChops.lighter(ImageChops.lighter(*apart[:2]), apart[2])
        changed = most.point(lambda value: 255 * (value > 8))
        box, area = changed.getbbox(), changed.histogram()[255]
        if box is not None and LEAST <= area / (image.width * image.height) <= MOST:
            return _Shown(made.things[0].shape, image, PixelBox(*box), area)


def _without_first(made: Room) -> Scene:
    return msgspec.structs.replace(made, things=made.things[1:]).scene


def _place(kind: Callable[[Random], Room], random: Random, kept: bool) -> Room:
    """A place whose first thing has a combination of colour and kind that is kept for tests, or none has."""
    while True:
        made = kind(random)
        if is_kept(made.things[0].shape, made.things[0].colour) if kept else not shows_kept(made.things):
            return made
