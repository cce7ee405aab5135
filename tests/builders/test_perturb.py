"""Perturbations change an image by a seed alone, and anyone's own joins by a file of a few lines."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from sightline import plugins
from sightline.builders import perturb as module
from sightline.builders.perturb import (
    Blur,
    Crop,
    Jpeg,
    Perturb,
    Perturbation,
    Rotate,
    load_perturbation,
)
from sightline.builders.run import BuildSpec, build
from sightline.builders.sources import SourceItem, table_sources
from sightline.errors import UserError
from sightline.formats.groups import GroupLine
from sightline.images import BadImage

BUILT_IN: tuple[Perturbation, ...] = (Blur(), Crop(), Jpeg(), Rotate())
Pixels = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]


@pytest.fixture(autouse=True)
def loaded_anew() -> Iterator[None]:
    """A test loads its own perturbations, not those that an earlier one loaded."""
    load_perturbation.cache_clear()
    yield
    load_perturbation.cache_clear()


def noise(width: int = 60, height: int = 40) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


def same(one: object, two: object) -> bool:
    """Whether two images have the same size and pixels."""
    return np.array_equal(np.asarray(one), np.asarray(two))


def pixels(path: Path) -> Pixels:
    return np.asarray(Image.open(path))


def make(tmp_path: Path, work: Perturb, **known: object) -> tuple[GroupLine, ...]:
    noise().save(tmp_path / "p.png")
    (tmp_path / "out" / "images").mkdir(parents=True, exist_ok=True)
    source = SourceItem("p", str(tmp_path / "p.png"), **known)  # type: ignore[arg-type]
    return work(source, tmp_path / "out").lines


# --- the built-in ones


def test_a_crop_has_the_requested_share_of_the_image() -> None:
    image = noise()
    for variant, size in (("c90", (54, 36)), ("c75", (45, 30)), ("c50", (30, 20))):
        part = np.asarray(Crop().apply(image, variant, Random(1)))
        assert part.shape == (size[1], size[0], 3)
        whole = np.asarray(image)
        places = [
            (top, left)
            for top in range(40 - size[1] + 1)
            for left in range(60 - size[0] + 1)
            if np.array_equal(whole[top : top + size[1], left : left + size[0]], part)
        ]
        assert len(places) == 1


def test_the_seed_decides_the_position_of_a_crop() -> None:
    corner = {Crop().apply(noise(), "c50", Random(seed)).getpixel((0, 0)) for seed in range(20)}
    assert len(corner) > 15


def test_jpeg_is_decoded_from_the_requested_quality() -> None:
    for quality in (50, 25, 10):
        out = io.BytesIO()
        noise().save(out, "JPEG", quality=quality)
        assert same(Jpeg().apply(noise(), f"q{quality}", Random(0)), Image.open(out))


def test_rotation_keeps_the_size_and_rotates_in_both_directions() -> None:
    image = Image.new("RGB", (101, 101), "black")
    image.paste("white", (70, 46, 95, 55))
    turned = set()
    for seed in range(10):
        rotated = Rotate().apply(image, "d15", Random(seed))
        assert rotated.size == image.size
        # Where the bar points to, seen from the centre; grey corners are none of it.
        rows, columns = np.nonzero(np.asarray(rotated)[..., 0] > 200)
        turned.add(round(np.degrees(np.arctan2(50 - rows.mean(), columns.mean() - 50))))
    assert turned == {-15, 15}


def test_blur_is_the_same_to_the_eye_for_any_size() -> None:
    small = Image.new("RGB", (100, 100), "black")
    small.paste("white", (50, 0, 100, 100))
    large = small.resize((400, 400), Image.Resampling.NEAREST)
    wide = {}
    for name, image in (("small", small), ("large", large)):
        row = np.asarray(Blur().apply(image, "b10", Random(0)))[image.height // 2, :, 0]
        wide[name] = ((row > 25) & (row < 230)).sum() / image.width
    assert wide["large"] == pytest.approx(wide["small"], abs=0.015)
    assert wide["small"] > 0.01


def test_more_blur_and_less_quality_change_more() -> None:
    for how in (Blur(), Jpeg()):
        changes = [
            np.abs(np.asarray(how.apply(noise(), name, Random(0))).astype(int) - np.asarray(noise())).mean()
            for name in how.variants
        ]
        assert changes == sorted(changes)
        assert changes[0] > 0


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(BUILT_IN), st.integers(min_value=1, max_value=9), st.integers(min_value=1, max_value=9)
)
def test_any_image_can_be_perturbed_and_the_seed_alone_decides_how(
    how: Perturbation, width: int, height: int
) -> None:
    image = noise(width, height)
    for variant in how.variants:
        one, two = (how.apply(image.copy(), variant, Random("s")) for _ in range(2))
        assert min(one.size) >= 1
        assert same(one, two)


# --- the groups


def test_the_original_comes_first_and_is_the_image_itself(tmp_path: Path) -> None:
    lines = make(tmp_path, Perturb("jpeg", "What?"), labels={"class": "bar"}, references=("bar",))
    assert [line.variant for line in lines] == ["original", "q50", "q25", "q10"]
    assert [line.labels for line in lines] == [
        {"class": "bar"},
        {"class": "bar", "quality": "50"},
        {"class": "bar", "quality": "25"},
        {"class": "bar", "quality": "10"},
    ]
    assert {(line.prompt, line.references) for line in lines} == {("What?", ("bar",))}
    assert same(pixels(tmp_path / "out" / lines[0].images[0]), noise())


@pytest.mark.parametrize(
    ("prompt", "question", "asked"),
    [
        ("Where is it?", "", "Where is it?"),
        ("Where is it?", "What is it?", "What is it?"),
        ("Be short. {question}", "What is it?", "Be short. What is it?"),
        ("Be short. {question}", "Is {x} it?", "Be short. Is {x} it?"),
    ],
)
def test_the_question_of_a_source_is_used(tmp_path: Path, prompt: str, question: str, asked: str) -> None:
    line = make(tmp_path, Perturb("jpeg", prompt), question=question)[0]
    assert (line.prompt, line.question) == (asked, question)


def test_the_seed_and_the_source_decide_what_is_made(tmp_path: Path) -> None:
    def made(seed: int) -> list[bytes]:
        lines = make(tmp_path, Perturb("crop", "What?", seed))
        return [(tmp_path / "out" / line.images[0]).read_bytes() for line in lines]

    first = made(1)
    assert made(1) == first
    assert made(2) != first
    assert made(2)[0] == first[0]


def test_an_unusable_image_is_dropped_and_no_other_one(tmp_path: Path) -> None:
    noise().save(tmp_path / "good.png")
    (tmp_path / "bad.png").write_text("404")
    sources = [SourceItem(name, str(tmp_path / f"{name}.png")) for name in ("bad", "good")]
    manifest = build(
        sources, Perturb("jpeg", "What?"), tmp_path / "out", BuildSpec(kind="perturb", settings={})
    )
    assert manifest.dropped["bad"].startswith("not an image")
    assert (manifest.groups, manifest.probes) == (1, 4)


# --- one's own


def plugin(folder: Path, apply: str, variants: str = '{"v1": {"own": "yes"}}', name: str = "own") -> Path:
    path = folder / "own.py"
    path.write_text(
        "from PIL import Image, ImageOps\nfrom sightline.images import BadImage\n\n"
        f"class Own:\n    name = {name!r}\n    variants = {variants}\n\n"
        f"    def apply(self, image, variant, random):\n        {apply}\n\n"
        "perturbations = {'own': Own}\n"
    )
    return path


def own(tmp_path: Path, apply: str, variants: str = '{"v1": {"own": "yes"}}') -> tuple[GroupLine, ...]:
    return make(tmp_path, Perturb("own", "What?", plugins=(str(plugin(tmp_path, apply, variants)),)))


def test_the_example_of_the_module_works_as_it_stands(tmp_path: Path) -> None:
    example = (module.__doc__ or "").partition("`:\n")[2]
    file = tmp_path / "mirror.py"
    file.write_text("\n".join(line[4:] for line in example.splitlines()))
    original, mirrored = make(tmp_path, Perturb("mirror", "What?", plugins=(str(file),)))
    assert (mirrored.variant, mirrored.labels) == ("mirrored", {"mirror": "yes"})
    assert same(pixels(tmp_path / "out" / mirrored.images[0]), ImageOps.mirror(noise()))
    assert same(pixels(tmp_path / "out" / original.images[0]), noise())


def test_a_perturbation_that_changes_its_input_affects_no_other_variant(tmp_path: Path) -> None:
    variants = '{"v1": {}, "v2": {}}'
    apply = "image.putpixel((0, 0), (9, 9, int(variant[1:]))); return image"
    original, one, two = (
        pixels(tmp_path / "out" / line.images[0]) for line in own(tmp_path, apply, variants)
    )
    assert same(original, noise())
    assert one[0, 0].tolist() == [9, 9, 1]
    assert two[0, 0].tolist() == [9, 9, 2]
    assert np.array_equal(one[1:], original[1:])


def test_a_result_of_another_mode_becomes_rgb(tmp_path: Path) -> None:
    line = own(tmp_path, "return image.convert('L')")[1]
    assert pixels(tmp_path / "out" / line.images[0]).shape == (40, 60, 3)


def test_a_perturbation_may_drop_an_image_with_a_reason(tmp_path: Path) -> None:
    noise().save(tmp_path / "p.png")
    (tmp_path / "out" / "images").mkdir(parents=True)
    work = Perturb("own", "What?", plugins=(str(plugin(tmp_path, "raise BadImage('too dark')")),))
    with pytest.raises(BadImage, match="too dark"):
        work(SourceItem("p", str(tmp_path / "p.png")), tmp_path / "out")


def test_a_perturbation_that_returns_no_image_is_refused_with_the_image(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        own(tmp_path, "return None")
    assert "returned no image for its variant 'v1' (found 'NoneType')" in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "p.png"))


def test_an_image_on_which_a_perturbation_fails_is_dropped_with_the_reason(tmp_path: Path) -> None:
    for name, width in (("even", 40), ("odd", 41)):
        noise(width).save(tmp_path / f"{name}.png")
    file = plugin(tmp_path, "return image if image.width % 2 == 0 else image.size[2]")
    sources = [SourceItem(name, str(tmp_path / f"{name}.png")) for name in ("even", "odd")]
    maker = Perturb("own", "What?", plugins=(str(file),))
    manifest = build(sources, maker, tmp_path / "out", BuildSpec(kind="perturb", settings={}))
    assert list(manifest.sources) == ["even"]
    assert manifest.dropped == {
        "odd": "the perturbation 'own' fails, variant 'v1': "
        "IndexError: tuple index out of range (own.py, line 9)"
    }


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        ("{}", "has invalid variants"),
        ('{"original": {}}', "has invalid variants"),
        ('{"../v1": {}}', "(found ['../v1'])"),
        ('{"v_1": {}}', "(found ['v_1'])"),
        ('{"": {}}', "(found [''])"),
        ('{"v1": {"degrees": 5}}', "has an attribute of another type"),
        ('["v1", "v2"]', "has an attribute of another type"),
        ('{"v1": "yes"}', "has an attribute of another type"),
    ],
)
def test_variants_that_cannot_be_saved_are_refused_before_any_work(
    tmp_path: Path, variants: str, message: str
) -> None:
    with pytest.raises(UserError) as caught:
        load_perturbation("own", (str(plugin(tmp_path, "return image", variants)),))
    assert message in str(caught.value)


def test_an_invalid_plugin_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has another name \(found 'other'\)"):
        load_perturbation("own", (str(plugin(tmp_path, "return image", name="other")),))
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(UserError, match="defines none of benchmarks, models, perturbations"):
        load_perturbation("own", (str(tmp_path / "empty.py"),))
    (tmp_path / "lacking.py").write_text("class Own:\n    name = 'own'\n\nperturbations = {'own': Own}\n")
    with pytest.raises(UserError, match="lacks an attribute"):
        load_perturbation("own", (str(tmp_path / "lacking.py"),))
    with pytest.raises(UserError, match="there is no such file"):
        load_perturbation("own", (str(tmp_path / "none.py"),))


TEXT_PLUGIN = """
from sightline.builders.perturb import Perturbed

