"""inspect_ai's providers behind our engine: what a provider is asked, and what comes of its replies."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from PIL import Image

import sightline
from sightline.errors import UserError
from sightline.images import data_url, inspect_image
from sightline.models.registry import ModelOptions, resolve
from sightline.types import Answer, Failure, ImageRef, Message, Request, Text, Usage, user

pytest.importorskip("inspect_ai")

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import transcript
from inspect_ai.log._transcript import Transcript, _transcript
from inspect_ai.model import (
    ChatMessageAssistant,
    Content,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelAPI,
    ModelCall,
    ModelOutput,
    ModelUsage,
    RetryDecision,
    StopReason,
    modelapi,
)

KEY = "sk-planted-0123456789"
Reply = Callable[[list[Any], GenerateConfig], Any]


class Refusal(Exception):  # noqa: N818 - says what happened
    """What a client raises for an HTTP status."""

    def __init__(self, message: str, status_code: int, decision: RetryDecision | bool = False) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.decision = decision


@modelapi(name="stand-in")
class StandIn(ModelAPI):
    """A provider that does what the test says: `reply` gets messages and config, and may be awaited."""

    reply: Reply
    made: list[StandIn]

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - as inspect's own
        region: str = "",
    ) -> None:
        super().__init__(model_name, base_url, api_key, ["STAND_IN_KEY"], config)
        if model_name == "keyless":
            raise PrerequisiteError("[bold]ERROR[/bold]: No [blue]STAND_IN_KEY[/blue]\n\nin the environment.")
        self.region = region
        self.client = type("Client", (), {"max_retries": 2})()
        self.closed = False
        StandIn.made.append(self)

    async def generate(self, input: list[Any], tools: Any, tool_choice: Any, config: GenerateConfig) -> Any:  # noqa: A002
        reply = StandIn.reply(input, config)
        return await reply if asyncio.iscoroutine(reply) else reply

    def should_retry(self, ex: Exception) -> bool | RetryDecision:
        return getattr(ex, "decision", False)

    async def aclose(self) -> None:
        self.closed = True


def says(text: str = "(B)", stopped: StopReason = "stop", usage: ModelUsage | None = None) -> ModelOutput:
    output = ModelOutput.from_content("stand-in-2026", text, stop_reason=stopped)
    output.usage = usage
    return output


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    StandIn.made = []
    StandIn.reply = lambda messages, config: says()
    yield
    StandIn.made = []


def raises(error: Exception) -> Reply:
    def reply(messages: list[Any], config: GenerateConfig) -> Any:
        raise error

    return reply


def model_of(spec: str = "inspect/stand-in/m", **args: Any) -> Any:
    (model,) = resolve(spec, ModelOptions(args=args))
    return model


def ask(*requests: Request, reply: Reply | None = None, spec: str = "inspect/stand-in/m", **args: Any) -> Any:
    """What comes of requests sent one after another; of one where there is one."""
    if reply is not None:
        StandIn.reply = reply

    async def run() -> list[Answer | Failure]:
        async with model_of(spec, **args) as model:
            asked = requests or (request(),)
            return [result for one in asked async for _, result in model.answer([one])]

    results = asyncio.run(run())
    return results if len(requests) > 1 else results[0]


def request(*messages: Message, sampling: Mapping[str, Any] | None = None, draw: int = 0) -> Request:
    return Request("key", messages or (user("Is it day?"),), sampling or {}, draw=draw)


def test_an_answer_carries_text_reasoning_usage_and_what_the_provider_calls_itself() -> None:
    usage = ModelUsage(
        input_tokens=10,
        input_tokens_cache_read=5,
        input_tokens_cache_write=2,
        output_tokens=7,
        reasoning_tokens=4,
    )
    output = says("", usage=usage)
    thought: list[Content] = [
        ContentReasoning(reasoning="The sun is up."),
        ContentReasoning(reasoning="<ciphered>", summary="So it is day.", redacted=True),
        ContentText(text="Yes."),
    ]
    output.choices[0].message = ChatMessageAssistant(content=thought)
    answer = ask(reply=lambda *_: output)
    assert (answer.text, answer.reasoning) == ("Yes.", "The sun is up.\n\nSo it is day.")
    assert answer.usage == Usage(17, 7, 4, cached_tokens=5)
    assert (answer.finish_reason, answer.version) == ("stop", "stand-in-2026")


def test_usage_that_nobody_counted_stays_unknown() -> None:
    assert ask().usage == Usage()


@pytest.mark.parametrize(
    ("stopped", "result"),
    [
        ("stop", "stop"),
        ("max_tokens", "length"),
        ("unknown", "unknown"),
        ("content_filter", "content filter"),
        ("model_length", "context"),
    ],
)
def test_stop_reasons_become_finish_reasons_or_say_why_it_was_blocked(stopped: Any, result: str) -> None:
    came = ask(reply=lambda *_: says("I cannot", stopped))
    if stopped in ("content_filter", "model_length"):
        assert came.kind == "blocked"
        assert result in came.message
    else:
        assert (came.finish_reason, came.text) == (result, "I cannot")


def test_an_output_without_a_choice_is_asked_again() -> None:
    assert ask(reply=lambda *_: ModelOutput(model="m")).kind == "transient"


def test_messages_keep_their_roles_and_images_go_as_the_bytes_on_disk(tmp_path: Path) -> None:
    Image.radial_gradient("L").save(tmp_path / "a.png")
    file = inspect_image(ImageRef(str(tmp_path / "a.png")), {})
    seen: list[Any] = []

    def reply(messages: list[Any], config: GenerateConfig) -> ModelOutput:
        seen.extend(messages)
        return says()

    turns = (
        Message("system", (Text("Be brief."),)),
        Message("user", (ImageRef(file.path), Text("Is it day?"))),
        Message("assistant", (Text("Yes."),)),
        user("Sure?"),
    )
    assert isinstance(ask(Request("key", turns, {}, {file.path: file}), reply=reply), Answer)
    assert [turn.role for turn in seen] == ["system", "user", "assistant", "user"]
    image, text = seen[1].content
    assert isinstance(image, ContentImage)
    assert (image.image, text.text) == (data_url(file).decode(), "Is it day?")
    assert (seen[0].content, seen[2].content, seen[3].content) == ("Be brief.", "Yes.", "Sure?")


def test_a_image_that_changed_on_disk_costs_its_own_request_alone(tmp_path: Path) -> None:
    Image.radial_gradient("L").save(tmp_path / "a.png")
    file = inspect_image(ImageRef(str(tmp_path / "a.png")), {})
    (tmp_path / "a.png").unlink()
    gone, fine = ask(Request("1", (user(ImageRef(file.path)),), {}, {file.path: file}), request())
    assert gone.kind == "permanent"
    assert isinstance(fine, Answer)


def test_sampling_is_passed_on_by_inspects_names_and_draws_have_seeds_of_their_own() -> None:
    seen: list[GenerateConfig] = []

    def reply(messages: list[Any], config: GenerateConfig) -> ModelOutput:
        seen.append(config)
        return says()

    sampling = {"temperature": 0.7, "top_p": 0.9, "top_k": 5, "max_tokens": 64, "seed": 3, "stop": "\n"}
    sampling |= {"reasoning_effort": "low"}
    ask(request(sampling=sampling, draw=2), reply=reply)
    (config,) = seen
    assert (config.temperature, config.top_p, config.top_k, config.max_tokens) == (0.7, 0.9, 5, 64)
    assert (config.seed, config.stop_seqs, config.reasoning_effort) == (5, ["\n"], "low")
    assert config.max_retries == 0
    assert not config.cache
    assert model_of().effective(sampling) == sampling


@pytest.mark.parametrize(
    ("sampling", "message"),
    [
        ({"temprature": 1}, "did you mean 'temperature'"),
        ({"max_retries": 3}, "unknown sampling option"),
        ({"temperature": "hot"}, "--gen temperature.*found 'hot'"),
    ],
)
def test_an_option_that_inspect_does_not_take_is_refused_before_anything_is_asked(
    sampling: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        model_of().effective(sampling)


# Failures


def test_a_rate_limit_reaches_the_limiter_at_once_with_the_seconds_to_wait() -> None:
    calls: list[int] = []

    def reply(messages: list[Any], config: GenerateConfig) -> Any:
        calls.append(1)
        raise Refusal("slow down", 503, RetryDecision.rate_limit(7.0))

    failure = ask(reply=reply)
    assert (failure.kind, failure.status, failure.retry_after) == ("transient", 429, 7.0)
    assert len(calls) == 1
    assert StandIn.made[0].client.max_retries == 0


@pytest.mark.parametrize("decision", [True, RetryDecision.transient()])
def test_what_the_provider_would_ask_again_is_transient(decision: Any) -> None:
    failure = ask(reply=raises(Refusal("overloaded", 529, decision)))
    assert (failure.kind, failure.status) == ("transient", 529)


@pytest.mark.slow
def test_a_call_that_takes_too_long_is_transient() -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    failure = ask(reply=lambda *_: never(), timeout=0.01)
    assert (failure.kind, failure.status) == ("transient", None)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Refusal("this exceeds the context window", 400), "blocked"),
        (Refusal("no such field", 400), "permanent"),
        (ValueError("images are too small"), "permanent"),
        (json.JSONDecodeError("Unterminated string", '{"choices": "', 12), "transient"),
        (Refusal("insufficient_quota", 429), "transient"),
    ],
)
def test_what_the_provider_gives_up_on_is_read_by_its_status_and_its_words(
    error: Exception, kind: str
) -> None:
    failure = ask(reply=raises(error))
    assert (failure.kind, failure.retry_after) == (kind, None)
    assert str(error) in failure.message


def test_an_error_that_a_provider_returns_does_not_repeat_the_request() -> None:
    call = ModelCall.create({"image": "data:image/png;base64,AAAA"}, None)
    failure = ask(reply=lambda *_: (Refusal("too many tokens", 400), call))
    assert (failure.kind, failure.status) == ("blocked", 400)
    assert "base64" not in failure.message


@pytest.mark.parametrize(("status", "expected"), [(401, "the key"), (403, "the key"), (404, "a model")])
def test_a_key_or_a_model_that_does_not_exist_ends_the_run_unless_it_worked_before(
    status: int, expected: str
) -> None:
    with pytest.raises(UserError, match=expected):
        ask(reply=raises(Refusal("no", status)))
    replies = iter([says(), Refusal("no", status)])

    def reply(messages: list[Any], config: GenerateConfig) -> Any:
        came = next(replies)
        if isinstance(came, Exception):
            raise came
        return came

    _, failure = ask(request(), request(), reply=reply)
    assert failure.kind == "transient"


def test_a_cloud_without_credentials_ends_the_run() -> None:
    class NoCredentialsError(Exception):
        pass

    with pytest.raises(UserError, match="NoCredentialsError: Unable to locate"):
        ask(reply=raises(NoCredentialsError("Unable to locate credentials")))


def test_a_key_that_is_repeated_is_kept_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_KEY", KEY)
    assert KEY not in ask(reply=lambda *_: says(f"Your key is {KEY}")).text
    assert KEY not in ask(reply=raises(Refusal(f"bad request with {KEY}", 400))).message
    with pytest.raises(UserError) as refused:
        ask(reply=raises(Refusal(f"{KEY} is wrong", 401)))
    assert KEY not in str(refused.value)


# Names and arguments


def test_what_changes_answers_is_in_the_identity_and_what_is_ours_is_not() -> None:
    assert model_of().identity == "inspect stand-in/m"
    assert model_of(timeout=5, max_side=700).identity == "inspect stand-in/m"
    model = model_of(base_url="http://here:1/v1", region="eu")
    assert model.identity == "inspect stand-in/m base_url=http://here:1/v1 region=eu"
    assert (model.host, model_of().host) == ("here:1", "inspect/stand-in")
    assert model_of(max_side=700).capabilities.limits.max_side == 700
    routed = model_of(routing={"order": ["a"]}).identity
    assert routed != model_of(routing={"order": ["b"]}).identity
    assert "order" not in routed


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        ("inspect/openai-api/local/llava", "LOCAL_BASE_URL"),
        ("inspect/vllm/llava", "VLLM_BASE_URL"),
        ("inspect/ollama/llava", "OLLAMA_BASE_URL"),
        ("inspect/anthropic/claude", "INSPECT_EVAL_MODEL_BASE_URL"),
        ("inspect/stand-in/m", "ANYONES_BASE_URL"),
    ],
)
def test_an_address_from_the_environment_is_in_the_identity_as_one_that_is_passed(
    monkeypatch: pytest.MonkeyPatch, spec: str, variable: str
) -> None:
    plain = model_of(spec)
    assert plain.identity == spec.replace("/", " ", 1)
    for address in ("http://gpu1:8000/v1", "http://gpu2:8000/v1"):
        monkeypatch.setenv(variable, address)
        model, passed = model_of(spec), model_of(spec, base_url=address)
        assert model.identity == passed.identity == f"{plain.identity} base_url={address}"
        assert model.host == passed.host == urlsplit(address).netloc
        assert model_of(spec, base_url="http://here:1/v1").host == "here:1"
        monkeypatch.delenv(variable)


def test_two_servers_under_one_name_are_asked_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.jsonl").write_text('{"group": "g", "variant": "a", "images": [], "prompt": "Who?"}\n')
    words: dict[str, Any] = {"model": "inspect/stand-in/m", "store": tmp_path / "s.db"}
    words |= {"set": {"embedder": "none"}}
    asked = []
    for address in (None, "http://gpu1:8000/v1", "http://gpu2:8000/v1", "http://gpu1:8000/v1"):
        if address:
            monkeypatch.setenv("ANYONES_BASE_URL", address)
        asked.append(sightline.run(f"groups:{tmp_path}/mine.jsonl", fingerprint="off", **words).counts.sent)
    assert asked == [1, 1, 1, 0]


def test_a_secret_in_an_argument_is_refused_whatever_its_depth() -> None:
    with pytest.raises(UserError, match="--model-arg extra_body contains a secret") as refused:
        model_of(extra_body={"a": 1, "extra_headers": {"x": KEY}})
    assert KEY not in str(refused.value)


def test_the_providers_own_arguments_reach_it_and_it_is_closed_in_the_end() -> None:
    ask(base_url="http://here:1/v1", region="eu")
    (made,) = StandIn.made
    assert (made.base_url, made.region, made.closed) == ("http://here:1/v1", "eu", True)


@pytest.mark.parametrize(
    ("spec", "args", "message"),
    [
        ("inspect/", {}, "names no model"),
        ("inspect/anthropic", {}, "names no model.*inspect/PROVIDER/NAME"),
        ("inspect/stand-in/m", {"api_key": KEY}, "api_key contains a secret.*environment variable"),
        ("inspect/stand-in/m", {"aws_session_token": KEY}, "contains a secret"),
        ("inspect/stand-in/m", {"default_headers": {"x": KEY}}, "contains a secret"),
        ("inspect/stand-in/m", {"base_url": f"http://me:{KEY}@h/v1"}, "base_url contains a secret"),
        ("inspect/stand-in/m", {"timeout": -1}, "--model-arg"),
    ],
)
def test_a_name_or_an_argument_that_will_not_do_is_refused_and_no_secret_repeated(
    spec: str, args: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as refused:
        resolve(spec, ModelOptions(args=args))
    assert KEY not in str(refused.value)


@pytest.mark.parametrize(
    ("spec", "args", "message"),
    [
        ("inspect/nobody/m", {}, "Model API nobody of model 'nobody/m' not recognized"),
        ("inspect/stand-in/keyless", {}, "cannot be used: No STAND_IN_KEY in the environment"),
        ("inspect/stand-in/m", {"regoin": "eu"}, "regoin"),
        ("inspect/anthropic/claude", {}, "cannot be used.*pip install anthropic"),
    ],
)
def test_a_provider_that_cannot_be_made_is_one_message_before_the_first_call(
    monkeypatch: pytest.MonkeyPatch, spec: str, args: dict[str, Any], message: str
) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(UserError, match=message) as refused:
        ask(spec=spec, **args)
    assert "[bold]" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_without_inspect_the_install_command_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.models.inspect.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'sightline\[inspect\]'"):
        model_of()


def test_naming_a_model_loads_nothing_of_inspect() -> None:
    code = (
        "import sys, sightline\n"
        "from sightline.models.registry import ModelOptions, resolve\n"
        "resolve('inspect/anthropic/claude', ModelOptions())\n"
        "print('inspect_ai' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# Under the engine


def test_as_many_calls_are_in_flight_as_the_engine_wants() -> None:
    calls = 100

    async def run() -> int:
        everyone = asyncio.Barrier(calls)

        async def reply() -> ModelOutput:
            async with asyncio.timeout(20):
                await everyone.wait()
            return says()

        StandIn.reply = lambda messages, config: reply()
        async with model_of() as model:

            async def one() -> bool:
                return all([isinstance(result, Answer) async for _, result in model.answer([request()])])

            return sum(await asyncio.gather(*(one() for _ in range(calls))))

    assert asyncio.run(run()) == calls


@pytest.mark.parametrize("behind_another", [False, True])
def test_what_was_sent_is_not_kept(behind_another: bool) -> None:
    async def run() -> int:
        # What an evaluation of inspect's own leaves behind in its process, or a process without one.
        _transcript.set(Transcript() if behind_another else None)
        async with model_of() as model:
            for _ in range(3):
                async for _, result in model.answer([request()]):
                    assert isinstance(result, Answer)
        return len(transcript().events)

    assert asyncio.run(run()) == 0


def test_a_run_rides_out_rate_limits_and_the_next_one_asks_nothing(tmp_path: Path) -> None:
    lines = [{"group": f"g{n}", "variant": "a", "images": [], "prompt": f"{n}?"} for n in range(12)]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    refused: set[str] = set()

    def reply(messages: list[Any], config: GenerateConfig) -> ModelOutput:
        text = messages[-1].text
        if text not in refused:
            refused.add(text)
            raise Refusal("slow down", 429, RetryDecision.rate_limit(0.001))
        return says("Yes.", usage=ModelUsage(input_tokens=10, output_tokens=2))

    StandIn.reply = reply
    words: dict[str, Any] = {"model": "inspect/stand-in/m", "store": tmp_path / "s.db"}
    words |= {"set": {"embedder": "none"}}
    first = sightline.run(f"groups:{tmp_path}/mine.jsonl", **words)
    assert (first.result.probes, first.result.errors, first.counts.refused) == (12, 0, 12)
    assert (first.counts.spending.prompt_tokens, first.counts.spending.completion_tokens) == (120, 24)
    assert first.result.model_identity == "inspect stand-in/m"
    again = sightline.run(f"groups:{tmp_path}/mine.jsonl", **words)
    assert again.counts.sent == 0


def test_inspects_own_mock_answers() -> None:
    output = says("Yes.", usage=ModelUsage(output_tokens=1))
    assert ask(spec="inspect/mockllm/model", custom_outputs=[output]).text == "Yes."
