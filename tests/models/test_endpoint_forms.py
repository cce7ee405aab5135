"""Forms in which servers take requests and answer: event streams, the Responses API, Azure's URLs.

The replies are those of the public documentation: OpenAI's API reference, learn.microsoft.com, and the errors
that users quote in issues.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace
from PIL import Image
from tests.models.test_openai import _request

from sightline.config import Config, Host
from sightline.engine.server_check import check_server
from sightline.errors import UserError
from sightline.images import inspect_image
from sightline.models import http_client
from sightline.models.chat import read_response
from sightline.models.openai import OpenAICompatible
from sightline.models.registry import ModelOptions, resolve
from sightline.types import Answer, Failure, ImageRef, Request, Usage, user

USAGE = {
    "prompt_tokens": 12,
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 3},
}
NAMES = {"id": "c1", "model": "m-2026", "system_fingerprint": "fp"}


def _stream(*events: Any, end: bytes = b"data: [DONE]\n\n") -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + end


def _chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {**NAMES, "object": "chat.completion.chunk", "choices": choices, "usage": None, **more}


def _chunks(message: dict[str, Any], finish: str, usage: Any) -> Iterator[dict[str, Any]]:
    """A reply as OpenAI streams it: the role, each field in pieces of two characters, the end, the usage."""
    yield _chunk({"role": "assistant", "content": ""})
    for name, text in message.items():
        for start in range(0, len(text or ""), 2):
            yield _chunk({name: text[start : start + 2]})
    yield _chunk({}, finish)
    if usage:
        yield _chunk(usage=usage)


def _whole(message: dict[str, Any], finish: str, usage: Any) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps({**NAMES, "choices": [choice], "usage": usage}).encode()


def _read(raw: bytes) -> Answer | Failure:
    return read_response(raw, "host", 1.0)


@pytest.mark.parametrize(
    ("message", "finish", "usage"),
    [
        ({"content": "The answer is (B). Ä – 好"}, "stop", USAGE),
        ({"reasoning_content": "Perhaps  (A)?\n\nNo.", "content": "(B)"}, "stop", USAGE),
        ({"reasoning": "Perhaps (A)?", "content": "(B"}, "length", None),
        ({"content": None, "refusal": "I cannot help with that."}, "stop", USAGE),
        ({"content": ""}, "stop", USAGE),
        ({"content": "I was about to"}, "content_filter", USAGE),
        ({"content": "(A"}, "abort", None),
        ({"content": None}, "tool_calls", None),
    ],
)
def test_a_stream_counts_as_the_same_reply_in_one_piece(
    message: dict[str, Any], finish: str, usage: Any
) -> None:
    whole = _read(_whole(message, finish, usage))
    raw = _stream(*_chunks(message, finish, usage))
    for written in (raw, raw.replace(b"\n", b"\r\n"), raw.replace(b"data: ", b"data:"), b": hi\n\n" + raw):
        streamed = _read(written)
        if isinstance(whole, Answer):
            assert streamed == whole
        else:
            assert isinstance(streamed, Failure)
            assert (streamed.kind, streamed.status) == (whole.kind, whole.status)


def _events_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a response, as the API reference lists them."""
    started = {**response, "status": "in_progress", "output": [], "usage": None}
    text = "".join(part.get("text", "") for item in response["output"] for part in item.get("content") or ())
    return [
        {"type": "response.created", "sequence_number": 0, "response": started},
        {"type": "response.output_text.delta", "item_id": "m1", "output_index": 0, "delta": text[:3]},
        {"type": "response.output_text.delta", "item_id": "m1", "output_index": 0, "delta": text[3:]},
        {"type": "response.output_text.done", "item_id": "m1", "output_index": 0, "text": text},
        {"type": f"response.{response['status']}", "sequence_number": 4, "response": response},
    ]


def _response(*parts: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    """A response of OpenAI's API reference, with the reasoning of an o-series model."""
    summary = [{"type": "summary_text", "text": "Perhaps (A)?"}]
    return {
        "id": "resp_1",
        "object": "response",
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": "o1-pro-2025-03-19",
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": summary},
            {"type": "message", "id": "m1", "role": "assistant", "status": status, "content": list(parts)},
        ],
        "usage": {
            "input_tokens": 36,
            "input_tokens_details": {"cached_tokens": 4},
            "output_tokens": 87,
            "output_tokens_details": {"reasoning_tokens": 64},
            "total_tokens": 123,
        },
        **more,
    }


