"""Training data and test data: what they must not share."""

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
from sightline.adapter.examples import read_content, refuse_overlap
from sightline.cli.main import main
from sightline.errors import UserError


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


def _changed(file: Path, **change: Any) -> Path:
    lines = [json.loads(line) | change for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_a_copy_of_an_image_in_another_file_is_the_same_image(data: Path, tmp_path: Path) -> None:
    other = write_groups(tmp_path / "other", seed=1)
    assert refuse_overlap(read_content([data]), [other])
    with Image.open(data.parent / "2.png") as image:
        image.save(tmp_path / "other" / "0.png", compress_level=1, dpi=(300, 300))
    with pytest.raises(UserError, match=r"the pixels of an image of the training data \(record g2/original"):
        refuse_overlap(read_content([data]), [other])


def test_a_text_without_an_image_must_not_be_in_the_training_data(data: Path, tmp_path: Path) -> None:
    other = _changed(write_groups(tmp_path / "other", seed=1), images=[], prompt=" What  is THIS")
    # With an image, the same question is another one.
    assert refuse_overlap(read_content([data]), [other]) == []
    training = read_content([_changed(data, images=[])])
    with pytest.raises(UserError, match=r"has a text of the training data \(record g0/r1 there\)"):
        refuse_overlap(training, [other])


def test_questions_of_the_training_data_about_other_images_are_counted(data: Path, tmp_path: Path) -> None:
    other = write_groups(tmp_path / "other", seed=1)
    (note,) = refuse_overlap(read_content([data]), [other])
    assert note.startswith("4 of the 4 different texts of the test occur in the training data too")
    # One instruction for all images, as in restyling, is no question.
    assert refuse_overlap(read_content([data]), [_changed(other, prompt="what is this")]) == []