class Asked:
    name = "asked"
    variants = {"reversed": {"order": "reversed"}, "loud": {}, "mirrored": {}}

    def apply(self, image, question, options, variant, random):
        if variant == "reversed":
            return Perturbed(options=options[::-1])
        if variant == "loud":
            return Perturbed(question=question.upper())
        return Perturbed(image.transpose(0))

perturbations = {"asked": Asked}
"""


def test_a_plugin_may_change_the_question_and_its_options(tmp_path: Path) -> None:
    (tmp_path / "asked.py").write_text(TEXT_PLUGIN)
    noise().save(tmp_path / "p.png")
    (tmp_path / "out" / "images").mkdir(parents=True)
    table = [{"image": "p.png", "question": "Which?", "options": ["a cat", "a dog"], "answer": "a dog"}]
    (tmp_path / "table.json").write_text(json.dumps(table))
    (source,) = table_sources(tmp_path / "table.json")
    work = Perturb("asked", "", plugins=(str(tmp_path / "asked.py"),))
    lines = {line.variant: line for line in work(source, tmp_path / "out").lines}
    assert {name: line.prompt for name, line in lines.items()} == {
        "original": "Which?\n(A) a cat\n(B) a dog",
        "reversed": "Which?\n(A) a dog\n(B) a cat",
        "loud": "WHICH?\n(A) a cat\n(B) a dog",
        "mirrored": "Which?\n(A) a cat\n(B) a dog",
    }
    assert lines["reversed"].options == ("a dog", "a cat")
    assert lines["loud"].question == "WHICH?"
    assert {line.references for line in lines.values()} == {("a dog",)}
    images = {name: (tmp_path / "out" / line.images[0]).read_bytes() for name, line in lines.items()}
    assert images["loud"] == images["original"] != images["mirrored"]


def test_a_list_of_options_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("image,question,options\np.png,Which?,a cat\n")
    with pytest.raises(UserError, match="field options: is not a list of options"):
        table_sources(tmp_path / "t.csv")


def test_an_unknown_perturbation_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown perturbation 'jpg', did you mean 'jpeg'"):
        load_perturbation("jpg")
    assert sorted(module.PERTURBATIONS) == ["blur", "crop", "jpeg", "rotate"]
    load_perturbation("own", (str(plugin(tmp_path, "return image")),))
    assert "own" in plugins.registered_names("perturbations", module.PERTURBATIONS)


@pytest.mark.parametrize("how", BUILT_IN, ids=lambda how: how.name)
def test_labels_of_the_built_in_perturbations_distinguish_variants(how: Perturbation) -> None:
    labels: list[Mapping[str, object]] = [dict(labels) for labels in how.variants.values()]
    assert len({tuple(one.values()) for one in labels}) == len(labels) == 3
    assert len({tuple(one) for one in labels}) == 1