TEXT = {"type": "output_text", "text": "It is (B).", "annotations": []}


@pytest.mark.parametrize(
    "write",
    [lambda response: json.dumps(response).encode(), lambda one: _stream(*_events_of(one), end=b"")],
    ids=["whole", "streamed"],
)
def test_a_result_of_the_responses_api_is_read_as_a_chat_completion_is(
    write: Callable[[dict[str, Any]], bytes],
) -> None:
    assert _read(write(_response(TEXT))) == Answer(
        text="It is (B).",
        reasoning="Perhaps (A)?",
        finish_reason="stop",
        usage=Usage(36, 87, 64, 4),
        latency=1.0,
        version="o1-pro-2025-03-19",
    )
    refused = _read(write(_response({"type": "refusal", "refusal": "I cannot."})))
    assert isinstance(refused, Answer)
    assert refused.text == "I cannot."
    cut = _response(TEXT, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    truncated = _read(write(cut))
    assert isinstance(truncated, Answer)
    assert (truncated.finish_reason, truncated.truncated) == ("length", True)
    filtered = _response(TEXT, status="incomplete", incomplete_details={"reason": "content_filter"})
    limited = {"code": "rate_limit_exceeded", "message": "Rate limit reached for o1-pro"}
    for response, kind, status in (
        (filtered, "blocked", 200),
        (_response(status="failed", error={"code": "server_error", "message": "oh"}), "transient", None),
        (_response(status="failed", error=limited), "transient", 429),
    ):
        failure = _read(write(response))
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.status) == (kind, status)


@pytest.mark.parametrize(
    ("raw", "end_mark"),
    [
        (
            _stream(*_chunks({"reasoning_content": "A or B?", "content": "Not (A) but (B)"}, "stop", USAGE)),
            b'"finish_reason": "stop"',
        ),
        (_stream(*_events_of(_response(TEXT)), end=b""), b'"response.completed"'),
    ],
    ids=["chat", "responses"],
)
def test_a_stream_that_was_cut_anywhere_is_asked_again_and_never_half_an_answer(
    raw: bytes, end_mark: bytes
) -> None:
    whole = _read(raw)
    assert isinstance(whole, Answer)
    for end in range(len(raw)):
        result = _read(raw[:end])
        if isinstance(result, Answer):
            # All of the text and its finish reason had arrived, perhaps without the tokens.
            assert end > raw.index(end_mark)
            assert replace(result, usage=whole.usage) == whole
        else:
            assert result.kind == "transient"


def test_the_end_mark_of_a_gateway_does_not_complete_what_its_upstream_server_broke_off() -> None:
    *begun, _, _ = _chunks({"content": "Not (A) but (B)"}, "stop", USAGE)
    for number in range(len(begun) + 1):
        failure = _read(_stream(*begun[:number]))
        assert isinstance(failure, Failure)
        assert failure.kind == "transient"


@pytest.mark.parametrize(
    ("event", "kind", "status"),
    [
        # vLLM and SGLang, OpenAI's Responses API, a gateway.
        (b'data: {"error": {"message": "engine died", "code": 500}}', "transient", 500),
        (b'event: error\ndata: {"type": "error", "code": "rate_limit", "message": "x"}', "transient", 429),
        (b'data: {"message": "Rate limit exceeded", "code": 429}', "transient", 429),
        (b'data: {"error": {"message": "blocked", "code": "content_filter"}}', "blocked", 400),
    ],
)  # fmt: skip
def test_an_error_in_the_middle_of_a_stream_is_the_failure_that_it_states(
    event: bytes, kind: str, status: int
) -> None:
    failure = _read(_stream(_chunk({"content": "It is"}), end=event + b"\n\ndata: [DONE]\n\n"))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.status) == (kind, status)


# Servers on loopback


class Server:
    """Answers calls by `reply`, and keeps what was asked: path with query, headers, body."""

    def __init__(self, reply: Callable[[str, dict[str, Any]], web.Response]) -> None:
        self._reply = reply
        self.calls: list[tuple[str, Any, dict[str, Any]]] = []

    async def _handle(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read() or b"{}")
        self.calls.append((request.path_qs, request.headers, body))
        return self._reply(request.path, body)

    @asynccontextmanager
    async def at(self) -> Any:
        app = web.Application(client_max_size=2**28)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    def ask(self, tail: str, *requests: Request, **options: Any) -> list[Answer | Failure]:
        """What comes of requests to the server's address with `tail`."""

        async def run() -> list[Answer | Failure]:
            async with self.at() as address:
                (model,) = resolve(address + tail, ModelOptions(**options))
                async with model:
                    return [
                        result
                        for request in requests or (_request(),)
                        async for _, result in model.answer([request])
                    ]

        return asyncio.run(run())


