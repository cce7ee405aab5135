"""Replies are read in the same way however their bytes are divided."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.models.http_client import CallError, Reply, ReplyReader


def read(pieces: list[bytes]) -> tuple[Reply | str | None, bool]:
    """The reply, or why there is none, and whether another reply may follow."""
    reader = ReplyReader()
    for piece in pieces:
        try:
            reader.feed(piece)
        except CallError as error:
            return str(error), reader.can_continue
    reader.end()
    return reader.reply, reader.can_continue


def chunked(body: bytes, size: int) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A body, and the bytes of a reply with it."""
    body = draw(st.binary(max_size=300))
    fields, sent = b"", body
    if draw(st.booleans()):
        fields, sent = b"content-encoding: gzip\r\n", gzip.compress(body)
    framing = draw(st.sampled_from(["length", "chunked", "end"]))
    if framing == "length":
        fields += b"Content-Length: %d\r\n" % len(sent)
    elif framing == "chunked":
        fields += b"Transfer-Encoding: chunked\r\n"
        sent = chunked(sent, draw(st.integers(1, 50)))
    interim = b"HTTP/1.1 100 Continue\r\n\r\n" * draw(st.integers(0, 2))
    return body, interim + b"HTTP/1.1 200 OK\r\nRetry-After: 5\r\n" + fields + b"\r\n" + sent


@st.composite
def divided(draw: st.DrawFn, data: bytes) -> list[bytes]:
    cuts = sorted(draw(st.lists(st.integers(1, max(1, len(data) - 1)), max_size=20)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True) if start < end]


@given(st.data())
def test_a_reply_does_not_depend_on_how_its_bytes_are_divided(data: st.DataObject) -> None:
    body, stream = data.draw(streams())
    expected = read([stream])
    assert isinstance(expected[0], Reply)
    assert (expected[0].status, expected[0].body, expected[0].is_whole) == (200, body, True)
    assert expected[0].headers["retry-after"] == "5"
    assert read(data.draw(divided(stream))) == expected
    assert read([bytes([byte]) for byte in stream]) == expected


@given(st.data())
def test_bytes_that_are_damaged_give_a_reply_or_an_error_and_nothing_else(data: st.DataObject) -> None:
    _, stream = data.draw(streams())
    damaged = bytearray(stream)
    for place in data.draw(st.lists(st.integers(0, len(stream) - 1), min_size=1, max_size=4)):
        damaged[place] = data.draw(st.integers(0, 255))
    found, _ = read(data.draw(divided(bytes(damaged))))
    assert found is None or isinstance(found, Reply | str)


@given(st.binary(max_size=200), st.data())
def test_any_bytes_give_a_reply_or_an_error_and_nothing_else(stream: bytes, data: st.DataObject) -> None:
    found, _ = read(data.draw(divided(stream)) if stream else [])
    assert found is None or isinstance(found, Reply | str)


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=5))
def test_one_reply_after_the_other_is_read(bodies: list[bytes]) -> None:
    reader = ReplyReader()
    for number, body in enumerate(bodies):
        reader.start()
        framing = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        if number % 2:
            framing = b"Transfer-Encoding: chunked\r\n\r\n" + chunked(body, 7)
        reader.feed(b"HTTP/1.1 200 OK\r\nX-%d: y\r\n" % number + framing)
        assert reader.reply is not None
        assert reader.reply.body == body
        assert f"x-{number}" in reader.reply.headers
        assert f"x-{number - 1}" not in reader.reply.headers
        assert reader.can_continue


@pytest.mark.parametrize("size", [1, 2, 300])
def test_many_small_chunks_are_not_over_the_limit_of_the_headers(size: int) -> None:
    body = bytes(100_000)
    found, _ = read([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body, size)])
    assert isinstance(found, Reply)
    assert found.body == body


@pytest.mark.parametrize("method", ["on_message_begin", "on_header", "on_headers_complete", "on_body"])
def test_ctrl_c_while_a_reply_is_read_is_not_taken_for_a_bad_reply(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ReplyReader, method, interrupted)
    with pytest.raises(KeyboardInterrupt):
        read([b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"])
