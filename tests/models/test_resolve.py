"""From names to models: what each name means, and what is said of one that means nothing."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sightline.config import Config, Host, NamedModel
from sightline.errors import UserError
from sightline.models.offline import ChanceBaseline, Replay
from sightline.models.openai import OpenAICompatible
from sightline.models.registry import ModelOptions, resolve
from sightline.types import Answer, Failure, Origin, Request, user


def _one(spec: str, **options: Any) -> Any:
    (model,) = resolve(spec, ModelOptions(**options))
    return model


def test_an_address_with_a_model_is_an_endpoint_known_by_both() -> None:
    model = _one("http://host:8000/v1#org/llava")
    assert isinstance(model, OpenAICompatible)
    assert (model.model, model.host) == ("org/llava", "host:8000")
    assert model.identity == "http://host:8000/v1 org/llava"


def test_a_slash_at_the_end_makes_no_other_model() -> None:
    assert _one("http://host/v1/#m").identity == _one("http://host/v1#m").identity


def test_several_addresses_are_one_model_at_several_hosts() -> None:
    one, other = resolve("http://a:1/v1,http://b:2/v1/#m", ModelOptions())
    assert (one.host, other.host) == ("a:1", "b:2")
    assert one.identity == other.identity == "http://a:1/v1,http://b:2/v1 m"


def test_a_model_id_replaces_address_and_name() -> None:
    models = resolve("http://a:1/v1,http://b:2/v1#m", ModelOptions(model_id="llava-1.5"))
    assert [model.identity for model in models] == ["llava-1.5", "llava-1.5"]


def test_openai_needs_its_key_and_sends_it_to_its_own_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UserError, match=r"no API key for api\.openai\.com.*OPENAI_API_KEY is not set"):
        _one("openai/gpt-4o")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    model = _one("openai/gpt-4o")
    assert (model.host, model._key) == ("api.openai.com:443", "sk-1")
    assert "sk-1" not in model.identity + model.name
    assert _one("http://elsewhere/v1#gpt-4o")._key is None


def test_the_key_of_a_host_goes_to_that_host_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "sk-2")
    config = Config(hosts={"a:1": Host(key="MINE")})
    one, other = resolve("http://a:1/v1,http://b:2/v1#m", ModelOptions(config))
    assert (one._key, other._key) == ("sk-2", None)  # type: ignore[attr-defined]


def test_a_named_model_brings_its_arguments_and_the_callers_go_before_them() -> None:
    named = NamedModel("http://h/v1#m", {"max_side": 700, "timeout": 5}, "mine")
    model = _one("my-llava", config=Config(models={"my-llava": named}), args={"timeout": 9})
    assert (model.identity, model.capabilities.limits.max_side, model._timeout) == ("mine", 700, 9)


@pytest.mark.parametrize(
    ("spec", "args", "message"),
    [
        ("opnai/gpt-4o", {}, r"'opnai/gpt-4o'.*did you mean 'openai/"),
        ("http://host/v1", {}, "does not say which model.*#MODEL"),
        ("http://#m", {}, "not a valid URL"),
        ("http://host:99999/v1#m", {}, "not a valid URL.*Port out of range"),
        ("http://a/v1,b/v1#m", {}, "'b/v1' is not a valid URL"),
        ("openai/", {}, "no model after 'openai/'"),
        ("http://h/v1#m", {"timout": 3}, "'timout'.*did you mean 'timeout'"),
        (
            "http://h/v1#m",
            {"timeout": "long"},
            r"--model-arg timeout cannot be 'long'; expected a number, more than 0",
        ),
        ("baseline/chance", {"timeout": 3}, "has no --model-arg"),
        ("baseline/random", {}, "did you mean 'baseline/chance'"),
        ("replay/nowhere.jsonl", {}, "nowhere.jsonl"),
    ],
)
def test_a_name_that_means_nothing_is_answered_with_what_would(
    monkeypatch: pytest.MonkeyPatch, spec: str, args: dict[str, Any], message: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with pytest.raises(UserError, match=message):
        resolve(spec, ModelOptions(args=args))


@pytest.mark.parametrize(
    "address", ["http://me:secret@host/v1", "http://host/v1?key=secret", "http://a:b/secret@h/"]
)
def test_an_address_with_a_secret_in_it_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(UserError, match="password or a query") as error:
        resolve(f"{address}#m", ModelOptions())
    assert "secret" not in str(error.value)


# Models that need nobody


def _answers(model: Any, *requests: Request) -> list[Answer | Failure]:
    async def run() -> list[Answer | Failure]:
        async with model:
            return [result async for _, result in model.answer(requests)]

    return asyncio.run(run())


def _asked(text: str, key: str, origin: Origin | None = None) -> Request:
    return Request(key, (user(text),), {}, origin=origin)


def test_chance_guesses_one_of_the_options_the_same_each_time_and_another_by_seed() -> None:
    text = "Choose.\n(A) one\n(B) two\n(C) three"
    requests = [_asked(text, str(number)) for number in range(300)]
    first, again, other = (_answers(ChanceBaseline(seed), *requests) for seed in (0, 0, 1))
    assert first == again != other
    guesses = [result.text for result in first if isinstance(result, Answer)]
    assert {guess: guesses.count(guess) > 70 for guess in guesses} == {"(A)": True, "(B)": True, "(C)": True}
    assert ChanceBaseline(0).identity != ChanceBaseline(1).identity


def test_a_replayed_file_answers_its_own_probes_and_fails_for_others_at_once(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps({"id": "test-1", "response": "(B)"}) + "\n")
    model = _one(f"replay/{file}")
    assert isinstance(model, Replay)
    here, absent = (Origin("iibench", "none", sample, "none") for sample in ("test-1", "test-2"))
    found, missing, nowhere = _answers(
        model, _asked("?", "1", here), _asked("?", "2", absent), _asked("?", "3")
    )
    assert isinstance(found, Answer)
    assert found.text == "(B)"
    for failure in (missing, nowhere):
        # The file never changes, so asking again never helps.
        assert isinstance(failure, Failure)
        assert failure.kind == "permanent"
    identity = model.identity
    file.write_text(json.dumps({"id": "test-1", "response": "(C)"}) + "\n")
    assert _one(f"replay/{file}").identity != identity
