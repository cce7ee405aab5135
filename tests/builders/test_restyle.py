"""Restyled images: a group an image and size, the original first, and nothing guessed."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sightline.builders import style_network
from sightline.builders.restyle import STYLES, Restyle, find_styles, refuse_equal_names, resized
from sightline.builders.sources import SourceItem, folder_sources
from sightline.builders.style_network import paint, read_weights, shapes
from sightline.cli.main import main
from sightline.errors import UserError
from sightline.formats.groups import GroupLine, read_groups
from sightline.formats.journal import JOURNAL

PROMPT = "Please describe the place in the image in two sentences."
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with networks called candy, mosaic and udnie that were never trained."""
    torch = pytest.importorskip("torch", reason="painting needs the extra `local`")
    folder = tmp_path_factory.mktemp("weights")
    for seed, style in enumerate(STYLES[:3]):
        generator = torch.Generator().manual_seed(seed)
        drawn = {key: torch.randn(shape, generator=generator) for key, shape in shapes().items()}
        torch.save(drawn, folder / f"{style}.pth")
    return folder


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """Two class folders with an image each."""
    folder = tmp_path / "places"
    for place, size in (("living_room", (40, 31)), ("inside_bus", (24, 24))):
        (folder / place).mkdir(parents=True)
        values = np.random.default_rng(size[1]).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        Image.fromarray(values).save(folder / place / "a.png")
    return folder


@pytest.fixture
def restyle(tmp_path: Path, places: Path) -> Callable[..., list[GroupLine]]:
    """Builds through the command; returns the lines."""

    def run(*words: str, out: str = "out") -> list[GroupLine]:
        folder = tmp_path / out
        usual = () if "--processes" in words else ("--processes", "1")
        status = main(["build", "restyle", str(places), "--out", str(folder), "--quiet", *usual, *words])
        assert status == 0
        return read_groups(folder / "groups.jsonl")

    return run


