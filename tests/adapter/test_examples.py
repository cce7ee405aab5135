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
from tests.adapter.training import Folder, run_training, small_training

from sightline.adapter.examples import read_examples, split
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
