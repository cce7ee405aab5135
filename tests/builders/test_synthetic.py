"""The synthetic data sets: released layouts, reproducible, and without shortcuts to the answers."""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from importlib.resources import files
from io import BytesIO
from itertools import product
from pathlib import Path
from random import Random
from zipfile import ZipFile

import msgspec
import pytest
from PIL import Image

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.codis.benchmark import Codis
from sightline.benchmarks.codis.rules import judge_answer_part
from sightline.benchmarks.iibench.benchmark import IIBench
from sightline.benchmarks.mmr3.benchmark import MMR3
from sightline.builders.coco import read_instances
from sightline.builders.mask import mask_sources
from sightline.errors import UserError
from sightline.evaluation.options import effective
from sightline.evaluation.spec import Spec
from sightline.formats.groups import read_groups
from sightline.images import inspect_image
from sightline.types import Sample
from training.scenes import rooms
from training.scenes.__main__ import quickstart_files
from training.scenes.build import (
    generate_codis,
    generate_contextual,
    generate_iibench,
    generate_mmr3,
)
from training.scenes.drawing import STYLES, Scene, Thing
from training.scenes.pictograms import (
    FATES,
    MEANINGS,
    SYMBOLS,
    choose_pictogram,
    distractors,
    meaning_scene,
    pictogram_is_held_out,
    pictogram_meaning,
)
from training.scenes.puzzles import KINDS, PuzzleImage, pose
from training.scenes.rooms import TIME, existence_fact, random_room, room_facts
from training.scenes.shapes import render


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def samples_of(benchmark: Benchmark, folder: Path, setting: str, split: str) -> list[Sample]:
    options = effective(benchmark, benchmark.settings[setting], Spec(task=benchmark.name)).benchmark
    return list(benchmark.samples(folder, split, options))


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_scenes(tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        generate_codis(tmp_path / name / "codis", pairs=5, seed=seed)
        generate_iibench(tmp_path / name / "iibench", questions=3, dev=2, seed=seed)
        generate_mmr3(tmp_path / name / "mmr3", groups=1, seed=seed)
        generate_contextual(tmp_path / name / "contextual", questions=1, val=2, seed=seed)
    assert digests(tmp_path / "a") == digests(tmp_path / "b")
    assert digests(tmp_path / "a") != digests(tmp_path / "c")


def test_a_synthetic_folder_is_replaced_and_another_is_refused(tmp_path: Path) -> None:
    first = digests(generate_codis(tmp_path / "mine", pairs=5))
    assert digests(generate_codis(tmp_path / "mine", pairs=5)) == first
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "thesis.tex").touch()
    with pytest.raises(UserError, match="not synthetic data"):
        generate_codis(tmp_path / "theirs")


def test_codis_like_pairs_load_as_codis_in_all_five_categories(tmp_path: Path) -> None:
    samples = samples_of(Codis(), generate_codis(tmp_path, pairs=40), "default", "test")
    assert len(samples) == 40
    assert len({sample.labels["category"] for sample in samples}) == 5
    assert len({sample.images[0].path for sample in samples}) < 40
    assert all(inspect_image(sample.images[0], {}).format == "PNG" for sample in samples)


def test_the_rules_distinguish_the_answers_of_a_pair(tmp_path: Path) -> None:
    for sample in samples_of(Codis(), generate_codis(tmp_path, pairs=60, seed=7), "default", "test"):
        first, second = sample.references
        assert judge_answer_part(sample.question, first, first)[0] == "right"
        assert judge_answer_part(sample.question, first, second)[0] != "right"


@pytest.mark.parametrize("kind", KINDS)
def test_neither_the_image_nor_the_context_alone_gives_the_answer(
    kind: Callable[[Random], PuzzleImage],
) -> None:
    """Each image has two answers; over many images, a question with its context has several too."""
    by_context: dict[tuple[str, str], set[str]] = {}
    for seed in range(400):
        for puzzle in kind(Random(seed)).puzzles:
            assert len({situation.answer for situation in puzzle.situations}) > 1
            for situation in puzzle.situations:
                asked = puzzle.questions.common[0], situation.contexts.common[0]
                by_context.setdefault(asked, set()).add(situation.answer)
    several = [answers for answers in by_context.values() if len(answers) > 1]
    assert len(several) / len(by_context) > (0.4 if kind.__name__ == "invitation" else 0.9)


def test_a_pair_of_a_puzzle_has_two_answers_and_words_of_the_puzzle() -> None:
    for kind in KINDS:
        for puzzle in kind(Random(5)).puzzles:
            pair = pose(puzzle, Random(1))
            assert pair.answers[0] != pair.answers[1]
            assert pair.question in puzzle.questions.all
            told = {situation.answer: situation.contexts.all for situation in puzzle.situations}
            assert all(c in told[a] for c, a in zip(pair.contexts, pair.answers, strict=True))


