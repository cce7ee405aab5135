"""Lines of a batch's results, as providers write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sightline.models.batch_client import LineReader, read_line
from sightline.models.http_client import MAX_BYTES
from sightline.store.answers import storable
from sightline.types import Answer, Failure


def line(**content: Any) -> bytes:
    return json.dumps({"id": "r", "custom_id": "k", "response": None, "error": None, **content}).encode()


def reply(status: int, body: Any) -> bytes:
    return line(response={"status_code": status, "request_id": "q", "body": body})


def result(raw: bytes) -> Answer | Failure:
    found = read_line(raw, "host")
    assert found is not None
    assert found.key == "k"
    return found.result


def test_an_answer_is_read_as_from_a_single_request() -> None:
    message = {"role": "assistant", "content": "<think>hm</think>(B)"}
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    body = {"model": "m-1", "usage": usage, "choices": [{"message": message, "finish_reason": "stop"}]}
    answer = storable(result(reply(200, body)))
    assert isinstance(answer, Answer)
    assert (answer.text, answer.reasoning, answer.version, answer.latency) == ("(B)", "hm", "m-1", 0.0)
    assert answer.usage.prompt_tokens == 7


@pytest.mark.parametrize(
    ("raw", "kind", "words"),
    [
        (reply(500, {"error": {"message": "oops"}}), "transient", "HTTP 500"),
        (reply(429, {"error": {"message": "slow down"}}), "transient", "HTTP 429"),
        (reply(400, {"error": {"code": "content_filter"}}), "blocked", "content_filter"),
        (reply(400, {"error": {"code": "context_length_exceeded"}}), "blocked", "context_length"),
        (reply(400, {"error": {"message": "bad parameter"}}), "permanent", "bad parameter"),
        (reply(404, {"error": {"message": "no such model"}}), "permanent", "no such model"),
        (reply(200, {"choices": []}), "transient", "not a chat completion"),
        (reply(200, None), "transient", "not a chat completion"),
        (
            line(error={"code": "batch_expired", "message": "too late"}),
            "transient",
            "batch_expired: too late",
        ),
        (line(), "transient", "no response"),
    ],
)
def test_a_failed_line_becomes_the_failure_of_a_single_request(raw: bytes, kind: str, words: str) -> None:
    failure = result(raw)
    assert isinstance(failure, Failure)
    assert failure.kind == kind
    assert words in failure.message


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b'{"custom_id": 7}', b'{"response": {}}', b"\xff\xfe"])
def test_a_line_that_names_no_request_is_left_out(raw: bytes) -> None:
    assert read_line(raw, "host") is None


def test_a_line_over_the_limit_of_replies_is_a_permanent_failure_and_the_next_one_is_read() -> None:
    reader = LineReader()
    long = reply(200, {"choices": [{"message": {"content": "x" * (MAX_BYTES + 100_000)}}]})
    pieces = [long[start : start + 65536] for start in range(0, len(long), 65536)] + [b"\n", line()]
    lines = [one for piece in pieces for one in reader.lines(piece)] + [reader.rest()]
    assert [len(one) for one in lines] == [MAX_BYTES + 1, len(line())]
    failure = result(lines[0])
    assert isinstance(failure, Failure)
    assert (failure.kind, "too large" in failure.message) == ("permanent", True)


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_lines_are_the_same_however_the_pieces_are_cut(size: int) -> None:
    content = b"one\r\n\ntwo\nthree"
    reader = LineReader()
    pieces = [content[start : start + size] for start in range(0, len(content), size)]
    lines = [one.strip() for piece in pieces for one in reader.lines(piece)]
    assert [*lines, reader.rest()] == [b"one", b"two", b"three"]
