"""Reading replies: reasoning apart from the answer, failures by kind, no answer lost for small things."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.engine.selector import is_capacity_refusal
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


# The names are those of OpenAI, Azure, Gemini, Anthropic, Bedrock, Cohere, Mistral, vLLM, SGLang, TGI,
# DeepSeek, Zhipu and OpenRouter, in the spellings of their APIs and of gateways.
CUT = ["length", "LENGTH", "max_tokens", "MAX_TOKENS", "FINISH_REASON_MAX_TOKENS", "FinishReason.MAX_TOKENS"]
CUT += ["MaxTokens", "max_output_tokens", "token_limit"]
FILTERED = [
    "content_filter",
    "CONTENT_FILTER",
    "ContentFilter",
    "content-filter",
    "content_filtered",
    "SAFETY",
]
FILTERED += ["RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "IMAGE_SAFETY", "LANGUAGE", "refusal"]
FILTERED += ["guardrail_intervened", "ERROR_TOXIC", "sensitive", "content_filter: RECITATION"]
TOO_LONG = ["model_length", "model_context_window_exceeded", "ERROR_LIMIT"]
FAILED = [
    "error",
    "ERROR",
    "abort",
    "Abort",
    "cancelled",
    "timeout",
    "insufficient_system_resource",
    "network_error",
]
FAILED += ["MALFORMED_FUNCTION_CALL", "malformed_model_output", "error: upstream"]
ENDED = ["stop", "STOP", "end_turn", "eos_token", "COMPLETE", "stop_sequence"]


@pytest.mark.parametrize("field", ["finish_reason", "native_finish_reason"])
@pytest.mark.parametrize("content", ["", "(A", None])
@pytest.mark.parametrize("reason", [*CUT, *FILTERED, *TOO_LONG, *FAILED])
def test_a_reason_is_known_in_every_spelling_also_behind_a_gateway_that_says_stop(
    reason: str, content: str | None, field: str
) -> None:
    choice = {"message": {"content": content}, "finish_reason": "stop", field: reason}
    result = read_response(json.dumps({"choices": [choice]}).encode(), "host", 1.0)
    if reason in CUT:
        assert isinstance(result, Answer)
        assert (result.text, result.finish_reason, result.truncated) == (content or "", "length", True)
    else:
        assert isinstance(result, Failure)
        assert result.kind == ("transient" if reason in FAILED else "blocked")


@pytest.mark.parametrize("reason", ENDED)
def test_a_reason_that_ends_an_answer_is_stop(reason: str) -> None:
    answer = _read({"content": "(B)"}, finish_reason=reason)
    assert isinstance(answer, Answer)
    assert answer.finish_reason == "stop"


@pytest.mark.parametrize("reason", ["made_up", 7, ["x"], {"type": "stop"}, True, "s" * 1000])
def test_an_answer_is_not_lost_for_an_unknown_reason(reason: Any) -> None:
    assert isinstance(_read({"content": "(B)"}, finish_reason=reason), Answer)


@pytest.mark.parametrize("reason", ["tool_calls", "function_call", "OTHER", "made_up"])
def test_no_text_with_a_reason_that_ends_no_answer_is_a_failure_that_names_it(reason: str) -> None:
    failure = _read({"content": None}, finish_reason=reason)
    assert isinstance(failure, Failure)
    assert failure.kind == "permanent"
    assert reason in failure.message


@pytest.mark.parametrize(
    ("content", "text", "reasoning"),
    [
        ([{"type": "reasoning", "text": "(B)?"}, {"type": "text", "text": "(A)"}], "(A)", "(B)?"),
        ([{"type": "thinking", "thinking": "(B)?"}, {"type": "text", "text": "(A)"}], "(A)", "(B)?"),
        # Magistral of Mistral
        (
            [{"type": "thinking", "thinking": [{"type": "text", "text": "(B)?"}]}, {"text": "(A)"}],
            "(A)",
            "(B)?",
        ),
        # Gemini
        ([{"text": "(B)?", "thought": True}, {"text": "(A)"}], "(A)", "(B)?"),
        # Responses API of OpenAI
        (
            [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "(B)?"}]},
                {"type": "output_text", "text": "(A)"},
            ],
            "(A)",
            "(B)?",
        ),
        ([{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "(A)"}], "(A)", ""),
        ([{"type": "reasoning", "text": "(B)?"}], "", "(B)?"),
        (["(A", ")"], "(A)", ""),
        ({"type": "text", "text": "(A)"}, "(A)", ""),
        ([{"type": "refusal", "refusal": "I cannot."}], "I cannot.", ""),
        ([], "", ""),
        ([{"type": "text", "text": ""}], "", ""),
        (3, "3", ""),
    ],
)
def test_parts_are_text_or_reasoning(content: Any, text: str, reasoning: str) -> None:
    assert _text({"content": content}) == (text, reasoning)


@pytest.mark.parametrize(
    "content",
    [[{"type": "image_url", "image_url": {"url": "x"}}], [7], {"a": 1}, [{"type": "tool_use"}], [[]]],
)
def test_parts_of_which_nothing_is_understood_are_a_failure(content: Any) -> None:
    failure = _read({"content": content})
    assert isinstance(failure, Failure)
    assert failure.kind == "transient"


@pytest.mark.parametrize(
    ("message", "reasoning"),
    [
        ({"reasoning_content": [{"type": "text", "text": "hm"}]}, "hm"),
        ({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}, "hm"),
        ({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}, ""),
        ({"reasoning": True}, ""),
    ],
)
def test_reasoning_in_a_field_of_its_own_may_be_parts(message: dict[str, Any], reasoning: str) -> None:
    assert _text({"content": "(B)", **message}) == ("(B)", reasoning)


def _choices(*choices: tuple[Any, str, Any]) -> Answer | Failure:
    """The result of a reply with choices: index, finish reason, content."""
    listed = [
        {"index": index, "finish_reason": reason, "message": {"content": content}}
        for index, reason, content in choices
    ]
    return read_response(json.dumps({"choices": listed}).encode(), "host", 1.0)


def test_the_first_choice_with_a_text_answers_in_the_order_of_their_indices() -> None:
    for choices, text in (
        ([(0, "stop", None), (1, "stop", "(A)")], "(A)"),
        ([(0, "stop", ""), (1, "length", "(A)")], "(A)"),
        ([(1, "stop", "(B)"), (0, "stop", "(A)")], "(A)"),
        ([(1, "stop", "(B)"), (0, "stop", "")], "(B)"),
        ([(None, "stop", "(A)"), (None, "stop", "(B)")], "(A)"),
        ([(0, "stop", "(A)"), (1, "error", "")], "(A)"),
        ([(0, "stop", None), (1, "stop", None)], ""),
    ):
        answer = _choices(*choices)
        assert isinstance(answer, Answer)
        assert answer.text == text
    assert getattr(_choices((0, "stop", ""), (1, "length", "(A)")), "finish_reason", "") == "length"
    assert isinstance(_choices((0, "error", ""), (1, "stop", "(A)")), Failure)


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"code": 502, "message": "upstream failed"}, "transient", 502),
        ({"code": "429", "message": "slow down"}, "transient", 429),
        ({"code": 429, "message": "rate limit"}, "transient", 429),
        ({"code": 400, "message": "maximum context length is 4096 tokens"}, "blocked", 400),
        ({"code": 400, "message": "temperature must be below 2"}, "permanent", 400),
        ({"code": 403, "message": "Your input was flagged"}, "blocked", 403),
        ({"code": 402, "message": "Insufficient credits"}, "transient", 402),
        ({"code": "rate_limit_exceeded", "message": "slow down"}, "transient", 429),
        ({"code": "context_length_exceeded", "message": "long"}, "blocked", 400),
        ({"status": "RESOURCE_EXHAUSTED", "message": "quota"}, "transient", 429),
        ({"code": None, "message": "it broke"}, "transient", None),
        ("it broke", "transient", None),
    ],
)
@pytest.mark.parametrize("place", ["alone", "beside an answer", "in the choice", "as the reply"])
def test_an_error_with_status_200_is_a_failure_by_its_code(
    error: Any, kind: str, status: int | None, place: str
) -> None:
    choice: dict[str, Any] = {"message": {"content": "(A"}, "finish_reason": "stop"}
    body = {
        "alone": {"error": error},
        "beside an answer": {"error": error, "choices": [choice]},
        "in the choice": {"choices": [{**choice, "message": {"content": ""}, "error": error}]},
        # vLLM until 0.9, and FastAPI
        "as the reply": {"object": "error", **error} if isinstance(error, dict) else {"detail": error},
    }[place]
    failure = read_response(json.dumps(body).encode(), "host", 1.0)
    assert isinstance(failure, Failure)
    if not (place == "as the reply" and "status" in error):
        assert (failure.kind, failure.status) == (kind, status)
    assert (error["message"] if isinstance(error, dict) else error) in failure.message


@pytest.mark.parametrize("error", [None, "", {}, False])
def test_an_answer_is_not_lost_for_an_empty_error(error: Any) -> None:
    assert _text({"content": "(B)"}, error=error)[0] == "(B)"


@pytest.mark.parametrize(
    "choice",
    [
        {"finish_reason": "internal_error", "message": {"content": "(A"}},
        {"finish_reason": "OutOfMemory", "message": {"content": "(A"}},
        {"finish_reason": "preempted", "message": {"content": "(A"}},
        {"finish_reason": "stop", "message": {"content": "(A", "error": "the worker died"}},
    ],
)
def test_a_generation_that_failed_is_a_failure_beside_its_text(choice: dict[str, Any]) -> None:
    assert isinstance(read_response(json.dumps({"choices": [choice]}).encode(), "host", 0.1), Failure)


def test_indices_may_be_written_as_texts() -> None:
    choices = [{"index": str(number), "message": {"content": text}} for number, text in ((1, "b"), (0, "a"))]
    answer = read_response(json.dumps({"choices": choices}).encode(), "host", 0.1)
    assert isinstance(answer, Answer)
    assert answer.text == "a"


def test_a_blocked_prompt_without_choices_is_blocked() -> None:
    found = read_response(b'{"promptFeedback": {"blockReason": "SAFETY"}}', "host", 0.1)
    assert isinstance(found, Failure)
    assert found.kind == "blocked"


@pytest.mark.parametrize(
    "before", [b"\xef\xbb\xbf", b"\n\n  ", b": PROCESSING\n\n: PROCESSING\n\n", b":\r\n\r\n"]
)
def test_what_stands_before_the_json_is_skipped(before: bytes) -> None:
    answer = read_response(before + b'{"choices": [{"message": {"content": "(B)"}}]}', "host", 1.0)
    assert isinstance(answer, Answer)
    assert answer.text == "(B)"


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
        (400, "Input length (5000 tokens) exceeds the maximum allowed length (4096 tokens).", "blocked"),
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096.", "blocked"),
        (400, "The input token count (9000) exceeds the maximum number of tokens allowed (8192).", "blocked"),
        (400, "litellm.ContextWindowExceededError: litellm.BadRequestError", "blocked"),
        (400, "Range of input length should be [1, 6000]", "blocked"),
        (
            400,
            '{"code": "DataInspectionFailed", "message": "Input data may contain inappropriate content."}',
            "blocked",
        ),
        (400, "litellm.ContentPolicyViolationError", "blocked"),
        (400, "The response was filtered due to the content management policy.", "blocked"),
        (403, "Your input was flagged by moderation", "blocked"),
        (403, "you have no access to this project", "transient"),
        (400, "URL too long", "permanent"),
        (400, "Unknown parameter: 'safety_identifier'", "permanent"),
        (400, "max_tokens is too large: 100000", "permanent"),
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
    assert failure_of_status("host", status, words.encode(), {}).kind == kind


def test_a_server_error_that_says_images_are_not_supported_is_lasting() -> None:
    """The words of llama.cpp's server for a model without an image encoder."""
    words = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"
    body = json.dumps({"error": {"code": 500, "message": words, "type": "server_error"}}).encode()
    assert failure_of_status("host", 500, body, {}).kind == "permanent"
    assert failure_of_status("host", 500, b"out of memory", {}).kind == "transient"