def test_iibench_like_questions_load_as_iibench_with_one_right_option(tmp_path: Path) -> None:
    folder = generate_iibench(tmp_path, questions=20, dev=20)
    dev = samples_of(IIBench(), folder, "none", "dev")
    together = {pictogram_meaning(symbol, state).meaning for symbol in SYMBOLS for state in FATES}
    meanings = {meaning.meaning for meaning in MEANINGS} | together
    for sample in dev:
        assert len(set(sample.options)) == 6
        assert set(sample.options) <= meanings
        assert sample.references[0] in "ABCDEF"
    assert {type(sample.labels["image_type"]) for sample in dev} == {str}
    test = samples_of(IIBench(), folder, "none", "test")
    assert all(not sample.references for sample in test)
    key = json.loads((folder / "answers.json").read_text())
    assert list(key) == [sample.id for sample in test]


def test_every_meaning_has_several_images() -> None:
    for meaning in MEANINGS:
        images = {render(meaning_scene(meaning, Random(seed))[0]).tobytes() for seed in range(6)}
        assert len(images) > 3


@pytest.mark.parametrize("held_out", [True, False])
def test_the_options_of_a_pictogram_do_not_tell_which_of_them_it_is(held_out: bool) -> None:
    random, together = Random(1), {pictogram_meaning(*pair).meaning: pair for pair in product(SYMBOLS, FATES)}
    right: dict[frozenset[str], Counter[str]] = defaultdict(Counter)
    for _ in range(6000):
        pair = choose_pictogram(random, held_out=held_out)
        meaning = pictogram_meaning(*pair).meaning
        options = {meaning, *distractors(pair, random, held_out=held_out)}
        assert len(options) == 6
        assert {pictogram_is_held_out(*together[option]) for option in options} == {held_out}
        # Every idea among them meets every fate: nothing in them stands out.
        ideas, fates = zip(*(together[option] for option in options), strict=True)
        assert len({idea.idea for idea in ideas}) * len({fate.text for fate in fates}) == 6
        right[frozenset(options)][meaning] += 1
    first = Counter(sorted(counts.elements())[0] for counts in right.values())
    often = [counts for counts in right.values() if counts.total() >= 200]
    assert all(max(counts.values()) < 0.3 * counts.total() for counts in often)
    assert bool(often) == held_out
    assert len(first) > 3


@pytest.mark.slow
def test_a_guess_from_options_alone_is_no_better_than_chance(tmp_path: Path) -> None:
    """Against the best that counting can do: the option whose words are the most common among the six, and
    the one that was right most often in another set."""

    def questions(seed: int) -> list[tuple[list[str], str]]:
        folder = generate_iibench(tmp_path / str(seed), questions=0, dev=240, seed=seed)
        records = json.loads((folder / "dev.json").read_text())
        return [(q["options"], q["correct_option"]) for record in records for q in record["questions"]]

    before, now = questions(1), questions(2)
    was_right, was_there = Counter(r for _, r in before), Counter(o for os, _ in before for o in os)

    def common(option: str, options: list[str]) -> int:
        words = Counter(word for other in options for word in set(other.split()))
        return sum(words[word] for word in set(option.split()))

    def prior(option: str, _: list[str]) -> float:
        return was_right[option] / max(1, was_there[option])

    for guess in (common, prior):
        hits = 0
        for options, right in now:
            likely = {option: guess(option, options) for option in options}
            hits += max(options, key=likely.__getitem__) == right
        assert hits / len(now) < 0.25, guess.__name__


def test_mmr3_like_groups_load_in_all_three_tasks(tmp_path: Path) -> None:
    folder = generate_mmr3(tmp_path, groups=6, seed=1)
    for task, variants in (("rephrasing", 3), ("restyling", 4), ("context", 3)):
        samples = samples_of(MMR3(), folder, task, "test")
        assert len(samples) == 6
        for sample in samples:
            lines = [line for line in sample.record if line.variant != "original"]
            assert len(lines) == variants
            assert len({line.images for line in lines}) == (1 if task == "rephrasing" else variants)
            assert len({line.prompt for line in lines}) == (3 if task == "rephrasing" else 1)


def test_a_phrasing_is_labelled_by_its_frequency_in_training(tmp_path: Path) -> None:
    lines = read_groups(generate_mmr3(tmp_path, groups=12, seed=1) / "rephrasing" / "groups.jsonl")
    tiers = Counter(line.labels["wording"] for line in lines)
    assert set(tiers) == {"common", "rare", "unseen"}
    of_room = {
        fact.kind: fact.questions for seed in range(200) for fact in room_facts(random_room(Random(seed)))
    }
    for line in lines:
        said = of_room.get(str(line.labels["question"]))
        if said is not None and line.question in said.unseen:
            assert line.labels["wording"] == "unseen"


def test_the_unmasked_images_can_be_masked_anew_by_the_builder(tmp_path: Path) -> None:
    folder = generate_mmr3(tmp_path, groups=6) / "context"
    instances = read_instances(folder / "instances.json")
    sources = mask_sources(instances, folder / "images", 0)
    assert len(sources) == 6
    assert all(Path(source.image).is_file() for source in sources)


@pytest.mark.parametrize("style", STYLES)
def test_a_style_changes_the_image_and_keeps_its_size(style: str) -> None:
    image = render(random_room(Random(2)).scene)
    styled = STYLES[style](image)
    assert styled.size == image.size
    assert styled.mode == "RGB"
    assert styled.tobytes() != image.tobytes()


