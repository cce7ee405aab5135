"""Training examples: what is used and what is refused."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if None in (find_spec("torch"), find_spec("transformers"), find_spec("peft")):
    pytest.skip("needs the extra 'adapter'", allow_module_level=True)

from msgspec.structs import replace
from PIL import Image
from tests.adapter.training import Folder, run_training, small_training, write_groups

import sightline
from sightline.adapter.architectures import Prefix
from sightline.adapter.examples import read_examples, split
from sightline.cli.main import main
from sightline.errors import UserError


def test_groups_that_share_an_image_stay_together(data: Path) -> None:
    learned, held = split(read_examples([data], {}), 0.25, seed=1)
    sides = [
        {image.digest for group in side for one in group for image in one.request.images.values()}
        for side in (learned, held)
    ]
    assert (len(learned), len(held)) == (6, 2)
    assert not sides[0] & sides[1]


def test_lines_with_a_label_are_left_out_and_an_unknown_label_is_an_error(data: Path) -> None:
    groups = read_examples([data], {"wording": ["r2"]})
    assert {len(group) for group in groups} == {2}
    with pytest.raises(UserError, match="--without wording=r9: no line has that label"):
        read_examples([data], {"wording": ["r9"]})


def test_test_images_must_not_be_in_the_training_data(folder: Folder, data: Path, tmp_path: Path) -> None:
    other = write_groups(tmp_path / "other", seed=1)
    run_training(small_training(folder("llava"), data, tmp_path / "out", adapter=Prefix(), test=[str(other)]))
    (tmp_path / "other" / "0.png").write_bytes((data.parent / "2.png").read_bytes())
    with pytest.raises(
        UserError, match=r"record g0/original: has an image of the training data \(record g2/original there\)"
    ):
        run_training(small_training(folder("llava"), data, tmp_path / "again", test=[str(other)]))


def test_images_made_from_one_source_count_as_the_same_image(folder: Folder, tmp_path: Path) -> None:
    Image.effect_noise((64, 64), 80).convert("RGB").save(tmp_path / "photo.png")
    sources = tmp_path / "sources.jsonl"
    sources.write_text(json.dumps({"id": "a", "image": "photo.png", "references": ["noise"]}))
    for name, kind in (("one", "jpeg"), ("two", "blur")):
        words = ["build", "perturb", str(sources), "--kind", kind, "--out", str(tmp_path / name), "--quiet"]
        assert main(words) == 0
    files = [tmp_path / name / "groups.jsonl" for name in ("one", "two")]
    training = small_training(folder("llava"), files[0], tmp_path / "out", adapter=Prefix())
    with pytest.raises(UserError, match="has an image of the training data"):
        run_training(replace(training, test=[str(files[1])]))
    # The run knows it by the manifest alone: the other folder's images are other files.
    run_training(replace(training, held_out=0))
    options: dict[str, Any] = {"set": {"embedder": "none"}, "gen": {"max_tokens": 2}}
    options |= {"model": training.model, "store": str(tmp_path / "s.db")}
    task, adapter = f"groups:{files[1]}", {"adapter": str(tmp_path / "out")}
    run = sightline.run(task, **options, model_arg=adapter)
    (note,) = [note for note in run.result.notes if "was made from" in note]
    assert note.startswith(f"1 of the 1 images that {files[1].parent} was made from are training images")
    assert run.result.errors == 0
    (files[1].parent / "manifest.json").write_text("{}")
    for args in ({}, adapter):
        notes = sightline.run(task, **options, model_arg=args).result.notes
        assert not [note for note in notes if "was made from" in note]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"references": []}, r"record g0/r1, field references: has no reference to learn"),
        ({"references": ["a dog " * 40]}, r"record .*g0 r1: the answer has \d+ tokens.*--max-answer-tokens"),
        ({"images": ["gone.png"]}, r"record g0/r1: an image cannot be used: .*gone.png"),
        ({"prompt": "a " * 300}, r"record .*g0 r1: the model cannot take this prompt: .*no room"),
    ],
)
def test_a_bad_line_is_an_error_before_the_first_step(
    change: dict[str, Any], said: str, folder: Folder, data: Path, tmp_path: Path
) -> None:
    lines = [json.loads(line) for line in data.read_text().splitlines()]
    lines[1] |= change
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UserError, match=said):
        run_training(small_training(folder("llava"), data, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_groups_with_one_variant_are_an_error(folder: Folder, data: Path, tmp_path: Path) -> None:
    kept = [line for line in data.read_text().splitlines() if '"r2"' not in line and '"r3"' not in line]
    with pytest.raises(UserError, match="--without leaves no group with two variants; expected fewer"):
        run_training(
            small_training(folder("llava"), data, tmp_path / "out", without={"wording": ["r1", "r2"]})
        )
    data.write_text("\n".join(kept))
    with pytest.raises(UserError, match=r"no group has two variants.*sightline build"):
        run_training(small_training(folder("llava"), data, tmp_path / "out", without={"wording": ["r1"]}))


def test_naming_a_groups_file_twice_is_an_error(folder: Folder, data: Path, tmp_path: Path) -> None:
    twice = [str(data), f"{data.parent}/../{data.parent.name}/{data.name}"]
    training = replace(small_training(folder("llava"), data, tmp_path / "out"), data=twice)
    with pytest.raises(UserError, match=r"groups\.jsonl: --data names this file twice"):
        run_training(training)


def test_examples_with_and_without_images_do_not_mix(folder: Folder, data: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in data.read_text().splitlines()]
    lines[1]["images"] = []
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UserError, match="some examples have an image and others have none"):
        run_training(small_training(folder("llava"), data, tmp_path / "out"))
