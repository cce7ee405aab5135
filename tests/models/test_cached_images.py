"""Images that a vLLM server has cached: bytes are sent once, then the uuid; again after a miss."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image
from tests.models.image_cache_server import ImageCacheServer

import sightline
from sightline.cli.printing import saved_lines
from sightline.errors import UserError
from sightline.images import ImageLimits, inspect_image, transform_for
from sightline.models.openai import OpenAICompatible
from sightline.models.registry import ModelOptions, resolve
from sightline.types import Answer, Failure, ImageFile, ImageRef, Request, user

MakeImage = Callable[..., ImageFile]


@pytest.fixture
def image(tmp_path: Path) -> MakeImage:
    """Makes an inspected image of a colour."""

    def make(name: str, colour: int = 0) -> ImageFile:
        path = tmp_path / name
        Image.new("RGB", (30, 20), (colour, 0, 0)).save(path)
        return inspect_image(ImageRef(str(path), str(tmp_path)), {})

    return make


def _request(*files: ImageFile, sampling: Mapping[str, Any] | None = None) -> Request:
    images = {file.path: file for file in files}
    return Request(
        "key", (user(*(ImageRef(path) for path in images), "What is it?"),), sampling or {}, images
    )


def _model(address: str, **args: Any) -> OpenAICompatible:
    (model,) = resolve(f"{address}#m", ModelOptions(args={"uuid": True, **args}))
    assert isinstance(model, OpenAICompatible)
    return model


async def _ask(model: OpenAICompatible, request: Request) -> Answer | Failure:
    (result,) = [result async for _, result in model.answer([request])]
    return result


def _with(server: ImageCacheServer, use: Callable[[OpenAICompatible], Awaitable[None]], **args: Any) -> None:
    async def run() -> None:
        async with server.running() as address, _model(address, **args) as model:
            await use(model)

    asyncio.run(run())


def _content(file: ImageFile) -> bytes:
    return Path(file.path).read_bytes()


def test_the_bytes_of_an_image_are_sent_once_and_then_its_uuid(image: MakeImage) -> None:
    server, file = ImageCacheServer(), image("a.png")

    async def use(model: OpenAICompatible) -> None:
        for _ in range(3):
            result = await _ask(model, _request(file))
            assert isinstance(result, Answer)
            assert result.text == file.digest
        traffic = model.image_traffic()
        assert traffic is not None
        assert (traffic.not_sent, traffic.resent) == (2 * traffic.sent, 0)
        assert traffic.sent > len(_content(file))

    _with(server, use)
    uuid = hashlib.sha256(_content(file)).hexdigest()
    assert server.asked == [[{"data": _content(file), "uuid": uuid}], [{"uuid": uuid}], [{"uuid": uuid}]]


def test_the_uuid_of_a_re_encoded_image_is_the_digest_of_the_bytes_that_are_sent(image: MakeImage) -> None:
    server = ImageCacheServer()
    plain = image("a.png")
    small = replace(plain, transform=transform_for(plain, ImageLimits(max_side=10)))

    async def use(model: OpenAICompatible) -> None:
        for file in (plain, small, plain, small):
            assert isinstance(await _ask(model, _request(file)), Answer)

    _with(server, use)
    (first,), (second,), (third,), (fourth,) = server.asked
    assert second["data"] != first["data"]
    assert second["uuid"] == hashlib.sha256(second["data"]).hexdigest()
    assert (third, fourth) == ({"uuid": first["uuid"]}, {"uuid": second["uuid"]})
    assert not server.wrong


def test_of_two_images_in_a_request_only_the_new_one_is_sent(image: MakeImage) -> None:
    server, one, two = ImageCacheServer(), image("1.png", 1), image("2.png", 2)

    async def use(model: OpenAICompatible) -> None:
        await _ask(model, _request(one))
        result = await _ask(model, _request(two, one))
        assert isinstance(result, Answer)
        assert result.text == f"{two.digest} {one.digest}"

    _with(server, use)
    assert server.asked[1] == [{"data": _content(two), "uuid": two.digest}, {"uuid": one.digest}]


def test_requests_in_flight_with_the_same_new_image_all_send_its_bytes(image: MakeImage) -> None:
    """None of them may rely on another one, which may fail."""
    server, file = ImageCacheServer(), image("a.png")

    async def use(model: OpenAICompatible) -> None:
        server.hold.clear()
        both = asyncio.gather(_ask(model, _request(file)), _ask(model, _request(file)))
        while len(server.asked) < 2:
            await asyncio.sleep(0.001)
        server.hold.set()
        assert all(isinstance(result, Answer) for result in await both)

    _with(server, use)
    assert [[*shown] for (shown,) in server.asked] == [["data", "uuid"], ["data", "uuid"]]
    assert server.refused == 0


def test_an_image_whose_request_failed_does_not_count_as_cached(image: MakeImage) -> None:
    server, file = ImageCacheServer(), image("a.png")

    async def use(model: OpenAICompatible) -> None:
        await _ask(model, _request())
        server.failing = (503, "overloaded")
        assert isinstance(await _ask(model, _request(file)), Failure)
        server.failing = None
        assert isinstance(await _ask(model, _request(file)), Answer)

    _with(server, use)
    assert [[*shown] for (shown,) in server.asked[1:]] == [["data", "uuid"], ["data", "uuid"]]


def test_after_a_restart_of_the_server_the_bytes_are_sent_again(image: MakeImage) -> None:
    server, files = ImageCacheServer(), [image(f"{number}.png", number) for number in range(5)]

    async def use(model: OpenAICompatible) -> None:
        for file in files:
            await _ask(model, _request(file))
        server.restart()
        for file in reversed(files):
            result = await _ask(model, _request(file))
            assert isinstance(result, Answer)
            assert result.text == file.digest
        traffic = model.image_traffic()
        assert traffic is not None
        # The server drops what was not used for longest: without the last image it has none of the others.
        assert (traffic.resent, server.refused) == (1, 1)

    _with(server, use)


def test_a_cache_that_is_too_small_changes_no_answer(image: MakeImage) -> None:
    server, files = ImageCacheServer(size=3), [image(f"{number}.png", number) for number in range(8)]
    shared = image("shared.png", 99)

    async def use(model: OpenAICompatible) -> None:
        for number in range(40):
            file = files[number * number % 8]
            result = await _ask(model, _request(shared, file))
            assert isinstance(result, Answer)
            assert result.text == f"{shared.digest} {file.digest}"
        traffic = model.image_traffic()
        assert traffic is not None
        assert traffic.resent == server.refused > 0

    _with(server, use)
    assert not server.wrong
    assert sum("data" in shown for (shown, _) in server.asked) <= 1 + server.refused


def test_what_one_host_has_cached_is_sent_to_another(image: MakeImage) -> None:
    first, second, file = ImageCacheServer(), ImageCacheServer(), image("a.png")

    async def run() -> None:
        async with first.running() as one, second.running() as two:
            models = resolve(f"{one},{two}#m", ModelOptions(args={"uuid": True}))
            for model in models:
                assert isinstance(model, OpenAICompatible)
                async with model:
                    assert isinstance(await _ask(model, _request(file)), Answer)

    asyncio.run(run())
    assert "data" in first.asked[0][0]
    assert "data" in second.asked[0][0]
    assert (first.refused, second.refused) == (0, 0)


def test_options_for_the_processor_of_images_are_part_of_the_uuid(image: MakeImage) -> None:
    server, file = ImageCacheServer(), image("a.png")

    async def use(model: OpenAICompatible) -> None:
        for pixels in (None, 100, 200, 100):
            sampling = {} if pixels is None else {"mm_processor_kwargs": {"max_pixels": pixels}}
            await _ask(model, _request(file, sampling=sampling))

    _with(server, use)
    plain, low, high, again = (shown["uuid"] for (shown,) in server.asked)
    assert plain == file.digest
    assert len({plain, low, high}) == 3
    assert again == low


def test_images_with_a_detail_are_sent_with_their_bytes_because_a_uuid_has_no_place_for_it(
    image: MakeImage,
) -> None:
    server, file = ImageCacheServer(), image("a.png")

    async def use(model: OpenAICompatible) -> None:
        for _ in range(2):
            await _ask(model, _request(file, sampling=model.effective({})))

    _with(server, use, detail="low")
    assert server.asked == [[{"data": _content(file)}]] * 2


def test_a_request_that_is_too_long_is_not_sent_again_with_the_bytes(image: MakeImage) -> None:
    server, file = ImageCacheServer(), image("a.png")

    async def use(model: OpenAICompatible) -> None:
        await _ask(model, _request(file))
        server.failing = (400, "This model's maximum context length is 8 tokens.")
        result = await _ask(model, _request(file))
        assert isinstance(result, Failure)
        assert result.kind == "blocked"

    _with(server, use)
    assert len(server.asked) == 2


@pytest.mark.parametrize("failing", [(500, "out of memory"), (503, "overloaded"), (429, "slow down")])
def test_a_server_that_fails_is_not_asked_at_once_again(image: MakeImage, failing: tuple[int, str]) -> None:
    """The engine retries such requests after a delay; the image stays cached."""
    server, file = ImageCacheServer(), image("a.png")

    async def use(model: OpenAICompatible) -> None:
        await _ask(model, _request(file))
        server.failing = failing
        assert isinstance(await _ask(model, _request(file)), Failure)
        server.failing = None
        assert isinstance(await _ask(model, _request(file)), Answer)

    _with(server, use)
    assert [[*shown] for (shown,) in server.asked] == [["data", "uuid"], ["uuid"], ["uuid"]]


def test_a_server_that_ignores_uuids_is_refused_before_it_answers_without_an_image() -> None:
    server = ImageCacheServer()
    server.ignores = True

    async def use(model: OpenAICompatible) -> None:
        raise AssertionError("opened")

    with pytest.raises(UserError, match="ignores the uuid of an image"):
        _with(server, use)
    assert not server.asked


def test_a_server_that_refuses_uuids_gets_bytes_without_them_from_then_on(
    image: MakeImage, capsys: pytest.CaptureFixture[str]
) -> None:
    server, files = ImageCacheServer(), [image("1.png", 1), image("2.png", 2)]
    server.refuses = True

    async def use(model: OpenAICompatible) -> None:
        for file in (*files, files[0]):
            result = await _ask(model, _request(file))
            assert isinstance(result, Answer)
            assert result.text == file.digest

    _with(server, use)
    assert [[*shown] for (shown,) in server.asked] == [["data", "uuid"], ["data"], ["data"], ["data"]]
    notes = capsys.readouterr().err
    assert notes.count("takes no uuids") == 1
    assert "unknown field uuid" in notes


def test_a_request_that_is_wrong_without_uuids_too_leaves_them_on(image: MakeImage) -> None:
    server, file = ImageCacheServer(), image("a.png")

    async def use(model: OpenAICompatible) -> None:
        server.failing = (400, "this image is too small")
        assert isinstance(await _ask(model, _request(file)), Failure)
        server.failing = None
        for _ in range(2):
            assert isinstance(await _ask(model, _request(file)), Answer)

    _with(server, use)
    shown = [[*shown] for (shown,) in server.asked]
    assert shown == [["data", "uuid"], ["data"], ["data", "uuid"], ["uuid"]]


def test_without_the_argument_no_uuid_is_sent_and_nothing_is_counted(image: MakeImage) -> None:
    server, file = ImageCacheServer(), image("a.png")

    async def use(model: OpenAICompatible) -> None:
        for _ in range(2):
            await _ask(model, _request(file))
        assert model.image_traffic() is None

    _with(server, use, uuid=False)
    assert server.asked == [[{"data": _content(file)}]] * 2
    assert server.probes == 0


@pytest.mark.parametrize("spec", ["openai/gpt-4o", "vllm/org/llava"])
def test_only_endpoints_that_the_user_names_have_the_argument(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with pytest.raises(UserError, match="uuid"):
        resolve(spec, ModelOptions(args={"uuid": True}, keyless=True))


def test_a_batch_cannot_refer_to_images() -> None:
    with pytest.raises(UserError, match="uuid has no effect with --batch"):
        resolve("http://127.0.0.1:1/v1#m", ModelOptions(args={"uuid": True}, batch=True))


def _run(tmp_path: Path, address: str, groups: Path, concurrency: int = 1, **args: Any) -> Any:
    return sightline.arun(
        f"groups:{groups}",
        model=f"{address}#m",
        store=str(tmp_path / "s.db"),
        concurrency=concurrency,
        fingerprint="off",
        judge=["rules"],
        model_arg=args,
    )


def _groups(tmp_path: Path, *names: str) -> Path:
    """A file with six prompts for each image."""
    file = tmp_path / "groups.jsonl"
    lines = [
        {"group": name, "variant": str(number), "images": [name], "prompt": f"Is it {number}?"}
        for name in names
        for number in range(6)
    ]
    shown = {"options": ["yes", "no"], "references": ["A"]}
    file.write_text("".join(json.dumps(line | shown) + "\n" for line in lines))
    return file


def test_a_run_has_the_same_keys_and_says_which_bytes_it_did_not_send(
    tmp_path: Path, image: MakeImage
) -> None:
    image("a.png")
    server, groups = ImageCacheServer(), _groups(tmp_path, "a.png")

    async def twice() -> tuple[Any, Any]:
        async with server.running() as address:
            return await _run(tmp_path, address, groups, uuid=True), await _run(tmp_path, address, groups)

    first, second = asyncio.run(twice())
    assert first.counts.sent == len(server.asked) == 6
    images = first.counts.images
    assert images.not_sent == 5 * images.sent > 0
    assert (second.counts.sent, second.counts.cached, second.counts.images.not_sent) == (0, 6, 0)
    assert saved_lines(first.counts) == [
        f"{images.sent:,} bytes of images sent, {images.not_sent:,} not sent"
    ]
    assert saved_lines(second.counts) == []


def test_concurrent_requests_of_a_run_wait_for_the_first_answer_with_an_image(
    tmp_path: Path, image: MakeImage
) -> None:
    """The order puts the probes of an image next to each other; other images are sent first."""
    names = [f"{number}.png" for number in range(20)]
    for number, name in enumerate(names):
        image(name, number)
    server, groups = ImageCacheServer(seconds=0.01), _groups(tmp_path, *names)

    async def run() -> Any:
        async with server.running() as address:
            return await _run(tmp_path, address, groups, concurrency=8, uuid=True)

    asyncio.run(run())
    assert len(server.asked) == 120
    assert sum("data" in shown for (shown,) in server.asked) < 60
    assert server.refused == 0