def test_a_night_image_is_darker_than_its_day_image_except_its_objects() -> None:
    made = next(found for seed in range(99) if (found := random_room(Random(seed))).night)
    night = render(made.scene).convert("L")
    day = render(msgspec.structs.replace(made, night=False).scene).convert("L")
    assert sum(night.histogram()[:100]) > sum(day.histogram()[:100])
    x, y = (round(at * night.width) for at in made.things[-1].at)
    assert night.getpixel((x, y)) == day.getpixel((x, y))


def test_every_fact_of_a_place_is_true_of_it() -> None:
    for seed in range(60):
        made = random_room(Random(seed))
        by_kind: dict[str, list[str]] = {}
        for fact in room_facts(made):
            by_kind.setdefault(fact.kind, []).append(fact.answer)
        assert by_kind["place"] == [made.place]
        assert len(by_kind["where"]) == len(made.things) == len(set(by_kind["where"]))
        assert set(by_kind.get("color", [])) <= {thing.colour for thing in made.things}


def test_contextual_like_questions_have_an_image_and_val_has_responses(tmp_path: Path) -> None:
    folder = generate_contextual(tmp_path, questions=12, val=12)
    with (folder / "contextual_val.csv").open() as file:
        val = list(csv.DictReader(file))
    with (folder / "contextual_test.csv").open() as file:
        test = list(csv.DictReader(file))
    assert len(val) == len(test) == 12
    assert list(val[0]) == ["image_url", "instruction", "response", "category"]
    assert list(test[0]) == ["image_url", "instruction", "category"]
    assert len({row["category"] for row in val}) == 6
    assert all(row["response"] and (folder / row["image_url"]).is_file() for row in val)


def test_a_smaller_data_set_replaces_a_larger_one_and_keeps_files_of_the_user(
    tmp_path: Path,
) -> None:
    generate_codis(tmp_path, pairs=30)
    (tmp_path / "captions.json").write_text("{}")
    records = json.loads((generate_codis(tmp_path, pairs=5) / "data.json").read_text())
    named = {record["image_id"] for record in records}
    assert {path.name for path in (tmp_path / "images").iterdir()} == named
    assert (tmp_path / "captions.json").exists()


def test_existence_questions_have_both_answers_and_respect_held_out_things(tmp_path: Path) -> None:
    for held_out in (False, True):
        answers = []
        for seed in range(200):
            made = random_room(Random(seed))
            if rooms.thing_is_held_out(made.things[0].shape, made.things[0].colour) != held_out:
                continue
            fact = existence_fact(made, Random(seed), held_out=held_out)
            colour, name = fact.combination.split()
            if held_out or fact.answer == "no":
                assert rooms.thing_is_held_out(name, colour) == held_out
            there = (name, colour) in {(thing.shape, thing.colour) for thing in made.things}
            assert fact.answer == ("yes" if there else "no")
            answers.append(fact.answer)
        assert {"yes", "no"} == set(answers)


def test_a_test_uses_phrasings_that_training_never_uses() -> None:
    random = Random(0)
    tested = {TIME.choose_for_test(random) for _ in range(200)}
    said = {TIME.choose_for_training(random) for _ in range(2000)}
    assert tested == set(TIME.all)
    assert said == {*TIME.common, *TIME.rare}


def test_an_unknown_shape_is_an_error() -> None:
    with pytest.raises(KeyError):
        render(Scene((Thing("unicorn", (0.5, 0.5), 0.5),)))


@pytest.mark.slow
def test_the_command_writes_the_same_folders_as_the_python_functions(tmp_path: Path) -> None:
    out = tmp_path / "scenes"
    words = ["--out", str(out), "--count", "3", "--seed", "5", "--benchmark", "codis", "--benchmark", "mmr3"]
    command = [sys.executable, "-m", "training.scenes"]
    root = Path(__file__).parents[2]
    done = subprocess.run([*command, *words], cwd=root, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [str(out / "codis"), str(out / "mmr3")]
    again = generate_mmr3(tmp_path / "again", groups=3, seed=5)
    for path in again.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (out / "mmr3" / path.relative_to(again)).read_bytes()
    assert not (out / "iibench").exists()
    refused = subprocess.run([*command, *words, "--count", "0"], cwd=root, capture_output=True, check=False)
    assert refused.returncode == 2


@pytest.mark.slow
def test_the_data_of_the_quickstart_are_what_the_generators_draw() -> None:
    drawn = quickstart_files()
    with files("sightline.data").joinpath("quickstart.zip").open("rb") as file, ZipFile(file) as archive:
        kept = {name: archive.read(name) for name in archive.namelist()}
    assert list(kept) == list(drawn)
    for name, content in drawn.items():
        if name.endswith(".png"):  # encoders differ between versions of Pillow, pixels do not
            pixels = [Image.open(BytesIO(one)).convert("RGB").tobytes() for one in (kept[name], content)]
            assert pixels[0] == pixels[1], name
        else:
            assert kept[name] == content, name
