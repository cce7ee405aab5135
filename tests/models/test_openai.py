"""The OpenAI-compatible model against a server in the same process: what is sent, what comes of replies."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace
from PIL import Image

from sightline.errors import UserError
from sightline.images import ImageLimits, data_url, inspect_image, transform_for
from sightline.models import chat, http_client
from sightline.models.chat import INLINE_BYTES
from sightline.models.openai import Endpoint, EndpointArgs, OpenAICompatible
from sightline.types import Answer, Failure, ImageFile, ImageRef, Message, Request, Text, user

DEEP_LIST = '{"data": [], "more": ' + "[" * 100_000 + "]" * 100_000 + "}"
KEY = "sk-planted/0123+456=="
Handler = Callable[[dict[str, Any], web.Request], Awaitable[web.StreamResponse]]


def _reply(text: str | None = "(B)", **more: Any) -> web.Response:
    message = {"role": "assistant", "content": text, **more.pop("message", {})}
    choice = {"index": 0, "message": message, "finish_reason": more.pop("finish_reason", "stop")}
    return web.json_response({"choices": [choice], **more})


@contextlib.asynccontextmanager
async def _server(handler: Handler, models: Handler | None = None) -> AsyncIterator[str]:
    """The address of a server whose replies the handler makes from the decoded body.

    `models` makes its replies to GET /v1/models.
    """

    async def handle(request: web.Request) -> web.StreamResponse:
        return await handler(json.loads(await request.read()), request)

    app = web.Application(client_max_size=2**28)
    app.router.add_post("/v1/chat/completions", handle)
    if models is not None:

        async def listed(request: web.Request) -> web.StreamResponse:
            return await models({}, request)

        app.router.add_get("/v1/models", listed)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        await runner.cleanup()


def _model(address: str, model: str = "m", **options: Any) -> OpenAICompatible:
    key = options.pop("key", None)
    endpoint = Endpoint(address=address, model=model, name="name", identity="identity", key=key)
    return OpenAICompatible(endpoint, EndpointArgs(**options))


def _request(
    *messages: Message,
    sampling: Mapping[str, Any] | None = None,
    files: tuple[ImageFile, ...] = (),
    draw: int = 0,
) -> Request:
    asked = messages or (user("Is it day?"),)
    return Request("key", asked, sampling or {}, {file.path: file for file in files}, draw)


def ask(handler: Handler, *requests: Request, **options: Any) -> list[Answer | Failure]:
    """What comes of requests sent one after another."""

    async def run() -> list[Answer | Failure]:
        async with _server(handler) as address, _model(address, **options) as model:
            return [
                result for request in requests or (_request(),) async for _, result in model.answer([request])
            ]

    return asyncio.run(run())


def sent(*requests: Request, **options: Any) -> list[dict[str, Any]]:
    """The bodies that requests become."""
    bodies: list[dict[str, Any]] = []

    async def handler(body: dict[str, Any], _: web.Request) -> web.Response:
        bodies.append(body)
        return _reply()

    results = ask(handler, *requests, **options)
    assert all(isinstance(result, Answer) for result in results)
    return bodies


def answers(response: Callable[[], web.StreamResponse], **options: Any) -> Answer | Failure:
    """What comes of a request to which the server responds so."""

    async def handler(_: dict[str, Any], __: web.Request) -> web.StreamResponse:
        return response()

    return ask(handler, **options)[0]


@pytest.fixture
def image(tmp_path: Path) -> Callable[..., ImageFile]:
    """Makes an image file that was looked at, with what must be done to it."""

    def make(name: str, size: tuple[int, int] = (40, 30), **limits: Any) -> ImageFile:
        path = tmp_path / name
        Image.effect_noise(size, 60).convert("RGB").save(path)
        file = inspect_image(ImageRef(str(path), str(tmp_path)), {})
        return replace(file, transform=transform_for(file, ImageLimits(**limits)))

    return make


# What is sent


def test_the_body_is_as_the_protocol_wants_it() -> None:
    (body,) = sent(
        _request(Message("system", (Text("Be brief."),)), user("Is it day?"), sampling={"max_tokens": 9})
    )
    assert body == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Is it day?"}],
        "max_tokens": 9,
    }


@pytest.mark.parametrize(
    ("name", "media"),
    [("a.jpg", "image/jpeg"), ("a.png", "image/png"), ("a.webp", "image/webp"), ("a.gif", "image/gif")],
)
def test_a_image_goes_as_its_original_bytes_in_its_place(
    image: Callable[..., ImageFile], name: str, media: str
) -> None:
    file = image(name)
    (body,) = sent(_request(user("Before.", ImageRef(file.path), "After."), files=(file,)))
    first, shown, last = body["messages"][0]["content"]
    assert (first, last) == ({"type": "text", "text": "Before."}, {"type": "text", "text": "After."})
    assert shown["type"] == "image_url"
    head, _, data = shown["image_url"]["url"].partition(",")
    assert head == f"data:{media};base64"
    assert base64.b64decode(data) == Path(file.path).read_bytes()
    assert "detail" not in shown["image_url"]


@pytest.mark.parametrize(
    ("name", "limits", "media"),
    [
        ("a.bmp", {}, "png"),
        ("a.tiff", {}, "png"),
        ("a.png", {"max_side": 20}, "jpeg"),
        ("a.png", {"max_bytes": 900}, "jpeg"),
    ],
)
def test_a_image_that_the_server_would_not_take_is_re_encoded(
    image: Callable[..., ImageFile], name: str, limits: dict[str, int], media: str
) -> None:
    file = image(name, **limits)
    (body,) = sent(_request(user(ImageRef(file.path)), files=(file,)))
    head, _, data = body["messages"][0]["content"][0]["image_url"]["url"].partition(",")
    assert head == f"data:image/{media};base64"
    assert len(base64.b64decode(data)) <= limits.get("max_bytes", 10**6)


def test_a_re_encoded_image_is_made_once_for_all_probes_that_show_it(
    image: Callable[..., ImageFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def counted(file: ImageFile) -> bytes:
        made.append(file.path)
        return data_url(file)

    monkeypatch.setattr(chat, "data_url", counted)
    file = image("a.bmp", (300, 300))

    async def run() -> None:
        async def handler(body: dict[str, Any], _: web.Request) -> web.Response:
            return _reply()

        async def one(model: OpenAICompatible, text: str) -> None:
            async for _, result in model.answer([_request(user(ImageRef(file.path), text), files=(file,))]):
                assert isinstance(result, Answer)

        async with _server(handler) as address, _model(address) as model:
            await asyncio.gather(*(one(model, text) for text in ("context 1", "context 2", "context 3")))
            await one(model, "later")

    asyncio.run(run())
    assert made == [file.path]


def test_a_large_image_is_read_whole(image: Callable[..., ImageFile]) -> None:
    file = image("a.png", (1200, 1200))
    assert file.stamp[0] > INLINE_BYTES
    (body,) = sent(_request(user(ImageRef(file.path)), files=(file,)))
    data = body["messages"][0]["content"][0]["image_url"]["url"].partition(",")[2]
    assert base64.b64decode(data) == Path(file.path).read_bytes()


def test_a_image_that_changed_on_the_way_fails_its_request_alone(
    image: Callable[..., ImageFile],
) -> None:
    file = image("a.jpg")
    Path(file.path).write_bytes(b"other")

    async def handler(_: dict[str, Any], __: web.Request) -> web.Response:
        return _reply()

    shown = _request(user(ImageRef(file.path)), files=(file,))
    bad, good = ask(handler, shown, _request())
    assert isinstance(bad, Failure)
    assert bad.kind == "permanent"
    assert "changed during" in bad.message
    assert isinstance(good, Answer)


def test_the_detail_of_images_is_sent_with_them_and_is_part_of_what_is_asked(
    image: Callable[..., ImageFile],
) -> None:
    file = image("a.jpg")
    sampling = _model("http://h/v1", detail="low").effective({"temperature": 0})
    assert sampling == {"temperature": 0, "image_detail": "low"}
    (body,) = sent(_request(user(ImageRef(file.path)), files=(file,), sampling=sampling))
    assert body["messages"][0]["content"][0]["image_url"]["detail"] == "low"
    assert set(body) == {"model", "messages", "temperature"}


@pytest.mark.parametrize("model", ["o1", "o3-mini", "openai/o4-mini-2025-04-16", "gpt-5", "gpt-5-mini"])
def test_thinking_models_take_another_token_limit_and_no_temperature(model: str) -> None:
    wanted = {"max_tokens": 100, "temperature": 0, "top_p": 1, "seed": 3}
    assert _model("http://h/v1", model).effective(wanted) == {"max_completion_tokens": 100, "seed": 3}


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1", "llava-o1-7b", "mock", "gpt-50"])
def test_other_models_take_the_options_as_they_are(model: str) -> None:
    wanted = {"max_tokens": 100, "temperature": 0, "top_p": 1}
    assert _model("http://h/v1", model).effective(wanted) == wanted


def test_each_draw_has_a_seed_of_its_own_where_there_is_a_seed() -> None:
    bodies = sent(*(_request(sampling={"seed": 7}, draw=draw) for draw in range(3)), _request(draw=2))
    assert [body.get("seed") for body in bodies] == [7, 8, 9, None]


def test_the_key_goes_along_and_a_redirect_is_not_followed_with_it() -> None:
    seen: list[str | None] = []

    async def elsewhere(_: dict[str, Any], request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        return _reply()

    async def run() -> None:
        async with _server(elsewhere) as other:

            async def redirect(_: dict[str, Any], request: web.Request) -> web.Response:
                assert request.headers["Authorization"] == f"Bearer {KEY}"
                return web.Response(status=307, headers={"Location": f"{other}/chat/completions"})

            async with _server(redirect) as address, _model(address, key=KEY) as model:
                async for _ in model.answer([_request()]):
                    pass

    with pytest.raises(UserError, match="HTTP 307"):
        asyncio.run(run())
    assert seen == []


# What comes back


def test_an_answer_comes_with_all_that_the_server_said_of_it() -> None:
    usage = {
        "prompt_tokens": 12,
        "completion_tokens": 5,
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    answer = answers(lambda: _reply("(B)", model="m-2024", system_fingerprint="fp", usage=usage))
    assert isinstance(answer, Answer)
    assert (answer.text, answer.finish_reason, answer.version) == ("(B)", "stop", "m-2024 fp")
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.reasoning_tokens) == (
        12,
        5,
        3,
    )
    assert 0 < answer.latency < 5


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "permanent"), (422, "permanent"), (500, "transient"), (502, "transient"), (408, "transient")],
)
def test_a_status_says_whether_asking_again_may_help(status: int, kind: str) -> None:
    failure = answers(lambda: web.Response(status=status, text="went wrong"))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.status) == (kind, status)
    assert "went wrong" in failure.message


def test_a_server_says_when_to_come_back() -> None:
    failure = answers(lambda: web.Response(status=500, headers={"Retry-After": "12.5"}))
    assert isinstance(failure, Failure)
    assert failure.retry_after == 12.5


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_is_one_clear_error(status: int) -> None:
    with pytest.raises(UserError, match=rf"refuses the API key \(HTTP {status}\).*sightline\.toml"):
        answers(lambda: web.Response(status=status), key=KEY)
    with pytest.raises(UserError, match=rf"asks for an API key \(HTTP {status}\)"):
        answers(lambda: web.Response(status=status))


def test_an_address_or_model_that_does_not_exist_is_one_clear_error() -> None:
    with pytest.raises(UserError, match=r"does not exist or has no model 'm' \(HTTP 404\).*/v1#model"):
        answers(lambda: web.Response(status=404))


def test_once_something_was_answered_a_refusal_is_one_requests_failure() -> None:
    statuses = iter([200, 401, 403, 404, 200])

    async def handler(_: dict[str, Any], __: web.Request) -> web.Response:
        status = next(statuses)
        return _reply() if status == 200 else web.Response(status=status)

    results = ask(handler, *[_request()] * 5)
    kinds = [result.kind if isinstance(result, Failure) else "answer" for result in results]
    assert kinds == ["answer", "transient", "transient", "transient", "answer"]


def test_garbage_in_place_of_a_reply_is_transient() -> None:
    for text in (
        "",
        '{"choices": [{"mess',
        "<html>busy</html>",
        '{"choices": []}',
        "[" * 9999,
    ):
        failure = answers(lambda text=text: web.Response(text=text))  # type: ignore[misc]
        assert isinstance(failure, Failure)
        assert failure.kind == "transient"
        assert "not a chat completion" in failure.message


@pytest.mark.parametrize("said", [b"", b'{"choices"'])
def test_a_connection_that_drops_is_transient(said: bytes) -> None:
    async def handler(_: dict[str, Any], request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        if said:
            await response.prepare(request)
            await response.write(said)
        assert request.transport is not None
        request.transport.close()
        return response

    (failure,) = ask(handler)
    assert isinstance(failure, Failure)
    assert failure.kind == "transient"


def test_a_server_that_takes_too_long_is_transient() -> None:
    async def handler(_: dict[str, Any], __: web.Request) -> web.Response:
        await asyncio.sleep(5)
        return _reply()

    (failure,) = ask(handler, timeout=0.1)
    assert isinstance(failure, Failure)
    assert failure.kind == "transient"
    assert "no answer within 0.1 s" in failure.message


def test_a_server_that_sends_a_byte_now_and_then_meets_the_limit_of_the_whole_call() -> None:
    async def drip(_: dict[str, Any], request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _chunk in range(200):
            await response.write(b" ")
            await asyncio.sleep(0.02)
        return response

    (failure,) = ask(drip, timeout=0.2)
    assert isinstance(failure, Failure)
    assert failure.kind == "transient"
    assert "no answer within 0.2 s; --model-arg timeout=SECONDS" in failure.message


@pytest.mark.parametrize("coding", ["identity", "gzip", "deflate"])
def test_a_reply_over_the_limit_of_bytes_fails_alone(coding: str) -> None:
    """64 MB of blanks, which gzip makes 64 kB: they are neither received nor unpacked."""
    blanks = b" " * 2**20
    calls = 0

    async def handler(_: dict[str, Any], request: web.Request) -> web.StreamResponse:
        nonlocal calls
        calls += 1
        if calls != 1:
            return _reply()
        response = web.StreamResponse()
        if coding != "identity":
            response.enable_compression(web.ContentCoding(coding))
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            for _chunk in range(64):
                await response.write(blanks)
        return response

    tracemalloc.start()
    try:
        failure, answer = ask(handler, _request(), _request())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(failure, Failure)
    assert failure.kind == "permanent"
    assert f"the limit is {http_client.MAX_BYTES:,} bytes, decompressed" in failure.message
    assert "--gen max_tokens=N" in failure.message
    assert isinstance(answer, Answer)
    assert peak < 3 * http_client.MAX_BYTES


def test_the_body_of_an_error_over_the_limit_is_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_BYTES", 1000)
    failure = answers(lambda: web.Response(status=500, text="overloaded " * 10**6))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.status) == ("transient", 500)


@pytest.mark.parametrize("reply", [DEEP_LIST, " " * 2000 + '{"data": []}', '{"data": [{"id": "\\ud800"}]}'])
def test_a_list_of_models_over_a_limit_says_nothing(reply: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if reply.startswith(" "):
        monkeypatch.setattr(http_client, "MAX_BYTES", 1000)

    async def models(_: dict[str, Any], __: web.Request) -> web.Response:
        return web.Response(text=reply)

    async def run() -> Any:
        async with _server(models, models) as address, _model(address) as model:
            return await model.server_report()

    assert asyncio.run(run()) is None


def test_where_nothing_listens_entering_fails_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def run() -> None:
        async with _model(f"http://127.0.0.1:{port}/v1"):
            pass

    with pytest.raises(UserError, match=f"no server answers at 127.0.0.1:{port}.*start it"):
        asyncio.run(run())


def test_a_key_that_the_server_repeats_is_in_nothing_that_is_kept() -> None:
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    raw = '{"choices":[{"message":{"content":"%s"},"finish_reason":"stop"}],"model":"%s"}'

    responses = [
        lambda: web.Response(status=500, text=f"Bearer {KEY}"),
        lambda: web.Response(status=400, text="x" * 295 + KEY),
        lambda: web.Response(text=raw % (KEY, KEY), content_type="application/json"),
        lambda: web.Response(text=raw % (escaped, escaped), content_type="application/json"),
        lambda: web.Response(text=f"garbage {KEY}"),
        lambda: _reply(f"<think>{KEY}</think>{KEY}", model=KEY, finish_reason=KEY),
    ]
    for response in responses:
        result = answers(response, key=KEY)
        assert "sk-pl" not in repr(result), repr(result)
        assert "[key]" in repr(result) or len(repr(result)) > 300


@pytest.mark.parametrize(
    ("reply", "report"),
    [
        ({"data": [{"id": "x"}, {"id": "m", "root": "/w", "max_model_len": 9}]}, ("m", "/w", 9)),
        ({"data": [{"id": "m", "object": "model", "created": 1}]}, ("m", None, None)),
        ({"data": []}, (None, None, None)),
        ({"error": "no such page"}, None),
        ("not a list", None),
    ],
)
def test_what_a_server_says_of_its_model_is_its_line_of_the_list_or_nothing(
    reply: Any, report: tuple[Any, ...] | None
) -> None:
    async def models(_: dict[str, Any], request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == f"Bearer {KEY}"
        return web.json_response(reply)

    async def run() -> Any:
        async with _server(models, models) as address, _model(address, key=KEY) as model:
            return await model.server_report(), address

    said, address = asyncio.run(run())
    if report is None:
        assert said is None
    else:
        assert (said.id, said.root, said.max_model_len) == report
        assert said.address == f"{address}/models"


def test_a_server_without_a_list_of_models_says_nothing() -> None:
    async def handler(_: dict[str, Any], __: web.Request) -> web.Response:
        return _reply()

    async def run() -> Any:
        async with _server(handler) as address, _model(address) as model:
            return await model.server_report()

    assert asyncio.run(run()) is None
