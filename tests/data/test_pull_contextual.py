"""`data pull contextual`: the records at their pinned revision, then their images."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.data.hostile import Hostile, drawn, files, hostile, noise, page

from sightline.benchmarks.base import Release
from sightline.benchmarks.contextual.benchmark import Contextual
from sightline.cli.main import main
from sightline.data.pull import image_paths, pull, releases

__all__ = ["hostile"]

CONTEXTUAL = releases()["contextual"]
NAMES = ("contextual_test.csv", "contextual_val.csv")
Capture = pytest.CaptureFixture[str]


def released(urls: list[str]) -> bytes:
    """Records of these images as a csv file."""
    out = io.StringIO(newline="")
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["image_url", "instruction", "category"])
    rows.writerows([url, "What is written there, and why?", "time"] for url in urls)
    return out.getvalue().encode()


@pytest.fixture
def origin(hostile: Hostile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the records of a small release, whose images the server has; known as contextual."""
    hostile.serve({f"/time-images/{name}.png": page(drawn(ord(name))) for name in "abc"})
    urls = [hostile.url(path) for path in hostile.pages]
    folder = tmp_path / "origin"
    folder.mkdir()
    records = []
    for one, content in zip(CONTEXTUAL.records, (released(urls), released(urls[1:])), strict=True):
        (folder / one.name).write_bytes(content)
        records.append(replace(one, sha256=hashlib.sha256(content).hexdigest()))
    source = replace(CONTEXTUAL, records=tuple(records))
    monkeypatch.setattr(Contextual, "release", source)
    return folder


@pytest.fixture
def call(origin: Path, tmp_path: Path) -> Callable[..., int]:
    """Runs the command, from the small release into a folder of its own."""

    def run(*words: str) -> int:
        return main(
            ["data", "pull", "contextual", "--from", str(origin), "--to", str(tmp_path / "to"), *words]
        )

    return run


def test_the_released_records_have_the_pinned_digests(shared: Path, tmp_path: Path) -> None:
    origin = str(shared / "data/contextual")
    assert pull(CONTEXTUAL, tmp_path, origin=origin) == (tmp_path / "contextual", True)
    assert files(tmp_path) == [f"contextual/{name}" for name in NAMES]
    assert pull(CONTEXTUAL, tmp_path) == (tmp_path / "contextual", False)


def test_the_506_images_of_the_paper_are_requested_once_although_val_is_a_part_of_test(shared: Path) -> None:
    wanted = image_paths(CONTEXTUAL, shared / "data/contextual")
    assert len(wanted) == 506
    assert len({path.casefold() for path in wanted.values()}) == 506
    assert all(path.startswith("images/") for path in wanted.values())
    assert {url.split("/")[2] for url in wanted} == {"textvision-data-quality.s3.us-west-1.amazonaws.com"}


def test_records_and_images_are_pulled_once(
    hostile: Hostile, call: Callable[..., int], tmp_path: Path, capsys: Capture
) -> None:
    assert call("--allow-private", "--quiet") == 0
    said = capsys.readouterr().out
    assert f"{tmp_path}/to/contextual: rohan598/ConTextual at {CONTEXTUAL.revision}\n" in said
    assert "arXiv:2401.13311" in said
    assert "licence: none is stated" in said
    assert "images: 3; present 0, downloaded 3, missing 0" in said
    images = [f"images/time-images/{name}.png" for name in "abc"]
    assert files(tmp_path / "to/contextual") == [*NAMES, "image_manifest.json", *images]

    assert call("--allow-private", "--quiet") == 0
    said = capsys.readouterr().out
    assert ", already present\n" in said
    assert "images: 3; present 3, downloaded 0, missing 0" in said
    assert len(hostile.asked) == 3


def test_a_truncated_image_of_the_other_folder_is_reported(
    hostile: Hostile, origin: Path, call: Callable[..., int], capsys: Capture
) -> None:
    """Even if its URL fails, which is reported separately."""
    hostile.pages["/time-images/b.png"] = page(status="404 Not Found")
    images = origin / "images/time-images"
    images.mkdir(parents=True)
    whole = noise(64)
    for name, content in (("a", whole), ("b", whole[: len(whole) // 2]), ("c", drawn(3))):
        (images / f"{name}.png").write_bytes(content)
    assert call("--allow-private", "--quiet") == 1
    told = capsys.readouterr()
    assert "present 2, downloaded 0, missing 1" in told.out
    (line,) = told.err.splitlines()
    assert line.startswith(f"not usable: {images}/b.png: the file ends too early")
    assert call("--allow-private", "--quiet", "--json") == 1
    (kept,) = json.loads(capsys.readouterr().out)["images"]["unusable"]
    assert line == f"not usable: {kept}"


def test_missing_images_are_a_table_by_reason_and_exit_status_1(
    hostile: Hostile, call: Callable[..., int], tmp_path: Path, capsys: Capture
) -> None:
    for name in "ab":
        hostile.pages[f"/time-images/{name}.png"] = page(status="404 Not Found")
    assert call("--allow-private", "--quiet") == 1
    said = capsys.readouterr().out
    assert "downloaded 1, missing 2" in said
    assert "HTTP 404" in said
    assert "run the same command to try again" in " ".join(said.split())

    assert call("--allow-private", "--quiet", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["repository"], told["fetched"]) == ("rohan598/ConTextual", False)
    found = told["images"]
    assert (found["requested"], found["present"], found["downloaded"]) == (3, 1, 0)
    assert found["missing"][hostile.url("/time-images/a.png")] == {
        "path": "images/time-images/a.png",
        "reason": "HTTP 404",
        "detail": "Not Found",
    }


def test_private_addresses_need_allow_private(
    hostile: Hostile, call: Callable[..., int], capsys: Capture
) -> None:
    assert call("--quiet") == 1
    assert "127.0.0.1 is not a public address (loopback)" in " ".join(capsys.readouterr().out.split())
    assert hostile.connections == 0


def test_images_of_a_folder_need_no_network(
    hostile: Hostile, call: Callable[..., int], origin: Path, tmp_path: Path, capsys: Capture
) -> None:
    (origin / "images/time-images").mkdir(parents=True)
    for name in "abc":
        (origin / f"images/time-images/{name}.png").write_bytes(drawn(ord(name)))
    assert call("--quiet") == 0
    assert "present 3, downloaded 0" in capsys.readouterr().out
    assert hostile.connections == 0
    shutil.rmtree(origin)
    assert call("--quiet") == 0


def test_a_folder_of_other_records_is_wrong_input(
    call: Callable[..., int], origin: Path, tmp_path: Path, capsys: Capture
) -> None:
    (origin / NAMES[0]).write_bytes(released([]))
    assert call("--quiet") == 2
    said = capsys.readouterr().err
    assert "data/contextual_test.csv has the SHA-256" in said
    assert "or a folder with contextual_test.csv, contextual_val.csv of that revision" in said
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pull", "codis", "--allow-private"], "--allow-private has no effect: codis has no images by URL"),
        (["check", "codis", "--allow-private"], "unknown option --allow-private"),
    ],
)
def test_allow_private_is_only_for_data_sets_with_urls(
    words: list[str], message: str, capsys: Capture
) -> None:
    assert main(["data", *words]) == 2
    assert message in capsys.readouterr().err


def test_the_images_of_a_release_come_from_one_place() -> None:
    for source in releases().values():
        assert isinstance(source, Release)
        assert [bool(source.images), bool(source.image_urls), bool(source.elsewhere)].count(True) == 1
