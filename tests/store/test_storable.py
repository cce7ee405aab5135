"""Everything is stored whatever text it has: a store and every export is UTF-8, PostgreSQL knows no NUL."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.engine.limits import Counts
from sightline.images import find_image
from sightline.maintenance.merge import merge
from sightline.store.answers import Attempt, EndpointRecord, KeyedRequest, storable, storable_text, with_key
from sightline.store.store import Store, image_key
from sightline.types import Answer, Failure, ImageFile, ImageRef, Request, user

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


@given(ANY_TEXT)
def test_text_for_a_column_is_utf_8_without_nul_and_other_text_is_unchanged(text: str) -> None:
    stored = storable_text(text)
    assert "\0" not in stored.encode().decode()
    if not any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in text):
        assert stored == text


def test_a_name_of_a_model_or_an_image_and_a_note_may_have_any_characters(
    store_url: str, tmp_path: Path
) -> None:
    identity, attempt = "model\0", _attempt("model\0")
    path = str(tmp_path / "\udcff.png")
    Path(path).touch()
    keys = {path: image_key(find_image(ImageRef(path)))}
    store = Store.open(store_url)
    store.answers.add([attempt, _attempt("other")])
    store.endpoints.add(EndpointRecord(identity=identity, host="h\0", result="by name", detail="\0"))
    store.caches.add_image_files(keys, [ImageFile(path, "00" * 32, "png", 1, 1, (1, 1), "")])
    run = store.runs.start({"description": "\0"})
    store.labels.set_note(run, "\0 \ud800 note")
    assert store.endpoints.has_requests(identity)
    assert not store.endpoints.has_requests("mode")
    assert [record.identity for _, record in store.endpoints.records(identity)] == [identity]
    assert store.answers.request(attempt.key) == attempt.request
    assert store.caches.image_files(keys).keys() == {path}
    assert store.runs.get(run)[0] == {"description": "\0"}
    assert store.labels.of(run).note == "\ufffd \ufffd note"
    store.close()


def test_a_store_with_such_names_is_merged_once(store_url: str, tmp_path: Path) -> None:
    source = str(tmp_path / "source.db")
    store = Store.open(source)
    store.answers.add([_attempt("model\0")])
    store.endpoints.add(EndpointRecord(identity="model\0", host="h", result="by name"))
    with store.database.write() as connection:
        # As an earlier Sightline stored them in a file.
        connection.core.exec_driver_sql("UPDATE models SET identity = ?", ("model\0",))
        connection.core.exec_driver_sql("UPDATE endpoints SET identity = ?", ("model\0",))
    store.close()
    for _ in range(2):
        list(merge([source], store_url, show_progress=False))
        target = Store.open(store_url)
        assert target.endpoints.has_requests("model\0")
        assert len(target.endpoints.records("model\0")) == 1
        target.close()


def _attempt(identity: str) -> Attempt:
    keyed = with_key(Request("", (user("question"),), {}), identity)
    return Attempt(keyed.request.key, keyed.canonical, Answer("a"))
