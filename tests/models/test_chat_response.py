"""Reading replies: reasoning apart from the answer, failures by kind, no answer lost for small things."""

from __future__ import annotations

import json
import time
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.models.chat import failure_of_status, read_response, seconds_until
from sightline.store.answers import storable
from sightline.types import Answer, Failure, Usage


def _read(message: dict[str, Any], **more: Any) -> Answer | Failure:
    choice = {"message": message, "finish_reason": more.pop("finish_reason", "stop")}
    return read_response(json.dumps({"choices": [choice], **more}).encode(), "host", 1.0)


def _text(message: dict[str, Any], **more: Any) -> tuple[str, str]:
    """The text and the reasoning that the store keeps of a reply."""
    answer = storable(_read(message, **more))
    assert isinstance(answer, Answer)
    return answer.text, answer.reasoning


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        ({"content": "(B)"}, "(B)", ""),
        ({"content": "(B)", "reasoning_content": "because"}, "(B)", "because"),
        ({"content": "(B)", "reasoning": "because"}, "(B)", "because"),
        ({"content": "(B)", "reasoning": {"steps": []}}, "(B)", ""),
        ({"content": "<think>\nA or B?\n</think>\n\n(B)"}, "(B)", "A or B?"),
        ({"content": "  <thinking>A or B?</thinking>(B)"}, "(B)", "A or B?"),
        ({"content": "A or B?\n</think>\n(B)"}, "(B)", "A or B?"),
        ({"content": "<think>A or B? It never comes to"}, "", "A or B? It never comes to"),
        ({"content": "The mark <think>x</think> is odd"}, "The mark <think>x</think> is odd", ""),
        ({"content": None}, "", ""),
        ({}, "", ""),
        ({"content": None, "refusal": "I cannot."}, "I cannot.", ""),
        ({"content": [{"type": "text", "text": "(B"}, {"type": "text", "text": ")"}, 7]}, "(B)", ""),
    ],
)
def test_the_answer_is_told_from_the_reasoning(message: dict[str, Any], text: str, reasoning: str) -> None:
    assert _text(message) == (text, reasoning)


def test_what_the_token_limit_cut_off_is_truncated() -> None:
    answer = _read({"content": "<think>hm"}, finish_reason="length")
    assert isinstance(answer, Answer)
    assert answer.finish_reason == "length"


def test_a_filtered_answer_is_blocked_and_a_partly_filtered_one_is_an_answer() -> None:
    blocked = _read({"content": ""}, finish_reason="content_filter")
    assert isinstance(blocked, Failure)
    assert blocked.kind == "blocked"
    assert _text({"content": "The image"}, finish_reason="content_filter")[0] == "The image"


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        (None, Usage()),
        ("free", Usage(invalid=("usage",))),
        ([1, 2], Usage(invalid=("usage",))),
        ({"prompt_tokens": 3.0, "completion_tokens": None}, Usage(3)),
        (
            {"prompt_tokens": -1, "completion_tokens": 2, "completion_tokens_details": None},
            Usage(None, 2, invalid=("prompt_tokens",)),
        ),
        ({"prompt_tokens": True, "completion_tokens": 2}, Usage(None, 2, invalid=("prompt_tokens",))),
        ({"prompt_tokens": "many", "completion_tokens": 2}, Usage(None, 2, invalid=("prompt_tokens",))),
        ({"prompt_tokens": {"a": [1]}, "completion_tokens": 2}, Usage(None, 2, invalid=("prompt_tokens",))),
        (
            {"completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 10**30}},
            Usage(None, 2, invalid=("reasoning_tokens",)),
        ),
        (
            {"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": 32, "audio_tokens": 0}},
            Usage(40, cached_tokens=32),
        ),
        ({"prompt_tokens": 40, "prompt_tokens_details": None}, Usage(40)),
        ({"prompt_tokens_details": {"cached_tokens": "x"}}, Usage(invalid=("cached_tokens",))),
    ],
)
def test_an_answer_is_not_lost_for_its_bookkeeping(told: Any, usage: Usage) -> None:
    answer = _read({"content": "(B)"}, usage=told)
    assert isinstance(answer, Answer)
    assert answer.usage == usage


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN", "1e999", "1" * 10_000, "9" * 25 + ".5"])
def test_a_token_count_that_no_number_holds_is_null_and_named(number: str) -> None:
    usage = f'{{"prompt_tokens": 7, "completion_tokens": {number}}}'
    raw = f'{{"choices": [{{"message": {{"content": "\\u00e9 (B)"}}}}], "usage": {usage}}}'
    answer = read_response(raw.encode(), "host", 0.0)
    assert isinstance(answer, Answer)
    assert (answer.text, answer.usage) == ("\u00e9 (B)", Usage(7, invalid=("completion_tokens",)))