def test_an_account_without_money_is_no_lack_of_room() -> None:
    failure = failure_of_status(
        "host", 429, b'{"error": {"code": "insufficient_quota"}}', {"retry-after": "1"}
    )
    assert (failure.kind, failure.status, failure.retry_after) == ("transient", 402, None)


def test_a_message_is_short_and_on_one_line() -> None:
    message = failure_of_status("host", 500, b"a\n\tb\r\n" + b"c" * 10_000 + b"\xff", {}).message
    assert message.startswith("host: HTTP 500: a b c")
    assert len(message) < 400


def test_retry_after_is_read_in_seconds_and_as_a_date() -> None:
    assert seconds_until("7") == 7.0
    assert seconds_until("0.5") == 0.5
    assert seconds_until("-3") == 0.0
    in_a_minute = seconds_until(formatdate(time.time() + 60, usegmt=True))
    assert in_a_minute == pytest.approx(60, abs=1.5)
    assert seconds_until(formatdate(time.time() - 60, usegmt=True)) == 0.0
    for duration, seconds in (("500ms", 0.5), ("2s", 2.0), ("1m30s", 90.0), ("1h", 3600.0)):
        assert seconds_until(duration) == pytest.approx(seconds)
    now = time.time()
    for moment in (
        f"{now + 60}",
        f"{(now + 60) * 1000:.0f}",
        datetime.fromtimestamp(now + 60, UTC).isoformat(),
    ):
        assert seconds_until(moment) == pytest.approx(60, abs=1.5)
    for nonsense in (None, "", "soon", "Wed, 99 Nov 2099 99:99:99 GMT"):
        assert seconds_until(nonsense) is None


