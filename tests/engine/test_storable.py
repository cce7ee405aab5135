"""Results are stored whatever text a model returns: the file of a store and every export is UTF-8."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.engine.counts import Counts
from sightline.engine.keys import KeyedRequest
from sightline.engine.storable import storable
from sightline.engine.store import Store
from sightline.types import Answer, Failure

ANY_TEXT = st.text(st.characters(codec=None, categories=None) | st.sampled_from("\ud800\udfff\0"))


@given(ANY_TEXT, ANY_TEXT)
def test_any_text_can_be_encoded_and_storable_text_is_unchanged(text: str, other: str) -> None:
    for result in (Answer(text, other, text, version=other), Failure("transient", text)):
        stored = storable(result)
        assert msgspec.json.decode(msgspec.json.encode(stored), type=type(stored)) == stored
        if not any("\ud800" <= letter <= "\udfff" for letter in text + other):
            assert stored is result


def test_a_lone_surrogate_is_replaced_and_a_pair_is_a_character() -> None:
    assert storable(Answer("cut \ud83d")) == Answer("cut \ufffd")
    assert storable(Answer("whole \ud83d\ude00")) == Answer("whole \U0001f600")


@pytest.mark.parametrize("text", ["(B) \ud800", "(B)\0", "\udfff"])
def test_a_run_stores_the_answers_of_a_model_whatever_their_text(
    text: str,
    store: Store,
    scripted: Any,
    asking: Callable[..., list[KeyedRequest]],
    in_no_time: Any,
    ask: Callable[..., Coroutine[Any, Any, Counts]],
) -> None:
    requests = asking(*range(3))
    counts = in_no_time(
        ask(store, requests, scripted(lambda asked, _: Answer(text if asked == "1" else "(A)")))
    )
    assert counts.answered == 3
    stored = store.answers.look_up([keyed.request.key for keyed in requests])
    assert stored[requests[1].request.key] == storable(Answer(text))
