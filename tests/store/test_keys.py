"""The key of a request: the same for the same question, another for any other."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.store.answers import key_of, with_key
from sightline.types import ImageFile, ImageRef, Message, Request, Text, user

IMAGE = ImageFile("/data/a/1.jpg", "d1" * 32, "JPEG", 640, 480, (1234, 5678))
OTHER = ImageFile("/data/a/2.jpg", "d2" * 32, "JPEG", 640, 480, (1234, 5678))
SAMPLING = {"temperature": 0.0, "max_tokens": 1000}

# What was asked under these keys must be found under them: a change costs every user all cached answers.
GOLDEN = {
    "text": (
        '{"draw":0,"messages":[["user",["Is it day?"]]],"model":"http://h/v1 m",'
        '"sampling":{"max_tokens":1000,"temperature":0},"v":1}',
        "4a4a9268be69229438fedee3c459968cf2da36d30c28c34747f98712c576b439",
    ),
    "image": (
        '{"draw":0,"messages":[["system",["Look."]],["user",[{"image":"' + "d1" * 32 + '","transform":""},'
        '"Is it day?"]]],"model":"http://h/v1 m","sampling":{"max_tokens":1000,"temperature":0},"v":1}',
        "5eec8f4435a4c07c22f076d1c24179b6de45c15fa1f5fd4cba6df35e691d9b6c",
    ),
    "again": (
        '{"draw":1,"fresh":"may","messages":[["user",["Is it day?"]]],"model":"http://h/v1 m",'
        '"sampling":{},"v":1}',
        "fd934e54cd4dd664be9eb5c7a35c31e0862831aa5c279dfb8dda9925616d0770",
    ),
}


def canonical(
    identity: str,
    messages: tuple[Message, ...],
    images: Mapping[str, ImageFile],
    sampling: Mapping[str, Any],
    draw: int = 0,
    fresh: str = "",
) -> bytes:
    return with_key(Request("", messages, sampling, images, draw), identity, fresh).canonical


def _asked(name: str) -> bytes:
    model = "http://h/v1 m"
    if name == "text":
        return canonical(model, (user("Is it day?"),), {}, SAMPLING)
    if name == "image":
        messages = (Message("system", (Text("Look."),)), user(ImageRef(IMAGE.path), "Is it day?"))
        return canonical(model, messages, {IMAGE.path: IMAGE}, SAMPLING)
    return canonical(model, (user("Is it day?"),), {}, {}, draw=1, fresh="may")


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_keys_never_change(name: str) -> None:
    text, key = GOLDEN[name]
    assert _asked(name).decode() == text
    assert key_of(_asked(name)) == key == hashlib.sha256(text.encode()).hexdigest()


scalars = (
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-1e6, 1e6) | st.text(max_size=5)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
samplings = st.dictionaries(st.text(max_size=5), values, max_size=4)


def _key(sampling: dict[str, Any], **more: Any) -> str:
    return key_of(canonical("m", (user("hello"),), {}, sampling, **more))


@given(samplings)
def test_the_order_of_options_does_not_matter_at_any_depth(sampling: dict[str, Any]) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: turned(value[name]) for name in reversed(value)}
        return [turned(inner) for inner in value] if isinstance(value, list) else value

    assert _key(sampling) == _key(turned(sampling))


@given(st.integers(-1000, 1000))
def test_a_whole_number_is_the_same_however_it_is_written(number: int) -> None:
    assert _key({"temperature": number}) == _key({"temperature": float(number)})
    assert _key({"extra": {"list": [number]}}) == _key({"extra": {"list": [float(number)]}})


@given(samplings, samplings)
def test_different_options_give_different_keys(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert (_key(one) == _key(other)) == (_plain(one) == _plain(other))


def _plain(value: Any) -> Any:
    """A value with types told apart as JSON does: true is not 1, but 1.0 is."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return (type(value) is bool, value)


messages = st.lists(
    st.builds(
        Message,
        st.sampled_from(["system", "user", "assistant"]),
        st.lists(st.builds(Text, st.text(max_size=8)), min_size=1, max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=3,
).map(tuple)


@given(messages, messages)
def test_different_words_roles_or_divisions_give_different_keys(
    one: tuple[Message, ...], other: tuple[Message, ...]
) -> None:
    same = key_of(canonical("m", one, {}, {})) == key_of(canonical("m", other, {}, {}))
    assert same == (one == other)


def test_every_other_field_is_part_of_the_key() -> None:
    def key(
        model: str = "m", file: ImageFile = IMAGE, draw: int = 0, fresh: str = "", transform: str = ""
    ) -> str:
        shown = ImageFile(file.path, file.digest, "JPEG", 1, 1, (1, 1), transform)
        return key_of(
            canonical(model, (user("?", ImageRef(file.path)),), {file.path: shown}, {}, draw, fresh)
        )

    keys = [key(), key("n"), key(file=OTHER), key(draw=1), key(fresh="x"), key(transform="jpeg-q95-side9")]
    assert len(set(keys)) == len(keys)


def test_a_image_enters_by_what_it_shows_not_by_where_it_lies() -> None:
    moved = ImageFile("/elsewhere/copy.jpg", IMAGE.digest, "JPEG", 640, 480, (1, 2))
    asked = [
        canonical("m", (user(ImageRef(file.path, "/elsewhere")),), {file.path: file}, {})
        for file in (IMAGE, moved)
    ]
    assert asked[0] == asked[1]
    assert b"jpg" not in asked[0]
    assert b"elsewhere" not in asked[0]


def test_a_text_that_looks_like_an_image_is_still_a_text() -> None:
    text = canonical("m", (user('{"image":"' + IMAGE.digest + '","transform":""}'),), {}, {})
    shown = canonical("m", (user(ImageRef(IMAGE.path)),), {IMAGE.path: IMAGE}, {})
    assert key_of(text) != key_of(shown)
