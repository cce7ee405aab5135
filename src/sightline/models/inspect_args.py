"""What one of inspect's providers is told, by arguments and by the environment: secrets out, the rest named.

Which variables a provider reads for its address is inspect's business, and known only once the provider is
made; by their names they are known before, so that no server's answers are taken for another's.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

import msgspec

from sightline.errors import UserError

# Held against names without their separators. A tokenizer's words (pad_token, stop_token_ids) are no secrets.
_SECRET = re.compile(
    r"key|secret|passw|credential|auth(?!or(?!iz))|headers?|cookie|bearer"
    r"|(?<!pad|eos|bos|unk|sep|cls)token(?!iz|s|id|type)"
)
_FROM_ENVIRONMENT = "the environment variable that the provider reads"

_ADDRESS = re.compile(r"(^|_)(BASE_URL|API_BASE|ENDPOINT|ENDPOINT_URL(_[A-Z_]+)?)$")
_FOR_EVERY_PROVIDER = "INSPECT_EVAL_MODEL_BASE_URL"

# How the variables of inspect's own providers begin.
_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_",),
    "azureai": ("AZURE_", "AZUREAI_"),
    "bedrock": ("BEDROCK_", "AWS_"),
    "cloudflare": ("CLOUDFLARE_",),
    "deepseek": ("DEEPSEEK_",),
    "fireworks": ("FIREWORKS_",),
    "google": ("GOOGLE_",),
    "grok": ("XAI_", "GROK_"),
    "groq": ("GROQ_",),
    "hf-inference-providers": ("HF_INFERENCE_PROVIDERS_",),
    "litellm-proxy": ("LITELLM_",),
    "llama-cpp-python": ("LLAMA_CPP_PYTHON_",),
    "meta": ("META_",),
    "mistral": ("MISTRAL_",),
    "moonshot": ("MOONSHOT_",),
    "ollama": ("OLLAMA_",),
    "openai": ("OPENAI_",),
    "openai-api": (),
    "openai-api-completions": (),
    "openrouter": ("OPENROUTER_",),
    "perplexity": ("PERPLEXITY_",),
    "sagemaker": ("AWS_",),
    "sambanova": ("SAMBANOVA_",),
    "sglang": ("SGLANG_",),
    "together": ("TOGETHER_",),
    "vllm": ("VLLM_",),
    "vllm-completions": ("VLLM_",),
}
_CLOUDS: Mapping[str, tuple[str, ...]] = {
    "azure": ("AZURE_", "AZUREAI_"),
    "bedrock": ("BEDROCK_", "AWS_"),
    "vertex": ("VERTEX_", "GOOGLE_"),
}
"""Where others host a model: `openai/azure/NAME`."""
_IN_PROCESS = ("hf", "mockllm", "nnterp", "none", "transformer_lens")
"""Providers of inspect's that ask no server."""


def refuse_secrets(passed: Mapping[str, Any]) -> None:
    """Raise UserError where an argument, at whatever depth, holds a secret by its name, or in its address."""
    for name in _names(passed):
        if _SECRET.search(re.sub(r"[^a-z0-9]", "", name.rpartition(".")[2].lower())):
            raise UserError(
                f"--model-arg {name} holds a secret, which would end up in results",
                expected=_FROM_ENVIRONMENT,
            )
    address = _split(str(passed.get("base_url", "")), "--model-arg base_url")
    if address.username or address.password or address.query:
        raise UserError(
            "--model-arg base_url holds a password or a query, which would end up in results",
            expected=_FROM_ENVIRONMENT,
        )


def addresses(model: str, passed: Mapping[str, Any]) -> list[str]:
    """The addresses that are named for a model, `PROVIDER/NAME`: the `base_url` that is passed, or else what
    the environment says, sorted and without passwords and queries; none where the provider has its own.

    Of a provider that is not one of inspect's nobody knows which variable it reads, so all count. Raises
    UserError for what is no address.
    """
    if passed.get("base_url"):
        return [str(passed["base_url"])]
    provider, *path = model.split("/")
    if provider in _IN_PROCESS:
        return []
    begins = _beginnings(provider, path)
    return sorted(
        {
            _bare(value, variable)
            for variable, value in os.environ.items()
            if value
            and _ADDRESS.search(variable)
            and (variable == _FOR_EVERY_PROVIDER or variable.startswith(begins))
        }
    )


def host_of(model: str, named: Sequence[str]) -> str:
    """What shares a rate limit: host and port where one address is named, else the provider."""
    host = _split(named[0], "base_url").netloc if len(named) == 1 else ""
    return host or f"inspect/{model.partition('/')[0]}"


def identity_of(model: str, named: Sequence[str], passed: Mapping[str, Any]) -> str:
    """Whose answers these are: the model, its addresses, its arguments; what is no single value by digest."""
    told = {**passed, "base_url": ",".join(named)} if named else passed
    return " ".join(
        [
            f"inspect {model}",
            *(
                f"{name}={value if isinstance(value, str | int | float) else _digest(value)}"
                for name, value in sorted(told.items())
            ),
        ]
    )


def _beginnings(provider: str, path: Sequence[str]) -> tuple[str, ...]:
    """How the variables begin that say where a provider is; '' is how any does."""
    if provider not in _VARIABLES:
        return ("",)
    begins = _VARIABLES[provider]
    if len(path) > 1:
        begins += _CLOUDS.get(path[0], ())
        if provider.startswith("openai-api"):
            begins += (f"{path[0].upper().replace('-', '_')}_",)
    return begins


def _bare(address: str, variable: str) -> str:
    parts = _split(address, f"the environment variable {variable}")
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl().lstrip("/")


def _split(address: str, source: str) -> SplitResult:
    try:
        # Some providers take a host without a scheme, which urlsplit would take for a path.
        return urlsplit(address if "://" in address or not address else f"//{address}")
    except ValueError as error:
        raise UserError(f"{source} is no address ({error})", expected="such as http://host:8000/v1") from None


def _names(value: Any, within: str = "") -> Iterator[str]:
    """The names of all arguments, those inside others behind a dot."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield f"{within}{name}"
            yield from _names(inner, f"{within}{name}.")
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _names(inner, within)


def _digest(value: Any) -> str:
    """The digest of a value; of objects that only Python can pass, such as a client, their kind."""
    encoded = msgspec.json.encode(value, order="sorted", enc_hook=lambda thing: type(thing).__qualname__)
    return hashlib.sha256(encoded).hexdigest()[:16]