def test_retry_after_in_milliseconds_comes_first_and_a_long_pause_is_said() -> None:
    failure = failure_of_status("host", 429, b"", {"retry-after-ms": "1500", "retry-after": "2"})
    assert (failure.retry_after, failure.message) == (1.5, "host: HTTP 429: ")
    assert "(Retry-After: 7,200 s)" in failure_of_status("host", 429, b"", {"retry-after": "2h"}).message


def test_a_rate_limit_without_retry_after_says_in_its_own_headers_when_to_come_back() -> None:
    """Values of platform.openai.com, console.groq.com, docs.anthropic.com and openai-python #937."""

    def pause(headers: dict[str, str], status: int = 429) -> float | None:
        return failure_of_status("host", status, b"", headers).retry_after

    openai = {"x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-requests": "1s"}
    openai |= {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20.5s"}
    assert pause(openai) == 20.5
    assert pause({**openai, "Retry-After": "3"}) == 3.0
    assert pause({**openai, "x-ratelimit-remaining-tokens": "90"}) == 1.0
    assert pause(openai, status=500) is None
    assert pause({"x-rate-limit-reset-tokens": "55", "x-ratelimit-remaining-requests": "7"}) == 55.0
    assert pause({"x-ms-retry-after-ms": "250"}) == 0.25
    # A limit of a day is full again in hours, and has room for a call long before.
    assert pause({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "17h12m0s"}) == 60.0
    # Azure: openai-dotnet #838.
    assert pause({"x-ratelimit-remaining-tokens": "-1", "x-ratelimit-reset-tokens": "0"}) is None
    soon = datetime.fromtimestamp(time.time() + 30, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    anthropic = pause({"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": soon})
    assert anthropic == pytest.approx(30, abs=2)
    openrouter = pause(
        {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": f"{(time.time() + 30) * 1000:.0f}"}
    )
    assert openrouter == pytest.approx(30, abs=2)


def test_a_server_that_loads_its_model_is_asked_again_after_a_pause_as_one_without_room_is() -> None:
    loading = b'{"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}'
    failure = failure_of_status("host", 503, loading, {})
    assert (failure.kind, failure.retry_after) == ("transient", 5.0)
    assert is_capacity_refusal(failure)
    assert failure_of_status("host", 503, loading, {"retry-after": "9"}).retry_after == 9.0
    assert not is_capacity_refusal(failure_of_status("host", 503, b"no healthy upstream", {}))
