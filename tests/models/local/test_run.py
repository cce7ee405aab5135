"""A local model through the command line and the API, as a user asks for it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

import sightline
from sightline.cli.main import main
from sightline.types import ImageRef

pytestmark = pytest.mark.skipif(
    None in (find_spec("torch"), find_spec("transformers")), reason="needs the extra 'local'"
)

Folder = Callable[[str], Path]


def _groups(file: Path, images: list[ImageRef]) -> Path:
    lines = [
        {
            "group": f"g{number}",
            "variant": variant,
            "images": [Path(image.path).name],
            "prompt": prompt,
            "references": ["a"],
        }
        for number, image in enumerate(images)
        for variant, prompt in (("v1", "what is this"), ("v2", "is it a dog"))
    ]
    for image in images:
        shutil.copy(image.path, file.parent)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_a_run_answers_every_probe_and_the_second_one_asks_nothing(
    folder: Folder, images: list[ImageRef], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = _groups(tmp_path / "probes.jsonl", images), tmp_path / "out"
    words = ["run", f"groups:{file}", "--model", f"hf/{folder('llava')}", "--set", "embedder=none", "--quiet"]
    words += ["--gen", "max_tokens=4", "--store", str(tmp_path / "s.db"), "--out", str(out)]
    assert main(words) == 0
    answers = [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]
    assert len(answers) == 2 * len(images)
    assert all(answer["usage"]["completion_tokens"] <= 4 for answer in answers)
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["model_identity"].startswith("LlavaForConditionalGeneration sha256:")
    again = sightline.run(
        f"groups:{file}",
        model=f"hf/{folder('llava')}",
        set={"embedder": "none"},
        gen={"max_tokens": 4},
        store=str(tmp_path / "s.db"),
    )
    assert (again.counts.sent, again.counts.cached) == (0, 2 * len(images))


def test_a_device_that_is_not_there_is_exit_status_2(
    folder: Folder, images: list[ImageRef], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    file = _groups(tmp_path / "probes.jsonl", images)
    words = ["run", f"groups:{file}", "--model", f"hf/{folder('llava')}", "--set", "embedder=none", "--quiet"]
    words += ["--model-arg", "device=cuda", "--store", str(tmp_path / "s.db")]
    assert main(words) == 2
    assert "torch finds no CUDA device" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["--gen", "--repeats"])
def test_the_likeliest_option_is_not_drawn(
    word: str, folder: Folder, images: list[ImageRef], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {"group": "g", "variant": "v", "images": ["x.png"], "prompt": "?", "options": ["a", "b"]}
    shutil.copy(images[0].path, tmp_path / "x.png")
    file = tmp_path / "probes.jsonl"
    file.write_text(json.dumps(line))
    words = ["run", f"groups:{file}", "--model", f"hf/{folder('llava')}", "--set", "embedder=none"]
    words += ["--set", "answer_by=likelihood", "--store", str(tmp_path / "s.db")]
    assert main([*words, word, {"--gen": "temperature=1", "--repeats": "3"}[word]]) == 2
    assert f"{word} has no effect with --set answer_by=likelihood" in capsys.readouterr().err
