"""What a provider is told: which variables hold its address, what is a secret, what stays out of results."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from sightline.errors import UserError, holds_secret
from sightline.models import inspect
from sightline.models.inspect import addresses, host_of, identity_of

HERE = "http://here:8000/v1"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if inspect._ADDRESS.search(name)]:
        monkeypatch.delenv(name)


def _providers() -> Path:
    inspect_ai = pytest.importorskip("inspect_ai")
    return Path(inspect_ai.__file__).parent / "model" / "_providers"


def test_inspects_own_providers_are_all_known() -> None:
    """One that is not known counts every variable, which would cost answers their reuse."""
    named = set(re.findall(r'@modelapi\(name="(.+?)"\)', (_providers() / "providers.py").read_text()))
    assert named == {*inspect._VARIABLES, *inspect._IN_PROCESS}


def test_every_variable_in_the_source_of_inspects_providers_is_some_providers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = [f"{name}/{cloud}m" for name in inspect._VARIABLES for cloud in ("", "azure/", "bedrock/")]
    known += [f"{name}/vertex/m" for name in inspect._VARIABLES]
    read = {
        variable
        for file in _providers().rglob("*.py")
        for variable in re.findall(r'"([A-Z_]+_(?:BASE_URL|API_BASE|ENDPOINT\w*))"', file.read_text())
    }
    assert len(read) > 15
    for variable in read:
        monkeypatch.setenv(variable, HERE)
        assert any(addresses(model, {}) for model in known), variable
        monkeypatch.delenv(variable)


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai/gpt-4o", "OPENAI_BASE_URL"),
        ("openai/azure/gpt-4o", "AZUREAI_OPENAI_BASE_URL"),
        ("openai/azure/gpt-4o", "AZURE_OPENAI_ENDPOINT"),
        ("openai/bedrock/gpt-oss", "AWS_BEDROCK_BASE_URL"),
        ("anthropic/vertex/claude", "VERTEX_ANTHROPIC_BASE_URL"),
        ("bedrock/claude", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"),
        ("grok/grok-4", "XAI_BASE_URL"),
        ("litellm-proxy/m", "LITELLM_PROXY_API_BASE"),
        ("openai-api/my-host/org/m", "MY_HOST_BASE_URL"),
        ("openai-api-completions/my-host/m", "MY_HOST_BASE_URL"),
        ("sglang/m", "INSPECT_EVAL_MODEL_BASE_URL"),
        ("of-a-package/m", "ITS_ENDPOINT"),
    ],
)
def test_a_variable_counts_for_the_provider_that_reads_it(
    monkeypatch: pytest.MonkeyPatch, model: str, variable: str
) -> None:
    monkeypatch.setenv(variable, "")
    assert addresses(model, {}) == []
    monkeypatch.setenv(variable, HERE)
    assert addresses(model, {}) == [HERE]
    assert addresses(model, {"base_url": "http://there"}) == ["http://there"]


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("anthropic/claude", "OPENAI_BASE_URL"),
        ("openrouter/anthropic/claude", "ANTHROPIC_BASE_URL"),
        ("openai/gpt-4o", "AZURE_OPENAI_ENDPOINT"),
        ("openai-api/local/m", "OPENAI_BASE_URL"),
        ("hf/org/m", "HF_ENDPOINT"),
        ("mockllm/m", "INSPECT_EVAL_MODEL_BASE_URL"),
        ("of-a-package/m", "DATABASE_URL"),
    ],
)
def test_a_variable_of_others_leaves_the_identity_as_it_is(
    monkeypatch: pytest.MonkeyPatch, model: str, variable: str
) -> None:
    monkeypatch.setenv(variable, HERE)
    assert addresses(model, {}) == []


def test_what_is_secret_in_an_address_of_the_environment_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:hidden@here:8000/v1?key=hidden#hidden")
    assert addresses("openai/m", {}) == [HERE]
    monkeypatch.setenv("GROK_BASE_URL", "me:hidden@here:8000")
    assert addresses("grok/m", {}) == ["here:8000"]
    assert host_of("grok/m", ["here:8000"]) == "here:8000"
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://[here/v1")
    with pytest.raises(UserError, match="OLLAMA_BASE_URL is not a valid URL"):
        addresses("ollama/m", {})


def test_of_several_addresses_all_are_in_the_identity_and_none_is_the_host() -> None:
    named = ["http://a", "http://b"]
    assert identity_of("openai/m", named, {"z": 1}) == "inspect openai/m base_url=http://a,http://b z=1"
    assert host_of("openai/m", named) == host_of("openai/m", []) == "inspect/openai"


@pytest.mark.parametrize(
    "passed",
    [
        {"apikey": "x"},
        {"apiKey": "x"},
        {"X-Api-Key": "x"},
        {"authorization": "x"},
        {"auth": "x"},
        {"auth_token_file": "x"},
        {"extra_headers": {"a": "x"}},
        {"extra_body": {"user": {"Authorization": "x"}}},
        {"servers": [{"name": "a"}, {"password": "x"}]},
    ],
)
def test_a_secret_is_known_by_its_name_at_any_depth(passed: dict[str, Any]) -> None:
    assert holds_secret(passed)


@pytest.mark.parametrize(
    "name",
    ["tokenizer_path", "max_tokens", "stop_token_ids", "pad_token", "author", "chat_template", "use_adc"],
)
def test_words_that_only_sound_like_secrets_are_passed_on(name: str) -> None:
    assert not holds_secret({name: "x", "extra_body": {name: "x"}})
