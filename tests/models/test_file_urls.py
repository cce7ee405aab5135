"""file:// URLs for servers that Sightline starts: which images are sent so, and what happens if it fails."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image

from sightline.errors import UserError
from sightline.images import ImageLimits, inspect_image, transform_for
from sightline.models.registry import ModelOptions, resolve
from sightline.types import Answer, Failure, ImageFile, ImageRef, Request, user

PROGRAM = f"{sys.executable} {Path(__file__).with_name('stand_in.py')}"
FLAG = "--allowed-local-media-path"


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[Any]]:
    """What the server wrote of itself, by name."""
    monkeypatch.setenv("STAND_IN", str(tmp_path / "told.jsonl"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def read(name: str) -> list[Any]:
        lines = [json.loads(line) for line in (tmp_path / "told.jsonl").read_text().splitlines()]
        return [line[name] for line in lines if name in line]

    return read


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def _image(path: Path, **limits: Any) -> ImageFile:
    Image.effect_noise((30, 20), 60).convert("RGB").save(path)
    file = inspect_image(ImageRef(str(path), str(path.parent)), {})
    return replace(file, transform=transform_for(file, ImageLimits(**limits)))


def _model(data: Path | None, spec: str = "vllm/org/llava", flags: str = "", **args: Any) -> Any:
    arguments = {"executable": PROGRAM, "flags": flags, "file_urls": True, **args}
    (model,) = resolve(spec, ModelOptions(args=arguments, images=data))
    return model


def _ask(model: Any, *files: ImageFile) -> list[Answer | Failure]:
    async def run() -> list[Answer | Failure]:
        async with model:
            requests = [
                Request("key", (user(ImageRef(file.path), "?"),), {}, {file.path: file}) for file in files
            ]
            return [result for one in requests async for _, result in model.answer([one])]

    return asyncio.run(run())


def _urls(told: Callable[[str], list[Any]]) -> list[str]:
    return [messages[0]["content"][0]["image_url"]["url"] for messages in told("asked")]


def test_vllm_reads_the_images_of_the_data_folder_and_no_other_files(told: Any, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    names = ["a.jpg", "b c.png", "100%.png", "%20?#.png", "ü語.webp"]
    inside = [_image(data / name) for name in names]
    outside = _image(tmp_path / "outside.png")
    (data / "link.png").symlink_to(outside.path)
    linked = inspect_image(ImageRef(str(data / "link.png"), str(tmp_path)), {})
    small = _image(data / "large.png", max_side=10)
    model = _model(data)
    results = _ask(model, *inside, outside, linked, small)
    assert all(isinstance(result, Answer) for result in results)
    assert [url.partition(":")[0] for url in _urls(told)] == ["file"] * len(names) + ["data"] * 3
    assert [digest for (digest,) in told("images")][:-1] == [
        file.digest for file in (*inside, outside, linked)
    ]
    (arguments,) = told("arguments")
    assert arguments[arguments.index(FLAG) + 1] == str(data.resolve())
    traffic = model.image_traffic()
    assert (traffic.sent > 0, traffic.not_sent > 0, traffic.resent) == (True, True, 0)
    assert traffic.not_sent == sum(len(f"data:{_media(file)};base64,") + _base64(file) for file in inside)


def _media(file: ImageFile) -> str:
    return f"image/{file.format.lower()}"


def _base64(file: ImageFile) -> int:
    return (file.stamp[0] + 2) // 3 * 4


def test_sglang_has_no_such_flag_and_reads_every_path(told: Any, data: Path) -> None:
    file = _image(data / "a.jpg")
    (result,) = _ask(_model(data, "sglang/org/llava", "--reads-all"), file)
    assert isinstance(result, Answer)
    assert _urls(told) == [f"file://{file.path}"]
    assert FLAG not in told("arguments")[0]


def test_a_server_that_refuses_files_gets_data_and_a_note_says_so_once(
    told: Any, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [_image(data / f"{number}.png") for number in range(3)]
    model = _model(data, "sglang/org/llava")
    results = _ask(model, *files)
    assert all(isinstance(result, Answer) for result in results)
    assert [url.partition(":")[0] for url in _urls(told)] == ["data"] * 3
    assert [digest for (digest,) in told("images")] == [file.digest for file in files]
    err = capsys.readouterr().err
    assert err.count("the server reads no files, so images are sent as data") == 1
    assert "Cannot load local files" in err
    traffic = model.image_traffic()
    assert (traffic.not_sent, traffic.resent) == (0, 1)


def test_a_file_that_changed_is_not_asked_about(told: Any, data: Path) -> None:
    first, changed = _image(data / "a.png"), _image(data / "b.png")
    Image.new("RGB", (9, 9)).save(changed.path)
    answer, failure = _ask(_model(data), first, changed)
    assert isinstance(answer, Answer)
    assert isinstance(failure, Failure)
    assert (failure.kind, "changed during the run" in failure.message) == ("permanent", True)
    assert len(told("asked")) == 1


def test_a_file_that_changes_while_the_server_reads_it_has_no_answer(told: Any, data: Path) -> None:
    """The server may have read either image."""
    file = _image(data / "a.png")
    model = _model(data, flags="--seconds 0.3")

    async def run() -> list[Answer | Failure]:
        async with model:
            request = Request("key", (user(ImageRef(file.path), "?"),), {}, {file.path: file})
            asyncio.get_running_loop().call_later(0.1, os.utime, file.path, (1, 1))
            return [result async for _, result in model.answer([request])]

    (result,) = asyncio.run(run())
    assert isinstance(result, Failure)
    assert "changed during the run" in result.message


@pytest.mark.parametrize(
    ("executable", "file_urls", "is_read"),
    [
        (sys.executable, None, True),
        (sys.executable, False, False),
        # It may start the server in a container, which does not have the folder.
        (PROGRAM, None, False),
        (PROGRAM, True, True),
    ],
)
def test_a_program_with_arguments_reads_files_only_on_request(
    data: Path, executable: str, file_urls: bool | None, is_read: bool
) -> None:
    args = {"executable": executable, "file_urls": file_urls}
    (model,) = resolve("vllm/org/llava", ModelOptions(args=args, images=data))
    assert model.capabilities.references is is_read


def test_the_whole_file_system_is_never_allowed() -> None:
    assert not _model(Path("/")).capabilities.references
    assert not _model(None).capabilities.references
    with pytest.raises(UserError, match=f"{FLAG} is chosen by Sightline"):
        _model(None, flags=f"{FLAG} /")


def test_the_way_in_which_images_are_sent_is_no_part_of_the_identity(data: Path) -> None:
    assert _model(data).identity == _model(data, file_urls=False).identity == _model(None).identity
