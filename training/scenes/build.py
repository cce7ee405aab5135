"""Synthetic data in the formats of the four papers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from random import Random
from typing import Any, NamedTuple

import msgspec
from PIL import ImageChops
from PIL.Image import Image as PilImage

from sightline.benchmarks.contextual.data import ANSWER, COLUMNS, table_name
from sightline.builders.coco import MAX_AREA, MIN_AREA
from sightline.builders.mask import MASKINGS, VARIANTS, PixelBox, hidden_pixels, paint, prompt
from sightline.errors import UserError
from sightline.formats.files import MARKER, write_atomically
from sightline.formats.groups import ORIGINAL, GroupLine
from sightline.formats.tables import csv_bytes
from sightline.scoring.options import SIX_LETTERS
from sightline.text import fill, indented_json, load
from sightline.types import Labels
from training.scenes.boards import BOARDS
from training.scenes.drawing import STYLES, Fact, Scene, is_held_out
from training.scenes.pictograms import (
    MEANINGS,
    QUESTIONS,
    Meaning,
    choose_pictogram,
    distractors,
    layout_name,
    meaning_scene,
    pictogram_meaning,
)
from training.scenes.puzzles import KINDS, THINGS, PuzzleImage, pose
from training.scenes.rooms import (
    Room,
    any_is_held_out,
    existence_fact,
    random_room,
    room_facts,
    room_with_large_thing,
    thing_is_held_out,
)
from training.scenes.shapes import png_bytes, render, render_png

# -- Writes synthetic data, only into folders that hold nothing else


def write_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write the files of a synthetic data set, images first.

    Files of an earlier data set in the folder are removed, unless they are written again.
    """
    if folder.exists() and not (folder / MARKER).exists() and _is_not_empty(folder):
        raise UserError(
            "holds files that are not synthetic data", file=folder, expected="an empty or a new folder"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UserError("is a file", file=folder, expected="a new folder") from None
    earlier = _written_earlier(folder)
    write_atomically(folder / MARKER, ["\n".join(dict.fromkeys([*earlier, *files])).encode()])
    for name in sorted(files, key=lambda name: not name.endswith(".png")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / name, [files[name]])
    for name in set(earlier) - set(files):
        (folder / name).unlink(missing_ok=True)
    write_atomically(folder / MARKER, ["\n".join(files).encode()])
    return folder


def _written_earlier(folder: Path) -> list[str]:
    """The files that the marker lists, which are removed; UserError if one is outside the folder."""
    marker = folder / MARKER
    try:
        names = marker.read_text(encoding="utf-8").splitlines() if marker.exists() else []
    except (OSError, UnicodeDecodeError):
        raise UserError("cannot be read", file=marker, expected="an empty or a new folder") from None
    for name in names:
        path = PurePath(name)
        if not name.isprintable() or path.is_absolute() or ".." in path.parts:
            raise UserError("names a file outside its folder", file=marker, found=name)
    return names


def _is_not_empty(folder: Path) -> bool:
    contents: Iterable[Path] = folder.iterdir() if folder.is_dir() else [folder]
    return any(True for _ in contents)


# -- Synthetic CODIS data: data.json and images/


def generate_codis(folder: Path, *, pairs: int = 42, seed: int = 0) -> Path:
    """Generate CODIS-like pairs, equally many of every kind of image. Equal seeds give equal bytes."""
    random = Random(f"codis {seed}")
    images: dict[str, bytes] = {}
    records: list[dict[str, Any]] = []
    while len(records) < pairs:
        image = _held_out_image(KINDS[len(images) % len(KINDS)], random)
        name = f"scene-{len(images):03}.png"
        images[name] = render_png(image.scene)
        for puzzle in image.puzzles[: pairs - len(records)]:
            pair = pose(puzzle, random)
            records.append(
                {
                    "id": f"{len(records):03}",
                    "image_id": name,
                    "question": pair.question,
                    "context": dict(zip(("context_1", "context_2"), pair.contexts, strict=True)),
                    "answer": dict(zip(("answer_1", "answer_2"), pair.answers, strict=True)),
                    "category": pair.category,
                }
            )
    files = {f"images/{name}": content for name, content in images.items()}
    return write_folder(folder, {"data.json": indented_json(records), **files})


def _held_out_image(kind: Callable[[Random], PuzzleImage], random: Random) -> PuzzleImage:
    """A random image whose combinations of attributes are held out for tests."""
    while True:
        image = kind(random)
        if all(is_held_out(puzzle.combination) for puzzle in image.puzzles):
            return image


# -- Synthetic ConTextual data: contextual_val.csv with responses, contextual_test.csv without, and
#    images/


def generate_contextual(folder: Path, *, questions: int = 60, val: int = 60, seed: int = 0) -> Path:
    """Generate ConTextual-like questions, equally many of every kind of image.

    The column `image_url` holds paths, images/NAME.

    Args:
        seed: The same seed gives the same bytes.
    """
    random = Random(f"contextual {seed}")
    files: dict[str, bytes] = {}
    for split, count in (("val", val), ("test", questions)):
        rows: list[tuple[str, ...]] = []
        while len(rows) < count:
            board = BOARDS[len(rows) % len(BOARDS)](random)
            facts = [fact for fact in board.facts if is_held_out(fact.combination)]
            if not facts:
                continue
            name = f"images/{split}-{len(rows) + 1:03}.png"
            files[name] = render_png(board.scene)
            fact = random.choice(facts)
            rows.append((name, fact.questions.choose_for_test(random), fact.answer, board.category))
        files[table_name(split)] = _csv(rows, responses=split == "val")
    return write_folder(folder, files)


def _csv(rows: list[tuple[str, ...]], *, responses: bool) -> bytes:
    columns = [number for number, name in enumerate(COLUMNS) if responses or name != ANSWER]
    return csv_bytes([row[number] for number in columns] for row in (COLUMNS, *rows))


# -- Synthetic II-Bench data: dev.json with answers, test.json without, answers.json as its key, and
#    images/


class PictogramQuestion(NamedTuple):
    """A scene with its meaning, five wrong meanings, and its image types."""

    meaning: Meaning
    distractors: Sequence[str]
    scene: Scene
    types: tuple[str, ...]


def generate_iibench(folder: Path, *, questions: int = 60, dev: int = 60, seed: int = 0) -> Path:
    """Generate II-Bench-like questions, half of them about combinations of a symbol and a fate.

    `seed`: the same seed gives the same bytes.
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
        files[f"{split}.json"] = indented_json(records)
    return write_folder(folder, {**files, "answers.json": indented_json(key)})


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


# -- Synthetic MM-R3 data: rephrasing/, restyling/ and context/ with groups, and COCO annotations for
#    masks

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
    files["context/instances.json"] = indented_json(_instances(large_things))
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