@pytest.mark.parametrize("number", ["Infinity", "NaN", "1e999", "1" * 10_000])
def test_a_number_that_no_one_reads_loses_no_answer(number: str) -> None:
    choice = f'{{"message": {{"content": "(B)"}}, "index": {number}}}'
    raw = f'{{"created": {number}, "choices": [{choice}]}}'
    assert isinstance(read_response(raw.encode(), "host", 0.0), Answer)


@pytest.mark.parametrize("field", ["usage", "unknown"])
def test_a_reply_nested_too_deeply_is_a_failure_with_limit_and_remedy(field: str) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    raw = f'{{"choices": [{{"message": {{"content": "(B)"}}}}], "{field}": {deep}}}'
    failure = read_response(raw.encode(), "host", 0.0)
    assert isinstance(failure, Failure)
    assert failure.kind == "permanent"
    assert "the limit is 1,000 levels" in failure.message
    assert "--retry-errors" in failure.message


def test_a_version_of_a_million_characters_is_kept_in_part() -> None:
    answer = _read({"content": "(B)"}, model="m" * 10**6, finish_reason="s" * 10**6)
    assert isinstance(answer, Answer)
    assert len(answer.version) == len(answer.finish_reason) == 200


def test_a_nul_character_is_kept() -> None:
    assert _text({"content": "(B)\0"}) == ("(B)\0", "")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (rb"cut \ud83d", "cut ?"),
        (rb"\ude00 cut", "? cut"),
        (rb"whole \ud83d\ude00", "whole \U0001f600"),
        (rb"no \\ud83d escape", r"no \ud83d escape"),
        (b"raw \xf0\x9f", "raw \ufffd"),
    ],
)
def test_an_answer_cut_in_the_middle_of_a_character_is_kept(raw: bytes, text: str) -> None:
    answer = read_response(b'{"choices":[{"message":{"content":"' + raw + b'"}}]}', "host", 0.0)
    assert isinstance(answer, Answer)
    assert answer.text == text


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_bytes_whatsoever_break_the_reading(raw: bytes) -> None:
    result = read_response(raw, "host", 0.0)
    assert isinstance(result, Failure)
    assert result.kind == "transient"


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda v: (
            st.lists(v)
            | st.dictionaries(st.sampled_from(["choices", "message", "content", "usage", "text"]), v)
        ),
    )
)
def test_no_json_whatsoever_breaks_the_reading(value: Any) -> None:
    raw = json.dumps(
        {"choices": [{"message": value, "finish_reason": value}], "usage": value, "model": value}
    )
    assert isinstance(read_response(raw.encode(), "host", 0.0), Answer | Failure)


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (400, "This model's maximum context length is 4096 tokens. However, you requested 5000", "blocked"),
        (400, '{"error": {"code": "context_length_exceeded"}}', "blocked"),
        (400, "The input (9000 tokens) is longer than the model's context length (8192 tokens).", "blocked"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "blocked"),
        (400, "the request exceeds the available context size", "blocked"),
        (
            400,
            '{"error": {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}',
            "blocked",
        ),
        (400, "Your request was rejected as a result of our safety system", "blocked"),
        (400, "temperature must be below 2", "permanent"),
        (413, "Payload Too Large", "permanent"),
        (429, "Rate limit reached: too many tokens per minute", "transient"),
        (
            429,
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000",
            "blocked",
        ),
        (408, "the request took too long", "transient"),
        (500, "content_filter crashed", "transient"),
        (402, "Insufficient balance", "transient"),
        (529, "overloaded", "transient"),
        (302, "", "transient"),
    ],
)
def test_a_failure_is_known_by_its_status_and_words(status: int, words: str, kind: str) -> None:
    assert failure_of_status("host", status, words.encode(), None).kind == kind


def test_an_account_without_money_is_no_lack_of_room() -> None:
    failure = failure_of_status("host", 429, b'{"error": {"code": "insufficient_quota"}}', "1")
    assert (failure.kind, failure.status, failure.retry_after) == ("transient", 402, None)


def test_a_message_is_short_and_on_one_line() -> None:
    message = failure_of_status("host", 500, b"a\n\tb\r\n" + b"c" * 10_000 + b"\xff", None).message
    assert message.startswith("host: HTTP 500: a b c")
    assert len(message) < 400


def test_retry_after_is_read_in_seconds_and_as_a_date() -> None:
    assert seconds_until("7") == 7.0
    assert seconds_until("0.5") == 0.5
    assert seconds_until("-3") == 0.0
    in_a_minute = seconds_until(formatdate(time.time() + 60, usegmt=True))
    assert in_a_minute == pytest.approx(60, abs=1.5)
    assert seconds_until(formatdate(time.time() - 60, usegmt=True)) == 0.0
    for nonsense in (None, "", "soon", "Wed, 99 Nov 2099 99:99:99 GMT"):
        assert seconds_until(nonsense) is None
