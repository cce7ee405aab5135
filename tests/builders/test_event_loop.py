"""Builders that send requests hash them and read the store in threads: the event loop stays free."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sightline.builders.equivalence import VariantPair, by_judge
from sightline.builders.replies import ReplyRequests, collect_replies
from sightline.engine.client import ClientOptions, ModelClient
from sightline.store.answers import Answers, KeyedRequest, with_key
from sightline.store.store import Store
from sightline.types import user


def ask_for_replies(client: ModelClient, store: Store) -> Any:
    def request(name: str, draw: int) -> KeyedRequest:
        return client.keyed((user(name),), draw)

    requests = ReplyRequests[str](["a", "b"], request, lambda _name, _answer: (None, "unusable"))
    return collect_replies(requests, client, store, "asking")


def judge_pairs(client: ModelClient, store: Store) -> Any:
    pair = VariantPair(("1", "2"), "g", "r1", "text", "What is it?", "What is this?", "cluster")
    return by_judge([pair], client, store, "baseline/chance")


def on_loop() -> bool:
    with contextlib.suppress(RuntimeError):
        return asyncio.get_running_loop() is not None
    return False


@pytest.mark.parametrize("call", [ask_for_replies, judge_pairs])
def test_hashing_and_look_ups_do_not_run_on_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[[ModelClient, Store], Any]
) -> None:
    calls: list[bool] = []

    def observed(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            calls.append(on_loop())
            return function(*args, **kwargs)

        return wrapper

    monkeypatch.setattr("sightline.engine.client.with_key", observed(with_key))
    monkeypatch.setattr(Answers, "settled", observed(Answers.settled))
    client = ModelClient(ClientOptions(model="baseline/chance", store=str(tmp_path / "s.db")), {})
    with client.store() as store:
        asyncio.run(call(client, store))
    assert len(calls) >= 3
    assert not any(calls)