def _error(status: int, message: str, **more: Any) -> web.Response:
    return web.json_response({"error": {"message": message, **more}}, status=status)


def _texts(results: Sequence[Answer | Failure]) -> list[str]:
    return [one.text if isinstance(one, Answer) else one.message for one in results]


def _as_stream(raw: bytes) -> web.Response:
    return web.Response(body=raw, content_type="text/event-stream")


STREAMED = _stream(*_chunks({"content": "(B)"}, "stop", USAGE))
WHOLE = _whole({"content": "(B)"}, "stop", USAGE)


@pytest.mark.parametrize(
    "refusal",
    [
        "This model only support stream mode, please enable the stream parameter to access the model. ",
        "parameter.enable_thinking must be set to false for non-streaming calls",
        "enable thinking can not be support when `stream=False`.",
        "current user api does not support http call",
    ],
)
def test_a_server_that_answers_only_in_streams_is_asked_for_streams_from_then_on(refusal: str) -> None:
    server = Server(lambda _, body: _as_stream(STREAMED) if body.get("stream") else _error(400, refusal))
    results = server.ask("/v1#m", _request(), _request())
    assert _texts(results) == ["(B)", "(B)"]
    assert results[0].usage == Usage(12, 5, 3, 4)  # type: ignore[union-attr]
    sent = [(body.get("stream"), body.get("stream_options")) for _, _, body in server.calls]
    assert sent == [(None, None), (True, {"include_usage": True}), (True, {"include_usage": True})]


def test_a_server_without_stream_options_is_asked_without_them() -> None:
    def reply(_: str, body: dict[str, Any]) -> web.Response:
        if "stream_options" in body:
            return _error(422, "extra_forbidden: body.stream_options: Extra inputs are not permitted")
        return _as_stream(STREAMED) if "stream" in body else _error(400, "must be streamed")

    server = Server(reply)
    assert _texts(server.ask("/v1#m", _request(), _request())) == ["(B)", "(B)"]
    assert len(server.calls) == 4


def test_a_refusal_that_is_about_something_else_asks_for_no_other_form() -> None:
    server = Server(lambda *_: _error(400, "temperature must be 1; the question was: Is this a stream?"))
    (failure,) = server.ask("/v1#m")
    assert isinstance(failure, Failure)
    assert failure.kind == "permanent"
    assert len(server.calls) == 1


def test_a_stream_has_room_for_more_bytes_than_a_reply_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_BYTES", len(STREAMED) // 2)
    assert _texts(Server(lambda *_: _as_stream(STREAMED)).ask("/v1#m")) == ["(B)"]
    (failure,) = Server(lambda *_: _as_stream(b": alive\n\n" * len(STREAMED) + STREAMED)).ask("/v1#m")
    assert isinstance(failure, Failure)
    assert "4 times that for an event stream" in failure.message


@pytest.mark.parametrize(
    "refusal",
    [
        (404, "This model is only supported in v1/responses and not in v1/chat/completions."),
        (
            400,
            "Unsupported legacy protocol: /v1/chat/completions is not supported. Please use /v1/responses.",
        ),
        (400, "The chatCompletion operation does not work with the specified model, gpt-5-codex."),
    ],
)
def test_a_model_without_chat_completions_is_asked_by_the_responses_api(
    refusal: tuple[int, str], tmp_path: Path
) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    file = inspect_image(ImageRef(str(tmp_path / "a.png"), str(tmp_path)), {})
    sampling = {"max_completion_tokens": 9, "reasoning_effort": "low", "image_detail": "high", "top_p": 1}
    request = _request(user("Look:", ImageRef(file.path)), sampling=sampling, files=(file,))
    server = Server(
        lambda path, _: web.json_response(_response(TEXT)) if path == "/v1/responses" else _error(*refusal)
    )
    assert _texts(server.ask("/v1#m", request, _request())) == ["It is (B)."] * 2
    assert [path for path, *_ in server.calls] == ["/v1/chat/completions", "/v1/responses", "/v1/responses"]
    _, first, second = (body for *_, body in server.calls)
    text, image = first.pop("input")[0]["content"]
    assert text == {"type": "input_text", "text": "Look:"}
    assert (image["type"], image["detail"]) == ("input_image", "high")
    assert image["image_url"].startswith("data:image/png;base64,")
    # OpenAI keeps responses for 30 days unless `store` is false; it keeps no chat completions.
    wanted = {
        "model": "m",
        "store": False,
        "max_output_tokens": 9,
        "reasoning": {"effort": "low"},
        "top_p": 1,
    }
    assert first == wanted
    assert second["input"] == [{"role": "user", "content": "Is it day?"}]


