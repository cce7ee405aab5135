"""`build caption` from the command line, and CODIS with captions in the images' place."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sightline.cli.main import main

IMAGES = 60
OFF = ("--fingerprint", "off")


@pytest.fixture
def codis(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The records of CODIS's first images, with images of their own, in an empty working folder."""
    folder = tmp_path / "codis"
    (folder / "images").mkdir(parents=True)
    records = json.loads((shared / "data" / "codis" / "data.json").read_text())
    kept = list(dict.fromkeys(record["image_id"] for record in records))[:IMAGES]
    records = [record for record in records if record["image_id"] in kept]
    (folder / "data.json").write_text(json.dumps(records))
    for number, name in enumerate(image_ids(folder)):
        Image.new("RGB", (12, 9), (number, 255 - number, 99)).save(folder / "images" / name, "PNG")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return folder


def image_ids(folder: Path) -> list[str]:
    records = json.loads((folder / "data.json").read_text())
    return list(dict.fromkeys(record["image_id"] for record in records))


def captions(file: str = "captions.json") -> dict[str, str]:
    return {one["image_id"]: one["caption"] for one in json.loads(Path(file).read_text())}


def build(data: Path, server: Any, *more: object) -> int:
    words = ["build", "caption", data, "--model", server.model, "--out", "captions.json", "--quiet", *more]
    return main([str(word) for word in words])


def test_codis_runs_with_the_captions_in_the_images_place(
    codis: Path, mock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    server = mock("--words", "a long\n\nwall|one tree|some people")
    assert build(codis, server) == 0
    assert list(captions()) == image_ids(codis)
    assert set(captions().values()) == {"a long wall", "one tree", "some people"}
    assert server.stats()["with_image"] == server.stats()["requests"] == IMAGES
    written = Path("captions.json").read_bytes()
    assert build(codis, server) == 0
    assert server.stats()["requests"] == IMAGES, "nothing is sent again"
    assert Path("captions.json").read_bytes() == written
    server.reset()
    asking = ["--model", server.model, "--data", str(codis), "--out", "results", "--quiet"]
    assert main(["run", "codis:captions", "--set", "captions=captions.json", *asking]) == 0
    records = json.loads((codis / "data.json").read_text())
    shown = {
        (record["question"], context, captions()[record["image_id"]])
        for record in records
        for context in record["context"].values()
    }
    assert (server.stats()["with_image"], server.stats()["requests"]) == (0, len(shown))
    result = json.loads(Path("results/metrics.json").read_text())
    assert (result["samples"], result["probes"], result["errors"]) == (len(records), 2 * len(records), 0)
    capsys.readouterr()


def test_broken_images_are_listed_and_the_rest_is_written(
    codis: Path, mock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    server = mock()
    first, second, *rest = image_ids(codis)
    (codis / "images" / first).unlink()
    (codis / "images" / second).write_text("no image")
    assert build(codis, server) == 1
    assert list(captions()) == rest
    told = capsys.readouterr().err
    assert f"2 of {IMAGES} images have no caption and are left out" in told
    assert f"no such image: {first}" in told
    assert "not an image in a known format" in told
    assert build(codis, server, "--dry-run") == 0
    assert f"broken: {first}: no such image" in capsys.readouterr().out


def test_calls_that_fail_cost_no_other_caption_and_are_asked_again(
    codis: Path, mock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    server = mock("--fail-rate", "0.3", "--fail-codes", "400", "--words", "a wall")
    assert build(codis, server) == 1
    said = captions()
    assert 0 < len(said) < IMAGES
    assert f"{IMAGES - len(said)} of {IMAGES} images have no caption" in capsys.readouterr().err
    asked = server.stats()["requests"]
    assert build(codis, server, *OFF) == 1
    assert server.stats()["requests"] == asked == IMAGES
    for _ in range(30):
        if build(codis, server, "--retry-errors", *OFF) == 0:
            break
    assert len(captions()) == IMAGES
    assert said.items() <= captions().items()
    assert server.stats()["ok"] == IMAGES


def test_empty_replies_are_no_captions(codis: Path, mock: Any, capsys: pytest.CaptureFixture[str]) -> None:
    server = mock("--words", " ")
    assert build(codis, server, "--limit", 2) == 1
    assert "the reply is empty" in capsys.readouterr().err
    assert not Path("captions.json").exists()
    assert build(codis, server, "--limit", 2) == 1
    assert server.stats()["requests"] == 2
    assert build(codis, server, "--limit", 2, "--retry-errors") == 1
    assert server.stats()["requests"] == 4


def test_the_budget_ends_asking_and_a_larger_one_goes_on(codis: Path, mock: Any) -> None:
    server = mock()
    assert build(codis, server, "--max-requests", 10) == 4
    assert len(captions()) == 10
    assert build(codis, server, *OFF) == 0
    assert server.stats()["requests"] == IMAGES == len(captions())


def test_a_dry_run_says_what_would_be_sent_and_leaves_nothing(
    codis: Path, mock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    server = mock()
    twin = codis / "images" / image_ids(codis)[0]
    shutil.copy(codis / "images" / image_ids(codis)[1], twin)
    assert build(codis, server, "--dry-run") == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"images {IMAGES} distinct images {IMAGES - 1} " in told
    assert f"cached requests 0 requests to send {IMAGES - 1}" in told
    assert not list(Path().iterdir())
    assert server.stats()["requests"] == 0


def test_corrections_by_humans_are_not_overwritten(
    codis: Path, mock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    server = mock("--words", "a wall")
    assert build(codis, server) == 0
    corrected = Path("captions.json").read_text().replace("a wall", "my own words", 1)
    Path("captions.json").write_text(corrected)
    assert build(codis, server) == 2
    assert "'my own words'" in capsys.readouterr().err
    assert Path("captions.json").read_text() == corrected
    assert build(codis, server, "--force") == 0
    assert set(captions().values()) == {"a wall"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--prompt", " "], "--prompt is empty"),
        (["--limit", "0"], "--limit"),
        (["--max-cost", "1"], "without a price"),
        (["--gen", "messages=[]"], "is not a sampling option"),
        (["--out", "."], "is a folder"),
        (["--out", "gone/captions.json"], "no such folder"),
        (["--promt", "x"], "did you mean '--prompt'"),
    ],
)
def test_a_wrong_call_is_told_before_anything_is_asked_or_written(
    codis: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    given = ["build", "caption", str(codis), "--model", "http://127.0.0.1:9/v1#none"]
    assert main([*given, *(() if "--out" in words else ("--out", "c.json")), *words]) == 2
    assert message in capsys.readouterr().err
    assert not list(Path().iterdir())


def test_nothing_that_can_be_shown_is_the_callers_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").touch()
    assert main(["build", "caption", "photos", "--model", "baseline/chance", "--out", "c.json"]) == 2
    assert "all 1 images are dropped (a.png: the file is empty)" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]


@pytest.mark.slow
def test_an_interruption_loses_no_answer(codis: Path, tmp_path: Path, mock: Any, start: Any) -> None:
    server = mock("--latency-ms", "100")
    words = ["build", "caption", codis, "--model", server.model, "--out", "captions.json", *OFF]
    process = start(*words, "--concurrency", 4)
    while server.stats()["ok"] < 20:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    status, _, told = process.end()
    assert (status, "run the same command" in told) == (130, True)
    asked = server.stats()["requests"]
    assert asked < IMAGES
    status, out, _ = start(*words).end()
    assert (status, f"{IMAGES} captions" in out) == (0, True)
    assert server.stats()["requests"] <= IMAGES + 4
    assert len(captions(str(tmp_path / "captions.json"))) == IMAGES