def pixels(path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.asarray(Image.open(path))


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_papers_four_styles_follow_the_original(
    restyle: Callable[..., list[GroupLine]], weights: Path, places: Path, tmp_path: Path
) -> None:
    lines = restyle("--weights", str(weights))
    bus, room = lines[:5], lines[5:]
    for group, place in ((bus, "inside bus"), (room, "living room")):
        assert [line.variant for line in group] == ["original", "candy", "mosaic", "udnie", "grayscale"]
        assert [line.labels.get("style") for line in group] == [None, "candy", "mosaic", "udnie", "grayscale"]
        assert {line.labels["class"] for line in group} == {place}
        assert {line.references for line in group} == {(place,)}
        assert {line.prompt for line in group} == {PROMPT}
        assert {"size" in line.labels for line in group} == {False}
        original = places / place.replace(" ", "_") / "a.png"
        assert {line.cluster for line in group} == {hashlib.sha256(original.read_bytes()).hexdigest()}
        made = [pixels(tmp_path / "out" / line.images[0]) for line in group]
        assert np.array_equal(made[0], pixels(original))
        for style, image in zip(STYLES[:3], made[1:4], strict=True):
            assert np.array_equal(image, paint(read_weights(weights / f"{style}.pth"), made[0]))


def test_grayscale_is_the_brightness_that_eyes_see_and_needs_no_torch(
    restyle: Callable[..., list[GroupLine]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    original, grey = restyle("--style", "grayscale")[:2]
    before, after = (pixels(tmp_path / "out" / line.images[0]) for line in (original, grey))
    assert after.shape == before.shape
    assert (np.ptp(after, axis=2) == 0).all()
    # ITU-R BT.601
    assert np.abs(after[..., 0] - before @ np.array([0.299, 0.587, 0.114])).max() <= 1


def test_each_size_is_a_group_of_square_images(
    restyle: Callable[..., list[GroupLine]], weights: Path, tmp_path: Path
) -> None:
    lines = restyle(
        "--weights", str(weights), "--size", "original,16,33", "--style", "grayscale", "--style", "candy"
    )
    sides = {"original": None, "16": (16, 16), "33": (33, 33)}
    assert len(lines) == 2 * 3 * 3
    for line in lines:
        size = str(line.labels["size"])
        assert line.group.partition("@")[2] == ("" if size == "original" else size)
        with Image.open(tmp_path / "out" / line.images[0]) as image:
            assert image.size == (sides[size] or image.size)
            assert list(image.size) == line.facts["pixels"]
    first = [line for line in lines if line.group == lines[0].group]
    assert [line.variant for line in first] == ["original", "grayscale", "candy"]
    assert len({line.group for line in lines}) == 6
    assert len({line.cluster for line in lines}) == 2


def test_an_image_is_restyled_after_resizing(
    restyle: Callable[..., list[GroupLine]], weights: Path, tmp_path: Path
) -> None:
    original, candy = restyle("--weights", str(weights), "--size", "20", "--style", "candy")[:2]
    before, after = (pixels(tmp_path / "out" / line.images[0]) for line in (original, candy))
    assert np.array_equal(after, paint(read_weights(weights / "candy.pth"), before))


def test_larger_images_are_scaled_down_in_all_variants_with_a_label(
    restyle: Callable[..., list[GroupLine]], tmp_path: Path
) -> None:
    lines = restyle("--style", "grayscale", "--max-pixels", "600")
    bus, room = lines[:2], lines[2:]
    assert [line.facts for line in bus] == [{"pixels": [24, 24]}] * 2
    assert [line.facts for line in room] == [{"pixels": [27, 21], "reduced_from": [40, 31]}] * 2
    assert {Image.open(tmp_path / "out" / line.images[0]).size for line in room} == {(27, 21)}


@pytest.mark.parametrize("size", [(1, 5000), (5000, 1), (100, 100), (101, 99), (2, 3)])
def test_scaled_down_images_have_no_more_pixels_than_allowed(size: tuple[int, int]) -> None:
    small = resized(Image.new("RGB", size), 0, 1000)
    assert 1 <= small.width * small.height <= 1000
    assert size[0] * size[1] > 1000 or small.size == size


def test_a_source_with_a_question_keeps_it(tmp_path: Path, places: Path) -> None:
    source = SourceItem("a", str(places / "inside_bus/a.png"), question="Where is this?")
    (tmp_path / "images").mkdir()
    made = Restyle(find_styles(["grayscale"], tmp_path), (), PROMPT)(source, tmp_path)
    assert {line.prompt for line in made.lines} == {"Where is this?"}


def test_an_image_that_cannot_be_decoded_is_dropped_with_its_reason(
    restyle: Callable[..., list[GroupLine]], places: Path, capsys: Capture
) -> None:
    (places / "living_room/b.png").write_bytes((places / "living_room/a.png").read_bytes()[:200])
    assert len({line.group for line in restyle("--style", "grayscale")}) == 2
    assert "dropped: living_room" in capsys.readouterr().err


@pytest.mark.slow
def test_the_number_of_processes_changes_no_byte(
    restyle: Callable[..., list[GroupLine]], weights: Path, tmp_path: Path
) -> None:
    words = ("--weights", str(weights), "--size", "original,50", "--format", "jpeg")
    restyle(*words, out="one")
    restyle(*words, "--processes", "2", out="two")
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


def test_any_weights_of_the_network_are_a_style_called_like_their_file(
    restyle: Callable[..., list[GroupLine]], weights: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "waves.pth"
    mine.write_bytes((weights / "candy.pth").read_bytes())
    lines = restyle("--weights", str(weights), "--style", str(mine), "--style", "candy")
    assert [line.variant for line in lines[:3]] == ["original", "waves", "candy"]
    assert lines[1].labels["style"] == "waves"
    waves, candy = (pixels(tmp_path / "out" / line.images[0]) for line in lines[1:3])
    assert np.array_equal(waves, candy)


def test_an_image_too_large_for_memory_is_an_error_with_advice_and_finished_work_is_kept(
    places: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    import torch

    forward = style_network._forward

    def greedy(weights: style_network.Weights, x: torch.Tensor) -> torch.Tensor:
        # More than any machine has: torch's own allocator refuses.
        return forward(weights, x) if x.shape[2] == 24 else torch.empty(2**50, dtype=torch.uint8)

    words = ["build", "restyle", str(places), "--style", "candy", "--weights", str(weights), "--quiet"]
    words += ["--processes", "1", "--out", str(tmp_path / "out")]
    with monkeypatch.context() as patch:
        patch.setattr(style_network, "_forward", greedy)
        assert main(words) == 3
    said = capsys.readouterr().err
    assert "living_room/a.png: not enough memory" in said
    assert "fewer --processes need less" in said
    assert (tmp_path / "out" / JOURNAL).read_bytes().count(b"\n") == 2
    assert main(words) == 0


@pytest.mark.parametrize(
    ("words", "processes"), [((), 1), (("--processes", "3"), 3), (("--style", "grayscale"), 5)]
)
def test_a_gpu_uses_one_process_by_default(
    places: Path,
    weights: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    processes: int,
) -> None:
    found: list[int] = []
    monkeypatch.setattr(os, "cpu_count", lambda: 5)

    def build(*_: object, processes: int, **__: object) -> None:
        found.append(processes)
        raise UserError("no further")

    monkeypatch.setattr("sightline.builders.run.build", build)
    if "grayscale" not in words:
        monkeypatch.setattr("sightline.builders.restyle.device_versions", lambda *_: {"device": "cuda"})
    base = ["build", "restyle", str(places), "--weights", str(weights), "--out", str(tmp_path / "out")]
    assert main([*base, *words]) == 2
    assert found == [processes]


WRONG: dict[str, tuple[list[str], str]] = {
    "unknown style": (["--style", "kandy"], "unknown style 'kandy', did you mean 'candy'?"),
    "style twice": (["--style", "candy", "--style", "candy"], "the style 'candy' is named twice"),
    "no such file": (["--style", "waves.pth"], "waves.pth: does not exist"),
    "no weights": (["--weights", "nowhere"], "nowhere: no weights of the style 'candy'"),
    "called original": (["--style", "{tmp}/original.pth"], "the style 'original' is the unchanged image"),
    "not weights": (["--style", "{tmp}/text.pth"], "text.pth: cannot be read as weights alone"),
    "size zero": (["--size", "0"], "--size is wrong (found '0')"),
    "size in words": (["--size", "224,big"], "--size is wrong (found 'big')"),
    "size twice": (["--size", "224,original,224"], "--size names 224 twice"),
    "original twice": (["--size", "original,original"], "--size names original twice"),
    "size too large": (["--size", "99999"], "--size 99999 is more than 4,000,000 pixels"),
    "no pixels": (["--max-pixels", "0"], "--max-pixels is too small (found 0)"),
    "no such device": (["--style", "candy", "--device", "abacus"], "--device cannot be used"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_is_refused_in_one_line_and_nothing_is_written(
    tmp_path: Path, places: Path, weights: Path, capsys: Capture, case: str
) -> None:
    words, message = WRONG[case]
    (tmp_path / "original.pth").write_bytes((weights / "candy.pth").read_bytes())
    (tmp_path / "text.pth").write_text("hello")
    filled = [word.format(tmp=tmp_path) for word in words]
    usual = () if "--weights" in words else ("--weights", str(weights))
    status = main(["build", "restyle", str(places), "--out", str(tmp_path / "out"), *usual, *filled])
    said = capsys.readouterr().err
    assert status == 2
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_ids_that_would_give_two_images_one_name_are_refused(places: Path) -> None:
    (one, *_) = folder_sources(places)
    twins = [SourceItem("a", one.image), SourceItem("a@16", one.image)]
    refuse_equal_names(twins, (), find_styles(["grayscale"], places))
    with pytest.raises(UserError, match="2 images would have the name 'a@16_original'"):
        refuse_equal_names(twins, (0, 16), find_styles(["grayscale"], places))
