"""A request is put together again byte for byte, whatever it holds: its key is the SHA-256 of these bytes."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sightline.store.answers import ImageDigest, divide, put_together, with_key
from sightline.types import ImageFile, ImageRef, Message, Request, Text

_DIGEST = "ab" * 32
_PARTS = st.one_of(st.text().map(Text), st.just(ImageRef("i", "i")))
_MESSAGES = st.lists(
    st.builds(Message, st.sampled_from(["system", "user", "assistant"]), st.lists(_PARTS).map(tuple))
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.just("image"), inner, max_size=3)
    ),
    max_leaves=8,
)


def _same(canonical: bytes) -> bool:
    frame, parts = divide(canonical)
    return put_together(frame, parts) == canonical


@given(_MESSAGES, st.text(), st.dictionaries(st.text(), st.text()))
def test_every_request_is_put_together_again(
    messages: list[Message], identity: str, sampling: dict[str, str]
) -> None:
    image = ImageFile("i", _DIGEST, "PNG", 1, 1, (1, 1), 're"size')
    request = Request("", tuple(messages), sampling, {"i": image})
    assert _same(with_key(request, identity).canonical)


@given(st.binary())
def test_so_is_content_that_is_no_request(content: bytes) -> None:
    assert _same(content)


@given(st.lists(st.tuples(st.text(), st.lists(_JSON, max_size=3)), max_size=3))
def test_so_are_parts_of_any_form(messages: list[tuple[str, list[object]]]) -> None:
    assert _same(msgspec.json.encode({"draw": 0, "messages": messages, "v": 1}))


def test_so_is_a_request_whose_role_or_key_looks_like_a_part() -> None:
    hole = b'{"messages":[["user",["user","messages","\\u0000",{"image":"' + _DIGEST.encode()
    for canonical in (
        hole + b'"}]]],"model":"user"}',
        hole + b'","image":"' + _DIGEST.encode() + b'"}]]]}',
        b'{"messages":[["a",["b"]]],"messages":[["b",["a"]]]}',
        b'{"messages":[["user",["x"]]]}\x00',
    ):
        assert _same(canonical)


def test_requests_that_differ_in_text_and_image_share_their_frame() -> None:
    def divided(text: str, digest: str) -> tuple[bytes, tuple[bytes | ImageDigest, ...]]:
        image = ImageFile("i", digest, "PNG", 1, 1, (1, 1))
        message = Message("user", (Text(text), ImageRef("i", "i")))
        return divide(with_key(Request("", (message,), {}, {"i": image}), "m").canonical)

    (one, first), (other, second) = divided("one", _DIGEST), divided("other", "cd" * 32)
    assert one == other
    assert first == (b'"one"', ImageDigest(bytes.fromhex(_DIGEST)))
    assert second == (b'"other"', ImageDigest(bytes.fromhex("cd" * 32)))
