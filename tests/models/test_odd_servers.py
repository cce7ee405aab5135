"""What replies count as of servers and gateways that fail, filter, cut and wrap answers in their own ways."""

from __future__ import annotations

import importlib.util
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from aiohttp import web
from tests.models.test_openai import _request, ask

from sightline.types import Answer, Failure, user

COUNTS_AS = {
    "good": "stop",
    "finish_error": "transient",
    "finish_abort_partly": "transient",
    "error_in_choice": "transient",
    "error_without_choices_429": "transient",
    "error_without_choices_overflow": "blocked",
    "no_choices": "transient",
    "reasoning_part": "stop",
    "refusal": "stop",
    "split_choices": "stop",
    "byte_order_mark": "stop",
    "cut_json": "transient",
    "html": "transient",
    "stream_always": "stop",
    "no_usage": "stop",
    "two_models": "stop",
    "length": "length",
    "max_tokens_in_capitals": "length",
    "filtered_partly": "blocked",
    "safety": "blocked",
    "moderation_403": "blocked stop",
    "azure_filter": "blocked",
    "max_tokens_unsupported": "permanent",
    "no_images": "stop",
    "unknown_model": "permanent",
    "overloaded_once": "transient stop",
    "retry_after_500ms": "transient stop",
    "retry_after_date": "transient stop",
    "loading_25_s": "transient",
    "quota": "transient",
    "some_images_500": "transient stop",
    "one_at_a_time": "stop",
}


@pytest.fixture(scope="module")
def odd(shared: Path) -> ModuleType:
    """The server that misbehaves in one chosen way."""
    file = shared / "tools" / "odd_openai_server.py"
    if not file.is_file():
        pytest.skip(f"{file} is not there")
    spec = importlib.util.spec_from_file_location("odd_openai_server", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _results(play: Callable[[bytes], Any]) -> list[Answer | Failure]:
    """What comes of 16 different requests, and of the first one again."""

    async def handler(body: dict[str, Any], request: web.Request) -> web.StreamResponse:
        reply = play(json.dumps(body).encode())
        response: web.StreamResponse = await reply if inspect.isawaitable(reply) else reply
        return response

    requests = [_request(user(f"Question {number}?"), sampling={"max_tokens": 9}) for number in range(16)]
    return ask(handler, *requests, requests[0])


@pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=[pytest.mark.slow] * (mode == "one_at_a_time")) for mode in COUNTS_AS]
)
def test_no_reply_of_an_odd_server_is_an_empty_answer(odd: ModuleType, mode: str) -> None:
    odd.state.update(start=None, seen={}, lock=None)
    results = _results(odd.MODES[mode])
    kinds = {one.kind if isinstance(one, Failure) else one.finish_reason for one in results}
    assert kinds == set(COUNTS_AS[mode].split())
    assert all(one.text for one in results if isinstance(one, Answer))


def test_every_mode_of_the_odd_server_is_known(odd: ModuleType) -> None:
    assert COUNTS_AS.keys() == odd.MODES.keys()