def test_a_url_names_the_responses_api() -> None:
    server = Server(lambda *_: _as_stream(_stream(*_events_of(_response(TEXT)), end=b"")))
    assert _texts(server.ask("/v1/responses#m")) == ["It is (B)."]
    with pytest.raises(UserError, match=r"/v1/responses does not exist or has no model 'm' \(HTTP 404\)"):
        Server(lambda *_: web.Response(status=404)).ask("/v1/responses#m")


AZURE = "/openai/deployments/gpt-4o"
VERSION = "?api-version=2024-10-21"


@pytest.mark.parametrize("path", [AZURE, f"{AZURE}/", f"{AZURE}/chat/completions"])
def test_azure_is_called_at_its_deployment_with_its_version_and_its_header(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_KEY", "planted-key")
    server = Server(lambda *_: web.Response(body=WHOLE, content_type="application/json"))
    config = Config(hosts={"127.0.0.1": Host(key="AZURE_KEY")})
    assert _texts(server.ask(f"{path}{VERSION}#gpt-4o", config=config)) == ["(B)"]
    ((called, headers, _),) = server.calls
    assert called == f"{AZURE}/chat/completions{VERSION}"
    assert headers["api-key"] == "planted-key"
    assert "Authorization" not in headers


def test_the_spellings_of_a_url_are_one_model_and_a_version_is_part_of_it() -> None:
    def identity(tail: str) -> str:
        (model,) = resolve(f"https://r.openai.azure.com{tail}#gpt-4o", ModelOptions())
        return model.identity

    assert identity(f"{AZURE}{VERSION}") == identity(f"{AZURE}/chat/completions{VERSION}")
    assert identity(f"{AZURE}{VERSION}") == f"https://r.openai.azure.com{AZURE}{VERSION} gpt-4o"


def test_a_deployment_that_does_not_exist_names_the_url_and_how_one_looks() -> None:
    missing = Server(lambda *_: _error(404, "Resource not found", code="404"))
    with pytest.raises(
        UserError, match=r"/chat/completions\?api-version=2024-10-21 does not.*DEPLOYMENT\?api"
    ):
        missing.ask(f"{AZURE}{VERSION}#gpt-4o")
    # Under a deployment there is no Responses API: it is at /openai/v1.
    words = "The chatCompletion operation does not work with the specified model, o3-pro."
    codex = Server(lambda path, _: web.Response(status=404) if "responses" in path else _error(400, words))
    with pytest.raises(UserError, match=r"/openai/v1/responses#DEPLOYMENT"):
        codex.ask(f"{AZURE}{VERSION}#o3-pro")


@pytest.mark.parametrize("query", ["?api-version=1&key=secret", "?code=secret", "?api-version="])
def test_another_query_is_refused_since_it_may_be_a_secret(query: str) -> None:
    with pytest.raises(UserError, match=r"no query but \?api-version=VERSION") as error:
        resolve(f"https://h/v1{query}#m", ModelOptions())
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("tail", [f"{AZURE}{VERSION}", "/v1/responses"])
def test_batches_hold_chat_completions_at_the_root_of_an_api(tail: str) -> None:
    with pytest.raises(UserError, match=r"--batch.*expected the root of the API"):
        resolve(f"https://h{tail}#m", ModelOptions(batch=True))


def test_the_check_of_a_server_says_in_which_form_it_answers() -> None:
    async def run(server: Server) -> tuple[str, ...]:
        async with server.at() as address:
            (model,) = resolve(f"{address}/v1#m", ModelOptions())
            assert isinstance(model, OpenAICompatible)
            first, *_ = (await check_server(model)).findings
            return first.what, first.state, first.evidence

    streams = Server(lambda *_: _as_stream(STREAMED))
    found = asyncio.run(run(streams))
    assert found == ("plain chat completions", "no", "it answers by chat completions in event streams")
    plain = Server(lambda *_: web.Response(body=WHOLE, content_type="application/json"))
    assert asyncio.run(run(plain))[0] != "plain chat completions"
