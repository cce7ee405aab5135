"""`run --augment` against a server: it is sent text, and no image, in any setting and in any turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from sightline.cli.main import main
from sightline.models.ocr import Word
from sightline.types import ImageFile

QUESTIONS = 12
OFF = ("--fingerprint", "off")


class Names:
    """Reads the name of each image's file."""

    name = "names"
    identity = "names 1"
    reading: ClassVar[list[str]] = []

    def __init__(self, threads: int = 0) -> None:
        self.threads = threads

    def read(self, image: ImageFile) -> tuple[Word, ...]:
        self.reading.append(image.path)
        return (Word(Path(image.path).name, (0.0, 0.0, 90.0, 10.0), 1.0),)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sightline.evaluation.image_texts.RapidOcr", Names)
    monkeypatch.setattr(Names, "reading", [])
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def run(data: Path, model: str, *more: str, task: str = "iibench") -> int:
    folder = ["--out", "results", "--force"]
    return main(["run", task, "--model", model, "--data", str(data), "--quiet", *folder, *OFF, *more])


@pytest.mark.parametrize("how", ["ocr", "layout"])
def test_no_image_leaves_the_process(iibench_folder: Any, mock: Any, how: str) -> None:
    data, server = iibench_folder(QUESTIONS), mock()
    assert run(data, server.model, "--augment", how) == 0
    stats = server.stats()
    assert (stats["with_image"], stats["requests"]) == (0, QUESTIONS)
    assert len(Names.reading) == QUESTIONS // 2
    assert run(data, server.model, "--augment", how) == 0
    assert (server.stats()["requests"], len(Names.reading)) == (QUESTIONS, QUESTIONS // 2)
    result = json.loads(Path("results/metrics.json").read_text())
    assert (result["options"]["augment"], result["options"]["reader"]) == (how, "names 1")
    assert run(data, server.model) == 0
    assert server.stats()["with_image"] == QUESTIONS


def test_the_captioner_is_shown_each_image_once_and_the_model_none(iibench_folder: Any, mock: Any) -> None:
    data, server, captioner = iibench_folder(QUESTIONS), mock(), mock("--words", "a wall|a tree")
    words = ["--augment", "layout+caption", "--captioner", captioner.model]
    for _ in range(2):
        assert run(data, server.model, *words) == 0
        assert server.stats()["with_image"] == 0
        assert server.stats()["requests"] == QUESTIONS
        assert captioner.stats()["with_image"] == captioner.stats()["requests"] == QUESTIONS // 2


def test_a_caption_of_build_caption_is_known_to_the_captioner(iibench_folder: Any, mock: Any) -> None:
    data, server, captioner = iibench_folder(QUESTIONS), mock(), mock("--words", "a wall")
    words = ["--model", captioner.model, "--out", "captions.json", "--quiet"]
    assert main(["build", "caption", str(data), *words]) == 0
    asked = captioner.stats()["requests"]
    by_model = ["--augment", "layout+caption", "--captioner", captioner.model]
    by_file = ["--augment", "layout+caption", "--captions", "captions.json"]
    assert run(data, server.model, *by_model) == run(data, server.model, *by_file) == 0
    # The same words are the same question, wherever the caption came from.
    assert (captioner.stats()["requests"], server.stats()["requests"]) == (asked, QUESTIONS)


def test_the_images_of_examples_are_told_too(shared: Path, mock: Any) -> None:
    server = mock()
    words = ["--limit", "4", "--augment", "layout"]
    assert run(shared / "data" / "iibench", server.model, *words, task="iibench:2-shot") == 0
    assert (server.stats()["with_image"], server.stats()["requests"]) == (0, 4)
    assert {Path(path).name for path in Names.reading} >= {"dev-1.jpg", "dev-20.jpg"}


def test_a_dry_run_tells_what_is_to_be_read(
    iibench_folder: Any, mock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    data, server = iibench_folder(QUESTIONS), mock()
    assert run(data, server.model, "--augment", "ocr", "--dry-run", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["to_ask"], told["images_to_read"], told["captions_to_ask"]) == (
        QUESTIONS,
        QUESTIONS // 2,
        0,
    )
    assert (server.stats()["requests"], Names.reading) == (0, [])


def test_a_setting_without_images_is_refused(
    iibench_folder: Any, mock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    data, server = iibench_folder(2), mock()
    assert run(data, server.model, "--augment", "ocr", task="iibench:no-image") == 2
    assert "this setting has none" in capsys.readouterr().err
    assert server.stats()["requests"] == 0


def test_a_sweep_tells_images_in_every_way(
    iibench_folder: Any, mock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    data, server = iibench_folder(4), mock("--words", "a wall")
    words = ["--model", server.model, "--data", str(data), "--quiet", "--format", "json"]
    ways = ["--augment", "ocr,layout,layout+caption", "--captioner", server.model]
    assert main(["sweep", "iibench", *words, *ways]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert [point["at"]["augment"] for point in points] == ["ocr", "layout", "layout+caption"]
    # Two images are captioned, by the only requests that hold one.
    assert server.stats()["with_image"] == 2
